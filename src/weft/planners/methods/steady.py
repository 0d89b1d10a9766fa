"""Steady trees: what many NPUs copy or sum at once, by trees that load the links evenly."""

from __future__ import annotations

import numpy as np

from weft import _core
from weft.algorithm import Algorithm
from weft.collective import Chunks
from weft.planners.chunking import Option, long_options
from weft.planners.listed import goal_of, planned
from weft.planners.methods.matching import Matching
from weft.planners.planner import Planner, add
from weft.planners.problem import Problem
from weft.planners.schedule import Schedule
from weft.topology.model import Topology

_EARLY = 34  # where it is likely to win it comes before others that take longer
_FROM_ALL = {"all-gather", "reduce-scatter", "all-reduce"}  # one root alone is `rooted`'s
_CLOSE = 1.03  # over the bound: nobody else finds what is better


class Steady(Matching):
    """Trees from all NPUs at once, packed as densely as the links allow, for many chunks.

    Where boxes are cabled inside and joined by switches, other planners let NPUs send to whoever
    can take a chunk just now: ports wait for each other, and cables are not used alike.
    """

    name = "steady"
    summary = "trees from all NPUs that load links alike, for boxes of cables joined by switches"
    rank = 55

    def turn(self, problem: Problem) -> int:
        return _EARLY if _has_cables_and_switches(problem.topology) else self.rank

    def is_worth_trying(self, problem: Problem, best: Algorithm | None) -> bool:
        if not problem.kinds <= _FROM_ALL or not _has_cables_and_switches(problem.topology):
            return False
        return super().is_worth_trying(problem, best)

    def rivals(self, problem: Problem, best: Algorithm, other: Planner) -> bool:  # noqa: ARG002
        ours = best.provenance["method"] == self.name
        return not ours or best.time > problem.task.ideal * _CLOSE

    def options(self, problem: Problem) -> list[Option]:
        return long_options(problem)

    def spread(self, problem: Problem, topology: Topology, chunks: Chunks) -> Schedule:
        """Plan chunks that are copied, each taken for the largest."""
        slot, goal = chunks.largest, goal_of(problem, topology, chunks)
        return planned(problem, "steady", _core.steady, topology, chunks, goal=goal, slot=slot)


def _has_cables_and_switches(network: Topology) -> bool:
    """Whether every NPU has a link to another one, and there are switches, too."""
    direct = (network.src < network.npus) & (network.dst < network.npus)
    return network.switches > 0 and len(np.unique(network.src[direct])) == network.npus


add(Steady())
