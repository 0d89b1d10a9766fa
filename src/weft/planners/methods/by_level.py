"""Compositions by level: boxes, leaves, pods or dimensions one after the other.

Along each level a part of the buffer is summed in one shot or in shares, directly or round rings;
parts may differ. What a mix of parts takes follows from the moves that all NPUs make at once, which
is cheap to find; only the best get rows and exact times.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from weft.algorithm import Algorithm
from weft.errors import InputError
from weft.planners.layouts import scene
from weft.planners.level_moves import MoveSearch, are_many, ranks_of
from weft.planners.level_search import HOPE, MOST_ROWS, NAME, LevelSearch
from weft.planners.listed import timed
from weft.planners.planner import Planner, add
from weft.planners.problem import Problem
from weft.planners.schedule import Schedule
from weft.planners.terraces import TerracedScene, terraced

KINDS = ("all-reduce", "all-gather", "reduce-scatter")
# Among fewer NPUs others are cheap enough to ask, and among more there are too many rows for a mix
# of parts; not if the plan is so close.
_MANY, _MOST_MIXED, _CLOSE = 32, 512, 1.01
# Of so many NPUs quick bounds are loose, and others take long for what is far worse.
_VERY_MANY, _NO_OTHERS = 128, 2.5
# NPUs whose rows are listed even so: exact times gain a little, and more where links are shared.
_MOST_LISTED, _MOST_SHARING = 128, 512


class ByLevel(Planner):
    """All-Reduce, All-Gather and Reduce-Scatter, level by level."""

    name = NAME
    summary = "boxes, leaves or dimensions one after the other, in one shot or in shares"
    rank = 30
    beside = judged = seeded = False
    keeps_apart = True

    def fits(self, problem: Problem) -> str | None:
        kinds = problem.kinds
        if len(kinds) > 1 or not kinds <= {*KINDS, "all-to-all"} or not _are_alike(problem):
            return f"plans {', '.join(KINDS)} and all-to-all, of one group or of several alike"
        if _alike(problem) is not None:
            full = problem.demand.smallest_chunk > 0 or kinds == {"all-reduce"}
            return None if full else "plans chunks that are not empty"
        if kinds == {"all-to-all"}:
            return (
                f"plans all-to-all among more than {_MOST_LISTED} NPUs that see the same switches"
            )
        if problem.topology.buffers and problem.cost.switching == "store-and-forward":
            return "plans switches that can hold any chunk"
        if sum(demand.ranks**2 for demand in problem.demands) > MOST_ROWS:
            return f"plans groups of up to {math.isqrt(MOST_ROWS)} NPUs"
        regular = problem.topology.switches > 0 or _is_regular(problem)
        if not regular or scene(problem) is None:
            return "plans groups in which lines of NPUs are joined directly or in rings"
        return None

    def plans_alike(self, problem: Problem) -> bool:
        return self.fits(problem) is None and _alike(problem) is not None

    def rivals(self, problem: Problem, best: Algorithm, other: Planner) -> bool:
        """Behind switches, where all NPUs see the same, nobody finds much that is better.

        Only where messages meet on links that they share, a plain ring may: it hardly uses them.
        """
        is_users = other.seeded and other.judged
        if self.plans_alike(problem) and are_many(problem):
            return is_users
        seen = scene(problem) if self.fits(problem) is None else None
        alike = problem.topology.switches > 0 and seen is not None and seen.is_even
        many = _MANY <= problem.demand.ranks <= _MOST_MIXED
        hope = HOPE if many else _CLOSE
        if many and problem.demand.ranks >= _VERY_MANY:
            hope = _NO_OTHERS
        if seen is None or not alike or best.time > problem.task.ideal * hope:
            return True
        return is_users or (seen.is_shared and other.name == "ring")

    def plan(self, problem: Problem) -> Algorithm:
        reverse = problem.topology.reverse_links
        sums = problem.demand.kind == "reduce-scatter"
        if not sums or reverse is None or _alike(problem) is not None:
            return _planned(problem)
        # The same run backwards: so both take the same time.
        gathers = [replace(demand, kind="all-gather") for demand in problem.demands]
        task = replace(problem.task, demands=tuple(gathers))
        gathered = _planned(replace(problem, task=task))
        demands = [replace(demand, kind="reduce-scatter") for demand in gathered.demands]
        backwards = Schedule.of(gathered).backwards(reverse)
        return timed(problem.cut(demands), [backwards], self.name)

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:  # noqa: ARG002
        return self.plan(problem)


def _planned(problem: Problem) -> Algorithm:
    if (alike := _alike(problem)) is not None:
        return MoveSearch(problem, alike).run()
    seen = scene(problem)
    if seen is None:
        raise InputError("method by-level plans groups that have levels; use auto")
    return LevelSearch(problem, seen).run()


def _alike(problem: Problem) -> TerracedScene | None:
    """What all NPUs see, where they see the same and are many, or have several ways."""
    ranks, sums_or_copies = ranks_of(problem), problem.kinds <= set(KINDS)
    if ranks <= _MOST_LISTED and (not sums_or_copies or problem.topology.switches == 0):
        return None
    found = terraced(problem)
    if ranks <= _MOST_LISTED and (found is None or not found.has_ways_beside):
        return None
    few = found is not None and found.is_shared and ranks <= _MOST_SHARING
    return None if few and sums_or_copies else found


def _are_alike(problem: Problem) -> bool:
    """Whether all collectives are alike but for their groups, and have something to do."""
    first = problem.demand
    return first.ranks > 1 and all(
        demand.parts is None and replace(demand, group=first.group) == first
        for demand in problem.demands
    )


def _is_regular(problem: Problem) -> bool:
    """Whether members have as many neighbours: else lines at some edge are no rings."""
    network = problem.topology
    joined = np.unique(network.src * np.int64(network.nodes) + network.dst)
    neighbours = np.bincount(joined // network.nodes, minlength=network.nodes)[network.members]
    everybody = len(problem.demands) == 1 and problem.demand.ranks == len(network.members)
    return not everybody or int(neighbours.min()) == int(neighbours.max())


add(ByLevel())
