"""How the kinds of rows lie in a compact store: each module here adds its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from weft.algorithm import Algorithm, Rows, UnnamedFile
from weft.collective import Collective
from weft.errors import InputError
from weft.formats.store._layout import Arrays, Column, Types
from weft.registry import Registry
from weft.topology.model import Topology

Columns = dict[str, Column]
Taken = tuple[Columns, dict[str, int]]


@dataclass(frozen=True)
class StoredKind:
    """How rows of one kind lie in a store: as arrays and a few numbers.

    Attributes
    ----------
    take
        Arrays and numbers that say all of some rows, given these and their algorithm; a log comes
        first.
    make
        Rows from the algorithm without its rows, and from arrays and numbers of a file.
    of_one
        Whether they are those of one NPU's chunks in an All-to-All, and stand for those of all.
    most
        How many chunks a few rows may stand for: `make` refuses more.
    file
        The file without a name in which the log of some rows lies, if it does.
    """

    take: Callable[[Any, Algorithm], Taken]
    make: Callable[[Algorithm, Arrays], Rows]
    of_one: bool = False
    most: int = 0
    file: Callable[[Any], UnnamedFile | None] = lambda _rows: None


KINDS: Registry[StoredKind] = Registry("kind of rows", "weft.formats.store.kinds")


def columns_of(rows: Rows, types: Types, prefix: str = "") -> Columns:
    """Attributes of rows as arrays of these types."""
    return {f"{prefix}{name}": getattr(rows, name).astype(kind) for name, kind in types.items()}


def context(
    frame: Algorithm, kinds: tuple[str, ...], *, custom: bool = False
) -> tuple[Topology, Collective]:
    """Network and collective of compact rows, which serve these; with own parts if `custom`."""
    demand, *others = frame.demands
    if frame.timing is None or others:
        raise InputError("compact rows need a topology, a cost model and one collective")
    if demand.kind not in kinds or (demand.parts is not None and not custom):
        raise InputError(f"such rows cannot be those of this {demand.kind}")
    if demand.parts is None and not demand.smallest_chunk:
        raise InputError(f"compact rows need chunks that have bytes; {demand.size} B are too few")
    return frame.timing.topology, demand
