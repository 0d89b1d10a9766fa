"""Bounds from one cut: what crosses it early knows little, what crosses it late tells few."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weft.bounds.classes import ChunkClasses
from weft.bounds.messages import Distances, Messages, Tables, Times, Ways, places_of, steps_of
from weft.bounds.partitions import before_copies, behind_sums

_MOST_CLASSES = 8  # of chunks that cross, with ends of their own
_MOST_WEIGHTS = 1 << 21  # of one cone
_MOST_LAWS = 3  # ways to weigh pairs

Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Contributions outside a set of nodes and takers inside, all for the same chunks.

    Attributes
    ----------
    known
        How far each contribution is from each NPU: a row for each.
    told
        How far each taker is from each NPU: a column for each.
    apart
        How far they are from each other.
    """

    known: Times
    told: Times
    apart: Times

    def tables(
        self, known: Times, told: Times, sources: Places, ends: Places, apart: int
    ) -> Tables:
        """What messages weigh if all pairs so far apart have the same weight, by source and end."""
        law = (self.apart >= apart).astype(float)
        law /= law.sum()
        knows = places_of(known, self.known[:, sources])
        tells = places_of(told, self.told[ends])
        reached = (np.arange(len(known))[:, None, None] >= knows.T).astype(float)
        served = (np.arange(len(told))[:, None, None] >= tells).astype(float)
        rows = reached.reshape(-1, law.shape[0]) @ law @ served.reshape(-1, law.shape[1]).T
        shape = len(known), len(sources), len(told), len(ends)
        found: Tables = rows.reshape(shape).transpose(1, 3, 0, 2)
        return found

    def together(self, beyond: NDArray[np.bool_]) -> Pairs:
        """The same where a message may have many ends at once: as if each were all of them."""
        nearest = self.told[beyond].min(axis=0)
        return replace(self, told=np.broadcast_to(nearest, self.told.shape))


@dataclass(frozen=True, eq=False)
class Crossing:
    """What must get from outside a set of nodes to NPUs inside; `total` in bytes."""

    pairs: list[Pairs]
    total: float

    @classmethod
    def of(cls, distances: Distances, classes: ChunkClasses, inside: NDArray[np.bool_]) -> Crossing:
        """All chunks with a taker inside and a contribution, or every holder, outside.

        Where they are of many kinds, only the side that they share is looked at.
        """
        within, begins = inside[classes.set_members], classes.set_offsets[:-1]
        some = np.logical_or.reduceat(within, begins)
        every = np.logical_and.reduceat(within, begins)
        comes = np.where(classes.reduce, ~every[classes.pre], ~some[classes.pre])
        rows = np.flatnonzero(comes & some[classes.post])
        total = float(classes.bytes[rows].sum())
        many = len(rows) > _MOST_CLASSES
        ignored = [
            many and bool((side[rows] != side[rows[0]]).any())
            for side in (classes.pre, classes.post, classes.reduce)
        ]
        pairs = [
            _pairs(distances.between, classes, row, inside, ignored[0] or ignored[2], ignored[1])
            for row in (rows[:1] if many else rows)
        ]
        return cls(pairs, total)


def _pairs(
    away: Times,
    classes: ChunkClasses,
    row: int,
    inside: NDArray[np.bool_],
    any_giver: bool,
    any_taker: bool,
) -> Pairs:
    givers = classes.members(int(classes.pre[row]))
    takers = classes.members(int(classes.post[row]))
    takers = takers[inside[takers]]
    known = away[givers[~inside[givers]]]
    if not classes.reduce[row]:
        known = known.min(axis=0, keepdims=True)  # from whichever holder is nearest
    if any_giver:
        known = np.zeros_like(known[:1])
    told, apart = away[:, takers], known[:, takers]
    if any_taker:
        told, apart = np.zeros_like(told[:, :1]), np.zeros_like(apart[:, :1])
    return Pairs(known, told, apart)


def cones(
    distances: Distances, classes: ChunkClasses, inside: NDArray[np.bool_]
) -> Iterator[tuple[Messages, float]]:
    """Messages into a set of nodes, with pairs weighed in several ways; what they must weigh."""
    network = distances.topology
    beyond = inside[: network.npus]
    crossing = Crossing.of(distances, classes, beyond)
    links = np.flatnonzero(inside[network.dst] & ~inside[network.src])
    if crossing.total == 0 or len(links) == 0:
        return
    if classes.reduce.any() and behind_sums(network)[links].any():
        return
    pairs = crossing.pairs
    known = steps_of(np.concatenate([each.known[:, ~beyond].reshape(-1) for each in pairs]))
    told = steps_of(np.concatenate([each.told[beyond].reshape(-1) for each in pairs]))
    hops = np.count_nonzero(~beyond) * np.count_nonzero(beyond)
    if hops * len(known) * len(told) > _MOST_WEIGHTS:
        return
    ways = Ways.into(distances, links, np.broadcast_to(beyond, (len(links), network.npus)))
    sources, ends = np.flatnonzero(~beyond), np.flatnonzero(beyond)
    source, end = np.cumsum(~beyond) - 1, np.cumsum(beyond) - 1
    if before_copies(network)[links].any():
        pairs = [pair.together(beyond) for pair in pairs]
    for apart in _laws(pairs):
        tables = [pair.tables(known, told, sources, ends, apart) for pair in pairs]
        heaviest = np.max(tables, axis=0)
        yield Messages.of(ways, known, told, heaviest, source, end), crossing.total


def _laws(pairs: list[Pairs]) -> list[int]:
    """How far apart pairs are that count: all of them, or the farther ones."""
    if len(pairs) > 1:
        return [0]
    far = np.unique(pairs[0].apart)
    return [0, *far[1:][-_MOST_LAWS:].tolist()]
