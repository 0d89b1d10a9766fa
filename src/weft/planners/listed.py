"""Weft's own planners whose plans are tables of rows, made of schedules from the core."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, Timing
from weft.bounds import quick_bound
from weft.clock import check_clock
from weft.collective import Chunks
from weft.errors import UnreachableError
from weft.memory import check_table
from weft.planners.planner import Planner
from weft.planners.problem import Problem
from weft.planners.schedule import Schedule, transfers_of
from weft.reachability import unreachable
from weft.topology.model import Topology
from weft.units import NEVER

MOST_SEARCHED = 1 << 22
"""Transfers: where a plan has more, no other is searched for."""
# A plan is held against others if it leaves more than this to its bound; less, if it is small.
_NEAR, _SMALL = 1.005, 1 << 17

Spread = Callable[[Problem, Topology, Chunks], Schedule]
"""Plans chunks that are copied, on a network that may be the problem's turned round."""


class Listed(Planner):
    """A planner of schedules: rows in slots, one phase after the other."""

    beside = judged = False

    @abstractmethod
    def schedules(self, problem: Problem) -> list[Schedule]:
        """The phases of a plan: for each chunk they come one after the other."""

    def plan(self, problem: Problem) -> Algorithm:
        check_table(problem.task.deliveries - len(problem.chunks))
        return timed(problem, self.schedules(problem), self.name)

    def is_worth_trying(self, problem: Problem, best: Algorithm | None) -> bool:
        if best is None:
            return True
        margin = 1.0 if problem.task.deliveries <= _SMALL else _NEAR
        return best.time > problem.bound * margin and problem.task.fits_clock

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:
        if best is None:
            check_clock(problem.topology, problem.demands)
        elif len(best) > MOST_SEARCHED:
            return None
        return super().search(problem, best)


def timed(problem: Problem, phases: Sequence[Schedule], method: str) -> Algorithm:
    """The algorithm that schedules make, one after the other, with exact times."""
    sizes = np.concatenate([demand.chunks.bytes for demand in problem.demands])
    transfers, routes = transfers_of(phases, problem.topology, problem.cost, sizes)
    timing = Timing(problem.topology, problem.cost, routes)
    return Algorithm(problem.demands, transfers, timing, {"method": method})


def planned(
    problem: Problem,
    name: str,
    kernel: Callable[..., _core.Schedule],
    topology: Topology,
    chunks: Chunks,
    *,
    goal: int,
    slot: int | None,
) -> Schedule:
    """What a kernel plans, with slots for chunks of `slot` bytes; None if of many lengths."""
    problem.planning(name, len(chunks))
    found = kernel(topology.core, problem.cost.core, chunks.core, problem.search(goal))
    if found.time == NEVER:
        raise unreachable(topology, chunks)
    return Schedule.from_core(topology, found, slot)


def pushed(problem: Problem, topology: Topology, schedule: Schedule, slot: int) -> Schedule:
    """The same rows pushed together."""
    problem.say("pushing together")
    return schedule.tightened(topology, problem.cost, slot)


def goal_of(problem: Problem, topology: Topology, chunks: Chunks) -> int:
    """A time that no schedule with slots for the largest chunk can beat."""
    if topology is problem.topology and chunks is problem.chunks:
        return problem.task.goal
    return quick_bound(topology, chunks, problem.cost, chunks.largest)


def has_one_root(chunks: Chunks) -> bool:
    """Whether this is a Broadcast to several: one holder, the same takers and reach for all."""
    return (
        len(chunks) > 0
        and all((column == column[0]).all() for column in (chunks.pre, chunks.post, chunks.reach))
        and len(chunks.members(int(chunks.pre[0]))) == 1
        and len(chunks.members(int(chunks.post[0]))) > 1
    )


def mirrored(chunks: Chunks) -> Chunks:
    """Sums (or gathers) for one taker each as what is spread from there, back in time."""
    return replace(chunks, pre=chunks.post, post=chunks.pre, reduce=np.zeros_like(chunks.reduce))


def backwards(problem: Problem, chunks: Chunks, spread: Spread) -> Schedule:
    """A sum (or a gather) for one taker each: spread from the taker, run backwards.

    The spread is planned over the links turned round; where every link has one of the same speed
    the other way, over the links as they are, so that it is the very plan of the spread alone.
    """
    topology = problem.topology
    reverse = _reverse(topology)
    network = topology.reversed() if reverse is None else topology
    try:
        planned = spread(problem, network, mirrored(chunks))
    except UnreachableError:
        raise unreachable(topology, chunks) from None  # as it is, not turned round
    summed = planned.backwards(reverse)
    return summed if chunks.reduce.any() else summed.as_copies()


def scatter_and_gather(problem: Problem, spread: Spread) -> list[Schedule]:
    """All-Reduce as Reduce-Scatter, then All-Gather.

    One plan serves for both halves where every link has one of the same speed the other way, and
    switches that copy are those that add.
    """
    topology = problem.topology
    gather = spread(problem, topology, _as(problem, "all-gather"))
    reverse = _reverse(topology)
    if reverse is not None:
        return [gather.backwards(reverse), gather]
    return [backwards(problem, _as(problem, "reduce-scatter"), spread), gather]


def _reverse(topology: Topology) -> NDArray[np.int32] | None:
    """For each link one the other way, if plans run backwards then hold: copies become sums."""
    return topology.reverse_links if topology.copying == topology.adding else None


def halves_floor(problem: Problem) -> int:
    """Picoseconds that an All-Reduce in two halves hardly beats: those of both, one by one."""
    memo = problem.task.memo
    if "halves" not in memo:
        kinds: tuple[str, ...] = ("all-gather", "reduce-scatter")
        if problem.topology.adding:  # what is summed leaves the links free that copies need
            kinds = ("all-gather",)
        elif problem.topology.reverse_links is not None:  # the same there and back
            kinds = ("all-gather", "all-gather")
        memo["halves"] = sum(
            quick_bound(problem.topology, _as(problem, kind), problem.cost) for kind in kinds
        )
    floor: int = memo["halves"]
    return max(floor, problem.bound)


def _as(problem: Problem, kind: str) -> Chunks:
    """The same buffers, cut the same way, in another pattern."""
    return Chunks.concatenate([replace(demand, kind=kind).chunks for demand in problem.demands])
