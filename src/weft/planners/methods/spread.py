"""Broadcast and Reduce along levels, in which all who have something to send do the same."""

from __future__ import annotations

from weft.algorithm import Algorithm
from weft.errors import InputError
from weft.planners.planner import Planner, add
from weft.planners.problem import Problem
from weft.planners.spreads import NAME, best_spread, spread_grid

# Among fewer NPUs others have better trees, and it is cheap to ask them.
_MOST_LISTED, _CLOSE = 128, 1.05
# Among so many others take long, and among still more too long.
_MANY, _FAR, _VERY_MANY = 512, 1.6, 1024


class Spread(Planner):
    """Broadcast and Reduce, level by level from the root."""

    name = NAME
    summary = "Broadcast and Reduce level by level, in shares or copies, in compact form"
    rank = 32
    beside = judged = seeded = False

    def fits(self, problem: Problem) -> str | None:
        demand = problem.demand
        if len(problem.demands) > 1 or demand.kind not in ("broadcast", "reduce"):
            return "plans one broadcast or reduce"
        if demand.ranks <= _MOST_LISTED and problem.is_auto:
            return f"plans groups of more than {_MOST_LISTED} NPUs, unless asked by name"
        if not demand.smallest_chunk or demand.ranks < 2:
            return "plans chunks that are not empty, among two NPUs or more"
        if spread_grid(problem) is None:
            return "plans groups that see the same switches, which hold any chunk"
        return None

    def plans_alike(self, problem: Problem) -> bool:
        return self.fits(problem) is None

    def rivals(self, problem: Problem, best: Algorithm, other: Planner) -> bool:
        """Of many, others take long, and their tables are large."""
        if self.fits(problem) is not None or (other.seeded and other.judged):
            return True
        hope = _CLOSE if problem.demand.ranks < _MANY else _FAR
        return problem.demand.ranks <= _VERY_MANY and best.time > problem.task.ideal * hope

    def plan(self, problem: Problem) -> Algorithm:
        grid = spread_grid(problem)
        found = best_spread(problem, grid) if grid is not None else None
        if found is None:
            raise InputError("method spread cannot cut the buffer so; use auto")
        return found

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:  # noqa: ARG002
        grid = spread_grid(problem)
        found = best_spread(problem, grid) if grid is not None else None
        if found is None and not problem.is_auto:
            raise InputError("method spread cannot cut the buffer so; use auto")
        return found


add(Spread())
