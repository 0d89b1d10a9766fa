"""Classical algorithms as sends between ranks, and how they are put on a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weft.algorithm import Algorithm, Transfers
from weft.algorithm.transfers import moved_places, scratch_slots
from weft.collective import Collective
from weft.cost import CostModel
from weft.engine import simulate
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
    after
        The number of a row that each row waits for beyond what it must; -1 for none (int64).
    """

    step: NDArray[np.int64]
    chunk: NDArray[np.int32]
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    reduce: NDArray[np.bool_]
    src_place: NDArray[np.int32] | None = None
    dst_place: NDArray[np.int32] | None = None
    after: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        step: ArrayLike,
        chunk: ArrayLike,
        src: ArrayLike,
        dst: ArrayLike,
        reduce: ArrayLike,
        src_place: ArrayLike | None = None,
        dst_place: ArrayLike | None = None,
    ) -> Sends:
        """Rows from anything that broadcasts together."""
        columns = np.broadcast_arrays(step, chunk, src, dst, reduce)
        flat = [np.asarray(column).reshape(-1) for column in columns]
        shape = columns[0].shape
        places = [
            None
            if column is None
            else np.broadcast_to(np.asarray(column), shape).reshape(-1).astype(np.int32)
            for column in (src_place, dst_place)
        ]
        return cls(
            flat[0].astype(np.int64),
            flat[1].astype(np.int32),
            flat[2].astype(np.int32),
            flat[3].astype(np.int32),
            flat[4].astype(np.bool_),
            places[0],
            places[1],
        )

    def __len__(self) -> int:
        return len(self.step)

    @classmethod
    def together(cls, parts: Sequence[Sends]) -> Sends:
        """Rows of several, one after the other; their steps count as they are."""
        named = any(p.src_place is not None or p.dst_place is not None for p in parts)
        columns: dict[str, NDArray[np.generic]] = {}
        for column in fields(cls):
            if column.name == "after" or (column.name.endswith("_place") and not named):
                continue
            values = [getattr(p, column.name) for p in parts]
            columns[column.name] = np.concatenate(
                [p.chunk if v is None else v for p, v in zip(parts, values, strict=True)]
            )
        return cls(**columns, after=_after_together(parts))  # type: ignore[arg-type]


def _after_together(parts: Sequence[Sends]) -> NDArray[np.int64] | None:
    if all(part.after is None for part in parts):
        return None
    columns, first = [], 0
    for part in parts:
        after = np.full(len(part), -1) if part.after is None else part.after
        columns.append(np.where(after < 0, -1, after + first))
        first += len(part)
    return np.concatenate(columns)


Produce = Callable[[Topology, Collective], Sends]


def mapped(
    name: str,
    sends: Produce,
    topology: Topology,
    demands: Sequence[Collective],
    cost: CostModel | None = None,
) -> Algorithm:
    """A classical algorithm for each demand, all at once, with the times of a simulation.

    Sends between NPUs that no link joins go over fixed shortest paths; links serve first come
    first. See `weft.simulate`.

    Raises
    ------
    InputError
        If there is no collective, or the algorithm does not know this network.
    UnreachableError
        If two NPUs that must exchange something have no path.
    """
    untimed = unmapped(name, sends, topology, demands)
    return simulate(untimed, topology, cost or CostModel()).timed()


def unmapped(
    name: str, sends: Produce, topology: Topology, demands: Sequence[Collective]
) -> Algorithm:
    """The same as an algorithm without times: what is sent, before it is put on the network."""
    if not demands:
        raise InputError(f"{name}: there is no collective to serve")
    for demand in demands:
        topology.check_members(demand.group)
    rows = _side_by_side(demands, [sends(topology, demand) for demand in demands])
    order = np.argsort(rows.step, kind="stable")
    dep_offsets, deps = _dependencies(rows, order)
    transfers = Transfers(
        rows.chunk[order],
        rows.src[order],
        rows.dst[order],
        rows.reduce[order],
        src_place=None if rows.src_place is None else rows.src_place[order],
        dst_place=None if rows.dst_place is None else rows.dst_place[order],
        dep_offsets=dep_offsets,
        deps=deps,
    )
    return Algorithm(tuple(demands), transfers, provenance={"method": name})


def _dependencies(
    rows: Sends, order: NDArray[np.intp]
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
    """What rows, put in order, wait for beyond what they must: `dep_offsets` and `deps`."""
    if rows.after is None:
        return None, None
    number = np.empty(len(rows), dtype=np.int64)
    number[order] = np.arange(len(rows))
    after = rows.after[order]
    waits = after >= 0
    return offsets_of(waits), number[after[waits]]


def _side_by_side(demands: Sequence[Collective], parts: Sequence[Sends]) -> Sends:
    """All demands' rows, with the numbers that chunks and slots have beside those of others."""
    moved, first, slot = [], 0, 0
    for demand, sends in zip(demands, parts, strict=True):
        places = [_moved(sends.src_place, first, slot), _moved(sends.dst_place, first, slot)]
        chunk = (sends.chunk + first).astype(np.int32)
        moved.append(replace(sends, chunk=chunk, src_place=places[0], dst_place=places[1]))
        slot = max([slot, *(scratch_slots(column) for column in places if column is not None)])
        first += len(demand.chunks)
    return Sends.together(moved)


def _moved(places: NDArray[np.int32] | None, first: int, slot: int) -> NDArray[np.int32] | None:
    return None if places is None else moved_places(places, first, slot)
