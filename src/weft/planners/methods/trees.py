"""Many trees packed together: All-Reduce, Broadcast and Reduce."""

from __future__ import annotations

from weft import _core
from weft.algorithm import Algorithm
from weft.collective import Chunks
from weft.planners.listed import Listed, backwards, goal_of, has_one_root, mirrored, planned, pushed
from weft.planners.planner import add
from weft.planners.problem import Problem
from weft.planners.schedule import Schedule
from weft.topology.model import Topology

# Tried where others leave more than this to the goal: of an All-Reduce, and of a Broadcast.
_CLOSE, _CLOSE_FROM_A_ROOT = 1.01, 1.02


class Trees(Listed):
    """Trees that sum some chunks while others are spread, or that spread from one root.

    Reduce-Scatter and All-Gather are as good as it gets on vertex-transitive networks. Elsewhere,
    as on a mesh, links at the edge idle in either half; trees do not let them.
    """

    name = "trees"
    summary = "many trees packed together, for All-Reduce, Broadcast and Reduce"
    rank = 60

    def fits(self, problem: Problem) -> str | None:
        if _is_all_reduce(problem) or has_one_root(_spread_chunks(problem)):
            return None
        return "plans all-reduce, broadcast and reduce among two NPUs or more"

    def is_worth_trying(self, problem: Problem, best: Algorithm | None) -> bool:
        close = _CLOSE if _is_all_reduce(problem) else _CLOSE_FROM_A_ROOT
        task = problem.task
        return task.is_even and (best is None or best.time > task.goal * close)

    def schedules(self, problem: Problem) -> list[Schedule]:
        if problem.task.sums_for_one and not _is_all_reduce(problem):
            return [backwards(problem, problem.chunks, _packed)]
        return [_packed(problem, problem.topology, problem.chunks)]


def _is_all_reduce(problem: Problem) -> bool:
    return len(problem.demands) == 1 and problem.demand.kind == "all-reduce"


def _spread_chunks(problem: Problem) -> Chunks:
    """What is spread from a root: sums for one taker are, back in time."""
    return mirrored(problem.chunks) if problem.task.sums_for_one else problem.chunks


def _packed(problem: Problem, topology: Topology, chunks: Chunks) -> Schedule:
    """Trees that join all ends of the chunks: from their one holder, or of an All-Reduce."""
    slot, goal = chunks.largest, goal_of(problem, topology, chunks)
    schedule = planned(problem, "trees", _core.trees, topology, chunks, goal=goal, slot=slot)
    return pushed(problem, topology, schedule, slot)


add(Trees())
