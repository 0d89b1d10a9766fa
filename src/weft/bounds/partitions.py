"""Parts of a network that are better joined inside than with each other: boxes, leaves, pods.

They are found from links alone: what stays connected when slow links are left out, what hangs on
the same switches, and places along the dimensions of the grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from weft.bounds.classes import ChunkClasses
from weft.topology.model import Topology

_MOST_SPEEDS = 12  # thresholds of bandwidth
_MOST_LEVELS = 4  # of switches above each other
_MOST_AXES = 4  # of a grid whose slices are tried
_MOST_MERGED = 256  # NPUs

Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Partition:
    """Every NPU is in one part; so are switches that a part gains by having.

    Attributes
    ----------
    label
        Per node: the number of its part; -1 for switches in none, and NPUs that were removed.
    count
        How many parts there are.
    links
        Those that lead into parts: whatever comes into a part crosses one of them.
    rate_in, rate_out
        Bandwidth into each part, and out of it.
    single
        Whether every part is one NPU.
    holds_sums
        Whether every switch that adds is in some part: else parts say nothing of sums.
    joined
        Whether what comes into a part can have been added on its way: then what a message knows
        does not follow from one source.
    """

    label: Labels
    count: int
    links: NDArray[np.intp]
    rate_in: NDArray[np.float64]
    rate_out: NDArray[np.float64]
    single: bool = False
    holds_sums: bool = True
    joined: bool = False

    @classmethod
    def of(cls, topology: Topology, label: Labels, count: int, single: bool = False) -> Partition:
        """The parts that labels of nodes tell."""
        out, into = label[topology.src], label[topology.dst]
        enters, leaves = (np.flatnonzero((side >= 0) & (out != into)) for side in (into, out))
        rate_in, rate_out = (
            np.bincount(side[links], topology.bandwidth[links], count).astype(np.float64)
            for side, links in ((into, enters), (out, leaves))
        )
        holds_sums = all(label[switch] >= 0 for switch in topology.adding)
        joined = bool(behind_sums(topology)[enters].any())
        return cls(label, count, enters, rate_in, rate_out, single, holds_sums, joined)

    def tells(self, classes: ChunkClasses) -> bool:
        """Whether messages between the parts can be counted."""
        return self.holds_sums or not classes.reduce.any()

    def spread(self, offsets: NDArray[np.int64], members: NDArray[np.int32]) -> NDArray[np.int64]:
        """In how many parts each set of NPUs has members."""
        sizes = np.diff(offsets)
        if self.single:
            return sizes
        owner = np.repeat(np.arange(len(sizes)), sizes)
        there = np.unique(owner * self.count + self.label[members]) // self.count
        return np.bincount(there, minlength=len(sizes))


def behind_sums(topology: Topology) -> NDArray[np.bool_]:
    """Which links can carry what a switch added."""
    return _beyond(topology, topology.adding, topology.src, topology.dst)[topology.src]


def before_copies(topology: Topology) -> NDArray[np.bool_]:
    """Which links can carry what a switch will copy."""
    return _beyond(topology, topology.copying, topology.dst, topology.src)[topology.dst]


def _beyond(
    topology: Topology, able: frozenset[int], src: NDArray[np.int32], dst: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Which nodes are some switches, or lie beyond them past switches alone."""
    found = np.zeros(topology.nodes, dtype=np.bool_)
    found[list(able)] = True
    inner = (src >= topology.npus) & (dst >= topology.npus)
    src, dst = src[inner], dst[inner]
    while (further := found[src] & ~found[dst]).any():
        found[dst[further]] = True
    return found


def singles(topology: Topology) -> Partition:
    """Every NPU for itself."""
    label = np.full(topology.nodes, -1, dtype=np.int64)
    label[topology.members] = np.arange(len(topology.members))
    return Partition.of(topology, label, len(topology.members), single=True)


def regions(topology: Topology) -> Iterator[Partition]:
    """Partitions in two parts or more that are worth a look, other than `singles`."""
    seen = set[bytes]()
    for parts in _candidates(topology):
        _, number = np.unique(parts[topology.members], return_inverse=True)
        number = _in_order(number.reshape(-1))
        count = int(number.max(initial=0)) + 1
        if not 2 <= count < len(number) or number.tobytes() in seen:
            continue
        seen.add(number.tobytes())
        label = np.full(topology.nodes, -1, dtype=np.int64)
        label[topology.members] = number
        _take_switches(topology, label, count)
        yield Partition.of(topology, label, count)


