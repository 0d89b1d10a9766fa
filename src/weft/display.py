"""How values show themselves: a line for `repr`, and a small table of HTML for notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from weft.quoting import brief
from weft.units import format_size

if TYPE_CHECKING:
    from weft.collective import Collective
    from weft.topology.model import Topology

_MOST_LETTERS = 300  # of a cell


def line(value: object, *parts: str) -> str:
    """``<Name: this, that>``: what `repr` gives."""
    return brief(f"<{type(value).__name__} {', '.join(filter(None, parts))}>", _MOST_LETTERS)


def named(kinds: Sequence[str]) -> str:
    """Collectives that run at once, given what each is, in a few words."""
    if len(set(kinds)) != 1:
        return f"{len(kinds)} collectives"
    return kinds[0] if len(kinds) == 1 else f"{kinds[0]} in {len(kinds)} groups"


def title_of(demands: Sequence[Collective], topology: Topology | None = None) -> str:
    """What is done and where, in a few words."""
    what = named([demand.kind for demand in demands])
    if len(demands) == 1:
        what += f" of {format_size(demands[0].size)}"
    return what if topology is None else f"{what} on {topology.title}"


def of_bound(efficiency: float) -> str:
    """How near the bound a time is; never more than is true."""
    return f"{math.floor(efficiency * 1000) / 10:g} % of the bound"


def html_table(
    title: str, rows: Iterable[Sequence[object]], header: Sequence[object] = (), note: str = ""
) -> str:
    """A plain table; every cell is escaped, since files of others may have named what is in it.

    Parameters
    ----------
    title
        Stands above the table.
    rows, header
        The cells. Without a header the first cell of each row is taken for its heading.
    note
        Stands below the table.
    """
    head = "".join(f"<th>{_cell(name)}</th>" for name in header)
    lines = [f"<tr>{head}</tr>"] if header else []
    for first, *others in rows:
        tag = "td" if header else "th"
        cells = "".join(f"<td>{_cell(cell)}</td>" for cell in others)
        lines.append(f"<tr><{tag}>{_cell(first)}</{tag}>{cells}</tr>")
    below = f"<p>{_cell(note)}</p>" if note else ""
    return f"<table><caption>{_cell(title)}</caption>{''.join(lines)}</table>{below}"


def _cell(content: object) -> str:
    from html import escape  # with a list of all entities

    return escape(brief(content, _MOST_LETTERS))
