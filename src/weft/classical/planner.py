"""Classical algorithms as planners: as few or as many chunks as make them fast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm
from weft.engine import simulate
from weft.errors import UnreachableError
from weft.planners.chunking import WORTH, ladders, leaves_a_gap
from weft.planners.planner import Planner, add
from weft.planners.problem import ROUNDED, Problem
from weft.planners.sends import Produce, Sends, untimed
from weft.topology.model import Topology
from weft.units import NEVER

SHARED = ("all-gather", "reduce-scatter", "all-reduce")
"""Patterns in which every rank has a share of a buffer."""
ROOTED = ("broadcast", "reduce")

# Rows of one algorithm and the links they cross, over all numbers of chunks: about a second.
_MOST_WORK = 1 << 20
_WEIGHED = 0.1  # of the work is done if rows are only weighed
# Up to so many pairs of NPUs that exchange something any gain counts, then one worth more chunks.
_FEW_PAIRS = 1 << 12
_HOPE = 1.5  # up to so many, what could only get so near to the best is still followed
# Beyond so many no classical algorithm is looked at; behind switches, where every NPU sees many
# others, some take long to find out what they send.
_MOST_PAIRS, _MOST_PAIRS_SWITCHED = 1 << 17, 1 << 14
_MOST_ROWS = 1 << 23  # beyond, nobody asks how many more
_SOURCES = 32  # whose distances are taken for those of all
_PATIENCE = 2  # numbers of chunks in a row that may bring nothing

Floats = NDArray[np.float64]
P = TypeVar("P", bound=Produce)


class Classical(Planner):
    """A classical algorithm: who sends what to whom, whatever the network.

    Sends between NPUs that no link joins go over fixed shortest paths; links serve first come
    first. The times are those of a simulation, see `weft.simulate`.

    Parameters
    ----------
    name, summary, rank
        See `Planner`.
    sends
        ``sends(topology, collective)`` gives its rows. It may look at the network, as MultiTree
        does; most do not.
    kinds
        The collectives it knows.
    """

    seeded = False
    side_by_side = True

    def __init__(
        self, name: str, sends: Produce, kinds: tuple[str, ...], summary: str, rank: int = 250
    ) -> None:
        self.name, self.sends, self.kinds, self.summary = name, sends, kinds, summary
        self.rank = rank

    def fits(self, problem: Problem) -> str | None:
        strange = sorted(problem.kinds - set(self.kinds))
        if not strange:
            return None
        return f"does not know {strange[0]}; it does {', '.join(self.kinds)}"

    def plan(self, problem: Problem) -> Algorithm:
        return simulate(self.untimed(problem), problem.topology, problem.cost).timed()

    def untimed(self, problem: Problem) -> Algorithm:
        """What is sent, before it has times."""
        return untimed(self.name, self.sends, problem.topology, problem.demands)

    def rows(self, problem: Problem) -> int:
        """About one for each hop; where there would be far too many, what there is at least."""
        least = sum(int(demand.chunks.receives.sum()) for demand in problem.demands)
        if least > _MOST_ROWS:
            return least
        network = problem.topology
        return sum(_hops(network, self.sends(network, demand)) for demand in problem.demands)

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:
        """Few chunks first, then more, until more bring nothing.

        Where it is the only one to be used: of numbers that are about as good, the smallest.
        """
        if not problem.is_auto:
            tried = _Climb(self, problem).run()
            least = min(algorithm.time for algorithm in tried)
            return next(algorithm for algorithm in tried if algorithm.time <= least * WORTH)
        if _is_too_large(problem):
            return None
        hope = _HOPE if _pairs(problem) <= _FEW_PAIRS else 1
        tried = _Climb(self, problem, _below(problem, best), hope).run()
        return min(tried, key=lambda algorithm: algorithm.time, default=None)

    def can_improve(self, problem: Problem, best: Algorithm) -> bool:
        if _is_too_large(problem) or not leaves_a_gap(problem, best.time):
            return False
        below = _below(problem, best)
        return any(step.bound + ROUNDED < below for ladder in ladders(problem) for step in ladder)


def _pairs(problem: Problem) -> int:
    """Pairs of NPUs that may exchange something."""
    return sum(demand.ranks**2 for demand in problem.demands)


def _is_too_large(problem: Problem) -> bool:
    most = _MOST_PAIRS_SWITCHED if problem.topology.switches else _MOST_PAIRS
    return _pairs(problem) > most


def _below(problem: Problem, best: Algorithm | None) -> int:
    """Picoseconds: a plan that takes as long is of no use beside the best so far."""
    if best is None:
        return NEVER
    return best.time if _pairs(problem) <= _FEW_PAIRS else round(best.time / WORTH)


def classical(name: str, rank: int, kinds: tuple[str, ...], summary: str) -> Callable[[P], P]:
    """Put what a function sends in the table of planners; tables show them in order of rank."""

    def put(sends: P) -> P:
        add(Classical(name, sends, kinds, summary, rank))
        return sends

    return put


@dataclass
class _Outlook:
    """Whether more chunks may still bring a time below what is known.

    What more chunks gain goes down in proportion to their size: so what is left to gain follows
    from the last gain, and twice as much is allowed for. Times and bounds are followed apart, and
    so are the least of the loads: how much is sent hardly depends on how it is cut, so there is no
    hope beyond `below` itself.
    """

    below: float
    hope: float = 1
    least: float = float("inf")
    load: int = NEVER
    misses: int = 0
    last: dict[str, tuple[int, int]] = field(default_factory=dict)
    is_poor: bool = False

    def afresh(self) -> _Outlook:
        """For other chunks, which must bring something at once if the last ones brought nothing."""
        return _Outlook(self.below, self.hope, self.least, misses=min(self.misses, 1))

    def see_time(self, pieces: int, time: int) -> None:
        """Take notice of the time with so many pieces."""
        self.load = 0  # it is not what makes it too slow
        self.misses = 0 if time * WORTH < self.least else self.misses + 1
        self.least = min(self.least, time)
        short = self._falls_short("time", pieces, time, self.below * self.hope)
        self.is_poor = self.misses == _PATIENCE or short

    def see_bound(self, pieces: int, bound: int, load: int) -> None:
        """Take notice of a bound for the time with so many pieces, and of one for the load."""
        short = self._falls_short("bound", pieces, bound, self.below * self.hope)
        self.load = min(self.load, load)
        self.is_poor = self._falls_short("load", pieces, self.load, self.below) or short

    def _falls_short(self, of: str, pieces: int, value: int, below: float) -> bool:
        before, was = self.last.get(of, (pieces, value))
        self.last[of] = pieces, value
        left = max(was - value, 0) / (pieces / before - 1) if pieces > before else float("inf")
        return value - 2 * left >= below


@dataclass(frozen=True)
class _Climb:
    """A search over numbers of chunks, from few to many.

    Attributes
    ----------
    below
        What does not take less time than this is of no use.
    hope
        More chunks are tried unless they promise more than so many times that.
    """

    planner: Classical
    problem: Problem
    below: int = NEVER
    hope: float = 1

    def run(self) -> list[Algorithm]:
        """What it makes of few and of more chunks; without `below` there is always something."""
        tried: list[Algorithm] = []
        refused: UnreachableError | None = None
        outlook, left = _Outlook(self.below, self.hope), float(_MOST_WORK)
        for ladder in ladders(self.problem):
            outlook = outlook.afresh()
            for step in ladder:
                if outlook.is_poor or left < 0:
                    break
                if self.below < NEVER and step.bound >= self.below:
                    continue
                self.problem.progress.check()
                try:
                    made, floor, load, work = self._made(step, left)
                except UnreachableError as error:  # such large chunks may not fit small buffers
                    refused = error
                    continue
                left -= work
                pieces = sum(demand.chunk_count for demand in step.demands)
                if made is None:
                    outlook.see_bound(pieces, floor, load)
                else:
                    outlook.see_time(pieces, made.time)
                    tried.append(made)
        if refused is not None and not tried:
            raise refused
        return tried

    def _made(self, step: Problem, left: float) -> tuple[Algorithm | None, int, int, float]:
        """The algorithm with its times, if it may be of use; bounds for it; and the work."""
        sent = self.planner.untimed(step)
        floor, load, work = self._weighed(sent)
        if self.below < NEVER and (floor >= self.below or work > left):
            return None, floor, load, work * _WEIGHED
        return simulate(sent, step.topology, step.cost).timed(), floor, load, work

    def _weighed(self, sent: Algorithm) -> tuple[int, int, float]:
        """Bounds for an algorithm's rows, in all and by load; how much work simulation is."""
        rows = sent.transfers
        links = _distances(self.problem.topology)[rows.src, rows.dst].astype(np.float64)
        load = floor = _picoseconds(self._load(sent, links))
        if load < self.below:
            floor = max(load, _picoseconds(self._chain(sent, links)))
        return floor, load, len(rows) + float(links.sum())

    def _load(self, sent: Algorithm, links: Floats) -> float:
        """Seconds for what leaves or enters an NPU, and for everything over all links."""
        rows, topology = sent.transfers, self.problem.topology
        size = sent.chunks.bytes[rows.chunk].astype(np.float64)
        rates = topology.bandwidth.astype(np.float64)
        nodes = topology.npus + topology.switches
        load = float((size * links).sum() / max(rates.sum(), 1))
        for row_ends, link_ends in ((rows.src, topology.src), (rows.dst, topology.dst)):
            moved = np.bincount(row_ends, np.where(links > 0, size, 0), nodes)
            rate = np.bincount(link_ends, rates, nodes)
            load = max(load, float((moved[moved > 0] / rate[moved > 0]).max(initial=0)))
        return load

    def _chain(self, sent: Algorithm, links: Floats) -> float:
        """Seconds for the rows of the last chunk alone, each after what it waits for."""
        rows, topology = sent.transfers, self.problem.topology
        mine = np.flatnonzero(rows.chunk == rows.chunk[-1:])
        size = float(sent.chunks.bytes[rows.chunk[-1:]].sum())
        alpha = float(topology.latency.min(initial=NEVER)) / 1e12
        push = size / float(topology.bandwidth.max(initial=1))
        takes = np.where(links > 0, links * alpha + push, 0)
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


def _picoseconds(seconds: float) -> int:
    """A little less: sums are not exact."""
    return int(seconds * 1e12 * (1 - 1e-9))


@lru_cache(maxsize=1)
def _distances(topology: Topology) -> NDArray[np.int32]:
    """How many links lie between any two NPUs at least."""
    npus = topology.npus
    found = np.zeros((npus, npus), dtype=np.int32)
    for npu in topology.members.tolist():
        found[npu] = _core.distances(topology.core, npu, False)[:npus].clip(min=0)
    return found


def _hops(topology: Topology, sends: Sends) -> int:
    """How many hops the sends have in all, judged by those of some sources."""
    sources = np.unique(sends.src)
    sources = sources[:: -(-len(sources) // _SOURCES) or 1]
    count, hops = 0, 0
    for source in sources.tolist():
        away = _core.distances(topology.core, source, False)[sends.dst[sends.src == source]]
        count += len(away)
        # Through switches an NPU is one hop away, whatever the links: half of them at most count.
        hops += int((-(-away // 2) if topology.switches else away).clip(min=0).sum())
    return round(len(sends) * hops / count) if count else 0
