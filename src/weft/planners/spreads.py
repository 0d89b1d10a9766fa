"""The search for the best way to spread a buffer from a root along the levels of a grid.

Along each level it is scattered, or copied whole, or scattered along a factor of it and copied along
the others. What a way takes is estimated for all; only the best get exact times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from weft.algorithm import Algorithm, SpreadPart, SpreadRows, SpreadStep, Timing
from weft.collective.chunks import cut
from weft.planners.problem import Problem
from weft.planners.terraces import is_uneven, slowness
from weft.planners.waves import Hops, Timed, Waves
from weft.topology.grid import Grid, grid_of, moved
from weft.topology.ladders import Climb, ladders_of
from weft.topology.levels import levels_of

NAME = "spread"
_PIECES = tuple(1 << i for i in range(11))
_MOST_CHUNKS, _MOST_MOVES = 1 << 20, 1 << 18  # of all; of one piece
_FINALISTS = 12
_WORTH = 1.01  # more moves must gain at least this much

Line = tuple[tuple[int, ...], int]
"""Dimensions, and the ladder that leads along them."""
Lines = tuple[tuple[str, Line], ...]
"""What is done along each line, from the root's box outwards: scatter or copy."""


@dataclass(frozen=True, eq=False)
class SpreadGrid:
    """A group on a grid whose place 0 is the root, in dimensions of prime sizes.

    Attributes
    ----------
    levels
        The dimensions of each level.
    """

    grid: Grid
    levels: tuple[tuple[int, ...], ...]
    climbs: tuple[Climb, ...]

    def ladder(self, dimensions: Sequence[int]) -> int | None:
        """The fastest ladder along a line; None if none leads along it."""
        away = self.grid.lines(dimensions)[1:]
        found = [
            (slowness(climb, int(tops.max())), number)
            for number, climb in enumerate(self.climbs)
            if (tops := climb.top(away)).min() >= 0
        ]
        return min(found)[1] if found else None

    def line(self, dimensions: Sequence[int]) -> int:
        return math.prod(self.grid.sizes[dimension] for dimension in dimensions)


def spread_grid(problem: Problem) -> SpreadGrid | None:
    """The grid of the only collective, worked out once; None if no ladders lead along it."""
    memo = problem.task.memo
    if "spread" not in memo:
        memo["spread"] = _spread_grid(problem)
    found: SpreadGrid | None = memo["spread"]
    return found


def _spread_grid(problem: Problem) -> SpreadGrid | None:
    topology, demand = problem.topology, problem.demand
    if topology.buffers or topology.switches == 0 or demand.root is None:
        return None
    whole = grid_of(topology, demand.group)
    if len(whole.sizes) == 1 and not topology.dimensions:
        whole = levels_of(topology, demand.group) or whole
    sizes, levels = list[int](), []
    for size in whole.sizes:
        primes = _primes(size)
        levels.append(tuple(range(len(sizes), len(sizes) + len(primes))))
        sizes += primes
    root = whole.place_of(np.array([demand.root]))
    npus = whole.npus[moved(sizes, np.arange(len(whole.npus)), root)]
    grid = Grid(tuple(sizes), npus)
    climbs = tuple(Climb(topology, grid.sizes, ladder) for ladder in ladders_of(topology, grid))
    found = SpreadGrid(grid, tuple(levels), climbs)
    if any(is_uneven(climb) for climb in climbs):
        return None
    return found if all(found.ladder(level) is not None for level in levels) else None


def _primes(number: int) -> list[int]:
    found, prime = list[int](), 2
    while number > 1:
        while number % prime == 0:
            found.append(prime)
            number //= prime
        prime = prime + 1 if prime * prime <= number else number
    return found


def best_spread(problem: Problem, scene: SpreadGrid) -> Algorithm | None:
    """The best plan; None if the buffer is not to be cut as any needs it."""
    search = _Search(problem, scene)
    ways = list(search.ways())
    ranked = sorted(
        (search.estimate(way, pieces), number, pieces)
        for number, way in enumerate(ways)
        for pieces in _PIECES
        if search.may_cut(search.shares(way), pieces)
    )
    tried = [(ways[number], pieces) for _, number, pieces in ranked[:_FINALISTS]]
    if not tried:
        return None
    found = [(timed.time(pieces), way, pieces, timed) for way, pieces in tried
             for timed in [search.timed(way, pieces)]]
    _, way, pieces, timed = min(found, key=lambda one: one[0])
    return search.made(way, pieces, timed)


@dataclass(frozen=True)
class Way:
    """Lines in order, the root's box first.

    `beside`: what leaves the box by the root's own ways out goes along the box last; there is as
    much of it as of what leaves by another NPU's.
    """

    lines: Lines
    beside: bool = False