def _in_order(number: Labels) -> Labels:
    """The same parts, numbered in the order of their first NPUs."""
    _, first = np.unique(number, return_index=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[number]


def _candidates(topology: Topology) -> Iterator[Labels]:
    """A number for each node: NPUs with the same are in one part."""
    speeds = np.unique(topology.bandwidth)[::-1]
    for speed in speeds[:_MOST_SPEEDS]:
        yield _components(topology, topology.bandwidth >= speed)
    if topology.switches:
        level = _levels(topology)
        above = np.maximum(level[topology.src], level[topology.dst])
        for most in range(1, min(int(above.max(initial=0)), _MOST_LEVELS) + 1):
            yield _components(topology, above <= most)
    yield from _merged(topology)
    axes = range(len(topology.dimensions))
    if 1 < len(axes) <= _MOST_AXES:
        places = np.unravel_index(np.arange(topology.npus), topology.dimensions, "F")
        for size in range(1, len(axes)):
            for fixed in combinations(axes, size):
                shape = tuple(topology.dimensions[axis] for axis in fixed)
                yield np.ravel_multi_index(tuple(places[axis] for axis in fixed), shape)


def _merged(topology: Topology) -> Iterator[Labels]:
    """NPUs joined step by step, first the two parts with most bandwidth for each two of theirs.

    Of all steps to half as many parts or fewer, the one with the most for the bandwidth into them.
    """
    direct = (topology.src < topology.npus) & (topology.dst < topology.npus)
    if not direct.any() or topology.npus > _MOST_MERGED:
        return
    label = np.arange(topology.npus)
    between = np.zeros((topology.npus, topology.npus))
    ends = topology.src[direct], topology.dst[direct]
    np.add.at(between, ends, topology.bandwidth[direct].astype(float))
    between += between.T
    np.fill_diagonal(between, 0)
    into = np.bincount(topology.dst, topology.bandwidth, topology.nodes)[: topology.npus].sum()
    best, found, size = 0.0, label, np.ones(topology.npus)
    for count in range(len(topology.members), 1, -1):
        load = (count - 1) / max(into, 1.0)
        if 2 * count <= len(topology.members) and load > best:
            best, found = load, label.copy()
        one, other = sorted(divmod(int((between / np.outer(size, size)).argmax()), topology.npus))
        into -= between[one, other]
        between[one] += between[other]
        between[:, one] += between[:, other]
        between[[other]] = between[:, [other]] = between[one, one] = 0
        label[label == other] = one
        size[one] += size[other]
    yield found


def _components(topology: Topology, kept: NDArray[np.bool_]) -> Labels:
    """The smallest node that each is connected with over the links that are kept."""
    src, dst = topology.src[kept], topology.dst[kept]
    root = np.arange(topology.nodes)
    while True:
        ends = root[src], root[dst]
        joined = root.copy()
        for end in ends:
            np.minimum.at(joined, end, np.minimum(*ends))
        while not np.array_equal(joined[joined], joined):
            joined = joined[joined]
        if np.array_equal(joined, root):
            return root
        root = joined


def _levels(topology: Topology) -> Labels:
    """How many links each switch is from the nearest NPU; 0 for NPUs."""
    level = np.full(topology.nodes, topology.nodes)
    level[: topology.npus] = 0
    for _ in range(_MOST_LEVELS):
        for one, other in ((topology.src, topology.dst), (topology.dst, topology.src)):
            np.minimum.at(level, other, level[one] + 1)
    return level


def _take_switches(topology: Topology, label: Labels, count: int) -> None:
    """Give each switch to a part that is then entered over no more bandwidth than before.

    It must get no more from elsewhere than it gives to the part.
    """
    src, dst, rate = topology.src, topology.dst, topology.bandwidth
    into = np.bincount(dst, rate, topology.nodes)
    for _ in range(2 * _MOST_LEVELS):
        up, down = ((label[a] < 0) & (label[b] >= 0) for a, b in ((dst, src), (src, dst)))
        ends = np.concatenate([dst[up], src[down]]).astype(np.int64)
        keys = ends * count + np.concatenate([label[src[up]], label[dst[down]]])
        pairs, which = np.unique(keys, return_inverse=True)
        weight = np.bincount(which, np.concatenate([rate[up], rate[down]]), len(pairs))
        node, part = np.divmod(pairs, count)
        gains = weight >= into[node]
        if not gains.any():
            return
        label[node[gains]] = part[gains]
