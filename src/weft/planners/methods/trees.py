"""Many trees packed together: All-Reduce, Broadcast and Reduce."""

from __future__ import annotations

from collections.abc import Callable

from weft import _core
from weft.algorithm import Algorithm
from weft.collective import Chunks
from weft.cost import CostModel
from weft.planners.chunking import options
from weft.planners.listed import (
    MOST_SEARCHED,
    Listed,
    backwards,
    goal_of,
    halves_floor,
    has_one_root,
    mirrored,
    planned,
    pushed,
    timed,
)
from weft.planners.planner import add
from weft.planners.problem import Problem
from weft.planners.schedule import Schedule
from weft.topology.durations import held
from weft.topology.model import Topology

# Tried where others leave more than this to the goal: of an All-Reduce, and of a Broadcast.
_CLOSE, _CLOSE_FROM_A_ROOT = 1.01, 1.02
# Of more NPUs, two numbers of chunks are looked at, and then the least that is this near the best.
_FEW_NPUS, _LOOKS, _ENOUGH = 64, 2, 1.002
# How much longer two halves must take for trees to come before them.
_UNEVEN, _BEFORE_HALVES = 1.15, 49


class Trees(Listed):
    """Trees that sum some chunks while others are spread, or that spread from one root.

    Reduce-Scatter and All-Gather are as good as it gets on vertex-transitive networks. Elsewhere,
    as on a mesh, links at the edge idle in either half; trees do not let them.
    """

    name = "trees"
    summary = "many trees packed together, for All-Reduce, Broadcast and Reduce"
    rank = 60

    def turn(self, problem: Problem) -> int:
        """First where All-Reduce in two halves is sure to take much longer than it must."""
        network = problem.topology
        if not _is_all_reduce(problem) or network.switches or network.npus <= _FEW_NPUS:
            return self.rank
        if problem.task.is_symmetric or problem.task.is_too_large_for_tables:
            return self.rank
        uneven = halves_floor(problem) > problem.bound * _UNEVEN
        return _BEFORE_HALVES if uneven else self.rank

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:
        """Of many NPUs: a look at few chunks tells about how many are enough.

        Schedules are compared before they are pushed together, which takes as long as planning.
        """
        tried = options(problem)
        many = problem.topology.npus > _FEW_NPUS and len(tried) > _LOOKS
        if not (
            many and _is_all_reduce(problem) and problem.is_auto and _is_slow(tried[0].problem)
        ):
            return super().search(problem, best)
        large = best is not None and len(best) > MOST_SEARCHED
        if large or not self.is_worth_trying(tried[-1].problem, best):
            return None
        found = dict[int, Schedule]()

        def time(number: int) -> int:
            if number not in found:
                cut = tried[number].problem
                found[number] = _planned(cut, cut.topology, cut.chunks)
            return found[number].time

        at = _promising([option.problem.demand.chunk_count for option in tried], time)
        while (near := min(range(max(at - 1, 0), min(at + 2, len(tried))), key=time)) != at:
            at = near
        cut = tried[at].problem
        return timed(cut, [pushed(cut, cut.topology, found[at], cut.chunks.largest)], self.name)

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


def _is_slow(problem: Problem) -> bool:
    """Whether it is the bytes of chunks that take long, not α: then more of them fill up sooner."""
    network = problem.topology
    return bool((held(network, CostModel(), problem.chunks.largest) > network.latency).all())


def _promising(pieces: list[int], time: Callable[[int], int]) -> int:
    """Which number of pieces is the least that should be about as good as the best.

    What a plan takes falls with the size of chunks, to what it takes without filling up.
    """
    first, second = time(0), time(1)
    slope = (first - second) / (1 / pieces[0] - 1 / pieces[1])
    hoped = [slope / count for count in pieces]
    rest = first - hoped[0]
    enough = (rest + min(hoped)) * _ENOUGH
    return next(i for i, fill in enumerate(hoped) if rest + fill <= enough)


def _is_all_reduce(problem: Problem) -> bool:
    return len(problem.demands) == 1 and problem.demand.kind == "all-reduce"


def _spread_chunks(problem: Problem) -> Chunks:
    """What is spread from a root: sums for one taker are, back in time."""
    return mirrored(problem.chunks) if problem.task.sums_for_one else problem.chunks


def _packed(problem: Problem, topology: Topology, chunks: Chunks) -> Schedule:
    """Trees that join all ends of the chunks: from their one holder, or of an All-Reduce."""
    return pushed(problem, topology, _planned(problem, topology, chunks), chunks.largest)


def _planned(problem: Problem, topology: Topology, chunks: Chunks) -> Schedule:
    slot, goal = chunks.largest, goal_of(problem, topology, chunks)
    return planned(problem, "trees", _core.trees, topology, chunks, goal=goal, slot=slot)


add(Trees())
