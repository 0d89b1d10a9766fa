"""What all tables share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum

import weft

Row = tuple[str, ...]


class Extent(IntEnum):
    """How much of a table to print: what takes seconds, minutes, or longer."""

    SHORT = 0
    USUAL = 1
    LONG = 2


# The first row it gives are the headings; its docstring is the title.
Table = Callable[[Extent], Iterator[Row]]


def ratio(run: weft.Result) -> str:
    """Time over the proven bound; a result that is not verified has none."""
    return f"x{1 / run.efficiency:.6f}" if run.verified else f"WRONG: {run.verdict.violation}"
