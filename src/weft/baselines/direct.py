"""Direct: pairwise sends, each over one fixed shortest path, blind to all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, Buffer, Routes, Transfers, place
from weft.clock import check_clock
from weft.collective import Chunks, Collective
from weft.cost import CostModel
from weft.errors import InputError
from weft.reachability import unreachable
from weft.topology.model import Topology


def direct(
    topology: Topology, demands: Sequence[Collective], cost: CostModel | None = None
) -> Algorithm:
    """The Direct algorithm: what every taker needs is sent to it alone.

    No copy serves two takers, and no sum is formed on the way: an All-Gather is a send for every
    pair, a Reduce-Scatter likewise, and the taker adds up. A message takes the path of the fewest
    hops; of hops equally good, the one whose first link has the lowest number. On meshes and
    tori that is dimension order. Links serve first come first; what comes at the same time goes
    in order of the distance from holder to taker, counted in NPU numbers upwards (everybody
    begins with its next), then of the chunk's number.

    Raises
    ------
    InputError
        If a sum has several takers, or there is no collective.
    UnreachableError
        If some chunk has no path to where it must go.
    """
    cost = cost or CostModel()
    if not demands:
        raise InputError("direct: there is no collective to serve")
    for demand in demands:
        topology.check_members(demand.group)
    chunks = Chunks.concatenate([demand.chunks for demand in demands])
    messages = _messages(chunks, topology.npus)
    check_clock(topology, demands, transfers=len(messages.chunk) * topology.npus)
    sent = _core.direct(
        topology.core,
        cost.core,
        messages.holders,
        messages.taker,
        chunks.reach[messages.chunk],
        chunks.bytes[messages.chunk],
        messages.set_offsets,
        messages.set_members,
    )
    message, src, dst, route, start, end, offsets, links, lost = sent
    if lost >= 0:
        raise unreachable(topology, chunks)
    chunk = messages.chunk[message]
    summed = chunks.reduce[chunk] & (dst == messages.taker[message])
    places = _places(chunks, message, chunk, summed)
    transfers = Transfers(chunk, src, dst, summed, route, start, end, *places)
    routes = Routes(offsets, links) if topology.switches else Routes.of_links(topology.links)
    made_by = MappingProxyType({"method": "direct"})
    return Algorithm(tuple(demands), transfers, topology, routes, cost, made_by)


@dataclass(frozen=True, eq=False)
class _Messages:
    """One a chunk and taker, of a sum one a contributor; with sets to have them from."""

    chunk: NDArray[np.int32]
    holders: NDArray[np.int32]
    taker: NDArray[np.int32]
    set_offsets: NDArray[np.int64]
    set_members: NDArray[np.int32]


def _messages(chunks: Chunks, npus: int) -> _Messages:
    """What must be sent. After the chunks' own sets comes one for each NPU alone."""
    sizes = chunks.set_sizes
    if (sums := np.flatnonzero(chunks.reduce & (sizes[chunks.post] != 1))).size:
        takers = sizes[chunks.post[sums[0]]]
        raise InputError(
            f"direct: chunk {sums[0]} is a sum for {takers} NPUs, but Direct sums for one only; "
            "ask for a reduce-scatter or a reduce"
        )
    # The many sides: takers of what is copied, contributors of what is summed.
    chunk, far = _members(chunks, np.where(chunks.reduce, chunks.pre, chunks.post))
    summed = chunks.reduce[chunk]
    taker = np.where(summed, chunks.set_members[chunks.set_offsets[chunks.post[chunk]]], far)
    holders = np.where(summed, len(sizes) + far, chunks.pre[chunk])
    there = np.where(summed, far == taker, _contains(chunks, chunks.pre[chunk], taker, npus))
    first = chunks.set_members[chunks.set_offsets[chunks.pre[chunk]]]
    ahead = (taker - np.where(summed, far, first)) % npus
    order = np.lexsort((chunk, ahead))
    order = order[~there[order]]
    return _Messages(
        chunk[order].astype(np.int32),
        holders[order].astype(np.int32),
        taker[order].astype(np.int32),
        np.concatenate([chunks.set_offsets, chunks.set_offsets[-1] + np.arange(1, npus + 1)]),
        np.concatenate([chunks.set_members, np.arange(npus, dtype=np.int32)]),
    )


def _members(
    chunks: Chunks, sets: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Every member of the set of every chunk: the chunk's number, and the NPU."""
    sizes = chunks.set_sizes[sets]
    chunk = np.repeat(np.arange(len(chunks)), sizes)
    inner = np.arange(len(chunk)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return chunk, chunks.set_members[chunks.set_offsets[sets[chunk]] + inner]


def _contains(
    chunks: Chunks, sets: NDArray[np.int32], npu: NDArray[np.int32], npus: int
) -> NDArray[np.bool_]:
    """Whether each NPU is a member of the set beside it."""
    owner = np.repeat(np.arange(len(chunks.set_offsets) - 1), chunks.set_sizes)
    return np.isin(sets.astype(np.int64) * npus + npu, owner * npus + chunks.set_members)


def _places(
    chunks: Chunks,
    message: NDArray[np.int32],
    chunk: NDArray[np.int32],
    summed: NDArray[np.bool_],
) -> tuple[NDArray[np.int32], NDArray[np.int32]] | tuple[None, None]:
    """Where rows read and write, if some must keep apart from what lies in HOME.

    A relay of a part of a sum has a part of its own: it keeps others' in SCRATCH, a slot a
    message.
    """
    if not (relayed := chunks.reduce[chunk] & ~summed).any():
        return None, None
    slot = np.int32(place(Buffer.SCRATCH, 0)) | message
    again = np.ones(len(message), dtype=np.bool_)
    again[np.unique(message, return_index=True)[1]] = False
    home = chunk
    return np.where(again & chunks.reduce[chunk], slot, home), np.where(relayed, slot, home)
