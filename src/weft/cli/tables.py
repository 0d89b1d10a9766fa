"""Tables on a terminal, and the words that several of them have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from rich import box
from rich.console import Console
from rich.table import Table

from weft.cli.printing import cell
from weft.collective import PATTERNS, format_group
from weft.units import PS_PER_US, format_time

T = TypeVar("T")
Rows = list[tuple[str, str]]

_WIDEST = 200
_MOST_STEPS = 4  # at either end of a path


def print_facts(
    title: str | None, rows: Iterable[Sequence[str]], header: Sequence[str] = ()
) -> None:
    """Print what something is: a name and a fact a row."""
    table = Table(*header, title=title and cell(title), show_header=bool(header))
    for row in rows:
        table.add_row(*map(cell, row))
    Console().print(table)


def print_rows(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    words: Sequence[str] = (),
    more: int = 0,
    see: str = "--json",
) -> None:
    """Print rows under headings; columns of `words` are on the left, `more` rows left out."""
    table = Table(title=cell(title), box=box.SIMPLE_HEAD)
    for name in columns:
        table.add_column(cell(name), justify="left" if name in words else "right")
    for row in rows:
        table.add_row(*map(cell, row))
    if more > 0:
        table.caption = cell(f"and {more:,} more: see {see}")
    print_whole(Console(), table)


def print_whole(console: Console, table: Table) -> None:
    """Print a table as wide as it is: cells cut short would be worse than lines that wrap."""
    wide = console.measure(table, options=console.options.update(max_width=_WIDEST)).maximum
    Console(width=max(console.width, wide)).print(table)


def shown_cut(kind: str, chunks: int) -> str:
    """In how many chunks each share is cut; or the buffer, if one root has or gets all of it."""
    if has_shares(kind):
        return f"{chunks:,} chunk(s) per share"
    return f"{chunks:,} chunk{'s' * (chunks > 1)}"


def has_shares(kind: str) -> bool:
    """Whether a buffer is not all of one root's."""
    pattern = PATTERNS[kind]
    return not pattern.rooted or pattern.parts(2) > 1


def both_ends(steps: Sequence[T]) -> Iterator[tuple[int, T | None]]:
    """The first and the last steps of a path by number; for those between, None and how many."""
    between = len(steps) - 2 * _MOST_STEPS
    for number, step in enumerate(steps, start=1):
        if between > 1 and number == _MOST_STEPS + 1:
            yield between, None
        if between <= 1 or not _MOST_STEPS < number <= len(steps) - _MOST_STEPS:
            yield number, step


def shown_shares(shares: Iterable[tuple[float, str]]) -> str:
    """What the time of a path was spent on."""
    return ", ".join(f"{share:.1%} {what}" for share, what in shares if share) or "nothing moves"


def shown_time(microseconds: float) -> str:
    return format_time(round(microseconds * PS_PER_US))


def shown_models(latency_model: str, switching: str, switches: object) -> str:
    """The choices of the cost model; how hops cross switches only where there are any."""
    return f"{latency_model} α" + (f", {switching}" if switches else "")


def shown_group(group: Sequence[int], letters: int) -> str:
    """The members, as many as there is room for; no item alone takes that much."""
    text = format_group(group)
    return text if len(text) <= letters else f"{text[: text.rindex(',', 0, letters)]},..."
