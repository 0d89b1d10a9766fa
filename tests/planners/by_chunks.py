"""Plans of any table of chunks, also of one that no collective makes."""

from __future__ import annotations

from weft import _core
from weft.collective import Chunks
from weft.cost import CostModel
from weft.planners import PLANNERS, Problem
from weft.planners.listed import Listed
from weft.planners.schedule import Schedule
from weft.topology import Topology


def problem_of(
    network: Topology,
    chunks: Chunks,
    cost: CostModel | None = None,
    *,
    seed: int = 0,
    threads: int = 1,
    progress: _core.Progress | None = None,
) -> Problem:
    """A problem whose chunks are these."""
    problem = Problem.of(network, (), cost, seed=seed, threads=threads, progress=progress)
    vars(problem.task)["chunks"] = chunks
    return problem


def plan(problem: Problem) -> Schedule:
    """The better schedule of the planners that are for such copies."""
    names = ["unicast"] if problem.task.is_paired else ["matching", "trees"]
    schedules = []
    for name in names:
        planner = PLANNERS[name]
        assert isinstance(planner, Listed)
        if planner.fits(problem) is None:
            schedules += planner.schedules(problem)
    return min(schedules, key=lambda schedule: schedule.time)
