"""Rows that no network was made for, on a network: each message over a fixed shortest path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Buffer, Routes, Transfers, place
from weft.algorithm.transfers import PLACE_BITS, scratch_slots
from weft.collective import Chunks
from weft.cost import CostModel
from weft.errors import InputError, UnreachableError
from weft.ragged import offsets_of, owners
from weft.topology.model import Topology

MOST_SLOTS = 1 << PLACE_BITS


@dataclass(frozen=True, eq=False)
class Routed:
    """Transfers from NPU to NPU over routes, still without times.

    Attributes
    ----------
    transfers
        One row per hop; rows of one message follow each other.
    routes
        What `route` names.
    route
        The route of each row (int32).
    chained
        Whether each row passes on just what the row before it brought (uint8).
    """

    transfers: Transfers
    routes: Routes
    route: NDArray[np.int32]
    chained: NDArray[np.uint8]


def routed(transfers: Transfers, chunks: Chunks, topology: Topology, cost: CostModel) -> Routed:
    """Rows between any two NPUs as rows over hops of the network.

    The path has the fewest hops from NPU to NPU, through NPUs that may hold the chunk; of hops
    equally good the one whose first link has the lowest number is taken, which on meshes, tori
    and products is dimension order. Ways through switches and parallel links take turns. An NPU
    on the way keeps a copy where the chunk belongs, but a part of a sum in SCRATCH, apart from
    its own.

    Raises
    ------
    UnreachableError
        If some message has no path.
    """
    _check_npus(transfers, chunks, topology)
    found = _core.forward(
        topology.core,
        cost.core,
        chunks.core,
        transfers.src,
        transfers.dst,
        chunks.reach[transfers.chunk],
    )
    lost = found.lost
    if lost >= 0:
        raise UnreachableError(
            f"{topology.name}: chunk {transfers.chunk[lost]} cannot get from NPU "
            f"{transfers.src[lost]} to NPU {transfers.dst[lost]}: no path leads there through NPUs "
            "that may hold it and switches that it fits"
        )
    offsets, src, dst = found.hop_offsets, found.src, found.dst
    counts = np.diff(offsets)
    message = owners(counts)
    first, last = np.zeros(len(src), dtype=np.bool_), np.zeros(len(src), dtype=np.bool_)
    first[offsets[:-1]] = True
    last[offsets[1:] - 1] = True
    chunk = transfers.chunk[message]
    src_place, dst_place = _places(transfers, chunks, message, first, last)
    dep_offsets, deps = _deps(transfers, message, first, offsets)
    rows = Transfers(
        chunk,
        src,
        dst,
        transfers.reduce[message] & last,
        src_place=src_place,
        dst_place=dst_place,
        dep_offsets=dep_offsets,
        deps=deps,
    )
    routes = Routes(found.route_offsets, found.route_links)
    return Routed(rows, routes, found.route, (~first).view(np.uint8))


def _check_npus(transfers: Transfers, chunks: Chunks, topology: Topology) -> None:
    """Raise if rows or chunks name NPUs that the network does not have."""
    named = np.unique(np.concatenate([transfers.src, transfers.dst, chunks.set_members]))
    for npu in named[~np.isin(named, topology.members)][:1]:
        raise InputError(
            f"the algorithm names NPU {npu}, which {topology.name} does not have: its NPUs are "
            f"{topology.members[0]} to {topology.members[-1]}"
        )


def _places(
    transfers: Transfers,
    chunks: Chunks,
    message: NDArray[np.int64],
    first: NDArray[np.bool_],
    last: NDArray[np.bool_],
) -> tuple[NDArray[np.int32] | None, NDArray[np.int32] | None]:
    """Where rows read and write: a relay of a message that needs it has a slot of its own."""
    chunk = transfers.chunk[message]
    named = transfers.src_place is not None or transfers.dst_place is not None
    apart = chunks.reduce[chunk] | named
    if not named and not (apart & ~last).any():
        return None, None
    reads = chunk if transfers.src_place is None else transfers.src_place[message]
    writes = chunk if transfers.dst_place is None else transfers.dst_place[message]
    named_places = (transfers.src_place, transfers.dst_place)
    free = max(0 if column is None else scratch_slots(column) for column in named_places)
    slot = free + message
    if slot.max(initial=0) >= MOST_SLOTS:
        raise InputError(f"{len(transfers)} messages need more than {MOST_SLOTS} slots of memory")
    kept = (np.int32(place(Buffer.SCRATCH, 0)) | slot).astype(np.int32)
    return (
        np.where(apart & ~first, kept, reads).astype(np.int32),
        np.where(apart & ~last, kept, writes).astype(np.int32),
    )


def _deps(
    transfers: Transfers,
    message: NDArray[np.int64],
    first: NDArray[np.bool_],
    offsets: NDArray[np.int64],
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
    """The first hop waits for the last hops of what its message waits for."""
    if transfers.dep_offsets is None or transfers.deps is None:
        return None, None
    counts = np.where(first, np.diff(transfers.dep_offsets)[message], 0)
    return offsets_of(counts), offsets[transfers.deps + 1] - 1
