"""The tables of ``weft compare``: a column a size, a row an algorithm, and what stands out."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from weft.cli.printing import cell
from weft.cli.tables import print_whole
from weft.comparison import Comparison, Row, Run
from weft.comparison.model import WEFT, Outcome
from weft.units import format_size, format_time

_WINNER = "bold green"
_GAP = 3  # between columns


def print_comparison(comparison: Comparison, files: list[str], *, busbw: bool) -> None:
    """Print the figures for people: as many sizes side by side as fit."""
    console = Console()
    shown = [_column(comparison, row, busbw=busbw) for row in comparison.rows]
    labels = [label for label, _ in shown[0]]
    columns = [[text for _, text in column] for column in shown]
    widest = max(len(cell) for column in columns for cell in column)
    room = console.width - max(map(len, labels)) - _GAP
    each = max(1, room // (widest + _GAP))
    what = "bus bandwidth in GB/s" if busbw else "time"
    console.print(cell(f"{comparison.title}: {what}, * the best"), soft_wrap=True)
    for first in range(0, len(columns), each):
        print_whole(console, _table(labels, columns[first : first + each]))
    for note in notes(comparison):
        console.print(cell(note), soft_wrap=True)
    for file in files:
        console.print(cell(f"saved in {file}"), soft_wrap=True)


def _column(comparison: Comparison, row: Row, *, busbw: bool) -> list[tuple[str, Text]]:
    """One size, its heading first: what each row is, and what is in it."""
    bound = f"{row.bound_busbw_GBps:.4g}" if busbw else format_time(row.bound)
    outcomes = [(WEFT, row.weft), *((name, row.baselines[name]) for name in comparison.names)]
    cells = [
        ("size", cell(format_size(row.size))),
        ("lower bound", cell(bound)),
        *((name, _cell(run, busbw=busbw, best=name == row.winner)) for name, run in outcomes),
        ("speed-up", cell(_times(row.speedup))),
        ("of the bound", cell(_times(row.weft.time / row.bound if row.bound else 1.0))),
        ("method", cell(row.weft.method)),
    ]
    if len(comparison.groups) > 1:
        alone = _cell(row.alone, busbw=busbw, best=False)
        cells += [("each alone", alone), ("together", cell(_times(row.gain)))]
    return cells


def _cell(found: Outcome | None, *, busbw: bool, best: bool) -> Text:
    if not isinstance(found, Run):
        return cell("-")
    if not found.verified:
        return cell("WRONG", style="bold red")
    text = f"{found.busbw_GBps:.4g}" if busbw else format_time(found.time)
    return cell(f"* {text}", style=_WINNER) if best else cell(text)


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"x{ratio:.3f}"


def _table(labels: list[str], columns: list[list[Text]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(labels[0])
    for column in columns:
        table.add_column(column[0], justify="right")
    for number, label in enumerate(labels[1:], start=1):
        table.add_row(cell(label), *(column[number] for column in columns))
    return table


def notes(comparison: Comparison) -> Iterator[str]:
    """What must not be overlooked: where a classical algorithm is as good or better, or wrong."""
    answers: dict[str, list[str]] = {}
    for row in comparison.rows:
        if row.classical is not None:
            answers.setdefault(row.classical, []).append(format_size(row.size))
    for method, sizes in answers.items():
        yield f"Weft's answer is a classical algorithm at {', '.join(sizes)}: {method}"
    for row in comparison.rows:
        if row.winner not in (WEFT, None):
            slower = _times(1 / (row.speedup or 1.0))
            yield f"{row.winner} is faster than Weft's answer at {format_size(row.size)}: {slower}"
    for row in comparison.rows:
        for name, violation in row.violations.items():
            yield f"{name} is WRONG at {format_size(row.size)}: {violation}"
    for name in comparison.names:
        reasons = [_reason(row.baselines[name]) for row in comparison.rows]
        if reasons and reasons[0] is not None and len(set(reasons)) == 1:
            yield f"no {name}: {reasons[0]}"
    if comparison.verified:
        yield "all verified"


def _reason(found: Outcome) -> str | None:
    return None if isinstance(found, Run) else found.reason
