"""Steiner trees: any mix of copies and sums, of any sizes."""

from __future__ import annotations

from weft import _core
from weft.algorithm import Algorithm
from weft.planners.listed import Listed, planned
from weft.planners.planner import add
from weft.planners.problem import Problem
from weft.planners.schedule import Schedule

# Tried where others leave more than this to the bound; of small plans, and of large ones.
_CLOSE, _CLOSE_ENOUGH = 1.01, 1.03
# Plans are small up to so many chunks, each for so many NPUs; beyond the other none is tried.
_FEW_DELIVERIES, _MOST_DELIVERIES = 1 << 13, 1 << 17
# Of these large plans have been tried by trees already.
_BY_TREES = ("all-reduce", "broadcast", "reduce")


class Steiner(Listed):
    """A tree for every chunk, grown where links carry least."""

    name = "steiner"
    summary = "a tree for every chunk, for any mix of copies and sums"
    rank = 70

    def fits(self, problem: Problem) -> str | None:  # noqa: ARG002 - all
        return None

    def is_worth_trying(self, problem: Problem, best: Algorithm | None) -> bool:
        if best is None:
            return True
        deliveries, few = problem.task.deliveries, problem.task.deliveries <= _FEW_DELIVERIES
        by_trees = len(problem.demands) == 1 and problem.demand.kind in _BY_TREES
        if deliveries > _MOST_DELIVERIES or (by_trees and not few):
            return False
        close = _CLOSE if few else _CLOSE_ENOUGH
        if few and problem.task.is_symmetric:
            close = 1  # a symmetric plan does not show what other planners leave
        return best.time > problem.bound * close

    def schedules(self, problem: Problem) -> list[Schedule]:
        return [plan_steiner(problem)]


def plan_steiner(problem: Problem) -> Schedule:
    """Plan any mix of copies and sums, of any sizes."""
    topology, chunks, goal = problem.topology, problem.chunks, problem.bound
    return planned(problem, "steiner", _core.steiner, topology, chunks, goal=goal, slot=None)


add(Steiner())
