"""Cuts swept through a network: nodes in the order of how much nearer one landmark is.

On a mesh the landmarks are corners or sides, and the cuts are its planes.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.bounds.classes import ChunkClasses
from weft.topology.model import Topology

_MOST_NODES = 2048  # a number is kept for each two of them

_SAMPLES = 64  # nodes that tell how remote the others are

Floats = NDArray[np.float64]
Levels = NDArray[np.intp]


def best_sweep(
    topology: Topology,
    capacity: Floats,
    src: NDArray[np.int32],
    dst: NDArray[np.int32],
    amount: NDArray[np.int64],
    landmarks: int,
) -> NDArray[np.bool_]:
    """The nodes inside the cut with the most to cross it for the capacity it has."""
    best, inside = 0.0, np.zeros(topology.nodes, dtype=bool)
    if topology.nodes > _MOST_NODES:
        return inside
    needs = np.zeros((topology.nodes, topology.nodes))
    np.add.at(needs, (src, dst), amount)
    for one, two in combinations(_distances(topology, landmarks), 2):
        _, level = np.unique(one - two, return_inverse=True)
        blocks = _between_levels(needs, level)
        links = np.zeros_like(blocks)
        np.add.at(links, (level[topology.src], level[topology.dst]), capacity)
        for axis in (0, 1):
            needed, carried = _leaving(blocks, axis), _leaving(links, axis)
            # What is less than that is what rounding leaves of nothing.
            real = carried > 1e-9 * capacity.sum()
            ratio = np.divide(needed, carried, where=real, out=np.zeros_like(needed))
            if len(ratio) > 0 and ratio.max() > best:
                best = float(ratio.max())
                inside = (level <= ratio.argmax()) ^ (axis == 1)
    return inside


def sweep_of_sets(topology: Topology, classes: ChunkClasses, landmarks: int) -> NDArray[np.bool_]:
    """The same where chunks have many takers, or sums many contributors.

    What has all its holders (or some contributor) at a level or below, and a taker above it,
    must cross.
    """
    best, inside = 0.0, np.zeros(topology.nodes, dtype=bool)
    if len(classes) == 0:
        return inside
    begins = classes.set_offsets[:-1]
    for one, two in combinations(_distances(topology, landmarks), 2):
        for order in (one - two, two - one):
            _, level = np.unique(order, return_inverse=True)
            of_member = level[classes.set_members]
            lowest = np.minimum.reduceat(of_member, begins)
            highest = np.maximum.reduceat(of_member, begins)
            ready = np.where(classes.reduce, lowest[classes.pre], highest[classes.pre])
            needed = _crossing(ready, highest[classes.post], classes.bytes, level)
            carried = _crossing(level[topology.src], level[topology.dst], topology.bandwidth, level)
            ratio = np.divide(needed, carried, where=carried > 0, out=np.zeros_like(needed))
            if ratio.max() > best:
                best, inside = float(ratio.max()), level <= ratio.argmax()
    return inside


def _crossing(first: Levels, last: Levels, amount: NDArray[np.int64], level: Levels) -> Floats:
    """For each level, how much goes from it or below to above it."""
    up, top = first < last, int(level.max()) + 1
    begun = np.bincount(first[up], amount[up], top)
    ended = np.bincount(last[up], amount[up], top)
    # What is less than that is what rounding leaves of nothing.
    passing = np.cumsum(begun - ended)
    return np.where(passing > 1e-9 * float(amount.sum()), passing, 0.0)


def _between_levels(matrix: Floats, level: Levels) -> Floats:
    """What goes from nodes of one level to those of another, in all."""
    order = np.argsort(level, kind="stable")
    starts = np.flatnonzero(np.diff(level[order], prepend=-1))
    rows = np.add.reduceat(matrix[order], starts, 0)
    blocks: Floats = np.add.reduceat(rows[:, order], starts, 1)
    return blocks


def _leaving(blocks: Floats, axis: int) -> Floats:
    """What goes from levels up to each one to those above it; the other way round for axis 1."""
    within = np.cumsum(np.cumsum(blocks, 0), 1).diagonal()
    result: Floats = (np.cumsum(blocks.sum(1 - axis)) - within)[:-1]
    return np.maximum(result, 0)


def _distances(topology: Topology, count: int) -> list[NDArray[np.int64]]:
    """Hops from landmarks, each as far as can be from those before it.

    The first half are corners: nodes no nearer to all than any of their neighbours.
    """
    members = topology.members
    some = members[np.unique(np.linspace(0, len(members) - 1, _SAMPLES).astype(int))]
    remote = np.sum([_hops(topology, int(npu)) for npu in some], axis=0)
    beyond = remote.copy()
    np.maximum.at(beyond, topology.src, remote[topology.dst])
    corners = members[remote[members] >= beyond[members]]
    corners = corners if len(corners) else members  # where all of them are switches
    nearest, found = remote, list[NDArray[np.int64]]()
    for number in range(count):
        among = corners if number < count // 2 else members
        mark = int(among[nearest[among].argmax()])
        found.append(_hops(topology, mark))
        nearest = found[0] if len(found) == 1 else np.minimum(nearest, found[-1])
    return found


def _hops(topology: Topology, source: int) -> NDArray[np.int64]:
    hops = _core.distances(topology.core, source, False).astype(np.int64)
    return np.where(hops < 0, 2 * topology.nodes, hops)
