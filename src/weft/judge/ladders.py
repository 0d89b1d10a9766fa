"""Whether ladders are what they say: links that lead up from NPUs on a grid, and back down.

What is found here comes from the network's links, the grid and the ladders' columns alone.
"""

from __future__ import annotations

import math
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

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rungs:
    """A ladder that was found to be right.

    Attributes
    ----------
    above
        For each tier: the dimensions along which its switches stay the same.
    turning
        For each tier: the dimensions along which the turns up to there differ.
    shared
        For each tier: whether several places climb one link.
    """

    topology: Topology
    grid: tuple[int, ...]
    ladder: Ladder
    above: list[frozenset[int]]
    turning: list[frozenset[int]]
    shared: list[bool]

    def top(self, apart: frozenset[int]) -> int | None:
        """The lowest tier from which places that differ in these dimensions are reached."""
        reached = frozenset[int]()
        for tier, above in enumerate(self.above):
            reached |= above
            if apart <= reached:
                return tier
        return None

    def changed(self, top: int, tier: int) -> frozenset[int]:
        """Where a hop over `top` has the receiver's coordinates when it comes down from `tier`."""
        return frozenset().union(*self.above[tier : top + 1])

    def holds(
        self, cost: CostModel, top: int, smallest: int, largest: int
    ) -> tuple[int, Numbers, Numbers]:
        """Of a hop over `top`: how long it takes, and when it may hold each of its links.

        Links are in order: up from the first tier, then down to it.
        """
        order = list(range(top + 1))
        links = np.array(
            [self.ladder.up[tier, 0] for tier in order]
            + [self.ladder.down[tier, 0] for tier in reversed(order)]
        )
        speeds = self.topology.bandwidth[links], self.topology.latency[links]
        offsets = np.array([0, len(links)])
        _, begin, _ = _core.hop_times(cost.core, *speeds, offsets, smallest)
        takes, late, length = _core.hop_times(cost.core, *speeds, offsets, largest)
        return int(takes[0]), np.minimum(begin, late), late + length


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
        every = frozenset(range(len(grid)))
        turning.append(every - _same_along(grid, ladder.turn[tier]))
        shared.append(len(np.unique(up)) < len(up) or len(np.unique(down)) < len(down))
        below = switch
    return Rungs(topology, grid, ladder, above, turning, shared)


def _same_along(grid: Sequence[int], values: NDArray[Any]) -> frozenset[int]:
    """The dimensions along which values are all the same."""
    found, stride = set[int](), 1
    for dimension, size in enumerate(grid):
        lines = values.reshape(-1, size, stride)
        if (lines == lines[:, :1]).all():
            found.add(dimension)
        stride *= size
    return frozenset(found)


def are_apart(grid: Sequence[int], link: NDArray[Any], turn: NDArray[Any], by: int) -> bool:
    """Whether all who use a link have different turns, if its users are moved back by `by`."""
    cube = np.arange(math.prod(grid)).reshape(tuple(grid)[::-1])
    stride = 1
    for dimension, size in enumerate(grid):
        cube = np.roll(cube, by // stride % size, axis=len(grid) - 1 - dimension)
        stride *= size
    turns = int(turn.max()) + 1
    used = link.astype(np.int64) * turns + turn[cube.reshape(-1)]
    return len(np.unique(used)) == len(used)
