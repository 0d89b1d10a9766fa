"""In how many chunks to cut: few pay for whole chunks at the end, many pay α for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weft import _core
from weft.algorithm import Algorithm
from weft.bound import quick_bound
from weft.collective import Collective, all_reduce_of
from weft.cost import CostModel
from weft.topology.model import Topology

_CANDIDATES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
# An NPU's share of a buffer that all have is small already, the smaller the more NPUs there are.
_MOST_OF_A_SHARE, _MOST_OF_A_BUFFER = 32, 2048
_MOST_WORK = 1 << 21  # transfers in all
_HOPS_OF_A_PATH = 4
_NPUS_A_WEIGHT = 16  # so many more make a transfer behind switches dearer by one
WORTH = 1.005  # more chunks must gain at least this much
# Counts in a row that may fail to; more, as long as little work is done.
_PATIENCE, _MORE_PATIENCE, _LITTLE_WORK = 2, 4, 1 << 15


def best_chunking(
    topology: Topology,
    collective: Collective,
    cost: CostModel,
    produce: Callable[[Collective], Algorithm],
) -> Algorithm:
    """The best algorithm over several chunk counts, with few of them tried.

    A forecast for each count, a lower bound and a little more, says which are promising and
    which can hardly beat what was found. The search starts at the smallest promising count and
    climbs from there, up and then down.
    """
    options = [replace(collective, chunks_per_share=k) for k in _counts(topology, collective, cost)]
    if len(options) == 1:  # there may be too many chunks to forecast anything
        return produce(options[0])
    floors = [_forecast(topology, option, cost) for option in options]
    return climbed(options, floors, [_work(topology, option) for option in options], produce)


def climbed(
    options: Sequence[Collective],
    floors: Sequence[float],
    work: Sequence[int],
    produce: Callable[[Collective], Algorithm],
) -> Algorithm:
    """The best algorithm over several options, given a forecast and the work for each."""
    promising = min(floors) * WORTH
    first = next(i for i, floor in enumerate(floors) if floor <= promising)
    climb = _Climb(options, floors, work, produce, produce(options[first]), work[first])
    climb.along(range(first + 1, len(options)))
    climb.along(range(first - 1, -1, -1))
    return climb.best


def chunked(topology: Topology, collective: Collective, cost: CostModel, most: int) -> Collective:
    """Cut in as many chunks as are sensible, up to `most`."""
    counts = _counts(topology, collective, cost)
    return replace(collective, chunks_per_share=max([k for k in counts if k <= most] or counts[:1]))


def all_cut(
    topology: Topology, cost: CostModel, jobs: Sequence[tuple[Collective, bool]]
) -> list[list[list[Collective]]]:
    """The demands cut in more and more chunks, where their number is to be chosen.

    An All-Reduce need not be cut in shares: not every algorithm gives each NPU one. So there are
    two lists, one for fewer chunks than NPUs, in which not all have the same to do.
    """
    ladders = [
        _ladder(topology, demand, cost) if choose else {1: demand} for demand, choose in jobs
    ]
    levels = sorted({pieces for ladder in ladders for pieces in ladder})
    whole = max(demand.pattern.shares(demand.ranks) for demand, _ in jobs)
    few, many = (
        [[_step(ladder, level) for ladder in ladders] for level in some]
        for some in ([k for k in levels if k < whole], [k for k in levels if k >= whole])
    )
    return [cuts for cuts in (few, many) if cuts]


def _ladder(topology: Topology, collective: Collective, cost: CostModel) -> dict[int, Collective]:
    """The collective cut in several ways, by the number of parts of its buffer."""
    shares = collective.pattern.shares(collective.ranks)
    ladder = {}
    if collective.pattern.any_cut and collective.parts is None:
        most = min(shares - 1, max(collective.size // collective.alignment, 1))
        for pieces in (k for k in _CANDIDATES if k <= most):
            uncut = all_reduce_of(
                collective.group, collective.size, pieces, alignment=collective.alignment
            )
            ladder[pieces] = replace(uncut, relay=collective.relay)
    for k in _counts(topology, collective, cost):
        ladder[shares * k] = replace(collective, chunks_per_share=k)
    return ladder


def _step(ladder: dict[int, Collective], level: int) -> Collective:
    """The most parts up to so many, or the fewest there are."""
    return ladder[max([pieces for pieces in ladder if pieces <= level] or [min(ladder)])]


@dataclass
class _Climb:
    options: Sequence[Collective]
    floors: Sequence[float]
    work: Sequence[int]
    produce: Callable[[Collective], Algorithm]
    best: Algorithm
    spent: int

    def along(self, path: range) -> None:
        """Try options one after the other, until some in a row bring nothing."""
        misses = 0
        for i in path:
            if self.floors[i] * WORTH >= self.best.time:
                continue
            patience = _PATIENCE if self.spent > _LITTLE_WORK else _MORE_PATIENCE
            if misses >= patience or self.spent + self.work[i] > _MOST_WORK:
                return
            self.spent += self.work[i]
            tried = self.produce(self.options[i])
            if tried.time * WORTH < self.best.time:
                self.best, misses = tried, 0
            else:
                misses += 1


def _counts(topology: Topology, collective: Collective, cost: CostModel) -> list[int]:
    """Sensible counts: chunks of some bytes that fit where they go, and not too much work."""
    by_work = _MOST_WORK // _work(topology, replace(collective, chunks_per_share=1))
    counts = counts_within(collective, by_work)
    if cost.switching == "store-and-forward" and topology.buffers:
        return _fitting(topology, counts, collective, min(topology.buffers.values()))
    return counts


def counts_within(collective: Collective, most: int) -> list[int]:
    """Sensible counts up to `most`, but at least one: chunks of some bytes."""
    shares = collective.pattern.shares(collective.ranks)
    by_bytes = collective.size // (shares * collective.alignment)
    alike = shares > 1 and not collective.pattern.own_buffers
    sensible = max(_MOST_OF_A_SHARE, _MOST_OF_A_BUFFER // shares) if alike else _CANDIDATES[-1]
    return [k for k in _CANDIDATES if k <= max(1, min(most, by_bytes, sensible))]


def _fitting(topology: Topology, counts: list[int], collective: Collective, room: int) -> list[int]:
    """The counts whose chunks fit in `room` bytes; if none does, the least that does.

    If that is too many, the counts as they are: there may be a way besides the small buffers.
    """
    units_a_chunk = room // collective.alignment
    if units_a_chunk == 0:
        return counts
    whole = replace(collective, chunks_per_share=1).chunks.largest
    least = -(-whole // (units_a_chunk * collective.alignment))
    if least > counts[-1]:
        affordable = _work(topology, replace(collective, chunks_per_share=least)) <= _MOST_WORK
        return [least] if affordable else counts
    return [k for k in counts if k >= least] or counts


def _work(topology: Topology, collective: Collective) -> int:
    """About how many transfers are planned, relays included; behind switches each is dearer."""
    each = _HOPS_OF_A_PATH if collective.pattern.own_buffers else topology.npus
    if topology.switches:
        each *= 1 + topology.npus // _NPUS_A_WEIGHT
    return collective.part_count * each * collective.chunks_per_share


def _forecast(topology: Topology, collective: Collective, cost: CostModel) -> float:
    """A lower bound for whole chunks, and what is easily lost on top of it.

    On links of different speeds that is half a slot of the slowest at the end; where every chunk
    goes its own way, half a slot for each hop of a long one, until links far away are busy.
    """
    chunks = collective.chunks
    time = float(quick_bound(topology, chunks, cost, chunks.largest))
    lost = 0.0
    if len(np.unique(topology.bandwidth)) > 1:
        lost = 1e12 / float(topology.bandwidth.min())
    if collective.pattern.own_buffers and topology.links:
        away = _core.distances(topology.core, collective.group[0], False)[list(collective.group)]
        hops = 1.0 if topology.switches else float(away.max())  # switches let chunks run through
        lost = max(lost, hops * 1e12 / float(np.median(topology.bandwidth)))
    return time + 0.5 * chunks.largest * lost
