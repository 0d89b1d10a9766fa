"""Matching on the time-expanded network: chunks with many takers, whatever the network."""

from __future__ import annotations

from weft import _core
from weft.algorithm import Algorithm
from weft.collective import Chunks
from weft.planners.listed import (
    Listed,
    backwards,
    goal_of,
    halves_floor,
    planned,
    pushed,
    scatter_and_gather,
)
from weft.planners.planner import add
from weft.planners.problem import Problem
from weft.planners.schedule import TIGHT, Schedule
from weft.topology.model import Topology


class Matching(Listed):
    """Copies, sums for one taker run backwards, and All-Reduce as both."""

    name = "matching"
    summary = "chunks matched to links as time goes by, as TACOS does"
    rank = 50
    uses_switches = True

    def fits(self, problem: Problem) -> str | None:
        task = problem.task
        if _in_shares(problem) or task.sums_for_one or not task.chunks.reduce.any():
            return None
        return "cannot plan sums for several takers, or sums beside copies"

    def floor(self, problem: Problem) -> int:
        return halves_floor(problem) if _in_shares(problem) else problem.bound

    def is_worth_trying(self, problem: Problem, best: Algorithm | None) -> bool:
        """Not where unicast and Steiner trees do better: pairs, and chunks of many sizes."""
        task = problem.task
        may_win = best is None or self.floor(problem) < best.time
        worth = not task.is_paired and task.is_even and may_win
        return worth and super().is_worth_trying(problem, best)

    def schedules(self, problem: Problem) -> list[Schedule]:
        if _in_shares(problem):
            return scatter_and_gather(problem, self.spread)
        if problem.task.sums_for_one or problem.kinds == {"gather"}:
            return [backwards(problem, problem.chunks, self.spread)]
        return [self.spread(problem, problem.topology, problem.chunks)]

    def spread(self, problem: Problem, topology: Topology, chunks: Chunks) -> Schedule:
        """Plan chunks that are copied, each taken for the largest."""
        slot, goal = chunks.largest, goal_of(problem, topology, chunks)
        schedule = planned(problem, "matching", _core.match, topology, chunks, goal=goal, slot=slot)
        tight = schedule.time <= goal * TIGHT
        return schedule if tight else pushed(problem, topology, schedule, slot)


def _in_shares(problem: Problem) -> bool:
    """Whether all are All-Reduces that can be scattered: each NPU has a share of the buffer."""
    return problem.kinds == {"all-reduce"} and all(d.parts is None for d in problem.demands)


add(Matching())
