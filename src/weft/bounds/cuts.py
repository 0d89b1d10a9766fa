"""Bounds from cuts: what must leave a set of nodes over the bandwidth that leaves it.

All cuts are searched at once by maximum flow. Whatever set the search returns is only a
suggestion: its bound is then worked out exactly, for whole chunks, from its links.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.bounds.bound import NONE, Bound, Certificate
from weft.bounds.classes import ChunkClasses
from weft.bounds.lengths import Carriers
from weft.bounds.sweeps import sweep_of_sets
from weft.cost import CostModel
from weft.topology.model import Topology

_MOST_SEARCHES = 64  # each way
_LANDMARKS = 6  # for sweeps; the work grows with the square
_VISITS_A_SWEEP = 70  # of each link, at the least
_VISITS_A_FLOW = 1000  # on networks so large that it matters: as many as they are deep, or more
_MOST_ENDS = 64  # of the links of a cut, for which distances are worth their time

Leg = tuple[NDArray[np.int32], NDArray[np.int32], bool]  # ends of links, NPUs, backwards?
Search = tuple[bool, NDArray[np.float64], NDArray[np.int32]]  # reversed?, supply, sinks


def cut_bound(
    topology: Topology, classes: ChunkClasses, cost: CostModel, enough: int, budget: int, known: int
) -> Bound:
    """The tightest cut; `known` picoseconds are proven already for any chunking.

    Cuts swept through the network come first: those for all chunks together. The others are
    searched for chunks with the same takers, or the same contributors, at a time. What the budget
    does not reach for by far is left out.
    """
    if budget < _VISITS_A_SWEEP * topology.links:
        return NONE
    swept = sweep_of_sets(topology, classes, _LANDMARKS)
    best = bound_of_cut(topology, classes, cost, swept) if swept.any() else NONE
    if best.time >= enough or budget < _VISITS_A_FLOW * topology.links:
        return best
    seconds = max(known, best.ideal) / 1e12
    searches = list(_searches(topology, classes))
    reversed_core = topology.reversed().core
    for backwards, supply, sinks in searches:
        network = reversed_core if backwards else topology.core
        seconds, found = _core.tightest_cut(
            network, supply, sinks, seconds, budget // len(searches)
        )
        if len(found) == 0:
            continue
        inside = np.zeros(topology.nodes, dtype=bool)
        inside[found] = True
        best = best.stronger(bound_of_cut(topology, classes, cost, inside ^ backwards))
        if best.time >= enough:
            break
    return best


def bound_of_cut(
    topology: Topology, classes: ChunkClasses, cost: CostModel, inside: NDArray[np.bool_]
) -> Bound:
    """What one cut proves."""
    links = np.flatnonzero(inside[topology.src] & ~inside[topology.dst])
    begins = classes.set_offsets[:-1]
    some = np.logical_or.reduceat(inside[classes.set_members], begins)
    every = np.logical_and.reduceat(inside[classes.set_members], begins)
    from_inside = np.where(classes.reduce, some[classes.pre], every[classes.pre])
    crossing = from_inside & ~every[classes.post]
    chunks = int(classes.count[crossing].sum())
    if chunks == 0:
        return NONE
    total = float(classes.bytes[crossing].sum())
    whole, ideal = Carriers.of(topology, classes, cost).time_through(links, chunks, total)
    legs = list(_legs(topology, classes, crossing, inside, links))
    way, shortest = (
        sum(_farthest(topology, cost, size, *leg) for leg in legs) for size in (classes.smallest, 0)
    )
    certificate = Certificate.of([np.flatnonzero(inside)], links)
    return Bound(whole + way, "cut", ideal + shortest, certificate)


def _legs(
    topology: Topology,
    classes: ChunkClasses,
    crossing: NDArray[np.bool_],
    inside: NDArray[np.bool_],
    links: NDArray[np.intp],
) -> Iterator[Leg]:
    """What every chunk has to go besides crossing.

    Each reaches its farthest taker outside after it has crossed, by whatever link; the part of a
    sum that comes from the farthest contributor inside has to get to the cut first.
    """
    tails, heads = (np.unique(ends[links]) for ends in (topology.src, topology.dst))
    if max(tails[-1], heads[-1]) >= topology.npus or max(len(tails), len(heads)) > _MOST_ENDS:
        return
    takers = _shared(classes, classes.post[crossing])
    yield heads, takers[~inside[takers]], False
    if classes.reduce[crossing].all():
        givers = _shared(classes, classes.pre[crossing])
        yield tails, givers[inside[givers]], True


def _shared(classes: ChunkClasses, sets: NDArray[np.int32]) -> NDArray[np.int32]:
    """The NPUs of a set that is the same for all; none if it is not."""
    return classes.members(int(sets[0])) if (sets == sets[0]).all() else sets[:0]


def _farthest(
    topology: Topology,
    cost: CostModel,
    size: int,
    ends: NDArray[np.int32],
    npus: NDArray[np.int32],
    backwards: bool,
) -> int:
    """How far the farthest of `npus` is from the nearest of `ends`."""
    if len(npus) == 0:
        return 0
    network, model = topology.core, cost.core
    away = _core.soonest(network, model, size, ends, backwards).reshape(len(ends), -1)
    return int(away[:, npus].min(axis=0).max())


def _searches(topology: Topology, classes: ChunkClasses) -> Iterator[Search]:
    """Flow problems whose cuts bound the collective.

    Chunks with one holder flow forwards, all those with the same takers together; sums for one
    taker flow backwards from it, all those with the same contributors together; sums for many
    takers flow both ways between one NPU and every other. Where there are too many problems,
    those with the most to carry are searched.
    """
    sizes = classes.set_sizes
    few_holders, few_takers = sizes[classes.pre] == 1, sizes[classes.post] == 1
    sums = classes.reduce & ~few_holders & ~few_takers
    forwards = few_holders | sums
    backwards = few_takers & (classes.reduce | few_holders) | sums
    ingress = np.bincount(topology.dst, topology.bandwidth, topology.nodes)
    egress = np.bincount(topology.src, topology.bandwidth, topology.nodes)
    for rows, near, far, rate, reverse in (
        (forwards, classes.pre, classes.post, ingress, False),
        (backwards, classes.post, classes.pre, egress, True),
    ):
        amounts = np.bincount(far[rows], classes.bytes[rows], len(sizes))
        order = np.argsort(-amounts, kind="stable")[:_MOST_SEARCHES]
        first = classes.set_members[classes.set_offsets[near]]
        for number in np.sort(order[amounts[order] > 0]):
            mine = rows & (far == number)
            supply = np.zeros(topology.nodes)
            np.add.at(supply, first[mine], classes.bytes[mine])
            members = classes.members(int(number))
            yield reverse, supply, members[np.argsort(rate[members], kind="stable")]
