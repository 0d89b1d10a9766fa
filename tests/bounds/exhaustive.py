"""Whether a time can be met, by brute force, for two to four NPUs and a few chunks.

Time goes in whole units. Unit after unit, any sends that fit are tried, waiting included: over any
way through switches, to one NPU or, where switches copy, to several, or, where they add, from
several. NPUs keep apart what they receive of a sum, and send any parts of it that do not overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from tests.judge.reference import hop, is_multicast, is_sum
from weft.algorithm import Algorithm, Routes, Timing, Transfers
from weft.collective import Chunks, Collective
from weft.cost import CostModel
from weft.topology import Topology

FAR = 1 << 30

Parts = int  # of a sum, a bit each; a chunk that is not summed has one
Held = tuple[frozenset[Parts], ...]  # by chunk and NPU
Hop = tuple[int, list[tuple[int, int, int]]]  # how long, and (link, begin, until)
Flight = tuple[int, int, Parts]  # when it ends, of which chunk where, what


@dataclass(frozen=True)
class Send:
    """One chunk in one transmission: from whom, to whom and when, and what it holds."""

    chunk: int
    sources: tuple[int, ...]  # one, or those whose parts a switch adds
    arrivals: tuple[tuple[int, int], ...]  # NPU, units from the start
    holds: tuple[tuple[int, int], ...]  # link, a bit for each unit from the start


class Search:
    """All schedules of some demands on a network whose times are whole multiples of `unit`."""

    def __init__(
        self, network: Topology, demands: Sequence[Collective], cost: CostModel, unit: int
    ) -> None:
        self.chunks = Chunks.concatenate([demand.chunks for demand in demands])
        self.npus = network.npus
        self.links = network.links
        self.sends = list(_sends(network, tuple(demands), self.chunks, cost, unit))
        self.away = self._distances()
        self.contributors = [
            self.chunks.members(pre).tolist() if reduce else [-1]
            for pre, reduce in zip(self.chunks.pre, self.chunks.reduce, strict=True)
        ]
        self.takers = [self.chunks.members(post).tolist() for post in self.chunks.post]

    def _distances(self) -> np.ndarray:
        """Units each chunk takes from each NPU to each other, if no link is taken."""
        away = np.full((len(self.chunks), self.npus, self.npus), FAR)
        away[:, range(self.npus), range(self.npus)] = 0
        for send in self.sends:
            for src, (npu, units) in product(send.sources, send.arrivals):
                away[send.chunk, src, npu] = min(away[send.chunk, src, npu], units)
        for via in range(self.npus):
            away = np.minimum(away, away[:, :, via, None] + away[:, via, None, :])
        return away

    def optimum(self, most: int = 40) -> int:
        return next(units for units in range(most) if self.can_end_by(units))

    def can_end_by(self, units: int, visits: int = FAR) -> bool:
        """Whether some schedule ends by then; False also if so many visits do not find it."""
        self.end, self.visits, self.seen = units, visits, set[object]()
        held = [frozenset[Parts]()] * (len(self.chunks) * self.npus)
        for chunk, pre in enumerate(self.chunks.pre):
            for npu in self.chunks.members(pre).tolist():
                part = 1 << self.contributors[chunk].index(npu) if self.chunks.reduce[chunk] else 1
                held[chunk * self.npus + npu] = frozenset([part])
        return self._from(0, tuple(held), (0,) * self.links, ())

    def _from(
        self, now: int, held: Held, taken: tuple[int, ...], flights: tuple[Flight, ...]
    ) -> bool:
        if any(end <= now for end, _, _ in flights):
            places = list(held)
            for _, place, parts in (flight for flight in flights if flight[0] <= now):
                places[place] = _with(places[place], parts)
            held = tuple(places)
            flights = tuple(flight for flight in flights if flight[0] > now)
        latest = self._soonest_end(now, held, flights)
        if latest <= now:
            return True
        state = (now, held, tuple(bits >> now for bits in taken), tuple(sorted(flights)))
        if latest > self.end or state in self.seen:
            return False
        self.seen.add(state)
        return self._at(now, 0, held, taken, flights)

    def _at(
        self, now: int, first: int, held: Held, taken: tuple[int, ...], flights: tuple[Flight, ...]
    ) -> bool:
        """Sends from the `first` on start now, or none does."""
        self.visits -= 1
        for number in range(first, len(self.sends)):
            send = self.sends[number]
            if any(taken[link] & bits << now for link, bits in send.holds):
                continue
            after = list(taken)
            for link, bits in send.holds:
                after[link] |= bits << now
            base = send.chunk * self.npus
            for parts in _joint([held[base + src] for src in send.sources]):
                new = [(now + units, base + npu, parts) for npu, units in send.arrivals]
                if any(end > self.end or parts in held[place] for end, place, _ in new):
                    continue
                if self.visits <= 0:
                    return False
                if self._at(now, number + 1, held, tuple(after), (*flights, *new)):
                    return True
        return self._from(now + 1, held, taken, flights)

    def _soonest_end(self, now: int, held: Held, flights: tuple[Flight, ...]) -> int:
        """When every part could be where it must be, if no link were taken from now on."""
        latest = 0
        for chunk, takers in enumerate(self.takers):
            base, parts = chunk * self.npus, len(self.contributors[chunk])
            at = np.full((parts, self.npus), FAR)
            for part in range(parts):
                for npu in range(self.npus):
                    if any(value >> part & 1 for value in held[base + npu]):
                        at[part, npu] = now
            for end, place, value in flights:
                for part in range(parts):
                    if value >> part & 1 and place // self.npus == chunk:
                        at[part, place - base] = min(at[part, place - base], end)
            for npu in takers:
                if (1 << parts) - 1 in held[base + npu]:
                    continue
                soonest = (at + self.away[chunk, :, npu]).min(1).max()
                latest = max(latest, int(soonest), now + 1)
        return latest


def _joint(held: list[frozenset[Parts]]) -> Iterator[Parts]:
    """What can be sent together: parts of each that do not overlap."""
    for choice in product(*held):
        if sum(choice) == int(np.bitwise_or.reduce(choice)):
            yield sum(choice)


def _with(values: frozenset[Parts], parts: Parts) -> frozenset[Parts]:
    """What an NPU can send once it has this as well."""
    return values | {parts} | {value | parts for value in values if not value & parts}


def _sends(
    network: Topology, demands: tuple[Collective, ...], chunks: Chunks, cost: CostModel, unit: int
) -> Iterator[Send]:
    """Every row there can be, and all that can be one transmission."""
    rows = _all_rows(network, demands, len(chunks), cost)
    hops = [hop(rows, row) for row in range(len(rows.transfers))]
    src, dst = rows.transfers.src, rows.transfers.dst
    for number in range(len(chunks)):
        reach = int(chunks.reach[number])
        allowed = range(network.npus) if reach < 0 else chunks.members(reach).tolist()
        usable = [
            int(row)
            for row in np.flatnonzero(rows.transfers.chunk == number)
            if src[row] in allowed and dst[row] in allowed
        ]
        for size in range(1, network.npus):
            for group in combinations(usable, size):
                pairs = list(combinations(group, 2))
                copies = all(_are_one(rows, hops, *pair) for pair in pairs)
                if not copies and not (
                    chunks.reduce[number] and all(_meet(rows, hops, *pair) for pair in pairs)
                ):
                    continue
                holds: dict[int, int] = {}
                for row in group:
                    for link, begin, until in hops[row][1]:
                        assert begin % unit == until % unit == 0
                        bits = (1 << until // unit) - (1 << begin // unit)
                        holds[link] = holds.get(link, 0) | bits
                arrivals = {(int(dst[row]), hops[row][0] // unit) for row in group}
                sources = tuple(sorted({int(src[row]) for row in group}))
                yield Send(number, sources, tuple(sorted(arrivals)), tuple(holds.items()))


def _all_rows(
    network: Topology, demands: tuple[Collective, ...], chunks: int, cost: CostModel
) -> Algorithm:
    """Every chunk over every route, all at once: no algorithm, but what one is made of."""
    routes = [route for npu in range(network.npus) for route in _routes(network, [], npu)]
    offsets = np.cumsum([0, *map(len, routes)])
    table = Routes(offsets, np.array([link for route in routes for link in route], dtype=np.int32))
    number = np.arange(len(routes) * chunks, dtype=np.int32)
    src = network.src[[route[0] for route in routes]]
    dst = network.dst[[route[-1] for route in routes]]
    now = np.zeros(len(number), dtype=np.int64)
    rows = Transfers(
        number // len(routes),
        np.tile(src, chunks),
        np.tile(dst, chunks),
        now.astype(bool),
        number % len(routes),
        now,
        now,
    )
    return Algorithm(demands, rows, Timing(network, cost, table))


def _meet(rows: Algorithm, hops: list[Hop], row: int, other: int) -> bool:
    """Whether two rows that start together share links as one sum does, all at one time."""
    if hops[row][0] != hops[other][0] or rows.transfers.src[row] == rows.transfers.src[other]:
        return False
    added = replace(rows.transfers, reduce=np.ones_like(rows.transfers.reduce))
    return _share(replace(rows, rows=added), hops, row, other, is_sum)


def _are_one(rows: Algorithm, hops: list[Hop], row: int, other: int) -> bool:
    """Whether two rows share links as one transmission does, and all they hold at one time."""
    one = _share(rows, hops, row, other, is_multicast)
    return one and bool(rows.transfers.dst[row] != rows.transfers.dst[other])


def _share(
    rows: Algorithm, hops: list[Hop], row: int, other: int, rule: Callable[..., bool]
) -> bool:
    shared = False
    for link, begin, until in hops[row][1]:
        for link2, begin2, until2 in hops[other][1]:
            if link != link2 or until <= begin2 or until2 <= begin:
                continue
            shared = rule(rows, (link, begin, until, row), (link, begin2, until2, other))
            if not shared:
                return False
    return shared


def _routes(network: Topology, before: list[int], node: int) -> Iterator[list[int]]:
    """Every way from an NPU through switches, none of them twice, to another NPU."""
    passed = {int(network.src[link]) for link in before}
    for link in np.flatnonzero(network.src == node).tolist():
        to = int(network.dst[link])
        if to in passed:
            continue
        if to < network.npus:
            yield [*before, link]
        else:
            yield from _routes(network, [*before, link], to)
