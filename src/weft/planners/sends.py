"""Classical algorithms as sends between ranks, and how they are put on a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weft.algorithm import Algorithm, Transfers
from weft.algorithm.transfers import moved_places, scratch_slots
from weft.collective import Collective
from weft.errors import InputError
from weft.ragged import offsets_of
from weft.topology.model import Topology


@dataclass(frozen=True, eq=False)
class Sends:
    """What a classical algorithm sends, whatever the network: rows, with the step of each.

    Rows mean what those of `weft.algorithm.Transfers` mean, once they are in order of step; rows
    of one step keep their order. It is also the order in which a link serves rows that come at
    the same time.

    Attributes
    ----------
    step
        When it is sent, in rounds of the algorithm (int64). A row still starts as soon as it
        may: steps only give an order.
    chunk
        The chunk's number within its collective (int32).
    src, dst
        NPU numbers (int32), also of NPUs that no link joins. Where both are the same, the NPU
        copies or adds in its own memory.
    reduce
        Whether it is added to what is there (bool).
    src_place, dst_place
        Places, where some row needs others than the chunk's HOME (int32).
    waits
        How many rows further on (or back) the row is that each row waits for beyond what it must;
        0 if there is none (int64).
    """

    step: NDArray[np.int64]
    chunk: NDArray[np.int32]
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    reduce: NDArray[np.bool_]
    src_place: NDArray[np.int32] | None = None
    dst_place: NDArray[np.int32] | None = None
    waits: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        step: ArrayLike,
        chunk: ArrayLike,
        src: ArrayLike,
        dst: ArrayLike,
        reduce: ArrayLike,
        *places: ArrayLike,
    ) -> Sends:
        """Rows from anything that broadcasts together; `places`: those read, those written."""
        columns = np.broadcast_arrays(step, chunk, src, dst, reduce, *places)
        types = (np.int64, *[np.int32] * 3, np.bool_, *[np.int32] * len(places))
        pairs = zip(columns, types, strict=True)
        return cls(*(column.reshape(-1).astype(kind) for column, kind in pairs))

    def __len__(self) -> int:
        return len(self.step)

    def selected(self, rows: NDArray[np.bool_]) -> Sends:
        """Some of the rows, none of which waits for others."""
        columns = {f.name: getattr(self, f.name) for f in fields(self)}
        kept: dict[str, Any] = {n: c[rows] for n, c in columns.items() if c is not None}
        return Sends(**kept)

    @classmethod
    def together(cls, parts: Sequence[Sends]) -> Sends:
        """Rows of several, one after the other; their steps count as they are."""
        columns: dict[str, Any] = {}
        for name in (column.name for column in fields(cls)):
            given = [getattr(part, name) for part in parts]
            if all(column is None for column in given):
                continue
            others = [np.zeros_like(p.step) if name == "waits" else p.chunk for p in parts]
            pairs = zip(given, others, strict=True)
            columns[name] = np.concatenate([o if c is None else c for c, o in pairs])
        return cls(**columns)


Produce = Callable[[Topology, Collective], Sends]


def untimed(
    name: str, sends: Produce, topology: Topology, demands: Sequence[Collective]
) -> Algorithm:
    """A classical algorithm for each demand, all at once: what is sent, before it has times.

    Raises
    ------
    InputError
        If there is no collective, or the algorithm does not know this network.
    """
    if not demands:
        raise InputError(f"{name}: there is no collective to serve")
    for demand in demands:
        topology.check_members(demand.group)
    return in_steps(name, demands, [sends(topology, demand) for demand in demands])[0]


def in_steps(
    name: str, demands: Sequence[Collective], parts: Sequence[Sends]
) -> tuple[Algorithm, NDArray[np.int64]]:
    """What is sent for each demand, all at once, in order of step; and the step of each row."""
    rows = _side_by_side(demands, parts)
    offsets = deps = None
    if rows.waits is not None:
        offsets = offsets_of(rows.waits != 0)
        deps = (np.arange(len(rows)) + rows.waits)[rows.waits != 0]
    names = ("chunk", "src", "dst", "reduce", "src_place", "dst_place")
    columns: dict[str, Any] = {column: getattr(rows, column) for column in names}
    transfers = Transfers(**columns, dep_offsets=offsets, deps=deps)
    order = np.argsort(rows.step, kind="stable")
    algorithm = Algorithm(tuple(demands), transfers.reordered(order), provenance={"method": name})
    return algorithm, rows.step[order]


def _side_by_side(demands: Sequence[Collective], parts: Sequence[Sends]) -> Sends:
    """All demands' rows, with the numbers that chunks and slots have beside those of others."""
    moved, first, slot = [], 0, 0
    for demand, sends in zip(demands, parts, strict=True):
        columns: dict[str, Any] = {
            name: moved_places(column, first, slot)
            for name in ("src_place", "dst_place")
            if (column := getattr(sends, name)) is not None
        }
        slot = max([slot, *map(scratch_slots, columns.values())])
        moved.append(replace(sends, chunk=(sends.chunk + first).astype(np.int32), **columns))
        first += len(demand.chunks)
    return Sends.together(moved)
