"""Broadcast and Reduce: as many shallow trees as the links of the root allow."""

from __future__ import annotations

from weft import _core
from weft.algorithm import Algorithm
from weft.collective import Chunks
from weft.planners.chunking import WORTH, rooted_cuts
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
_MOST_NPUS = 1024


class Rooted(Listed):
    """Trees from one root, packed as densely as its tightest cut allows."""

    name = "rooted"
    summary = "shallow trees from one root that share links, for Broadcast and Reduce"
    rank = 45

    def fits(self, problem: Problem) -> str | None:
        if problem.topology.npus > _MOST_NPUS:
            return f"plans networks of up to {_MOST_NPUS:,} NPUs"
        if has_one_root(_spread_chunks(problem)):
            return None
        return "plans broadcast and reduce among two NPUs or more"

    def is_worth_trying(self, problem: Problem, best: Algorithm | None) -> bool:
        return problem.task.is_even and super().is_worth_trying(problem, best)

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:
        """The best of a few numbers of chunks: the promising one, then twice or half as many."""
        if problem.topology.npus > _MOST_NPUS:
            return None  # `fits` is not asked where a table of chunks is too large
        cuts, at = rooted_cuts(problem)
        if not cuts:
            return super().search(problem, best)
        if problem.is_auto and not cuts[at].task.is_even:
            return None
        found = self.plan(cuts[at])
        fewer = cuts[:at][::-1] if problem.cost.latency_model == "blocking" else []
        for others in (cuts[at + 1 :], fewer):
            for cut in others:
                if found.time <= cut.bound * _MET:
                    break
                other = self.plan(cut)
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
    """Trees from the chunks' one holder to all takers."""
    slot, goal = chunks.largest, goal_of(problem, topology, chunks)
    schedule = planned(problem, "rooted", _core.rooted, topology, chunks, goal=goal, slot=slot)
    return pushed(problem, topology, schedule, slot) if schedule.time > goal * TIGHT else schedule


add(Rooted())
