"""The table of ``weft compare``: a row a size, a column an algorithm, and what stands out."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from weft.cli.report import print_whole
from weft.compare import Comparison, Row, Run
from weft.compare.model import WEFT, Outcome
from weft.units import format_size, format_time

_WINNER = "bold green"


def print_comparison(comparison: Comparison, files: list[str], *, busbw: bool) -> None:
    """Print the figures for people."""
    console = Console()
    print_whole(console, _table(comparison, busbw=busbw))
    for note in notes(comparison):
        console.print(Text(note), soft_wrap=True)
    for file in files:
        console.print(Text(f"saved in {file}"), soft_wrap=True)


def _table(comparison: Comparison, *, busbw: bool) -> Table:
    what = "bus bandwidth in GB/s" if busbw else "time"
    title = Text(f"{comparison.title}: {what}, * the best")
    table = Table(title=title, box=box.SIMPLE_HEAD)
    together = len(comparison.groups) > 1
    joint = ("alone", "gain") if together else ()
    for name in ("size", "bound", WEFT, "method", *joint, *comparison.names, "speed-up"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for row in comparison.rows:
        cells = [Text(format_size(row.size)), Text(_bound(row, busbw=busbw))]
        cells += [_cell(row, WEFT, row.weft, busbw=busbw), Text(row.weft.method)]
        if together:
            cells += [_cell(row, "alone", row.alone, busbw=busbw), Text(_times(row.gain))]
        cells += [_cell(row, name, row.baselines[name], busbw=busbw) for name in comparison.names]
        table.add_row(*cells, Text(_times(row.speedup)))
    return table


def _bound(row: Row, *, busbw: bool) -> str:
    return f"{row.bound_busbw_GBps:.4g}" if busbw else format_time(row.bound)


def _cell(row: Row, name: str, found: Outcome | None, *, busbw: bool) -> Text:
    if not isinstance(found, Run):
        return Text("-")
    if not found.verified:
        return Text("WRONG", style="bold red")
    text = f"{found.busbw_GBps:.4g}" if busbw else format_time(found.time)
    return Text(f"* {text}", style=_WINNER) if name == row.winner else Text(text)


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"x{ratio:.3f}"


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
