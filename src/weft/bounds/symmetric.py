"""Bounds of All-to-All on vertex-transitive networks: no table of pairs is needed.

Where lengths of links are alike wherever automorphisms take a link, what one NPU sends has as far
to go as what any other sends: the flow bound needs the distances from one NPU alone. After
failures distances are at least what they were, over links that are fewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.bounds.bound import Bound
from weft.bounds.classes import ChunkClasses
from weft.bounds.lengths import Carriers, Lengths, whole_lengths
from weft.bounds.nodes import node_bound
from weft.collective import Collective
from weft.collective.chunks import cut
from weft.cost import CostModel
from weft.judge.automorphisms import joined, prove_alike
from weft.judge.orbits import NotAlikeError
from weft.ragged import offsets_of
from weft.topology.model import Topology

_MOST_SORTS = 16  # each costs the distances from an NPU
_MOST_MOVED = 1 << 20  # links, times automorphisms, of which orbits are found: half a second


def applies(topology: Topology, demand: Collective) -> bool:
    """Whether `symmetric_bounds` has something to say."""
    everyone = len(demand.group) == len(topology.members) > 1
    if demand.kind != "all-to-all" or not everyone:
        return False
    if topology.whole is None:
        return bool(_sorts(topology))
    return _is_part(topology) and bool(_sorts(topology.whole))


Sorts = list[NDArray[np.int64]]
_SORTS: WeakKeyDictionary[Topology, Sorts] = WeakKeyDictionary()


def _sorts(topology: Topology) -> Sorts:
    """Ways to sort links, all kept by automorphisms that together move any NPU to any other.

    Empty if none are known and proved to be such: `Topology.symmetry` may claim anything, and
    bounds must hold.
    """
    if topology not in _SORTS:
        _SORTS[topology] = _proved_sorts(topology)
    return _SORTS[topology]


def _proved_sorts(topology: Topology) -> Sorts:
    said, tiers = topology.symmetry, _tiers(topology)
    if not said.transitive:
        return []
    if topology.dimensions:
        axes = _kept(topology, _axes(topology) * topology.links + tiers)
        if axes:
            return axes
    found = _kept(topology, tiers)
    if found and topology.links * len(said.found) <= _MOST_MOVED:
        orbits = _link_orbits(topology, said.found)
        if len(np.unique(orbits)) <= _MOST_SORTS:
            found += _kept(topology, orbits)
    return found


def _kept(topology: Topology, sorts: NDArray[np.int64]) -> Sorts:
    """The sorts, numbered from 0, if automorphisms keep them that move any NPU to any other."""
    numbers: NDArray[np.int64] = np.unique(sorts, return_inverse=True)[1].astype(np.int64)
    try:
        prove_alike(topology, topology.symmetry.found, numbers)
    except NotAlikeError:
        return []
    return [numbers]


def _link_orbits(topology: Topology, images: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    """A number for all links that automorphisms move to each other; parallel links in order."""
    speed = (topology.latency, topology.bandwidth)
    order = np.lexsort((*speed, topology.dst, topology.src))
    moves = []
    for image in images:
        moved = np.lexsort((*speed, image[topology.dst], image[topology.src]))
        move = np.empty_like(order)
        move[moved] = order
        moves.append(move)
    return joined(moves, topology.links)


def symmetric_bounds(
    topology: Topology, demand: Collective, cost: CostModel, enough: int
) -> Iterator[Bound]:
    """What one NPU's sends prove, and then the links of one dimension after the other."""
    classes = sends_of(demand, slowest_rank(topology, demand))
    yield node_bound(topology, classes, cost, enough, topology.links + topology.nodes)
    links = Carriers.of(topology, classes, cost)
    sizes = sizes_of(demand)
    chunks = int((sizes > 0).sum())
    whole = topology.whole or topology
    everyone = whole.members
    left = _left_of(whole, topology)
    for lengths in _lengths(whole, Carriers.of(whole, classes, cost)):
        # From one NPU to all others; from all others to one, it is the same sum.
        away = _distances(whole, lengths, [int(everyone[0])], everyone, np.ones_like(everyone))
        lost = sorted(topology.removed - whole.removed)
        gone = [_distances_from(whole, lost, demand, lengths, each) for each in (sizes, sizes > 0)]
        total, count = away * demand.size - gone[0], away * chunks - gone[1]
        time, ideal = links.prove(lengths[left], total, count)
        yield Bound(time, "flow", ideal)


def sizes_of(demand: Collective) -> NDArray[np.int64]:
    """Bytes of each chunk that an NPU has: a row for each rank it is for."""
    marks = cut(demand.size, demand.ranks * demand.chunks_per_share, demand.alignment)
    return np.diff(marks).reshape(demand.ranks, demand.chunks_per_share)


def slowest_rank(topology: Topology, demand: Collective) -> int:
    """The rank whose links out carry least: the first, unless some have failed."""
    out = np.bincount(topology.src, weights=topology.bandwidth, minlength=topology.nodes)
    return int(out[list(demand.group)].argmin())


