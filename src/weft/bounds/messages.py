"""Bounds from what messages can know when they start and can still tell before the end.

A message over a link starts at some time, when its source knows of the contributions that can have
reached it, and ends at some time, after which its end can still reach some takers. Give every pair
of contributor and taker a weight: a message weighs no more than the pairs it can serve, and all
must be served. See ``docs/bounds.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.bounds.overheads import Overheads
from weft.cost import CostModel
from weft.topology.model import Topology
from weft.units import NEVER

_MOST_STEPS = 24  # distances at which weights change; more are rounded down
_MOST_WAYS = 6  # of hops to take one link, told apart by their α

Times = NDArray[np.int64]
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
    """Links into a set of nodes, and how hops from outside to NPUs inside can take them.

    Attributes
    ----------
    sources, ends
        Per link: the NPUs at which its hops start, and those at which they end.
    before, after
        Per link, by source and end: how long after its start a hop holds the link at the least,
        and how long it still takes after that. There are two layers where a hop may hold it
        from the start or up to its end.
    """

    topology: Topology
    links: NDArray[np.intp]
    sources: list[NDArray[np.intp]]
    ends: list[NDArray[np.intp]]
    before: list[list[Times]]
    after: list[list[Times]]

    @classmethod
    def into(cls, distances: Distances, links: NDArray[np.intp], inside: NDArray[np.bool_]) -> Ways:
        """`inside` says of each link, by NPU, which are beyond it."""
        network, cost = distances.topology, distances.cost
        overheads = Overheads.of(network, cost)
        tails, tail = np.unique(network.src[links], return_inverse=True)
        heads, head = np.unique(network.dst[links], return_inverse=True)
        to_tail, from_head = (
            distances.within_hop(nodes, backwards)
            for nodes, backwards in ((tails, True), (heads, False))
        )
        made = cls(network, links, [], [], [], [])
        for number, link in enumerate(links):
            first, last = to_tail[tail[number]], from_head[head[number]]
            sources = np.flatnonzero((first < NEVER) & ~inside[number])
            ends = np.flatnonzero((last < NEVER) & inside[number])
            made.sources.append(sources)
            made.ends.append(ends)
            layers = _layers(
                cost,
                first[sources][:, None],
                int(network.latency[link]),
                last[ends][None, :],
                bool(overheads.early[link]),
                bool(overheads.late[link]),
            )
            made.before.append([layer[0] for layer in layers])
            made.after.append([layer[1] for layer in layers])
        return made


def _layers(
    cost: CostModel, first: Times, alpha: int, last: Times, early: bool, late: bool
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
        cls, ways: Ways, known: Times, told: Times, tables: Tables, which: Iterable[Times]
    ) -> Messages:
        """Links that are alike are counted together.

        Parameters
        ----------
        tables
            What a message weighs, by when it starts (see `known`) and ends (see `told`).
        which
            For each link: the number of the table of each source and end.
        """
        made: dict[bytes, int] = {}
        kept: list[Tables] = []
        rates: dict[tuple[tuple[int, int, int], ...], float] = {}
        seen: dict[tuple[bytes, ...], tuple[tuple[int, int, int], ...]] = {}
        for number, table in enumerate(which):
            layers = list(zip(ways.before[number], ways.after[number], strict=True))
            key = tuple(part.tobytes() for layer in layers for part in _alike(*layer, table))
            if key not in seen:
                rows = []
                for layer in layers:
                    for before, after, numbers in _grouped(*layer, table):
                        heaviest = tables[numbers].max(axis=0)
                        place = made.setdefault(heaviest.tobytes(), len(kept))
                        kept += [heaviest] if place == len(kept) else []
                        rows.append((before, after, place))
                seen[key] = tuple(rows)
            if seen[key]:
                rate = float(ways.topology.bandwidth[ways.links[number]])
                rates[seen[key]] = rates.get(seen[key], 0.0) + rate
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

    def time_for(self, needed: float) -> int:
        """Picoseconds until messages can weigh `needed` bytes."""
        return _core.time_for_messages(
            known=self.known,
            told=self.told,
            rate=self.rate,
            offsets=self.offsets,
            before=self.before,
            after=self.after,
            table=self.table,
            weights=self.weights,
            needed=needed,
        )


def _alike(before: Times, after: Times, table: Times) -> tuple[Times, ...]:
    """The different ways there are, in one order."""
    rows = np.stack([each.reshape(-1) for each in (before, after, table)])
    order = np.lexsort(rows)
    rows = rows[:, order]
    first = np.append(True, (rows[:, 1:] != rows[:, :-1]).any(axis=0))[: rows.shape[1]]
    return tuple(rows[:, first])


def _grouped(before: Times, after: Times, table: Times) -> Iterator[tuple[int, int, Times]]:
    """Hops alike in α as one, with their tables; not of too many kinds."""
    total = (before + after).reshape(-1)
    steps = np.unique(total)
    steps = steps[:: -(-len(steps) // _MOST_WAYS)] if len(steps) else steps
    step = np.searchsorted(steps, total, side="right") - 1
    for number in range(len(steps)):
        mine = step == number
        least, rest, tables = (each.reshape(-1)[mine] for each in (before, after, table))
        yield int(least.min()), int(rest.min()), np.unique(tables)
