"""Bounds from one cut: what crosses it early knows little, what crosses it late tells few."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.bounds.classes import ChunkClasses
from weft.bounds.messages import Distances, Messages, Times, Ways, Weights, places_of, steps_of

_MOST_CLASSES = 8  # of chunks that cross, with ends of their own
_MOST_WEIGHTS = 1 << 21  # of one cone
_MOST_LAWS = 3  # ways to weigh pairs


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

    def weights(
        self, known: Times, told: Times, ways: Ways, number: int, apart: int, together: bool
    ) -> Weights:
        """What messages over a link weigh if all pairs so far apart have the same weight.

        Where switches copy, one message may have several ends: all of them `together`.
        """
        law = (self.apart >= apart).astype(float)
        law /= law.sum()
        sources, ends = ways.sources[number], ways.ends[number]
        knows = places_of(known, self.known[:, sources])
        tells = places_of(told, self.told[ends])
        if together:
            tells = np.broadcast_to(tells.min(axis=0, initial=len(told)), tells.shape)
        reached = (np.arange(len(known))[:, None, None] >= knows.T) @ law
        served = (tells <= np.arange(len(told))[:, None, None]).astype(float)
        found: Weights = np.einsum("iwv,jxv->wxij", reached, served, optimize=True)
        return found


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
    pairs = crossing.pairs
    known = steps_of(np.concatenate([each.known[:, ~beyond].reshape(-1) for each in pairs]))
    told = steps_of(np.concatenate([each.told[beyond].reshape(-1) for each in pairs]))
    hops = np.count_nonzero(~beyond) * np.count_nonzero(beyond)
    if hops * len(known) * len(told) > _MOST_WEIGHTS:
        return
    ways = Ways.into(distances, links, np.broadcast_to(beyond, (len(links), network.npus)))
    for apart in _laws(pairs):
        weights = []
        for number, link in enumerate(links):
            copied = bool(network.copying) and int(network.dst[link]) >= network.npus
            each = [pair.weights(known, told, ways, number, apart, copied) for pair in pairs]
            weights.append(np.max(each, axis=0))
        yield Messages.of(ways, known, told, weights), crossing.total


def _laws(pairs: list[Pairs]) -> list[int]:
    """How far apart pairs are that count: all of them, or the farther ones."""
    if len(pairs) > 1:
        return [0]
    far = np.unique(pairs[0].apart)
    return [0, *far[1:][-_MOST_LAWS:].tolist()]