def sends_of(demand: Collective, rank: int) -> ChunkClasses:
    """What a rank has for the others: a part of the collective, so its bounds hold for all."""
    sizes = sizes_of(demand)
    real = sizes[sizes > 0]
    gets = sizes.sum(axis=1) > 0
    gets[rank] = False
    others = np.flatnonzero(gets).astype(np.int32)
    return ChunkClasses(
        np.full_like(others, rank),
        others,
        np.zeros(len(others), dtype=np.bool_),
        (sizes > 0).sum(1)[others],
        sizes.sum(1)[others],
        int(real.min()),
        int(real.max()),
        np.arange(demand.ranks + 1, dtype=np.int64),
        np.array(demand.group, dtype=np.int32),
    )


def _is_part(topology: Topology) -> bool:
    """Whether all links are those of the network before failures, in the same order."""
    whole = topology.require_whole()
    left = _left_of(whole, topology)
    return all(
        np.array_equal(getattr(topology, name), getattr(whole, name)[left])
        for name in ("src", "dst", "bandwidth", "latency")
    )


def _left_of(whole: Topology, topology: Topology) -> NDArray[np.bool_]:
    """Which links of a network before failures are still there, in the same order."""
    before, now = (each.src.astype(np.int64) * each.nodes + each.dst for each in (whole, topology))
    return np.isin(before, now)


def _distances_from(
    whole: Topology,
    lost: list[int],
    demand: Collective,
    lengths: Lengths,
    each: NDArray[np.generic],
) -> float:
    """From all lost NPUs to all that are there, times what there is `each` for a rank."""
    amount = each.sum(axis=1).astype(np.int64)
    return _distances(whole, lengths, lost, np.array(demand.group), amount) if lost else 0.0


def _distances(
    topology: Topology,
    lengths: Lengths,
    sources: list[int],
    to: NDArray[np.integer[Any]],
    amount: NDArray[np.int64],
) -> float:
    """Of all pairs of sources and `to`, times the amount of the latter."""
    counts = np.zeros(topology.nodes, dtype=np.int64)
    counts[sources] = len(to)
    offsets = offsets_of(counts)
    ends = np.tile(to, len(sources)).astype(np.int32)
    amounts = np.tile(amount, len(sources))
    flows = _core.Flows(offsets=offsets, dst=ends, amount=amounts)
    return _core.shortest_routing(topology.core, lengths, flows, threads=1)[0]


def _lengths(topology: Topology, links: Carriers) -> Iterator[Lengths]:
    """Lengths that automorphisms keep: of one sort of links alone, and alike in time."""
    several = False
    for sort in _sorts(topology):
        sorts = int(sort.max()) + 1
        several = several or sorts > 1
        for number in range(min(sorts, _MOST_SORTS)):
            yield (sort == number).astype(np.int64)
    if several:
        yield whole_lengths(1 / links.capacity)


def _tiers(topology: Topology) -> NDArray[np.int64]:
    """From how far above the NPUs to how far each link leads, and how fast it is.

    What passes one sort of links up passes the same down; both are tried.
    """
    height = np.full(topology.nodes, topology.nodes, dtype=np.int64)
    height[: topology.npus] = 0
    while True:
        nearer = height.copy()
        np.minimum.at(nearer, topology.dst, height[topology.src] + 1)
        if np.array_equal(nearer, height):
            break
        height = nearer
    ends = height[topology.src] * (topology.nodes + 1) + height[topology.dst]
    columns = (ends, topology.bandwidth, topology.latency)
    number = np.zeros(topology.links, dtype=np.int64)
    for column in columns:
        kinds, kind = np.unique(column, return_inverse=True)
        number = np.unique(number * len(kinds) + kind, return_inverse=True)[1].astype(np.int64)
    return number


def _axes(topology: Topology) -> NDArray[np.int64]:
    """The first dimension along which each link leads: at a switch, that of its NPUs.

    0 where that says nothing: between switches, and without a grid.
    """
    npus, up = topology.npus, topology.dst >= topology.npus
    shape = topology.dimensions
    if not shape:
        return np.zeros(topology.links, dtype=np.int64)
    nearest, farthest = np.arange(topology.nodes), np.arange(topology.nodes)
    nearest[npus:], farthest[npus:] = npus - 1, 0
    inner = up & (topology.src >= npus)
    np.minimum.at(nearest, topology.dst[up & ~inner], topology.src[up & ~inner])
    np.maximum.at(farthest, topology.dst[up & ~inner], topology.src[up & ~inner])
    down = topology.src >= npus
    one = np.where(up, nearest[topology.dst], nearest[topology.src])
    other = np.where(down, farthest[topology.src], farthest[topology.dst])
    places = zip(
        np.unravel_index(one, shape, "F"), np.unravel_index(other, shape, "F"), strict=True
    )
    axes = np.argmax([here != there for here, there in places], axis=0)
    return np.where(inner, 0, axes).astype(np.int64)
