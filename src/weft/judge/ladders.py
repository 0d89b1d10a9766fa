"""Whether ladders are what they say: links that lead up from NPUs on a grid, and back down.

What is found here comes from the network's links, the grid and the ladders' columns alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.cost import CostModel
from weft.judge.table import malformed_column
from weft.topology.ladders import Ladder
from weft.topology.model import Topology
from weft.units import PS_PER_S

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rungs:
    """A ladder that was found to be right; sets of dimensions are bits.

    Attributes
    ----------
    above
        For each tier: the dimensions along which its switches stay the same.
    turning
        For each tier: the dimensions along which the turns up to there differ.
    shared
        For each tier: whether several places climb one link, or come down one.
    """

    topology: Topology
    grid: tuple[int, ...]
    ladder: Ladder
    above: list[int]
    turning: list[int]
    shared: list[bool]

    def top(self, apart: int) -> int:
        """The lowest tier over which places that differ in these dimensions are reached; or -1."""
        reached = 0
        for tier, above in enumerate(self.above):
            reached |= above
            if apart & ~reached == 0:
                return tier
        return -1

    def changed(self, top: int, tier: int) -> int:
        """Where a hop over `top` has the receiver's coordinates when it comes down from `tier`."""
        found = 0
        for above in self.above[tier : top + 1]:
            found |= above
        return found

    def longest(self, top: int, size: int) -> int:
        """No time of a hop over `top` is longer: each link after the other, in whole numbers."""
        links = self._links(top)
        speeds = zip(self.topology.bandwidth[links], self.topology.latency[links], strict=True)
        return sum(-(-size * PS_PER_S // int(rate)) + int(latency) for rate, latency in speeds)

    def holds(self, cost: CostModel, top: int, sizes: Numbers) -> tuple[int, Numbers, Numbers]:
        """Of a hop over `top`: how long it takes at most, and when it may hold each of its links.

        Links are in order: up from the first tier, then down to it. `sizes`: those of chunks.
        """
        links = self._links(top)
        speeds = self.topology.bandwidth[links], self.topology.latency[links]
        offsets = np.array([0, len(links)])
        times = [_core.hop_times(cost.core, *speeds, offsets, size) for size in sizes.tolist()]
        takes = max(int(took[0]) for took, _, _ in times)
        begin = np.min([begin for _, begin, _ in times], axis=0)
        end = np.max([begin + length for _, begin, length in times], axis=0)
        return takes, begin, end

    def _links(self, top: int) -> NDArray[np.int32]:
        """Those of place 0: all others are as fast."""
        return np.concatenate([self.ladder.up[: top + 1, 0], self.ladder.down[top::-1, 0]])


def wrong_ladder(
    topology: Topology, grid: tuple[int, ...], npus: NDArray[np.int32], ladder: Ladder
) -> str | Rungs:
    """What is wrong with a ladder, in words; or the ladder, if nothing is."""
    for name in ("up", "down", "turn"):
        column: NDArray[Any] = getattr(ladder, name)
        if column.ndim != 2 or column.shape != (ladder.tiers, len(npus)) or ladder.tiers == 0:
            return f"column '{name}' of a ladder does not have one value for every place"
        if (wrong := malformed_column(name, column.reshape(-1), np.int32)) is not None:
            return wrong
        if (column < 0).any() or (name != "turn" and (column >= topology.links).any()):
            return f"column '{name}' of a ladder has numbers that are out of range"
    below = npus
    above, turning, shared = [], [], []
    for tier in range(ladder.tiers):
        up, down = ladder.up[tier], ladder.down[tier]
        switch = topology.dst[up]
        ends = (topology.src[up] == below) & (topology.src[down] == switch)
        ends &= (topology.dst[down] == below) & (switch >= topology.npus)
        for at in np.flatnonzero(~ends)[:1].tolist():
            names = topology.link_name(int(up[at])), topology.link_name(int(down[at]))
            return f"links {names[0]} and {names[1]} do not lead up from place {at} and back"
        for link in (up, down):
            for column in (topology.bandwidth, topology.latency):
                for at in np.flatnonzero(column[link] != column[link[0]])[:1].tolist():
                    one, two = (topology.link_name(int(link[i])) for i in (0, at))
                    return f"links {one} and {two} differ in speed"
        above.append(_same_along(grid, switch))
        turning.append((1 << len(grid)) - 1 & ~_same_along(grid, ladder.turn[tier]))
        shared.append(len(np.unique(up)) < len(up) or len(np.unique(down)) < len(down))
        below = switch
    return Rungs(topology, grid, ladder, above, turning, shared)


def _same_along(grid: Sequence[int], values: NDArray[Any]) -> int:
    """The dimensions along which values are all the same, as bits."""
    found, stride = 0, 1
    for dimension, size in enumerate(grid):
        lines = values.reshape(-1, size, stride)
        found |= int((lines == lines[:, :1]).all()) << dimension
        stride *= size
    return found


@dataclass(frozen=True, eq=False)
class Sharers:
    """Who shares links of a kind; only the dimensions count along which turns differ.

    Attributes
    ----------
    along
        Size and stride in the grid of each of these dimensions.
    turns
        The turn of each place, by its coordinates in these dimensions, the first varying fastest.
    groups
        Those who share a link, as numbers of `turns`: one table for each number of users, with
        one row for all links that cannot be told apart so.
    """

    along: list[tuple[int, int]]
    turns: NDArray[np.int32]
    groups: list[Numbers]

    @classmethod
    def of(cls, rungs: Rungs, link: NDArray[Any], top: int) -> Sharers:
        """The users of `link`, of which there is one per place, in the turns of a tier."""
        places = np.arange(len(link), dtype=np.int64)
        along, number, own = list[tuple[int, int]](), np.zeros_like(places), np.zeros(1, np.int64)
        stride = 1
        for dimension, size in enumerate(rungs.grid):
            if rungs.turning[top] >> dimension & 1:
                number += places // stride % size * len(own)
                own = (np.arange(size)[:, None] * stride + own).reshape(-1)
                along.append((size, stride))
            stride *= size
        order = np.argsort(link, kind="stable")
        users = np.unique(link, return_counts=True)[1]
        first, groups = np.cumsum(users) - users, list[Numbers]()
        for count in np.unique(users[users > 1]).tolist():
            rows = first[users == count, None] + np.arange(count)
            groups.append(np.unique(np.sort(number[order[rows]], axis=1), axis=0))
        return cls(along, rungs.ladder.turn[top][own], groups)

    def are_apart(self, by: int) -> bool:
        """Whether those who share a link have different turns if all take those of who is before.

        `by`: how far before.
        """
        cube = self.turns.reshape([size for size, _ in reversed(self.along)])
        for axis, (size, stride) in enumerate(reversed(self.along)):
            cube = np.roll(cube, by // stride % size, axis)
        for group in self.groups:
            taken = np.sort(cube.reshape(-1)[group], axis=1)
            if (taken[:, 1:] == taken[:, :-1]).any():
                return False
        return True
