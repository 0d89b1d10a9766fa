"""How large a classical algorithm gets on a network, before it is put there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft import _core
from weft.classical.mapping import Produce, Sends
from weft.collective import Collective
from weft.topology.model import Topology

_MOST_ROWS = 1 << 23  # beyond, nobody asks how many more
_SOURCES = 32  # whose distances are taken for those of all


def rows_of(sends: Produce, topology: Topology, demands: Sequence[Collective]) -> int:
    """About how many rows it has, one per hop; if there are far too many, at least how many."""
    least = sum(int(demand.chunks.receives.sum()) for demand in demands)
    if least > _MOST_ROWS:
        return least
    return sum(_hops(topology, sends(topology, demand)) for demand in demands)


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
