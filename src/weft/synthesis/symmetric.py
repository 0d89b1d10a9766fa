"""Networks that look alike from every NPU: one NPU's chunks are planned, the others' are alike.

The rows of NPU 0's chunks are kept, with the translations that make all rows of them (see
`SymmetricRows`): a plan costs as much as one NPU's part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, SymmetricRows
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import InputError
from weft.memory import check_fits
from weft.synthesis.chunking import climbed, counts_within
from weft.synthesis.engines import Settings
from weft.topology.model import Topology
from weft.topology.translations import Translations

_KINDS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")
_MOST_EDGES = 1 << 23  # ways between NPUs, over all chunks of one: about a second
_NEARLY = 1.0005  # forecasts are no nearer than this
_EDGES_OF_A_ROW = 4  # as much work as a transfer elsewhere
# Bytes while a plan is made: of a chunk at an NPU, of a way out of it there, and of a row.
_BYTES_A_PLACE, _BYTES_A_WAY, _BYTES_A_ROW = 32, 24, 80


def is_symmetric(topology: Topology, demands: Sequence[Collective]) -> bool:
    """Whether this is a collective of all NPUs in which all do the same, and the network too."""
    if len(demands) != 1 or not topology.translates or topology.npus < 2:
        return False
    demand = demands[0]
    return (
        demand.kind in _KINDS
        and demand.parts is None
        and demand.group == tuple(range(topology.npus))
        and demand.smallest_chunk > 0
    )


def check_symmetric(topology: Topology, demands: Sequence[Collective], settings: Settings) -> None:
    """Raise if only this method is to be used, and it cannot be."""
    if settings.method == "symmetric" and not is_symmetric(topology, demands):
        raise InputError(
            f"method symmetric plans one collective, {', '.join(_KINDS[:-1])} or {_KINDS[-1]}, "
            "among all NPUs of a network that looks alike from each, such as a torus or a switch, "
            "in chunks that are not empty; use auto for others"
        )


def plan_symmetric(topology: Topology, demand: Collective, settings: Settings) -> Algorithm:
    """Plan one NPU's chunks so that nobody's are in the way of each other."""
    job = _Job(Translations.of(topology), demand, settings.cost)
    check_fits(f"a symmetric {demand.kind} on {topology.name}", job.bytes_needed)
    plan = _exchange if demand.kind == "all-to-all" else _spread
    rows = plan(job, settings)
    return Algorithm(
        (demand,), rows, topology, cost=settings.cost, provenance={"method": "symmetric"}
    )


def symmetric_floor(topology: Topology, demand: Collective, cost: CostModel) -> int:
    """A time in picoseconds that no algorithm can beat, found without a table of chunks."""
    return _Job(Translations.of(topology), demand, cost).floor(demand.smallest_chunk)


def best_symmetric(
    topology: Topology, collective: Collective, settings: Settings
) -> tuple[Algorithm, float]:
    """The best plan over several numbers of chunks, and about the least any of them can take."""
    moves = Translations.of(topology)
    ways = len(moves.shift) * topology.npus
    counts = counts_within(collective, max(1, _MOST_EDGES // ways))
    options = [replace(collective, chunks_per_share=count) for count in counts]
    shares = collective.pattern.shares(collective.ranks)
    floors = [
        # Of chunks that differ a little, the mean is what counts.
        float(_Job(moves, option, settings.cost).floor(collective.size // (shares * count)))
        for option, count in zip(options, counts, strict=True)
    ]
    work = [ways * count // _EDGES_OF_A_ROW for count in counts]
    best = climbed(options, floors, work, lambda option: plan_symmetric(topology, option, settings))
    return best, min(floors) * _NEARLY


@dataclass(frozen=True, eq=False)
class _Job:
    """A collective on a network that translates onto itself."""

    moves: Translations
    demand: Collective
    cost: CostModel

    @property
    def pieces(self) -> int:
        return self.demand.chunks_per_share

    @property
    def npus(self) -> int:
        return self.moves.topology.npus

    @cached_property
    def directions(self) -> _core.Directions:
        """For the kernels, which plan for the largest chunk."""
        hold, duration = self._resources(self.demand.largest_chunk, self.demand.smallest_chunk)
        sizes = np.array(self.moves.topology.dimensions, dtype=np.int32)
        moves = self.moves
        return _core.Directions(sizes, moves.dimension, moves.step, moves.resource, hold, duration)

    def _resources(
        self, largest: int, smallest: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How long each resource is held by a chunk, and how long until that is usable."""
        _, first = np.unique(self.moves.resource, return_index=True)
        hold = self.moves.holds(self.cost, largest, smallest)[first]
        return hold, self.moves.durations(self.cost, largest)[first]

    @cached_property
    def _steps(self) -> list[tuple[int, int, int]]:
        """Of each dimension that is wider than 1: size, steps to the farthest, steps to all."""
        steps = []
        for dimension in np.unique(self.moves.dimension).tolist():
            size = self.moves.topology.dimensions[dimension]
            if int((self.moves.dimension == dimension).sum()) == size - 1:
                steps.append((size, 1, size - 1))
            else:  # a ring, in which the way is the shorter of two
                steps.append((size, size // 2, size * size // 4))
        return steps

    def floor(self, chunk_bytes: int) -> int:
        """A time that no algorithm can beat if all chunks are at least so long.

        Either the farthest NPU is too far away, or links have too much to carry: all of those
        along a dimension in an All-to-All; else those along the slowest one, two, ... dimensions,
        over which every chunk must get to each part of the network that they join.
        """
        hold, duration = self._resources(chunk_bytes, chunk_bytes)
        of_dimension = np.zeros(len(hold), dtype=np.int64)
        of_dimension[self.moves.resource] = self.moves.dimension
        groups = [np.flatnonzero(of_dimension == one) for one in np.unique(of_dimension)]
        paired = list(zip(groups, self._steps, strict=True))
        least = sum(far * int(duration[mine].min()) for mine, (_, far, _) in paired)
        if self.demand.kind == "all-to-all":
            for mine, (size, _, to_all) in paired:
                rows = self.npus // size * to_all * self.pieces
                least = max(least, _carried(rows, hold[mine], duration[mine]))
            return least
        times = 2 if self.demand.kind == "all-reduce" else 1
        parts, joining = 1, np.empty(0, dtype=np.int64)
        for mine, (size, _, _) in sorted(paired, key=lambda pair: -int(hold[pair[0]].min())):
            parts, joining = parts * size, np.concatenate([joining, mine])
            rows = (parts - 1) * self.pieces * times
            least = max(least, _carried(rows, hold[joining], duration[joining]))
        return least

    @property
    def bytes_needed(self) -> int:
        """About how much memory it takes to make a plan."""
        places = self.npus * self.pieces
        rows = places * (2 if self.demand.kind == "all-reduce" else 1)
        ways = len(np.unique(self.moves.resource))
        if self.demand.kind == "all-to-all":
            rows = sum(places // size * to_all for size, _, to_all in self._steps)
            ways = len(self.moves.topology.dimensions)
        return places * (_BYTES_A_PLACE + ways * _BYTES_A_WAY) + rows * _BYTES_A_ROW

    def rows(
        self,
        chunk: NDArray[np.int32],
        src: NDArray[np.int32],
        direction: NDArray[np.int32],
        start: NDArray[np.int64],
        reduce: NDArray[np.bool_] | None = None,
    ) -> SymmetricRows:
        dst = self.moves.moved(src, self.moves.shift[direction]).astype(np.int32)
        adds = np.zeros(len(chunk), dtype=np.bool_) if reduce is None else reduce
        return SymmetricRows(chunk, src, dst, adds, start, self.npus)


def _carried(rows: int, hold: NDArray[np.int64], duration: NDArray[np.int64]) -> int:
    """How soon so many chunks can have passed over some resources."""
    lead = duration - hold
    low, high = 0, int((lead + hold * rows).min())
    while low < high:
        time = (low + high) // 2
        if int(np.maximum((time - lead) // hold, 0).sum()) >= rows:
            high = time
        else:
            low = time + 1
    return low


def _exchange(job: _Job, settings: Settings) -> SymmetricRows:
    goal = job.floor(job.demand.largest_chunk)
    settings.tell("symmetric", job.demand.chunk_count)
    planned = _core.symmetric_exchange(
        job.directions, job.pieces, settings.seed, goal, settings.progress
    )
    return job.rows(*planned)


def _spread(job: _Job, settings: Settings) -> SymmetricRows:
    """Trees from one NPU to all; run backwards they sum for it, and both are an All-Reduce."""
    gather = replace(job.demand, kind="all-gather")
    goal = replace(job, demand=gather).floor(job.demand.largest_chunk)
    settings.tell("symmetric", job.demand.chunk_count)
    chunk, src, direction, start = _core.symmetric_spread(
        job.directions, job.pieces, settings.seed, goal, settings.progress
    )
    if job.demand.kind == "all-gather":
        return job.rows(chunk, src, direction, start)
    _, duration = job._resources(job.demand.largest_chunk, job.demand.smallest_chunk)
    end = start + duration[job.moves.resource[direction]]
    order = np.argsort(-end, kind="stable")
    back = (
        chunk[order],
        job.moves.moved(src, job.moves.shift[direction])[order].astype(np.int32),
        job.moves.opposite(direction)[order],
    )
    if job.demand.kind == "reduce-scatter":
        adds = np.ones(len(chunk), dtype=np.bool_)
        return job.rows(*back, end.max(initial=0) - end[order], adds)
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
    return job.rows(chunk, src, direction, start[order], order < len(order) // 2)
