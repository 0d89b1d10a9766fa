"""Ways up through switches and down again, where NPUs on a grid all see the same.

A *ladder* is what each NPU climbs: its link to a leaf, the leaf's link to a spine, and so on. Who
goes from one NPU to another climbs until a switch is above both, and comes down. Which spine is
taken follows from the sender's place, so that NPUs of a leaf spread over its up-links. Where there
are fewer of them than NPUs, these take turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft.ragged import earlier_equals
from weft.topology.grid import Grid, moved
from weft.topology.model import Topology
from weft.values import Value

Numbers = NDArray[np.int64]
Links = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Ladder(Value):
    """Links up from each NPU of a grid, tier by tier, and back down to it.

    All have one row per tier and one column per place of the grid.

    Attributes
    ----------
    up
        The link that a place climbs: from its NPU, or from the switch that the row before leads to.
    down
        The link back, from the upper end of `up` to its lower end.
    turn
        When a place sends over links that it shares up to that tier: first (0), second, ...
    """

    up: Links
    down: Links
    turn: Links

    @property
    def tiers(self) -> int:
        return len(self.up)


@dataclass(frozen=True, eq=False)
class Climb:
    """A ladder on its network and its grid.

    A switch of a tier is *above* whole lines of the grid: those along which it stays the same.
    """

    topology: Topology
    sizes: tuple[int, ...]
    ladder: Ladder

    @cached_property
    def switch(self) -> Links:
        """The switch of each tier above each place."""
        ends: Links = self.topology.dst[self.ladder.up]
        return ends

    @cached_property
    def above(self) -> list[int]:
        """For each tier: the dimensions along which its switches stay the same, as bits."""
        return [_constant(self.sizes, row) for row in self.switch]

    @cached_property
    def shared(self) -> list[bool]:
        """For each tier: whether several places climb one link."""
        return [most > 1 for most in self._most]

    @cached_property
    def _most(self) -> list[int]:
        """For each tier: how many places climb one link, at the most."""
        return [int(np.bincount(row).max()) for row in self.ladder.up]

    @cached_property
    def last_turn(self) -> list[int]:
        """For each tier: the last turn over the links that are shared up to there."""
        return [int(row.max()) for row in self.ladder.turn]

    def turning(self, top: int) -> int:
        """The dimensions along which turns up to a tier differ, as bits."""
        return ~_constant(self.sizes, self.ladder.turn[top]) & ((1 << len(self.sizes)) - 1)

    def users(self, top: int) -> Numbers:
        """How many places use each link of a hop up to a tier and down, at the most."""
        return np.array([*self._most[: top + 1], *self._most[top::-1]])

    def top(self, by: Numbers) -> NDArray[np.int64]:
        """The lowest tier over which places can be reached that are so far away; -1 if none."""
        apart = bits_of(self.sizes, by)
        found, reached = np.full(len(by), -1), 0
        for tier, above in enumerate(self.above):
            reached |= above
            found[(found < 0) & (apart & ~reached == 0)] = tier
        return found

    def links(self, place: Numbers, by: Numbers, top: int) -> Links:
        """The links from places to those so far away, one row each."""
        up = [self.ladder.up[tier][place] for tier in range(top + 1)]
        down, dims = [], 0
        for tier in reversed(range(top + 1)):
            dims |= self.above[tier]
            down.append(self.ladder.down[tier][moved(self.sizes, place, by, dims)])
        return np.stack([*up, *down], axis=1)

    def speeds(self, top: int) -> tuple[Numbers, Numbers]:
        """Bandwidth and latency of the links of a hop up to a tier and down."""
        links = np.concatenate([self.ladder.up[: top + 1, 0], self.ladder.down[top::-1, 0]])
        return self.topology.bandwidth[links], self.topology.latency[links]


def bits_of(sizes: tuple[int, ...], by: Numbers) -> Numbers:
    """The dimensions in which places so far apart differ, as bits."""
    found, stride = np.zeros(len(by), dtype=np.int64), 1
    for dimension, size in enumerate(sizes):
        found |= (by // stride % size != 0).astype(np.int64) << dimension
        stride *= size
    return found


def _constant(sizes: tuple[int, ...], row: Links) -> int:
    """The dimensions along which something stays the same, as bits."""
    cube, found = row.reshape(sizes[::-1]), 0
    for dimension in range(len(sizes)):
        line = np.moveaxis(cube, len(sizes) - 1 - dimension, 0)
        found |= int((line == line[:1]).all()) << dimension
    return found


def ladders_of(topology: Topology, grid: Grid) -> list[Ladder]:
    """The ladders of NPUs on a grid: one for each link to a switch that they all have alike."""
    reverse = topology.reverse_links
    if reverse is None or topology.switches == 0:
        return []
    height, found = _heights(topology), []
    for first in _first_links(topology, grid):
        climbing: Links | None = first
        rows: list[tuple[Links, Links, Links]] = []
        turn = np.zeros(len(first), dtype=np.int32)
        while climbing is not None and _are_alike(topology, climbing, reverse[climbing]):
            # Those who share a link have different turns; who had so further down keeps that.
            turns = int(turn.max()) + 1
            again = earlier_equals(climbing * np.int64(turns) + turn).astype(np.int32)
            turn = turn + turns * again
            rows.append((climbing, reverse[climbing], turn))
            climbing = _next_links(topology, height, climbing)
        if rows:
            found.append(Ladder(*(np.stack(part) for part in zip(*rows, strict=True))))
    return found


def _first_links(topology: Topology, grid: Grid) -> Iterator[Links]:
    """Links from NPUs to switches: one of each, those of the same kind together."""
    out = np.flatnonzero((topology.src < topology.npus) & (topology.dst >= topology.npus))
    ports = np.bincount(topology.dst[out], minlength=topology.nodes)[topology.dst[out]]
    speed = -topology.bandwidth[out], topology.latency[out]
    ordered = out[np.lexsort((out, ports, *speed[::-1], topology.src[out]))]
    counts = np.bincount(topology.src[ordered], minlength=topology.npus)
    first = (np.cumsum(counts) - counts)[grid.npus]
    each = int(counts[grid.npus[0]])
    if (counts[grid.npus] == each).all():
        yield from (ordered[first + number].astype(np.int32) for number in range(each))


def _next_links(topology: Topology, height: Numbers, climbing: Links) -> Links | None:
    """A link further up for each place, given the one before; None if they have none alike.

    Those who share a link share the next one too: they have their turns already. So there are no
    more turns than places that share one.
    """
    inner = (topology.src >= topology.npus) & (topology.dst >= topology.npus)
    up = np.flatnonzero(inner & (height[topology.dst] > height[topology.src]))
    ordered = up[np.lexsort((up, topology.dst[up], topology.src[up]))]
    counts = np.bincount(topology.src[ordered], minlength=topology.nodes)
    first = np.flatnonzero(earlier_equals(climbing) == 0)
    switch = topology.dst[climbing[first]]
    each = int(counts[switch[0]])
    if each == 0 or (counts[switch] != each).any():
        return None
    following = np.zeros(topology.links, dtype=np.int32)
    below = (np.cumsum(counts) - counts)[switch]
    following[climbing[first]] = ordered[below + earlier_equals(switch) % each]
    links: Links = following[climbing]
    return links


def _are_alike(topology: Topology, *rows: Links) -> bool:
    """Whether the links of each row are all of one speed."""
    columns = (topology.bandwidth, topology.latency)
    return all((column[row] == column[row[0]]).all() for row in rows for column in columns)


def _heights(topology: Topology) -> Numbers:
    """How many links each node is away from the nearest NPU."""
    height = np.full(topology.nodes, topology.nodes, dtype=np.int64)
    height[: topology.npus] = 0
    while True:
        nearer = height.copy()
        np.minimum.at(nearer, topology.dst, height[topology.src] + 1)
        if np.array_equal(nearer, height):
            return height
        height = nearer
