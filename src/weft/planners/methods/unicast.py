"""Chunks that each go from one NPU to one other: paths, and times on them."""

from __future__ import annotations

import numpy as np

from weft import _core
from weft.bounds import quick_bound
from weft.collective import Chunks
from weft.cost import CostModel
from weft.planners.listed import Listed, backwards
from weft.planners.planner import add
from weft.planners.problem import Problem
from weft.planners.schedule import TIGHT, Schedule
from weft.reachability import unreachable
from weft.topology.model import Topology
from weft.units import NEVER

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
    problem.planning("unicast", len(chunks))
    planned = _core.unicast(topology.core, problem.cost.core, chunks.core, problem.search(goal))
    if planned.time == NEVER:
        raise unreachable(topology, chunks)
    slot = chunks.largest
    if (chunks.bytes < slot * _ALIKE).any():
        return Schedule.from_core(topology, planned, None)  # exact for no chunk
    schedule = Schedule.from_core(topology, planned, slot)
    # What waits for its busiest link all the time cannot be pushed together.
    tight = TIGHT if len(schedule.chunk) <= _MANY_ROWS else _LOOSE
    if schedule.time > _busiest(topology, schedule, problem.cost, slot) * tight:
        problem.say("pushing together")
        schedule = schedule.tightened(topology, problem.cost, slot)
    return schedule


def _busiest(topology: Topology, schedule: Schedule, cost: CostModel, slot: int) -> int:
    """How long the busiest link is held."""
    held = _core.serialization(slot, topology.bandwidth)
    if cost.latency_model == "blocking":
        held += topology.latency
    routes = schedule.routes
    times = np.repeat(np.bincount(schedule.route, minlength=len(routes)), np.diff(routes.offsets))
    uses = np.bincount(routes.links, weights=times, minlength=topology.links)
    return int((uses * held).max(initial=0))


add(Unicast())
