"""Several collectives at once, over the same links: planned together or laid over each other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from weft.algorithm import Algorithm
from weft.bound import quick_bound
from weft.collective import Collective
from weft.errors import InputError, UnreachableError
from weft.synthesis.chunking import WORTH, chunked
from weft.synthesis.engines import Settings
from weft.synthesis.planning import planned, timed
from weft.synthesis.schedule import Schedule, overlaid
from weft.topology.model import Topology

# In how many chunks to cut each share, one after the other while that gains.
_COUNTS = (4, 12, 32)
# Nothing else is tried where the first plan leaves no more than this between it and its goal.
_CLOSE = 1.01


def planned_together(
    topology: Topology, settings: Settings, jobs: Sequence[tuple[Collective, bool]]
) -> Algorithm:
    """The best of several ways to run all at once; each job says if its chunks are to be chosen."""
    best: Algorithm | None = None
    for count in _COUNTS:
        demands = [
            chunked(topology, demand, settings.cost, count) if choose else demand
            for demand, choose in jobs
        ]
        if best is not None and demands == list(best.demands):
            break
        found = _at_once(topology, settings, demands)
        if best is not None and found.time * WORTH >= best.time:
            break
        best = found
        if _is_close(topology, settings, best):
            break
    assert best is not None
    return best


def _is_close(topology: Topology, settings: Settings, found: Algorithm) -> bool:
    return found.time <= quick_bound(topology, found.chunks, settings.cost) * _CLOSE


def _at_once(topology: Topology, settings: Settings, demands: Sequence[Collective]) -> Algorithm:
    """Planned as one; or each alone, with relays or without, and laid over each other."""
    ways: list[Algorithm] = []
    # The method may fit each but not the mix, and all must pass where the largest chunk does.
    with suppress(InputError, UnreachableError):
        ways.append(planned(topology, settings, demands))
    if ways and _is_close(topology, settings, ways[0]):
        return ways[0]
    for relay in (True, False):
        single = _single(topology, settings, demands, relay=relay)
        if single:
            ways.append(laid_over(topology, settings, demands, single))
    return min(ways, key=lambda algorithm: algorithm.time)


def _single(
    topology: Topology, settings: Settings, demands: Sequence[Collective], *, relay: bool
) -> list[Algorithm]:
    """An algorithm for each demand as if it had the network to itself; none if one has none."""
    own = [replace(demand, relay=demand.relay and relay) for demand in demands]
    try:
        return [planned(topology, settings, [demand]) for demand in own]
    except UnreachableError:
        if relay:
            raise
        return []  # some group needs others to relay


def laid_over(
    topology: Topology,
    settings: Settings,
    demands: Sequence[Collective],
    single: Sequence[Algorithm],
) -> Algorithm:
    """Algorithms for one demand each, run at once: rows that collide wait for each other.

    Once all begin together, once all would end together; the better way is kept.
    """
    method = " + ".join(dict.fromkeys(str(a.provenance["method"]) for a in single))
    last = max(algorithm.time for algorithm in single)
    ways = []
    for delays in ([0] * len(single), [last - algorithm.time for algorithm in single]):
        merged = overlaid([Schedule.of(algorithm) for algorithm in single], delays, demands)
        ways.append(timed(topology, settings, demands, [merged], method))
    return min(ways, key=lambda algorithm: algorithm.time)
