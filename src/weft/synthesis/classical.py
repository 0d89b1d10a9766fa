"""Classical algorithms beside the search: what is found is never worse than any of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm
from weft.baselines import BASELINES, unmapped
from weft.bound import quick_bound
from weft.collective import Chunks, Collective
from weft.errors import InputError, UnreachableError
from weft.simulate import simulate
from weft.synthesis.chunking import WORTH, all_cut
from weft.synthesis.engines import Settings
from weft.synthesis.planning import timed
from weft.synthesis.schedule import Schedule
from weft.threads import in_threads
from weft.topology.model import Topology
from weft.units import NEVER
from weft.verify import verify

# Rows of one algorithm and the links they cross, over all numbers of chunks: about a second.
_MOST_WORK = 1 << 20
_WEIGHED = 0.1  # of the work is done if rows are only weighed
# Up to so many pairs of NPUs that exchange something any gain counts, then one worth more chunks.
_FEW_PAIRS = 1 << 12
_HOPE = 1.5  # up to so many, what could only get so near to the best is still followed
# Beyond so many no classical algorithm is looked at; behind switches, where every NPU sees many
# others, some take long to find out what they send.
_MOST_PAIRS, _MOST_PAIRS_SWITCHED = 1 << 17, 1 << 14
_PATIENCE = 2  # numbers of chunks in a row that may bring nothing

Floats = NDArray[np.float64]
Jobs = Sequence[tuple[Collective, bool]]


def plan_classical(topology: Topology, settings: Settings, jobs: Jobs, name: str) -> Algorithm:
    """One of `BASELINES` for all demands; each says whether its number of chunks is to be chosen.

    Of numbers that are about as good, the smallest is taken.

    Raises
    ------
    InputError
        If it does not know one of the collectives, or the network.
    UnreachableError
        If some chunk has no path to where it must go.
    """
    ladders = [
        [(demands, 0) for demands in ladder] for ladder in all_cut(topology, settings.cost, jobs)
    ]
    tried = _Climb(topology, settings, ladders).of(name)
    least = min(algorithm.time for algorithm in tried)
    return next(algorithm for algorithm in tried if algorithm.time <= least * WORTH)


def best_known(topology: Topology, settings: Settings, jobs: Jobs, best: Algorithm) -> Algorithm:
    """What was found, or a classical algorithm that takes less time, if it is judged right."""
    pairs = sum(demand.ranks**2 for demand, _ in jobs)
    fitting = [
        name
        for name, baseline in BASELINES.items()
        if all(demand.kind in baseline.kinds for demand, _ in jobs)
    ]
    most = _MOST_PAIRS_SWITCHED if topology.switches else _MOST_PAIRS
    if pairs > most or not fitting:
        return best
    ladders = [
        [(demands, quick_bound(topology, _chunks(demands), settings.cost)) for demands in ladder]
        for ladder in all_cut(topology, settings.cost, jobs)
    ]
    few = pairs <= _FEW_PAIRS
    below = best.time if few else round(best.time / WORTH)
    if all(floor >= below for ladder in ladders for _, floor in ladder):
        return best
    climb = _Climb(topology, settings, ladders, below, _HOPE if few else 1)

    settings.say("trying classical algorithms")
    settings.progress.begin(len(fitting))

    def made(name: str) -> Algorithm | None:
        found = None
        with suppress(InputError, UnreachableError):  # it does not suit this network
            found = min(climb.of(name), key=lambda algorithm: algorithm.time, default=None)
        settings.progress.advance()
        return found

    tried = in_threads(made, fitting, settings.threads)
    found = [algorithm for algorithm in tried if algorithm is not None]
    found.sort(key=lambda algorithm: algorithm.time)
    found += [_pushed(topology, settings, first) for first in found[:1]]
    better = [algorithm for algorithm in found if algorithm.time < best.time]
    better.sort(key=lambda algorithm: algorithm.time)
    return next((algorithm for algorithm in better if verify(algorithm).ok), best)


def _pushed(topology: Topology, settings: Settings, algorithm: Algorithm) -> Algorithm:
    """The same rows pushed together, unless they use memory of which planners know nothing."""
    rows = algorithm.transfers
    if rows.src_place is not None or rows.dst_place is not None or rows.deps is not None:
        return algorithm
    pushed = Schedule.of(algorithm).tightened(topology, settings.cost, algorithm.chunks.largest)
    method = str(algorithm.provenance["method"])
    return timed(topology, settings, algorithm.demands, [pushed], method)


def _chunks(demands: Sequence[Collective]) -> Chunks:
    return Chunks.concatenate([demand.chunks for demand in demands])


@dataclass
class _Outlook:
    """Whether more chunks may still bring a time below what is known.

    What more chunks gain goes down in proportion to their size: so what is left to gain follows
    from the last gain, and twice as much is allowed for. Times and bounds are followed apart.
    """

    below: float
    least: float = float("inf")
    misses: int = 0
    last: dict[str, tuple[int, int]] = field(default_factory=dict)
    is_poor: bool = False

    def afresh(self) -> _Outlook:
        """For other chunks, which must bring something at once if the last ones brought nothing."""
        return _Outlook(self.below, self.least, min(self.misses, 1))

    def see_time(self, pieces: int, time: int) -> None:
        """Take notice of the time with so many pieces."""
        self.misses = 0 if time * WORTH < self.least else self.misses + 1
        self.least = min(self.least, time)
        self.is_poor = self.misses == _PATIENCE or self._falls_short("time", pieces, time)

    def see_bound(self, pieces: int, bound: int) -> None:
        """Take notice of a bound for the time with so many pieces."""
        self.is_poor = self._falls_short("bound", pieces, bound)

    def _falls_short(self, of: str, pieces: int, value: int) -> bool:
        before, was = self.last.get(of, (pieces, value))
        self.last[of] = pieces, value
        left = max(was - value, 0) / (pieces / before - 1) if pieces > before else float("inf")
        return value - 2 * left >= self.below


@dataclass(frozen=True)
class _Climb:
    """A search over numbers of chunks, from few to many.

    Attributes
    ----------
    ladders
        The demands cut in more and more chunks, with a proven bound for each.
    below
        What does not take less time than this is of no use.
    hope
        More chunks are tried unless they promise more than so many times that.
    """

    topology: Topology
    settings: Settings
    ladders: Sequence[Sequence[tuple[Sequence[Collective], int]]]
    below: int = NEVER
    hope: float = 1

    def of(self, name: str) -> list[Algorithm]:
        """What one algorithm makes of few and of more chunks, until more bring nothing.

        Without `below` there is always something.
        """
        tried: list[Algorithm] = []
        refused: UnreachableError | None = None
        outlook, left = _Outlook(self.below * self.hope), float(_MOST_WORK)
        for ladder in self.ladders:
            outlook = outlook.afresh()
            for demands, proven in ladder:
                if outlook.is_poor or left < 0:
                    break
                if proven >= self.below:
                    continue
                self.settings.progress.check()
                try:
                    made, floor, work = self._made(name, demands, left)
                except UnreachableError as error:  # such large chunks may not fit small buffers
                    refused = error
                    continue
                left -= work
                pieces = sum(len(demand.chunks) for demand in demands)
                if made is None:
                    outlook.see_bound(pieces, floor)
                else:
                    outlook.see_time(pieces, made.time)
                    tried.append(made)
        if refused is not None and not tried:
            raise refused
        return tried

    def _made(
        self, name: str, demands: Sequence[Collective], left: float
    ) -> tuple[Algorithm | None, int, float]:
        """The algorithm with its times, if it may be of use; a bound for it; and the work."""
        untimed = unmapped(name, BASELINES[name], self.topology, demands)
        floor, work = self._weighed(untimed)
        if self.below < NEVER and (floor >= self.below or work > left):
            return None, floor, work * _WEIGHED
        return simulate(untimed, self.topology, self.settings.cost).timed(), floor, work

    def _weighed(self, untimed: Algorithm) -> tuple[int, float]:
        """A bound for the rows of an algorithm, and how much work it is to simulate them."""
        rows = untimed.transfers
        links = self._links[rows.src, rows.dst].astype(np.float64)
        floor = max(self._load(untimed, links), self._chain(untimed, links))
        return int(floor * 1e12 * (1 - 1e-9)), len(rows) + float(links.sum())  # not exact

    def _load(self, untimed: Algorithm, links: Floats) -> float:
        """Seconds for what leaves or enters an NPU, and for everything over all links."""
        rows, topology = untimed.transfers, self.topology
        size = untimed.chunks.bytes[rows.chunk].astype(np.float64)
        rates = topology.bandwidth.astype(np.float64)
        nodes = topology.npus + topology.switches
        load = float((size * links).sum() / max(rates.sum(), 1))
        for row_ends, link_ends in ((rows.src, topology.src), (rows.dst, topology.dst)):
            moved = np.bincount(row_ends, np.where(links > 0, size, 0), nodes)
            rate = np.bincount(link_ends, rates, nodes)
            load = max(load, float((moved[moved > 0] / rate[moved > 0]).max(initial=0)))
        return load

    def _chain(self, untimed: Algorithm, links: Floats) -> float:
        """Seconds for the rows of the last chunk alone, each after what it waits for."""
        rows, topology = untimed.transfers, self.topology
        mine = np.flatnonzero(rows.chunk == rows.chunk[-1:])
        size = float(untimed.chunks.bytes[rows.chunk[-1:]].sum())
        alpha = float(topology.latency.min(initial=NEVER)) / 1e12
        sent = size / float(topology.bandwidth.max(initial=1))
        takes = np.where(links > 0, links * alpha + sent, 0)
        reads = rows.chunk if rows.src_place is None else rows.src_place
        writes = rows.chunk if rows.dst_place is None else rows.dst_place
        columns = (rows.src, reads, rows.dst, writes, rows.reduce, takes)
        ready: dict[tuple[int, int], float] = {}
        for src, read, dst, write, reduce, time in zip(
            *(column[mine].tolist() for column in columns), strict=True
        ):
            arrives = ready.get((src, read), 0.0) + time
            there = ready.get((dst, write), 0.0) if reduce else 0.0
            ready[dst, write] = max(arrives, there)
        return max(ready.values(), default=0.0)

    @cached_property
    def _links(self) -> NDArray[np.int32]:
        """How many links lie between any two NPUs at least."""
        npus = self.topology.npus
        found = np.zeros((npus, npus), dtype=np.int32)
        for npu in self.topology.members.tolist():
            found[npu] = _core.distances(self.topology.core, npu, False)[:npus].clip(min=0)
        return found
