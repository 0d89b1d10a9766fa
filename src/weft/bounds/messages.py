"""Bounds from what messages can know when they start and can still tell before the end.

A message over a link starts at some time, when its source knows of the contributions that can have
reached it, and ends at some time, after which its end can still reach some takers. Give every pair
of contributor and taker a weight: a message weighs no more than the pairs it can serve, and all
must be served. See ``docs/bounds.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.bounds.overheads import Overheads
from weft.cost import CostModel
from weft.ragged import distinct_pairs
from weft.topology.model import Topology
from weft.units import NEVER

_MOST_STEPS = 24  # distances at which weights change; more are rounded down
_MOST_WAYS = 6  # of hops to take one link, told apart by their α

Times = NDArray[np.int64]
Hops = tuple[tuple[int, int, int], ...]  # before, after, number of a table
Tables = NDArray[np.float64]  # the last two axes: how long since the start, and to the end


@dataclass(frozen=True, eq=False)
class Distances:
    """How soon what NPUs have can be elsewhere.

    Attributes
    ----------
    size
        Of the smallest chunk in bytes; 0 for any chunking, where only α counts.
    """

    topology: Topology
    cost: CostModel
    size: int

    @cached_property
    def between(self) -> Times:
        """From each NPU to each other, by any hops."""
        network = self.topology
        every = np.arange(network.npus, dtype=np.int32)
        found = _core.soonest(network.core, self.cost.core, self.size, every, False)
        return found.reshape(network.npus, network.nodes)[:, : network.npus]

    def within_hop(self, nodes: NDArray[np.int32], backwards: bool) -> Times:
        """From each of some nodes to each NPU (backwards: to it), through switches alone."""
        network = self.topology
        size = self.size if self.cost.switching == "store-and-forward" else 0
        found = _core.soonest(network.core, self.cost.core, size, nodes, backwards, False)
        return found.reshape(len(nodes), network.nodes)[:, : network.npus]


def steps_of(distances: Times) -> Times:
    """The distances there are, ascending from 0; some of them where there are too many."""
    found = np.unique(distances[distances < NEVER])
    found = found[:: -(-len(found) // _MOST_STEPS)] if len(found) > _MOST_STEPS else found
    return found if len(found) and found[0] == 0 else np.append(0, found)


def places_of(steps: Times, distances: Times) -> Times:
    """The step that each distance is rounded down to; beyond all of them where there is no way."""
    return np.where(
        distances < NEVER, np.searchsorted(steps, distances, side="right") - 1, len(steps)
    )


@dataclass(frozen=True, eq=False)
class Ways:
    """Links into sets of nodes, and how hops from outside to NPUs inside can take them.

    Attributes
    ----------
    sources, ends
        Per link: the NPUs at which its hops start, and those at which they end.
    first, last
        Per link: how far it is from each source to the link, and from there to each end.
    """

    topology: Topology
    cost: CostModel
    links: NDArray[np.intp]
    sources: list[NDArray[np.intp]]
    ends: list[NDArray[np.intp]]
    first: list[Times]
    last: list[Times]

    @classmethod
    def into(cls, distances: Distances, links: NDArray[np.intp], inside: NDArray[np.bool_]) -> Ways:
        """`inside` says of each link, by NPU, which are beyond it."""
        network = distances.topology
        tails, tail = np.unique(network.src[links], return_inverse=True)
        heads, head = np.unique(network.dst[links], return_inverse=True)
        to_tail = distances.within_hop(tails, backwards=True)
        from_head = distances.within_hop(heads, backwards=False)
        made = cls(network, distances.cost, links, [], [], [], [])
        for number in range(len(links)):
            first, last = to_tail[tail[number]], from_head[head[number]]
            sources = np.flatnonzero((first < NEVER) & ~inside[number])
            ends = np.flatnonzero((last < NEVER) & inside[number])
            made.sources.append(sources)
            made.ends.append(ends)
            made.first.append(first[sources])
            made.last.append(last[ends])
        return made


def _layers(
    cost: CostModel, first: Times, last: Times, alpha: int, early: bool, late: bool
) -> list[tuple[Times, Times]]:
    """Least times before and after a hold: α that blocks is the first part of it."""
    none = np.zeros(np.broadcast_shapes(first.shape, last.shape), dtype=np.int64)
    blocking = cost.latency_model == "blocking"
    own, rest = (alpha, 0) if blocking else (0, alpha)
    if cost.switching == "store-and-forward":
        return [(none + first + own, none + last + rest)]
    total = none + first + alpha + last
    layers = [(none + own, total - own)] if early else []
    return [*layers, (total, none)] if late else layers


@dataclass(frozen=True, eq=False)
class Messages:
    """Links with what messages over them weigh, for the core; ready for any number of bytes."""

    known: Times
    told: Times
    rate: NDArray[np.float64]
    offsets: Times
    before: Times
    after: Times
    table: NDArray[np.int32]
    weights: Tables
    links: NDArray[np.intp]

    @classmethod
    def of(
        cls,
        ways: Ways,
        known: Times,
        told: Times,
        tables: Tables,
        source: NDArray[np.intp],
        end: NDArray[np.intp],
    ) -> Messages:
        """Links that are alike are counted together.

        Parameters
        ----------
        tables
            What messages weigh, by the kinds of source and end, when they start, and end.
        source, end
            Of each NPU: which kind it is, as a source and as an end.
        """
        network, (kinds, others) = ways.topology, tables.shape[:2]
        overheads = Overheads.of(network, ways.cost)
        made: dict[bytes, int] = {}
        kept: list[Tables] = []
        seen: dict[object, Hops] = {}
        rates: dict[Hops, float] = {}
        for number, link in enumerate(ways.links):
            first, one = _different(ways.first[number], source[ways.sources[number]], kinds)
            last, other = _different(ways.last[number], end[ways.ends[number]], others)
            held = int(network.latency[link]), overheads.early[link], overheads.late[link]
            key = (*(column.tobytes() for column in (first, one, last, other)), *held)
            if key not in seen:
                rows = []
                for before, after in _layers(ways.cost, first[:, None], last, *held):
                    for least, rest, mine in _grouped(before, after):
                        heaviest = tables[one[:, None], other][mine].max(axis=0)
                        place = made.setdefault(heaviest.tobytes(), len(kept))
                        kept += [heaviest] if place == len(kept) else []
                        rows.append((least, rest, place))
                seen[key] = tuple(rows)
            if seen[key]:
                rates[seen[key]] = rates.get(seen[key], 0.0) + float(network.bandwidth[link])
        columns = np.array([way for each in rates for way in each], dtype=np.int64)
        columns = columns.reshape(-1, 3).T.copy()
        return cls(
            known,
            told,
            np.array(list(rates.values())) * (1 + 1e-12),
            np.cumsum([0, *map(len, rates)], dtype=np.int64),
            columns[0],
            columns[1],
            columns[2].astype(np.int32),
            np.concatenate([np.zeros(0), *(table.reshape(-1) for table in kept)]),
            ways.links,
        )

    @cached_property
    def core(self) -> _core.MessageLinks:
        """The same for the kernel."""
        columns = (column.name for column in fields(self) if column.name != "links")
        return _core.MessageLinks(**{name: getattr(self, name) for name in columns})

    def time_for(self, needed: float) -> int:
        """Picoseconds until messages can weigh `needed` bytes."""
        return _core.time_for_messages(self.core, needed)


def _different(distance: Times, kind: NDArray[np.intp], kinds: int) -> tuple[Times, Times]:
    """The pairs of distance and kind there are."""
    if int(distance.max(initial=0)) >= NEVER // (2 * kinds):
        return distinct_pairs(distance, kind)[:2]
    return divmod(np.unique(distance * kinds + kind), kinds)


def _grouped(before: Times, after: Times) -> Iterator[tuple[int, int, NDArray[np.bool_]]]:
    """Hops alike in α as one: the least before, the least after, and which they are."""
    total = before + after
    steps = np.unique(total)
    steps = steps[:: -(-len(steps) // _MOST_WAYS)] if len(steps) else steps
    step = np.searchsorted(steps, total, side="right") - 1
    for number in range(len(steps)):
        mine = step == number
        yield int(before[mine].min()), int(after[mine].min()), mine
