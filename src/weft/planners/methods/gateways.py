"""Gateways: All-Reduce where boxes, or their ways out, are not alike.

Every chunk has its own ways: an owner, and in every box an NPU that sums the box's parts and one
that spreads the result. They are chosen one chunk after the other, so that links are loaded alike:
a slow NIC gets little, a failed one nothing. Small buffers go in one shot: boxes exchange their
sums, and each adds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, Buffer, Transfers, place
from weft.collective import Collective, all_reduce_at
from weft.collective.chunks import cut
from weft.engine import placed
from weft.errors import InputError
from weft.planners.layouts import scene
from weft.planners.listed import pushed, timed
from weft.planners.planner import Planner, add
from weft.planners.problem import Problem
from weft.planners.schedule import Schedule
from weft.topology.levels import uneven_parts
from weft.units import NEVER

_MOST_ROWS = 1 << 18
_USUAL = 1 << 18  # bytes of a chunk of which the search for their number starts
_FEW = 64  # chunks that show how much links would carry
_HOPELESS = 1.5  # a plan with few chunks takes so much longer than the best known
_MISSES = 2  # numbers of chunks in a row that gain nothing
_WORTH = 1.005
_FULL = 1.01  # over the load of the busiest link: more chunks gain nothing
_CLOSE = 1.1  # over the bound: nobody else finds much that is better
_MOST_BOXINGS = 2
# Of more NPUs without switches, others come first: boxes are seldom clear there, and take long.
_FEW_NPUS, _LATE = 32, 61

HOME, FOR_OTHERS, FOR_OWN = range(3)  # as in cpp/planners/gateways/gateways.h


class Gateways(Planner):
    """All-Reduce by owners and gateways, chosen chunk by chunk."""

    name = "gateways"
    summary = "All-Reduce of boxes that are not alike, with ways chosen chunk by chunk"
    rank = 35
    beside = judged = seeded = False
    keeps_apart = True

    def fits(self, problem: Problem) -> str | None:
        if len(problem.demands) == 1 and problem.demand.kind == "all-reduce" and _boxes(problem):
            return None
        return "plans one all-reduce of NPUs in boxes that reach each other directly"

    def turn(self, problem: Problem) -> int:
        network = problem.topology
        return self.rank if network.switches or network.npus <= _FEW_NPUS else _LATE

    def can_improve(self, problem: Problem, best: Algorithm) -> bool:
        """Where all NPUs are alike, compositions by level are as good."""
        if problem.is_auto and self.fits(problem) is None and _are_alike(problem):
            return False
        return super().can_improve(problem, best)

    def rivals(self, problem: Problem, best: Algorithm, other: Planner) -> bool:  # noqa: ARG002
        ours = best.provenance["method"] == self.name
        return not ours or best.time > problem.task.ideal * _CLOSE

    def plan(self, problem: Problem) -> Algorithm:
        plans = [plan for way in _ways(problem) if (plan := _planned(problem, way)) is not None]
        if not plans:
            raise InputError(f"method {self.name} finds no way between all boxes; use auto")
        return min(plans, key=lambda plan: plan.time)

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:
        if not any(problem.free):
            try:
                return self.plan(problem)
            except InputError:
                if problem.is_auto:
                    return None
                raise
        found: Algorithm | None = None
        for way in _ways(problem):
            limit = min(plan.time for plan in (best, found) if plan) if best or found else NEVER
            found = _best(problem, way, found, limit)
        return found


@dataclass(frozen=True, eq=False)
class _Way:
    """How chunks go: between which boxes (by NPU, -1 for none), and whether in one shot."""

    box: NDArray[np.int32]
    one_shot: bool


def _ways(problem: Problem) -> Iterator[_Way]:
    for box in _boxes(problem):
        yield from (_Way(box, one_shot) for one_shot in (False, True))


def _boxes(problem: Problem) -> list[NDArray[np.int32]]:
    """Some divisions into boxes, the largest first."""
    memo = problem.task.memo
    if "boxes" not in memo:
        found, group = [], sorted(problem.demand.group)
        for part in uneven_parts(problem.topology, group)[-_MOST_BOXINGS:][::-1]:
            box = np.full(problem.topology.npus, -1, dtype=np.int32)
            box[group] = part
            found.append(box)
        memo["boxes"] = found
    boxes: list[NDArray[np.int32]] = memo["boxes"]
    return boxes


def _are_alike(problem: Problem) -> bool:
    seen = scene(problem)
    return seen is not None and seen.is_even


def _best(problem: Problem, way: _Way, best: Algorithm | None, limit: int) -> Algorithm | None:
    """The best over numbers of chunks: from a usual one to more, else fewer; or the last way's."""
    demand = problem.demand
    rows = 2 * demand.ranks * (2 if way.one_shot else 1)
    most = max(min(_MOST_ROWS // rows, demand.size // demand.alignment), 1)
    first = min(max(demand.size // _USUAL, 1), _FEW if way.one_shot else max(most // 2, 1), most)
    if first > _FEW and limit < NEVER:
        glance = _planned(_cut(problem, _FEW), way)
        if glance is None or glance.time > limit * _HOPELESS:
            return best
    counts = [first << i for i in range((most // first).bit_length())]
    own = _climb(problem, way, counts, None, limit)
    if own is not None and own.demands[0].chunk_count == first:
        counts = [first >> i for i in range(1, first.bit_length())]
        own = _climb(problem, way, counts, own, limit)
    return min((plan for plan in (best, own) if plan), key=lambda plan: plan.time, default=None)


def _climb(
    problem: Problem,
    way: _Way,
    counts: Sequence[int],
    own: Algorithm | None,
    limit: int,
) -> Algorithm | None:
    """Numbers of chunks in turn, until some gain nothing or links are full.

    Or until links have too much to carry for a plan to take less than the limit.
    """
    misses = 0
    for count in counts:
        made = _planned(_cut(problem, count), way)
        if made is None:
            break
        # What twice as many chunks gain, four times as many gain half as much again.
        misses = 0 if own is None or made.time * (2 * _WORTH - 1) < own.time else misses + 1
        own = made if own is None or made.time < own.time else own
        load = _busiest(made)
        if misses == _MISSES or own.time < load * _FULL:
            break
        if count >= _FEW and load > limit:
            break
    return own


def _busiest(algorithm: Algorithm) -> int:
    """How long the busiest link is held at the least (ps)."""
    topology, rows = algorithm.require_timing().topology, algorithm.transfers
    row, link = algorithm.routes.crossed(rows.require_times().route)
    carried = np.bincount(link, algorithm.chunks.bytes[rows.chunk[row]], topology.links)
    return int((carried / topology.bandwidth).max(initial=0) * 1e12)


def _cut(problem: Problem, count: int) -> Problem:
    demand = problem.demand
    return problem.cut([_in_chunks(demand, count)])


def _in_chunks(demand: Collective, count: int) -> Collective:
    marks = np.unique(cut(demand.size, count, demand.alignment))
    return all_reduce_at(demand.group, marks, alignment=demand.alignment, relay=demand.relay)


def _planned(problem: Problem, way: _Way) -> Algorithm | None:
    problem.planning(Gateways.name, len(problem.chunks))
    topology, cost, chunks = problem.topology, problem.cost, problem.chunks
    search = problem.search(problem.task.goal)
    found, reads, writes = _core.gateways(
        topology.core, cost.core, chunks.core, way.box, way.one_shot, search
    )
    if found.time == NEVER:
        return None
    schedule = Schedule.from_core(topology, found, None)
    if not way.one_shot:
        schedule = pushed(problem, topology, schedule, chunks.largest)
        return timed(problem, [schedule], Gateways.name)
    rows, earliest = _with_copies(schedule, reads, writes, len(chunks))
    made = Algorithm(problem.demands, rows, provenance={"method": Gateways.name})
    return placed(made, topology, cost, earliest)


def _with_copies(
    schedule: Schedule, reads: NDArray[np.int32], writes: NDArray[np.int32], slots: int
) -> tuple[Transfers, NDArray[np.int64]]:
    """The rows with places, and those in which NPUs copy in their own memory; earliest starts.

    What sums begin with is copied first; results that are not at home are copied last.
    """
    npus = int(max(schedule.src.max(), schedule.dst.max())) + 1
    # A chunk at an NPU, as one number.
    here = schedule.chunk * np.int64(npus) + schedule.src
    there = schedule.chunk * np.int64(npus) + schedule.dst
    begun = [np.union1d(here[reads == at], there[writes == at]) for at in (FOR_OTHERS, FOR_OWN)]
    ended = np.setdiff1d(begun[1], there[writes == HOME])
    cells = [begun[0], begun[1], ended]
    counts = [len(cell) for cell in cells]
    cell = np.concatenate(cells)
    chunk = np.append(schedule.chunk, cell // npus).astype(np.int32)
    src = np.append(schedule.src, cell % npus).astype(np.int32)
    dst = np.append(schedule.dst, cell % npus).astype(np.int32)
    reduce = np.append(schedule.reduce, np.zeros(len(cell), dtype=np.bool_))
    reads = np.append(reads, np.repeat([HOME, HOME, FOR_OWN], counts))
    writes = np.append(writes, np.repeat([FOR_OTHERS, FOR_OWN, HOME], counts))
    start = np.append(schedule.start, np.repeat([-1, -1, schedule.time], counts))
    places = (
        np.where(at == HOME, chunk, place(Buffer.SCRATCH, 0) + (at - 1) * slots + chunk)
        for at in (reads, writes)
    )
    read, write = (at.astype(np.int32) for at in places)
    rows = Transfers(chunk, src, dst, reduce, src_place=read, dst_place=write)
    order = np.argsort(start, kind="stable")
    return rows.reordered(order), np.maximum(start[order], 0)


add(Gateways())
