"""Direct: what every taker needs is sent to it alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.classical.planner import classical
from weft.collective import PATTERNS, Chunks, Collective
from weft.cost import CostModel
from weft.planners.sends import Sends
from weft.ragged import owners, places
from weft.reachability import unreachable
from weft.topology.model import Topology


@classical("direct", 200, tuple(PATTERNS), "what every taker needs is sent to it alone")
def direct(topology: Topology, demand: Collective) -> Sends:
    """A send for every chunk and every taker that does not have it, and for every part of a sum.

    No copy serves two takers, and no sum is formed on the way: an All-Gather is a send for every
    pair, a Reduce-Scatter likewise, and the taker adds up. Of a sum for several one adds up, all
    in turn, and then sends it to the others: an All-Reduce is a Reduce-Scatter and then an
    All-Gather. All sends are asked for at once, in order of the distance from source to
    destination, counted in NPU numbers upwards (everybody begins with its next), then of the
    chunk's number.
    """
    chunks = demand.chunks
    root = _roots(chunks)
    parts, contributor = _members(chunks, chunks.pre)
    summing = chunks.reduce[parts] & (contributor != root[parts])
    parts, contributor = parts[summing], contributor[summing]
    copies, taker = _members(chunks, chunks.post)
    summed = chunks.reduce[copies]
    there = np.where(
        summed, taker == root[copies], _contains(chunks, chunks.pre[copies], taker, topology)
    )
    copies, taker, summed = copies[~there], taker[~there], summed[~there]
    holder = root[copies]
    several = ~summed & (chunks.set_sizes[chunks.pre[copies]] > 1)
    holder[several] = _nearest(topology, chunks, copies[several], taker[several])
    return Sends.together(
        [
            _in_turn(topology, Sends.of(0, parts, contributor, root[parts], True)),
            _in_turn(topology, Sends.of(summed, copies, holder, taker, False)),
        ]
    )


def _roots(chunks: Chunks) -> NDArray[np.int32]:
    """Who has each chunk before it is copied: of a sum the taker that adds it up, all in turn."""
    sets = np.where(chunks.reduce, chunks.post, chunks.pre)
    sizes = chunks.set_sizes[sets]
    turn = np.where(chunks.reduce, np.arange(len(chunks)) * sizes // max(len(chunks), 1), 0)
    return chunks.set_members[chunks.set_offsets[sets] + turn]


def _in_turn(topology: Topology, sends: Sends) -> Sends:
    """Sends in order of distance: everybody begins with its next."""
    order = np.lexsort((sends.chunk, (sends.dst - sends.src) % topology.npus))
    columns = (sends.step, sends.chunk, sends.src, sends.dst, sends.reduce)
    return Sends.of(*(column[order] for column in columns))


def _members(
    chunks: Chunks, sets: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Every member of the set of every chunk: the chunk's number, and the NPU."""
    return owners(chunks.set_sizes[sets]), chunks.set_members[places(chunks.set_offsets, sets)]


def _contains(
    chunks: Chunks, sets: NDArray[np.int32], npu: NDArray[np.int32], topology: Topology
) -> NDArray[np.bool_]:
    """Whether each NPU is a member of the set beside it."""
    owner = owners(chunks.set_sizes)
    width = np.int64(topology.npus)
    return np.isin(sets * width + npu, owner * width + chunks.set_members)


def _nearest(
    topology: Topology, chunks: Chunks, chunk: NDArray[np.int64], taker: NDArray[np.int32]
) -> NDArray[np.int32]:
    """The holder with the fewest hops to go, for chunks that several have at the start."""
    found = _core.nearest(topology.core, CostModel().core, chunks.core, chunk, taker)
    if (found < 0).any():
        raise unreachable(topology, chunks)
    return found
