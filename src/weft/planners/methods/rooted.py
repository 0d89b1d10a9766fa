"""Broadcast and Reduce: as many shallow trees as the links of the root allow."""

from __future__ import annotations

from weft import _core
from weft.algorithm import Algorithm
from weft.collective import Chunks
from weft.planners.chunking import WORTH, rooted_options
from weft.planners.listed import (
    Listed,
    backwards,
    goal_of,
    has_one_root,
    mirrored,
    planned,
    pushed,
)
from weft.planners.planner import add
from weft.planners.problem import Problem
from weft.planners.schedule import TIGHT, Schedule
from weft.topology.model import Topology

_MET = 1.0001  # so close to its bound a plan ends the search


class Rooted(Listed):
    """Trees from one root, packed as densely as its tightest cut allows."""

    name = "rooted"
    summary = "shallow trees from one root that share links, for Broadcast and Reduce"
    rank = 45

    def fits(self, problem: Problem) -> str | None:
        if has_one_root(_spread_chunks(problem)):
            return None
        return "plans broadcast and reduce among two NPUs or more"

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:
        """The best of a few numbers of chunks: the promising one, then twice or half as many."""
        if best is not None and not self.is_worth_trying(problem, best):
            return None
        options, at = rooted_options(problem)
        found = self.plan(options[at])
        for others in (options[at + 1 :], options[:at][::-1]):
            for option in others:
                if found.time <= option.bound * _MET:
                    break
                other = self.plan(option)
                if other.time * WORTH >= found.time:
                    break
                found = other
        return found

    def schedules(self, problem: Problem) -> list[Schedule]:
        if problem.task.sums_for_one:
            return [backwards(problem, problem.chunks, _packed)]
        return [_packed(problem, problem.topology, problem.chunks)]


def _spread_chunks(problem: Problem) -> Chunks:
    """What is spread from a root: sums for one taker are, back in time."""
    return mirrored(problem.chunks) if problem.task.sums_for_one else problem.chunks


def _packed(problem: Problem, topology: Topology, chunks: Chunks) -> Schedule:
    slot, goal = chunks.largest, goal_of(problem, topology, chunks)
    schedule = planned(problem, "rooted", _core.rooted, topology, chunks, goal=goal, slot=slot)
    return pushed(problem, topology, schedule, slot) if schedule.time > goal * TIGHT else schedule


add(Rooted())
