"""In how many chunks to cut: few pay for whole chunks at the end, many pay α for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weft.algorithm import Algorithm
from weft.bound import quick_bound
from weft.collective import Collective
from weft.cost import CostModel
from weft.topology.model import Topology

_CANDIDATES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_MOST_OF_A_SHARE = 32  # an NPU's share of a buffer that all have is small already
_MOST_TRANSFERS = 1 << 21
_WORTH = 1.005  # more chunks must gain at least this much
_PATIENCE = 2  # counts in a row that may fail to


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
    counts = _counts(collective)
    if cost.switching == "store-and-forward" and topology.buffers:
        counts = _fitting(counts, collective, min(topology.buffers.values()))
    options = [replace(collective, chunks_per_share=k) for k in counts]
    floors = [_forecast(topology, option, cost) for option in options]
    promising = min(floors) * _WORTH
    first = next(i for i, floor in enumerate(floors) if floor <= promising)
    climb = _Climb(options, floors, produce, produce(options[first]))
    climb.along(range(first + 1, len(options)))
    climb.along(range(first - 1, -1, -1))
    return climb.best


@dataclass
class _Climb:
    options: Sequence[Collective]
    floors: Sequence[float]
    produce: Callable[[Collective], Algorithm]
    best: Algorithm

    def __post_init__(self) -> None:
        self.spent = len(self.best.transfers)

    def along(self, path: range) -> None:
        """Try options one after the other, until some in a row bring nothing."""
        misses = 0
        for i in path:
            if self.floors[i] * _WORTH >= self.best.time:
                continue
            cost = _transfers(self.options[i])
            if misses == _PATIENCE or self.spent + cost > _MOST_TRANSFERS:
                return
            self.spent += cost
            tried = self.produce(self.options[i])
            if tried.time * _WORTH < self.best.time:
                self.best, misses = tried, 0
            else:
                misses += 1


def _counts(collective: Collective) -> list[int]:
    """Sensible counts: chunks of some bytes, and not too many transfers."""
    shares = collective.ranks if collective.pattern.shares else 1
    by_bytes = collective.size // (shares * collective.alignment)
    by_transfers = _MOST_TRANSFERS // _transfers(collective)
    most = _MOST_OF_A_SHARE if collective.pattern.shares else _CANDIDATES[-1]
    return [k for k in _CANDIDATES if k <= max(1, min(most, by_bytes, by_transfers))]


def _fitting(counts: list[int], collective: Collective, room: int) -> list[int]:
    """The counts whose chunks fit in `room` bytes; if none does, the least that does.

    If that is too many, the counts as they are: there may be a way besides the small buffers.
    """
    shares = collective.ranks if collective.pattern.shares else 1
    units = -(-collective.size // collective.alignment)
    units_a_chunk = room // collective.alignment
    if units_a_chunk == 0:
        return counts
    least = -(-units // (shares * units_a_chunk))
    if least > counts[-1] and _transfers(replace(collective, chunks_per_share=least)) <= (
        _MOST_TRANSFERS
    ):
        return [least]
    return [k for k in counts if k >= least] or counts


def _transfers(collective: Collective) -> int:
    """About how many transfers an algorithm has."""
    shares = collective.ranks if collective.pattern.shares else 1
    return shares * collective.ranks * collective.chunks_per_share


def _forecast(topology: Topology, collective: Collective, cost: CostModel) -> float:
    """A lower bound for whole chunks; on links of different speeds half a slot on top.

    That much of the slowest link is easily lost at the end.
    """
    chunks = collective.chunks
    slot = int(chunks.bytes.max(initial=1))
    time = float(quick_bound(topology, chunks, cost, slot))
    if len(np.unique(topology.bandwidth)) > 1:
        time += 0.5 * slot * 1e12 / float(topology.bandwidth.min())
    return time
