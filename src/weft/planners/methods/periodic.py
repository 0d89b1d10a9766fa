"""All-Reduce by trees that carry one chunk after the other: see `weft.algorithm.PeriodicRows`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft import _core
from weft.algorithm import Algorithm, PeriodicRows, Timing
from weft.collective import Collective
from weft.memory import check_fits
from weft.planners.listed import MOST_SEARCHED
from weft.planners.methods.rounds import suits as suits_rounds
from weft.planners.planner import Planner, add
from weft.planners.problem import Problem
from weft.ragged import offsets_of
from weft.reachability import unreachable
from weft.topology.durations import held, over_links
from weft.topology.model import Topology

# Some 100 · links / NPUs trees are tried in all, and each looks at all links twice, up and down:
# with auto up to so many looks, a quarter of an hour of them.
_LOOKS, _MOST_LOOKS = 200, 1 << 34
# Rows that the most trees have, for each link of the network; bytes of one in each attempt, and of
# one of the plan that is kept.
_ROWS_A_LINK, _BYTES_TRIED, _BYTES_KEPT = 62, 13, 60


class Periodic(Planner):
    """All-Reduce of large networks whose links are all alike."""

    name = "periodic"
    summary = "All-Reduce of large networks by trees that carry one chunk after the other"
    rank = 30
    beside = judged = False

    def fits(self, problem: Problem) -> str | None:
        return why_not(problem.topology, problem.demands)

    def is_worth_trying(self, problem: Problem, best: Algorithm | None) -> bool:
        """Where rounds would be, in fair time."""
        fair = is_fair(problem.topology)
        if best is not None and len(best) > MOST_SEARCHED:  # a plan that was repaired may be poor
            return fair and not problem.task.is_symmetric
        return fair and suits_rounds(problem) and super().is_worth_trying(problem, best)

    def plan(self, problem: Problem) -> Algorithm:
        """Trees found by the core, and the chunks shared out among them."""
        topology, demand = problem.topology, problem.demand
        each = _BYTES_TRIED * (problem.threads + 1) + _BYTES_KEPT
        needed = topology.links * _ROWS_A_LINK * each
        check_fits(f"{demand.kind} on {topology.name} by periodic trees", needed)
        duration = int(over_links(topology, demand.largest_chunk)[0])
        hold = int(held(topology, problem.cost, demand.largest_chunk)[0])
        timing = Timing(topology, problem.cost)
        made = [
            Algorithm((demand,), _trees(problem, slot, lag), timing, {"method": "periodic"})
            for slot, lag in _slots(hold, duration)
        ]
        best = min(made, key=lambda algorithm: algorithm.time)
        if len(best) == 0:
            raise unreachable(topology, demand.chunks)
        return best


def is_fair(topology: Topology) -> bool:
    """Whether it takes fair time: on dense networks there are too many trees."""
    return _LOOKS * topology.links**2 // topology.npus <= _MOST_LOOKS


def why_not(topology: Topology, demands: Sequence[Collective]) -> str | None:
    """Why there are no periodic trees for these collectives; None if there are."""
    if len(demands) > 1:
        return "plans one collective at a time"
    demand = demands[0]
    if demand.kind != "all-reduce":
        return f"plans all-reduce, not {demand.kind}"
    if len(demand.group) != len(topology.members):  # they are there: that has been checked
        return "plans collectives of all NPUs"
    if demand.ranks < 2 or topology.links == 0:
        return "plans networks of two NPUs or more, and links between them"
    if topology.switches:
        return "plans networks without switches"
    if np.ptp(topology.bandwidth) or np.ptp(topology.latency):
        return "plans networks whose links are all alike"
    return None


def _slots(held: int, duration: int) -> list[tuple[int, int]]:
    """Lengths of a slot, and how many a hop takes: links that never wait, or hops that do not."""
    lag = -(-duration // max(held, 1))
    slots = [(held, lag)]
    if lag > 1 and lag * held > duration:
        slots.append((-(-duration // (lag - 1)), lag - 1))
    return slots


def _trees(problem: Problem, slot: int, lag: int) -> PeriodicRows:
    problem.planning("periodic", problem.demand.chunk_count)
    topology, chunks = problem.topology, len(problem.chunks)
    found = _core.plan_periodic(topology.core, topology.members, lag, chunks, problem.search())
    first = offsets_of(found.chunks)
    return PeriodicRows(
        found.period * slot, first, found.offsets, found.link, found.reduce, found.slot * slot
    )


add(Periodic())
