"""In how many chunks to cut: few pay for whole chunks at the end, many pay α for each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft.bound import quick_bound
from weft.collective import Collective
from weft.cost import CostModel
from weft.topology.model import Topology

_CANDIDATES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_MOST_TRANSFERS = 1 << 21
_SHARED_MOST = 16
_WORTH = 1.005  # more chunks must gain at least this much over the fewest as good


def auto_chunks(topology: Topology, collective: Collective, cost: CostModel) -> int:
    """Chunks a share for which a good algorithm should take the least time.

    The forecast is the bound for whole chunks, which knows α and what does not divide evenly,
    and on links of different speeds half a slot of the slowest link on top: that much is easily
    lost at the end.
    """
    counts = [k for k in _CANDIDATES if k <= _most(collective)]
    times = [
        _forecast(topology, replace(collective, chunks_per_share=count), cost) for count in counts
    ]
    best = min(times)
    return next(k for k, time in zip(counts, times, strict=True) if time <= best * _WORTH)


def _most(collective: Collective) -> int:
    """The largest sensible count: chunks of some bytes, and not too many transfers."""
    shares = collective.ranks if collective.pattern.shares else 1
    most = _SHARED_MOST if collective.pattern.shares else _CANDIDATES[-1]
    by_bytes = collective.size // (shares * collective.alignment)
    by_transfers = _MOST_TRANSFERS // (shares * collective.ranks)
    return max(1, min(most, by_bytes, by_transfers))


def _forecast(topology: Topology, collective: Collective, cost: CostModel) -> float:
    chunks = collective.chunks
    slot = int(chunks.bytes.max(initial=1))
    time = float(quick_bound(topology, chunks, cost, slot))
    slowest = topology.bandwidth.min(initial=1 << 62)
    if len(np.unique(topology.bandwidth)) > 1:
        time += 0.5 * slot * 1e12 / float(slowest)
    return time
