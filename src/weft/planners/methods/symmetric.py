"""Vertex-transitive networks: one NPU's chunks are planned, translations give everybody's.

The rows of NPU 0's chunks are kept, with the translations that make all rows of them (see
`SymmetricRows`): a plan costs as much as one NPU's part in it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, SymmetricRows, Timing
from weft.memory import check_fits
from weft.planners.chunking import Option, climb, counts_within
from weft.planners.planner import PLANNERS, Planner, add
from weft.planners.problem import Problem
from weft.planners.symmetry import KINDS, Job
from weft.topology.translations import Translations

_MOST_EDGES = 1 << 23  # ways between NPUs, over all chunks of one: about a second
_EDGES_OF_A_ROW = 4  # as much work as a transfer elsewhere


class Symmetric(Planner):
    """Plans one NPU's chunks so that nobody's are in the way of each other."""

    name = "symmetric"
    summary = "one NPU's chunks on a vertex-transitive network; the others' are the same, moved"
    rank = 20
    beside = judged = False

    def fits(self, problem: Problem) -> str | None:
        """Where links failed, and only this method is to be used, the plan is repaired."""
        if problem.task.is_symmetric:
            return None
        if not problem.is_auto and PLANNERS["repaired"].fits(problem) is None:
            return None
        return (
            f"plans one collective, {', '.join(KINDS[:-1])} or {KINDS[-1]}, among all NPUs of a "
            "vertex-transitive network, such as a torus or a switch, in chunks that are not empty"
        )

    def plans_alike(self, problem: Problem) -> bool:
        return self.fits(problem) is None

    def floor(self, problem: Problem) -> int:
        return problem.task.floor

    def plan(self, problem: Problem) -> Algorithm:
        if not problem.task.is_symmetric:
            return PLANNERS["repaired"].plan(problem)
        return plan_symmetric(problem)

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:
        if not problem.task.is_symmetric:
            return PLANNERS["repaired"].search(problem, best)
        if not any(problem.free):
            return super().search(problem, best)
        return climb(_options(problem), self.plan, best)


def plan_symmetric(problem: Problem) -> Algorithm:
    """Plan one NPU's chunks."""
    timing = Timing(problem.topology, problem.cost)
    return Algorithm((problem.demand,), symmetric_rows(problem), timing, {"method": "symmetric"})


def symmetric_rows(problem: Problem) -> SymmetricRows:
    """The rows of one NPU's chunks."""
    topology, demand = problem.topology, problem.demand
    job = Job(Translations.of(topology), demand, problem.cost)
    check_fits(f"a symmetric {demand.kind} on {topology.name}", job.bytes_needed)
    problem.planning("symmetric", demand.chunk_count)
    return (_exchange if demand.pattern.own_buffers else _spread)(job, problem)


def _options(problem: Problem) -> list[Option]:
    """Numbers of chunks that are not too much work, each with about the least it can take."""
    moves, collective = Translations.of(problem.topology), problem.demand
    ways = len(moves.shift) * problem.topology.npus
    shares = collective.pattern.shares(collective.ranks)
    found = []
    for count in counts_within(collective, max(1, _MOST_EDGES // ways)):
        option = problem.cut([replace(collective, chunks_per_share=count)])
        job = Job(moves, option.demand, problem.cost)
        # Of chunks that differ a little, the mean is what counts.
        floor = job.floor(collective.size // (shares * count))
        found.append(Option(option, floor, ways * count // _EDGES_OF_A_ROW))
    return found


def _rows(
    job: Job,
    chunk: NDArray[np.int32],
    src: NDArray[np.int32],
    direction: NDArray[np.int32],
    start: NDArray[np.int64],
    reduce: NDArray[np.bool_] | None = None,
) -> SymmetricRows:
    dst = job.moves.moved(src, job.moves.shift[direction]).astype(np.int32)
    adds = np.zeros(len(chunk), dtype=np.bool_) if reduce is None else reduce
    return SymmetricRows(chunk, src, dst, adds, start, job.npus)


def _exchange(job: Job, problem: Problem) -> SymmetricRows:
    search = problem.search(job.floor(job.demand.largest_chunk))
    return _rows(job, *_core.symmetric_exchange(job.directions, job.pieces, search))


def _spread(job: Job, problem: Problem) -> SymmetricRows:
    """Trees from one NPU to all; run backwards they sum for it, and both are an All-Reduce."""
    gather = replace(job.demand, kind="all-gather")
    search = problem.search(replace(job, demand=gather).floor(job.demand.largest_chunk))
    planned = _core.symmetric_spread(job.directions, job.pieces, search)
    if job.demand.kind == "all-gather":
        return _rows(job, *planned)
    chunk, src, direction, start = planned
    _, duration = job.resources(job.demand.largest_chunk, job.demand.smallest_chunk)
    end = start + duration[job.moves.resource[direction]]
    order = np.argsort(-end, kind="stable")
    back = (
        chunk[order],
        job.moves.moved(src, job.moves.shift[direction])[order].astype(np.int32),
        job.moves.opposite(direction)[order],
    )
    if job.demand.kind == "reduce-scatter":
        adds = np.ones(len(chunk), dtype=np.bool_)
        return _rows(job, *back, end.max(initial=0) - end[order], adds)
    _, first = np.unique(chunk, return_index=True)  # rows in which chunks leave NPU 0
    leaving = np.argsort(first, kind="stable").astype(np.int32)
    # Backwards the first to leave is the last to be summed. Another one that has been summed by
    # then is to take its place: it spreads while others are still being summed.
    place = np.empty_like(leaving)
    place[leaving] = leaving[::-1]
    both = [
        np.concatenate([one, other])
        for one, other in zip(back, (place[chunk], src, direction), strict=True)
    ]
    start = _core.follow_order(job.directions, job.pieces, *both)
    order = np.argsort(start, kind="stable")
    chunk, src, direction = (column[order] for column in both)
    return _rows(job, chunk, src, direction, start[order], order < len(order) // 2)


add(Symmetric())
