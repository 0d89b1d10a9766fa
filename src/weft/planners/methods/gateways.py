"""Gateways: All-Reduce and its halves where boxes, or their ways out, are not alike.

Every chunk has its own ways: an owner, and in every box an NPU that sums the box's parts and one
that spreads the result. They are chosen one chunk after the other, so that links are loaded alike:
a slow NIC gets little, a failed one nothing. Small buffers of an All-Reduce go in one shot: boxes
exchange their sums, and each adds them. A Reduce-Scatter is an All-Gather run backwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, Buffer, Transfers, place
from weft.collective import Chunks, Collective, all_reduce_at
from weft.collective.chunks import cut
from weft.engine import placed
from weft.errors import InputError, UnreachableError
from weft.planners.chunking import climb, options
from weft.planners.layouts import scene
from weft.planners.listed import backwards, goal_of, planned, pushed, timed
from weft.planners.planner import Planner, add
from weft.planners.problem import Problem
from weft.planners.schedule import Schedule
from weft.planners.terraces import terraced
from weft.topology.levels import entering, looks_alike, uneven_parts
from weft.topology.model import Topology
from weft.units import NEVER

_KINDS = ("all-gather", "reduce-scatter", "all-reduce")
_MOST_ROWS, _MOST_OF_MANY = 1 << 18, 1 << 20
_MANY = 64  # NPUs of which each should own two chunks, however many rows that makes
_USUAL = 1 << 18  # bytes of a chunk of which the search for their number starts
_FEW = 64  # chunks that show how much links would carry
_HOPELESS = 1.5  # a plan with few chunks takes so much longer than the best known
_MISSES = 2  # numbers of chunks in a row that gain nothing
_WORTH = 1.005
_FULL = 1.01  # over the load of the busiest link: more chunks gain nothing
_IDLE = 1.2  # over that load: fewer chunks may gain something
_CLOSE, _FAR = 1.1, 1.4  # over the bound: nobody else finds much that is better
_MOST_BOXINGS = 2
# Of more NPUs without switches, others come first: boxes are seldom clear there, and take long.
_FEW_NPUS, _LATE = 32, 61

HOME, FOR_OTHERS, FOR_OWN = range(3)  # as in cpp/planners/gateways/gateways.h


class Gateways(Planner):
    """All-Reduce, All-Gather and Reduce-Scatter by gateways, chosen chunk by chunk."""

    name = "gateways"
    summary = "boxes that are not alike, with ways chosen chunk by chunk"
    rank = 35
    beside = judged = seeded = False
    keeps_apart = True

    def fits(self, problem: Problem) -> str | None:
        if problem.kinds <= set(_KINDS) and len(problem.demands) == 1 and _boxes(problem):
            return None
        return f"plans one {', '.join(_KINDS[:-1])} or {_KINDS[-1]} of NPUs in boxes"

    def turn(self, problem: Problem) -> int:
        network = problem.topology
        return self.rank if network.switches or network.npus <= _FEW_NPUS else _LATE

    def can_improve(self, problem: Problem, best: Algorithm) -> bool:
        """Where all NPUs are alike, compositions by level are as good."""
        if not super().can_improve(problem, best):
            return False
        if best.provenance["method"] == "shares" and problem.is_auto:
            return False  # as good among so many NPUs, and a matter of minutes here
        return not (problem.is_auto and self.fits(problem) is None and _are_alike(problem))

    def rivals(self, problem: Problem, best: Algorithm, other: Planner) -> bool:  # noqa: ARG002
        """Among many NPUs others take long, and the bound that is known here says little."""
        ours = best.provenance["method"] == self.name
        hope = _FAR if problem.demand.ranks > _MANY else _CLOSE
        return not ours or best.time > problem.task.ideal * hope

    def plan(self, problem: Problem) -> Algorithm:
        plan = _quickest(problem)
        if plan is None:
            raise InputError(f"method {self.name} finds no way between all boxes; use auto")
        return plan

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:
        plan = _quickest if problem.is_auto else self.plan
        if not any(problem.free):
            return plan(problem)
        if problem.demand.kind != "all-reduce":
            return climb(options(problem), plan, best)
        found: Algorithm | None = None
        for way in _ways(problem):
            limit = min(plan.time for plan in (best, found) if plan) if best or found else NEVER
            if found is None or _shot_floor(problem, way) < limit:
                found = _best(problem, way, found, limit)
        return found


@dataclass(frozen=True, eq=False)
class _Way:
    """How chunks go: between which boxes (by NPU, -1 for none), and whether in one shot."""

    box: NDArray[np.int32]
    one_shot: bool


def _quickest(problem: Problem) -> Algorithm | None:
    """The best plan with the chunks there are; None if boxes do not all meet."""
    plans = [plan for way in _ways(problem) if (plan := _planned(problem, way)) is not None]
    return min(plans, key=lambda plan: plan.time, default=None)


def _ways(problem: Problem) -> Iterator[_Way]:
    shots = (False, True) if problem.demand.kind == "all-reduce" else (False,)
    for box in _boxes(problem):
        yield from (_Way(box, one_shot) for one_shot in shots)


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
    if terraced(problem) is not None:  # cheap, and the same: no table of links is needed
        return True
    seen = scene(problem)
    if seen is None or not seen.is_even:
        return False
    return looks_alike(problem.topology, problem.demand.group)


def _shot_floor(problem: Problem, way: _Way) -> float:
    """Picoseconds that one shot takes at least: every box receives what all others have."""
    if not way.one_shot:
        return 0
    rate = _rates(problem, way)
    return float(way.box.max()) * problem.demand.size / max(float(rate.min()), 1.0) * 1e12


def _rates(problem: Problem, way: _Way) -> NDArray[np.float64]:
    """Bytes a second into each box."""
    topology = problem.topology
    into = entering(topology, way.box)
    rates = np.bincount(into[into >= 0], topology.bandwidth[into >= 0], int(way.box.max()) + 1)
    return rates.astype(np.float64)


def _owners(problem: Problem, way: _Way) -> int:
    """How many NPUs sit in boxes that are as well connected as any."""
    rate = _rates(problem, way)
    best = np.flatnonzero(rate >= rate.max())
    return int(np.isin(way.box, best).sum())


def _best(problem: Problem, way: _Way, best: Algorithm | None, limit: int) -> Algorithm | None:
    """The best over numbers of chunks: from a usual one to more, else fewer; or the last way's."""
    demand = problem.demand
    rows, pieces = 2 * demand.ranks * (2 if way.one_shot else 1), demand.size // demand.alignment
    many = demand.ranks > _MANY and not way.one_shot
    most = _MOST_ROWS // rows
    if many:
        most = max(most, min(2 * _owners(problem, way), _MOST_OF_MANY // rows))
    most = max(min(most, pieces), 1)
    usual = _FEW if way.one_shot else most if many else max(most // 2, 1)
    first = min(max(demand.size // _USUAL, 1), usual, most)
    if first > _FEW and limit < NEVER and not many:
        glance = _planned(_cut(problem, _FEW), way)
        if glance is None or glance.time > limit * _HOPELESS:
            return best
    counts = [first << i for i in range((most // first).bit_length())]
    own = _climb(problem, way, counts, None, limit)
    if own is not None and own.demands[0].chunk_count == first and own.time > _busiest(own) * _IDLE:
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
    """None if boxes do not all meet."""
    topology, cost, chunks = problem.topology, problem.cost, problem.chunks
    if not way.one_shot:
        sums = problem.demand.kind == "reduce-scatter"
        try:
            if sums:
                schedule = backwards(problem, chunks, partial(_spread, way=way))
            else:
                schedule = _spread(problem, topology, chunks, way=way)
        except UnreachableError:
            return None
        return timed(problem, [schedule], Gateways.name)
    problem.planning(Gateways.name, len(chunks))
    search = problem.search(problem.task.goal)
    found, reads, writes = _core.gateways(
        topology.core, cost.core, chunks.core, way.box, True, search
    )
    if found.time == NEVER:
        return None
    schedule = Schedule.from_core(topology, found, None)
    rows, earliest = _with_copies(schedule, reads, writes, len(chunks))
    made = Algorithm(problem.demands, rows, provenance={"method": Gateways.name})
    return placed(made, topology, cost, earliest)


def _spread(problem: Problem, topology: Topology, chunks: Chunks, *, way: _Way) -> Schedule:
    """Chunks that are copied to all, or summed and copied, through gateways."""

    def kernel(
        network: _core.Network, cost: _core.CostModel, chunks: _core.Chunks, search: _core.Search
    ) -> _core.Schedule:
        return _core.gateways(network, cost, chunks, way.box, False, search)[0]

    goal = goal_of(problem, topology, chunks)
    made = planned(problem, Gateways.name, kernel, topology, chunks, goal=goal, slot=None)
    return pushed(problem, topology, made, chunks.largest)


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