@dataclass
class _Search:
    problem: Problem
    scene: SpreadGrid

    def __post_init__(self) -> None:
        self.units = -(-self.problem.demand.size // self.problem.demand.alignment)
        self.free = any(self.problem.free)
        self.hops = Hops(self.scene.climbs, self.problem.cost.core, {})
        self.sizes_of = dict[int, tuple[int, int]]()

    def ways(self) -> Iterator[Way]:
        """All that are looked at."""
        for lines in product(*(list(self._along(level)) for level in self.scene.levels)):
            way = sum(lines, ())
            yield Way(way)
            act, (dimensions, ladder) = way[0]
            others = {line[1] for _, line in way[1:]}
            if act == "scatter" and dimensions == self.scene.levels[0] and others - {ladder}:
                yield Way(way, beside=True)

    def _along(self, level: tuple[int, ...]) -> Iterator[Lines]:
        """Ways along one level: scattered along the first factors, copied along the others."""
        for end in range(len(level) + 1):
            head, tail = level[:end], level[end:]
            first = (self._line("scatter", head),) if head else ()
            for split in _splits(tail):
                yield (*first, *(self._line("copy", part) for part in split))

    def _line(self, act: str, dimensions: tuple[int, ...]) -> tuple[str, Line]:
        ladder = self.scene.ladder(dimensions)
        assert ladder is not None
        if (dimensions, ladder) not in self.hops.tops:
            away = self.scene.grid.lines(dimensions)[1:]
            self.hops.tops[dimensions, ladder] = self.scene.climbs[ladder].top(away)
        return act, (dimensions, ladder)

    def shares(self, way: Way) -> int:
        """How many shares all parts have."""
        counts = [self.scene.line(line[0]) - 1 for act, line in way.lines if act == "scatter"]
        return math.prod(counts) * (counts[0] + 1 if way.beside else 1)

    def may_cut(self, shares: int, pieces: int) -> bool:
        """Whether all chunks have bytes, and there are not too many; or as many as there must."""
        chunks = shares * pieces
        if not self.free:
            return chunks == self.problem.demand.chunks_per_share
        return chunks <= min(self.units, _MOST_CHUNKS)

    def estimate(self, way: Way, pieces: int) -> float:
        """About what a way takes, if steps wait for each other."""
        unit = self.problem.demand.alignment
        largest = -(-self.units // (self.shares(way) * pieces)) * unit
        busy, span, moves = dict[int, int](), 0, 0
        shares = self.shares(way)
        scattered = 1
        for act, (dimensions, ladder) in way.lines:
            length = self.scene.line(dimensions) - 1
            top = int(self.hops.tops[dimensions, ladder].max())
            hop = self.hops.hop(ladder, top, (largest, largest))
            scattered *= length if act == "scatter" else 1
            slots = length * self._together(way, dimensions) * self._repeats(way, dimensions)
            times = 2 if act == "scatter" else 1
            moves += slots * times
            busy[ladder] = busy.get(ladder, 0) + slots * hop.gap * (times if pieces == 1 else 1)
            span += times * hop.late
        if moves > _MOST_MOVES:
            return math.inf
        period = max(busy.values())
        if pieces == 1:
            return float(span + sum(busy.values())) * (1 + way.beside)
        return span + period * (pieces + len(way.lines) / 2)

    def _repeats(self, way: Way, dimensions: tuple[int, ...]) -> int:
        """How many parts do so, but for those who do so at the same time."""
        first = way.lines[0][1][0]
        return self.scene.line(first) - (dimensions != first) if way.beside else 1

    def _together(self, way: Way, dimensions: tuple[int, ...]) -> int:
        """How many shares move along a line one after the other."""
        found, before = 1, True
        for act, line in way.lines:
            if line[0] == dimensions:
                before = False
            elif act == "scatter" and not before:
                found *= self.scene.line(line[0]) - 1
        return found

    def parts(self, way: Way) -> tuple[SpreadPart, ...]:
        """Steps: what was scattered is gathered in the end, last first."""
        there = [SpreadStep(act, *line) for act, line in way.lines]
        main = (*there, *_gathers(there))
        if not way.beside:
            return (main,)
        box, *rest = there
        last = (*rest, *_gathers(rest), box, box._replace(act="gather"))
        return (*[main] * (self.scene.line(box.dimensions) - 1), last)

    def timed(self, way: Way, pieces: int) -> Timed:
        """When its moves start."""
        self.problem.progress.check()
        chunks = self.shares(way) * pieces
        if chunks not in self.sizes_of:
            demand = self.problem.demand
            each = np.diff(cut(demand.size, chunks, demand.alignment))
            self.sizes_of[chunks] = int(each.min()), int(each.max())
        waves = Waves(self._rows(way, pieces, 0, np.zeros(0, np.int64)), self.hops,
                      self.sizes_of[chunks])
        return waves.one_by_one() if pieces == 1 else waves.in_period()

    def _rows(self, way: Way, pieces: int, period: int, start: np.ndarray) -> SpreadRows:
        grid = self.scene.grid
        ladders = tuple(climb.ladder for climb in self.scene.climbs)
        sums = self.problem.demand.kind == "reduce"
        return SpreadRows(
            grid.sizes, grid.npus, ladders, self.parts(way), pieces, period, start, sums
        )

    def made(self, way: Way, pieces: int, timed: Timed) -> Algorithm:
        problem = self.problem
        demand = replace(problem.demand, chunks_per_share=self.shares(way) * pieces)
        rows = self._rows(way, pieces, timed.period, timed.start)
        timing = Timing(problem.topology, problem.cost)
        return Algorithm((demand,), rows, timing, {"method": NAME})


def _gathers(steps: Sequence[SpreadStep]) -> list[SpreadStep]:
    return [step._replace(act="gather") for step in reversed(steps) if step.act == "scatter"]


def _splits(dimensions: tuple[int, ...]) -> list[tuple[tuple[int, ...], ...]]:
    """Ways to copy along dimensions: at once, in two or three steps, one by one."""
    if not dimensions:
        return [()]
    found = list[tuple[tuple[int, ...], ...]]()
    for count in sorted({1, 2, 3, len(dimensions)}):
        if count <= len(dimensions):
            marks = [len(dimensions) * i // count for i in range(count + 1)]
            found.append(tuple(dimensions[a:b] for a, b in zip(marks, marks[1:], strict=False)))
    return found
