"""Several collectives at once, over the same links: planned together or laid over each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from weft.algorithm import Algorithm
from weft.collective import Chunks, Collective
from weft.errors import InputError, UnreachableError
from weft.synthesis.engines import Settings
from weft.synthesis.planning import planned
from weft.synthesis.schedule import Schedule, overlaid, transfers_of
from weft.topology.model import Topology


def planned_together(
    topology: Topology, settings: Settings, single: Sequence[Algorithm]
) -> Algorithm:
    """The best of several ways to run at once what was planned for one demand each.

    The given algorithms each have the network to themselves. If they do not get in each other's
    way, nothing better can be had.
    """
    demands = [algorithm.demands[0] for algorithm in single]
    if settings.method == "direct":
        return planned(topology, settings, demands)  # blind to what collides
    best = laid_over(topology, settings, demands, single)
    if best.time <= max(algorithm.time for algorithm in single):
        return best
    for attempt in _attempts(topology, settings, demands):
        best = min(best, attempt, key=lambda algorithm: algorithm.time)
    return best


def _attempts(
    topology: Topology, settings: Settings, demands: Sequence[Collective]
) -> Iterator[Algorithm]:
    # The method may fit each but not the mix, and all must pass where the largest chunk does.
    with suppress(InputError, UnreachableError):
        yield planned(topology, settings, demands)
    try:
        confined = [
            planned(topology, settings, [replace(demand, relay=False)]) for demand in demands
        ]
    except UnreachableError:
        return  # some group needs others to relay
    yield laid_over(topology, settings, demands, confined)


def laid_over(
    topology: Topology,
    settings: Settings,
    demands: Sequence[Collective],
    single: Sequence[Algorithm],
) -> Algorithm:
    """Algorithms for one demand each, run at once: rows that collide wait for each other.

    Once all begin together, once all would end together; the better way is kept.
    """
    chunks = Chunks.concatenate([demand.chunks for demand in demands])
    method = " + ".join(dict.fromkeys(str(a.provenance["method"]) for a in single))
    last = max(algorithm.time for algorithm in single)
    ways = []
    for delays in ([0] * len(single), [last - algorithm.time for algorithm in single]):
        merged = overlaid([Schedule.of(algorithm) for algorithm in single], delays, demands)
        transfers, routes = transfers_of([merged], topology, settings.cost, chunks.bytes)
        made_by = {"method": method}
        ways.append(Algorithm(tuple(demands), transfers, topology, routes, settings.cost, made_by))
    return min(ways, key=lambda algorithm: algorithm.time)
