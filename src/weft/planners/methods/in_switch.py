"""All-Reduce through switches that add and copy: sums to each share's owner, and copies from it.

While the parts of one chunk meet on their way to its owner, the sum of an earlier chunk of the same
owner goes out: the first use all links up but the owner's and its link down, the second the others.
So both together take hardly longer than each NPU needs to send the buffer once. Where one tree of
switches does not join all, there is one for each line of a grid of levels: boxes, then rails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, Routes
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import InputError
from weft.planners.chunking import counts_within
from weft.planners.listed import timed
from weft.planners.planner import Planner, add
from weft.planners.problem import Problem
from weft.planners.schedule import Schedule, overlaid
from weft.ragged import offsets_of
from weft.topology.durations import held
from weft.topology.grid import Grid
from weft.topology.levels import levels_of
from weft.topology.model import Topology

_FEWEST = 3  # NPUs: two have nothing to add on the way
_MOST_PAIRS, _MOST_ROWS = 1 << 16, 1 << 18  # of NPUs that are both in one group; in all
_CLOSE = 1.01
_WORTH = 1.002  # more chunks must gain at least this much

Numbers = NDArray[np.int64]


class InSwitch(Planner):
    """All-Reduce of groups behind switches that add and copy."""

    name = "in-switch"
    summary = "sums and copies made by switches, beside each other"
    rank = 25
    beside = judged = seeded = False
    uses_switches = True

    def can_improve(self, problem: Problem, best: Algorithm) -> bool:
        """Not what is close to the bound: to find trees takes as long as to plan without."""
        if self._refuses(problem) is not None:
            return False
        return best.time > problem.task.ideal * _CLOSE and super().can_improve(problem, best)

    def fits(self, problem: Problem) -> str | None:
        reason = self._refuses(problem)
        if reason is None and any(not forests for forests in _forests(problem)):
            return "plans groups in which such switches join all NPUs, level by level"
        return reason

    def _refuses(self, problem: Problem) -> str | None:
        if not problem.topology.copying & problem.topology.adding:
            return "plans networks with switches that add and copy"
        if problem.topology.buffers:
            return "plans switches that can hold any chunk"
        whole = all(demand.parts is None for demand in problem.demands)
        ranks = [demand.ranks for demand in problem.demands]
        if problem.kinds != {"all-reduce"} or not whole or min(ranks) < _FEWEST:
            return f"plans all-reduce of {_FEWEST} NPUs or more"
        if not all(demand.smallest_chunk for demand in problem.demands):
            return "plans chunks that all have bytes"
        if sum(count * count for count in ranks) > _MOST_PAIRS:
            return f"plans groups of {math.isqrt(_MOST_PAIRS)} NPUs at the most"
        return None

    def rivals(self, problem: Problem, best: Algorithm, other: Planner) -> bool:  # noqa: ARG002
        """What sends copies as they come makes no better use of the same switches."""
        return other.judged or not other.uses_switches or self.fits(problem) is not None

    def plan(self, problem: Problem) -> Algorithm:
        best = []
        most = _MOST_ROWS // len(problem.demands)
        free = problem.free or (False,) * len(problem.demands)
        for forests, demand, any_count in zip(
            _forests(problem), problem.demands, free, strict=True
        ):
            if not forests:
                raise InputError("method in-switch plans groups that such switches join; use auto")
            paces = [
                Pace.of(forest, cut, problem.cost)
                for forest in forests
                for cut in (_cuts(demand, most // forest.rows) if any_count else [demand])
            ]
            enough = min(pace.time for pace in paces) * _WORTH
            best.append(next(pace for pace in paces if pace.time <= enough))
        demands = [pace.demand for pace in best]
        rows = overlaid([pace.schedule for pace in best], [0] * len(best), demands)
        return timed(problem.cut(demands), [rows], self.name)

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:  # noqa: ARG002
        return self.plan(problem)


def _cuts(demand: Collective, most: int) -> list[Collective]:
    """The collective in more and more chunks."""
    return [replace(demand, chunks_per_share=count) for count in counts_within(demand, most)]


def _forests(problem: Problem) -> list[list[Forest]]:
    """For each group the trees of switches along the levels of grids; worked out once."""
    memo = problem.task.memo
    if "forests" not in memo:
        memo["forests"] = [
            [
                forest
                for grid in _grids(problem.topology, demand.group)
                if (forest := Forest.of(problem.topology, grid)) is not None
            ]
            for demand in problem.demands
        ]
    found: list[list[Forest]] = memo["forests"]
    return found


def _grids(topology: Topology, group: Sequence[int]) -> Iterator[Grid]:
    yield Grid((len(group),), np.array(group, dtype=np.int32))
    found = levels_of(topology, group)
    if found is not None and len(found.sizes) > 1:
        yield found


def _are_joined(topology: Topology, group: Sequence[int]) -> bool:
    """Whether members are joined through switches that add and copy, and each other."""
    inside, reached = (np.zeros(topology.nodes, dtype=np.bool_) for _ in range(2))
    inside[[*group, *(topology.copying & topology.adding)]] = True
    reached[group[0]] = True
    kept = inside[topology.src] & inside[topology.dst]
    src, dst = topology.src[kept], topology.dst[kept]
    while (further := reached[src] & ~reached[dst]).any():
        reached[dst[further]] = True
    return bool(reached[list(group)].all())


@dataclass(frozen=True, eq=False)
class Stage:
    """What one level does for the chunks of one owner: parts that meet at one NPU of each line.

    Attributes
    ----------
    src, dst
        Of each part: whose it is, and who gets the sum.
    up, down
        Its links, and those of the copy that comes back, as rows of `Forest.routes`.
    turn
        After how many others it goes: none where switches add and copy.
    """

    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    up: NDArray[np.int32]
    down: NDArray[np.int32]
    turn: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees of switches along the levels of a grid: for each owner of a share its stages."""

    topology: Topology
    grid: Grid
    owners: list[list[Stage]]
    routes: Routes

    @classmethod
    def of(cls, topology: Topology, grid: Grid) -> Forest | None:
        """None if no line is joined by switches that add and copy, or one not at all."""
        trees = Trees(topology)
        owners = []
        level = range(len(grid.sizes))
        joined = [_are_joined(topology, next(_lines(grid, 0, each))[0]) for each in level]
        if not any(joined):
            return None
        for place, _ in enumerate(grid.npus):
            stages = [
                trees.stage(list(_lines(grid, place, each)), place, joined[each]) for each in level
            ]
            if any(stage is None for stage in stages):
                return None
            owners.append([stage for stage in stages if stage is not None])
        return cls(topology, grid, owners, trees.routes)

    @property
    def rows(self) -> int:
        """Transfers with one chunk per share."""
        return 2 * sum(len(stage.src) for stages in self.owners for stage in stages)

    @cached_property
    def _use(self) -> list[NDArray[np.int64]]:
        """For each level and link: how many transmissions cross it, one chunk of each owner."""
        links, offsets = self.routes.links, self.routes.offsets
        use = [np.zeros(self.topology.links, dtype=np.int64) for _ in self.grid.sizes]
        for stages in self.owners:
            for level, stage in enumerate(stages):
                for routes in (stage.up, stage.down):
                    crossed = [links[offsets[route] : offsets[route + 1]] for route in routes]
                    mine = np.concatenate(crossed)
                    if stage.turn.any():  # each for itself
                        np.add.at(use[level], mine, 1)
                    else:
                        use[level][mine] += 1
        return use

    def durations(self, cost: CostModel, size: int) -> list[int]:
        """For each level: how long parts of `size` bytes are on their way."""
        links = self.routes.links
        speeds = self.topology.bandwidth[links], self.topology.latency[links]
        duration, _, _ = _core.hop_times(cost.core, *speeds, self.routes.offsets, size)
        return [
            max(int(duration[np.append(stage.up, stage.down)].max()) for stage in stages)
            for stages in zip(*self.owners, strict=True)
        ]

    def pushes(self, cost: CostModel, size: int) -> list[int]:
        """For each level: how long parts of `size` bytes hold the slowest link."""
        each = held(self.topology, cost, size)
        return [int(each[use > 0].max()) for use in self._use]

    def step(self, cost: CostModel, size: int) -> int:
        """How long a chunk keeps the busiest link of all busy, in the mean over the owners."""
        busiest = int((sum(self._use) * held(self.topology, cost, size)).max())
        return max(1, -(-busiest // len(self.owners)))


def _lines(grid: Grid, owner: int, level: int) -> Iterator[tuple[list[int], int]]:
    """Lines along a level whose sums concern an owner, as NPUs, and which of them takes the sum."""
    stride, size = grid.stride(level), grid.sizes[level]
    within, mine = owner % stride, owner // stride % size
    for first in range(within, len(grid.npus), stride * size):
        line = grid.npus[first + stride * np.arange(size)].tolist()
        yield line, line[mine]


class Trees:
    """Ways from NPUs to one of them through switches that add and copy; where they meet they stay.

    Of switches equally near, different owners take different ones.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.able = topology.copying & topology.adding
        self.reverse = topology.reverse_links
        self.lists: list[list[int]] = []
        self.ways: dict[tuple[int, int, bool], dict[int, int]] = {}

    @property
    def routes(self) -> Routes:
        lengths = [len(links) for links in self.lists]
        flat = [link for links in self.lists for link in links]
        return Routes(offsets_of(lengths), np.array(flat, dtype=np.int32))

    def stage(self, lines: list[tuple[list[int], int]], turn: int, able: bool) -> Stage | None:
        """The parts of all lines; None if one has no way, or none back.

        `able`: through switches that add and copy.
        """
        src, dst, up, down, turns = [], [], [], [], []
        for line, taker in lines:
            onwards = self._onwards(taker, turn, able)
            mine = line.index(taker)
            for place, npu in enumerate(line[mine + 1 :] + line[:mine]):
                way = self._way(npu, taker, onwards)
                if way is None or self.reverse is None:
                    return None
                src.append(npu)
                dst.append(taker)
                up.append(self._number(way))
                down.append(self._number([int(self.reverse[link]) for link in way[::-1]]))
                turns.append(0 if able else place)
        columns = (np.array(column, dtype=np.int32) for column in (src, dst, up, down, turns))
        return Stage(*columns)

    @cached_property
    def _into(self) -> list[list[tuple[int, int]]]:
        """For each node the links into it, with where they come from."""
        into: list[list[tuple[int, int]]] = [[] for _ in range(self.topology.nodes)]
        ends = zip(self.topology.src.tolist(), self.topology.dst.tolist(), strict=True)
        for link, (src, dst) in enumerate(ends):
            into[dst].append((link, src))
        return into

    def _onwards(self, taker: int, turn: int, able: bool) -> dict[int, int]:
        """The link that each node sends on towards the taker."""
        key = taker, turn, able
        if key in self.ways:
            return self.ways[key]
        distance, queue = {taker: 0}, [taker]
        near: dict[int, list[int]] = {}
        for node in queue:
            if node != taker and (node not in self.able if able else node < self.topology.npus):
                continue
            for link, before in self._into[node]:
                if before not in distance:
                    distance[before] = distance[node] + 1
                    queue.append(before)
                if distance[before] == distance[node] + 1:
                    near.setdefault(before, []).append(link)
        found = {node: links[turn % len(links)] for node, links in near.items()}
        self.ways[key] = found
        return found

    def _way(self, npu: int, taker: int, onwards: dict[int, int]) -> list[int] | None:
        way, node = list[int](), npu
        while node != taker:
            if node not in onwards:
                return None
            way.append(onwards[node])
            node = int(self.topology.dst[way[-1]])
        return way

    def _number(self, links: list[int]) -> int:
        self.lists.append(links)
        return len(self.lists) - 1


@dataclass(frozen=True, eq=False)
class Pace:
    """When chunks go, if one is begun every `step` picoseconds.

    Attributes
    ----------
    sums, copies
        For each level: when its part begins, after the chunk does.
    """

    forest: Forest
    demand: Collective
    step: int
    durations: list[int]
    pushes: list[int]
    sums: list[int]
    copies: list[int]

    @classmethod
    def of(cls, forest: Forest, demand: Collective, cost: CostModel) -> Pace:
        """Copies of a level begin a whole round of owners after its sums: then they are apart."""
        durations = forest.durations(cost, demand.largest_chunk)
        pushes = forest.pushes(cost, demand.largest_chunk)
        step = forest.step(cost, demand.largest_chunk)
        levels = zip(*forest.owners, strict=True)
        turns = [max(int(stage.turn.max()) for stage in stages) for stages in levels]
        all_of = zip(turns, pushes, durations, strict=True)
        last = [turn * push + duration for turn, push, duration in all_of]
        sums = [sum(last[:level]) for level in range(len(last))]
        copies, ready = list[int](), sum(last)
        for level in reversed(range(len(durations))):
            turn = step * forest.grid.stride(level) * forest.grid.sizes[level]
            rounds = -(-(ready - sums[level]) // turn)
            copies.insert(0, sums[level] + rounds * turn)
            ready = copies[0] + last[level]
        return cls(forest, demand, step, durations, pushes, sums, copies)

    @property
    def time(self) -> int:
        """About when all is over."""
        last = self.demand.ranks * self.demand.chunks_per_share - 1
        return last * self.step + self.copies[0] + self.durations[0]

    @property
    def schedule(self) -> Schedule:
        """Rows of all chunks; their times say what goes together, and in what order."""
        pieces = np.arange(self.demand.chunks_per_share)
        made: list[list[NDArray[Any]]] = []
        for owner, stages in enumerate(self.forest.owners):
            begin = (pieces * len(self.forest.owners) + owner) * self.step
            for level, stage in enumerate(stages):
                for reduce in (True, False):
                    src, dst = (stage.src, stage.dst)[:: 1 if reduce else -1]
                    route = stage.up if reduce else stage.down
                    at = begin[:, None] + (self.sums if reduce else self.copies)[level]
                    at = at + stage.turn * self.pushes[level]
                    chunk = np.broadcast_to((owner * len(pieces) + pieces)[:, None], at.shape)
                    ends = (np.broadcast_to(each, at.shape) for each in (src, dst, route))
                    until = at + self.durations[level]
                    made.append([chunk, *ends, np.full(at.shape, reduce), at, until])
        chunk, src, dst, route, summed, start, end = (
            np.concatenate([each.reshape(-1) for each in column])
            for column in zip(*made, strict=True)
        )
        routes = self.forest.routes
        return Schedule(chunk.astype(np.int32), src, dst, summed, route, start, end, routes, None)


add(InSwitch())
