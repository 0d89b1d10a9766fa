"""Levels of a network: boxes, leaves, pods; found by how near NPUs are to each other.

Two NPUs are near if a message between them takes little time. NPUs that are joined by ever longer
ways make ever larger parts; where all parts are alike, they are the levels of a grid. What the
network is called, and what it declares, is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.cost import CostModel
from weft.topology.grid import Grid
from weft.topology.model import Topology

_PROBE = 1 << 20  # bytes of the message whose time says how near two NPUs are
_MOST_NPUS = 1024  # a number is kept for each two of them

Numbers = NDArray[np.int64]


def levels_of(topology: Topology, group: Sequence[int]) -> Grid | None:
    """The grid of a group: places in a box, boxes, and so on; None if it has no levels.

    Neighbours along the outer levels are those that are nearest to each other, as on a rail.
    """
    members = np.array(sorted(group), dtype=np.int32)
    if not 4 <= len(members) <= _MOST_NPUS:
        return None
    away = distances_between(topology, members)
    parts = nested_parts(away)
    if not parts:
        return None
    sizes = list[int]()
    order = np.arange(len(members))[:, None]  # one row per part, in grid order
    for part in parts:
        order = _aligned(order, part[order[:, 0]], away)
        sizes.append(order.shape[1] // max(int(np.prod(sizes)), 1))
    return Grid(tuple(sizes), members[order.reshape(-1)])


def distances_between(topology: Topology, members: NDArray[np.int32]) -> Numbers:
    """How long a message takes between any two of these at least, the longer way counts (ps)."""
    found = _core.soonest(topology.core, CostModel().core, _PROBE, members, False)
    away = found.reshape(len(members), -1)[:, members]
    return np.maximum(away, away.T)


def nested_parts(away: Numbers) -> list[Numbers]:
    """Ever larger parts, each a number for every NPU: all parts of one size, the last is one."""
    found: list[Numbers] = []
    last = 1
    for part in _growing(away):
        size = np.bincount(part)
        if size[0] > last and (size == size[0]).all():
            found.append(part)
            last = int(size[0])
    return found if len(found) > 1 and last == len(away) else []


def uneven_parts(topology: Topology, group: Sequence[int]) -> list[Numbers]:
    """Ever larger parts of whatever sizes, neither single NPUs nor all in one.

    Each is a number for every member, in ascending order of members.
    """
    members = np.array(sorted(group), dtype=np.int32)
    if not 3 <= len(members) <= _MOST_NPUS:
        return []
    parts = _growing(distances_between(topology, members))
    return [part for part in parts if 1 <= part.max() < len(part) - 1]


def crossing(topology: Topology, part: NDArray[np.integer], *, inward: bool) -> Numbers:
    """The links by which NPUs of parts receive (or send) what is not from their own part.

    `part` is a number for every NPU, -1 for those in none. A switch that only NPUs of one part
    reach belongs to it.
    """
    of_node = np.full(topology.nodes, -1)
    of_node[: topology.npus] = part
    into = topology.dst >= topology.npus
    low, high = np.full(topology.nodes, topology.nodes), np.full(topology.nodes, -2)
    np.minimum.at(low, topology.dst[into], of_node[topology.src[into]])
    np.maximum.at(high, topology.dst[into], of_node[topology.src[into]])
    of_node[low == high] = low[low == high]
    near, far = (topology.dst, topology.src) if inward else (topology.src, topology.dst)
    mine = (near < topology.npus) & (of_node[near] >= 0)
    return np.flatnonzero(mine & (of_node[near] != of_node[far]))


def nodes_of_parts(topology: Topology, part: NDArray[np.integer]) -> Numbers:
    """The part of every node, switches too; -1 for those in none.

    `part` is a number for every NPU. A switch belongs to a part if all NPUs nearest to it do: a PCI
    switch to its host, a leaf to nobody.
    """
    near = np.full(topology.nodes, topology.nodes)
    near[: topology.npus] = 0
    low, high = np.full(topology.nodes, topology.nodes), np.full(topology.nodes, -2)
    low[: topology.npus] = high[: topology.npus] = part
    for away in range(1, topology.nodes):
        reaches = near[topology.src] == away - 1
        src, dst = topology.src[reaches], topology.dst[reaches]
        fresh = near[dst] >= away
        src, dst = src[fresh], dst[fresh]
        if not len(dst):
            break
        near[dst] = away
        np.minimum.at(low, dst, low[src])
        np.maximum.at(high, dst, high[src])
    return np.where(low == high, low, -1)


def entering(topology: Topology, part: NDArray[np.integer]) -> Numbers:
    """For every link, the part that it leads into from without; -1 if none."""
    of_node = nodes_of_parts(topology, part)
    inside = of_node[topology.dst]
    return np.where((inside >= 0) & (inside != of_node[topology.src]), inside, -1)


def looks_alike(topology: Topology, group: Sequence[int]) -> bool:
    """Whether nothing around the NPUs of a group tells one from another, however far one looks.

    Nodes are told apart by their links, by the nodes at the ends of these, and so on.
    """
    speed = _mixed(topology.bandwidth.astype(np.uint64)) + topology.latency.astype(np.uint64)
    sides = [
        (topology.src, topology.dst, _mixed(speed)),
        (topology.dst, topology.src, _mixed(speed + np.uint64(1))),
    ]
    seen: NDArray[np.uint64] = (np.arange(topology.nodes) >= topology.npus).astype(np.uint64)
    kinds = 0
    while True:
        found, kind = np.unique(seen, return_inverse=True)
        if len(np.unique(kind[list(group)])) > 1:
            return False
        if len(found) == kinds:
            return True
        kinds, colour = len(found), _mixed(kind.reshape(-1).astype(np.uint64))
        seen = _mixed(colour)
        for far, near, link in sides:
            np.add.at(seen, near, _mixed(link ^ colour[far]))


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers so mixed that different sums of them are hardly ever the same."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))


def _growing(away: Numbers) -> Iterator[Numbers]:
    """Parts joined by ever longer ways, up to one of all."""
    part = np.arange(len(away))
    for near in _merges(away):
        part = _joined(part, away <= near)
        yield part


def _merges(away: Numbers) -> list[int]:
    """Distances at which parts grow together: those of a least spanning tree."""
    reached = np.full(len(away), np.iinfo(np.int64).max)
    inside = np.zeros(len(away), dtype=np.bool_)
    node, used = 0, set[int]()
    for _ in range(len(away) - 1):
        inside[node] = True
        reached = np.minimum(reached, away[node])
        outside = np.where(inside, np.iinfo(np.int64).max, reached)
        node = int(outside.argmin())
        used.add(int(outside[node]))
    return sorted(used)


def _joined(part: Numbers, near: NDArray[np.bool_]) -> Numbers:
    """Parts of which some NPUs are near each other, as one; numbered by their first NPU."""
    part = part.copy()
    while True:
        least = np.where(near, part[None, :], len(part)).min(axis=1)
        of_part = np.full(len(part), len(part))
        np.minimum.at(of_part, part, least)
        joined = np.minimum(part, of_part[part])
        if np.array_equal(joined, part):
            return np.unique(part, return_inverse=True)[1].astype(np.int64)
        part = joined


def _aligned(order: Numbers, part: Numbers, away: Numbers) -> Numbers:
    """Rows of the same part in one row: those after the first have near ones at the same place."""
    rows = []
    for number in range(int(part.max()) + 1):
        first, *others = order[part == number]
        rows.append(np.concatenate([first, *(_beside(first, one, away) for one in others)]))
    return np.array(rows)


def _beside(first: Numbers, other: Numbers, away: Numbers) -> Numbers:
    """The NPUs of `other`, each at the place of one of `first` that is near, else its own."""
    near = away[np.ix_(first, other)]
    if (near.diagonal() == near.min(axis=1)).all():
        return other
    place, free = np.empty_like(other), np.ones(len(other), dtype=np.bool_)
    for i in range(len(first)):
        distance = np.where(free, near[i], np.iinfo(np.int64).max)
        best = i if free[i] and distance[i] == distance.min() else int(distance.argmin())
        place[i], free[best] = other[best], False
    return place
