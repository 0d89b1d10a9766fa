"""Chunks that each go from one NPU to one other: paths, and times on them."""

from __future__ import annotations

import numpy as np

from weft import _core
from weft.bounds import quick_bound
from weft.collective import Chunks
from weft.cost import CostModel
from weft.planners.listed import Listed, backwards, planned, pushed
from weft.planners.planner import add
from weft.planners.problem import Problem
from weft.planners.schedule import TIGHT, Schedule
from weft.topology.durations import held
from weft.topology.model import Topology

# So many rows take seconds to push together: then there must be more to gain.
_MANY_ROWS, _LOOSE = 1 << 20, 1.02
# Chunks this much shorter than the largest are planned with slots of their own.
_ALIKE = 1 - 1 / 64


class Unicast(Listed):
    """All-to-All and whatever else has one holder and one taker for each chunk."""

    name = "unicast"
    summary = "a path for every pair, chosen by congestion, as PCCL does"
    rank = 51

    def fits(self, problem: Problem) -> str | None:
        if problem.task.is_paired and not problem.chunks.reduce.any():
            return None
        return "cannot plan chunks with several takers or holders, or sums"

    def schedules(self, problem: Problem) -> list[Schedule]:
        if problem.kinds == {"gather"}:
            return [backwards(problem, problem.chunks, plan_pairs)]
        return [plan_pairs(problem, problem.topology, problem.chunks)]


def plan_pairs(
    problem: Problem, topology: Topology, chunks: Chunks, goal: int | None = None
) -> Schedule:
    """Plan chunks that each go from one NPU to one other, of any sizes."""
    if goal is None:
        known = topology is problem.topology and chunks is problem.chunks
        goal = problem.bound if known else quick_bound(topology, chunks, problem.cost)
    slot = chunks.largest
    alike = not (chunks.bytes < slot * _ALIKE).any()  # else times are exact for no chunk
    schedule = planned(
        problem, "unicast", _core.unicast, topology, chunks, goal=goal, slot=slot if alike else None
    )
    # What waits for its busiest link all the time cannot be pushed together.
    tight = TIGHT if len(schedule.chunk) <= _MANY_ROWS else _LOOSE
    if alike and schedule.time > _busiest(topology, schedule, problem.cost, slot) * tight:
        return pushed(problem, topology, schedule, slot)
    return schedule


def _busiest(topology: Topology, schedule: Schedule, cost: CostModel, slot: int) -> int:
    """How long the busiest link is held."""
    routes = schedule.routes
    times = np.repeat(np.bincount(schedule.route, minlength=len(routes)), np.diff(routes.offsets))
    uses = np.bincount(routes.links, weights=times, minlength=topology.links)
    return int((uses * held(topology, cost, slot)).max(initial=0))


add(Unicast())
