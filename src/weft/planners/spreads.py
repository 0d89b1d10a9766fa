"""The search for the best way to spread a buffer from a root along the levels of a grid.

Along each level it is scattered, or copied whole, or scattered along a factor of it and copied
along the others. What a way takes is estimated for all; only the best get exact times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations, product
from typing import NamedTuple

import numpy as np

from weft.algorithm import Algorithm, SpreadPart, SpreadRows, SpreadStep, Timing
from weft.algorithm.spread import MOST_AT_ONCE, MOST_CHUNKS, MOST_STEPS
from weft.collective.chunks import cut
from weft.planners.problem import Problem
from weft.planners.terraces import is_uneven, slowness
from weft.planners.waves import Hops, Timed, Waves
from weft.topology.grid import Grid, grid_of, moved
from weft.topology.ladders import Climb, ladders_of
from weft.topology.levels import levels_of

NAME = "spread"
_UNITS = sorted({math.ceil(1.3**i) for i in range(90)})  # in a chunk
_MOST_PIECES = 2048
_MOST_MOVES = 1 << 18  # of one piece
_FINALISTS = 24
_PROBES = 1, 1 << 16  # bytes of chunks by which links are told apart
_HARDLY = 1.005
_TIMES, _MIXING = range(1, 8), 0.95  # parts in each of two orders, if that takes so little

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
    search = SpreadSearch(problem, scene)
    ways = list(search.ways())
    ranked = sorted(
        (estimate, number, pieces)
        for number, way in enumerate(ways)
        for estimate, pieces in search.estimates(way)
    )
    tried = [(ways[number], pieces) for _, number, pieces in ranked[:_FINALISTS]]
    if not tried:
        return None
    way, pieces = min(tried, key=lambda one: search.timed(*one).time(one[1]))
    return search.made(way, search.coarsest(way, pieces))


@dataclass(frozen=True)
class Way:
    """Lines in order, the root's box first.

    `beside`: what leaves the box by the root's own ways out goes along the box last; there is as
    much of it as of what leaves by another NPU's. `turned`: how many parts go along the lines of
    the first ladder last, beside `times` that go along them first.
    """

    lines: Lines
    beside: bool = False
    times: int = 1
    turned: int = 0

    @property
    def runs(self) -> list[tuple[Lines, int]]:
        """Lines in the order of some parts, and of how many."""
        first = self.lines[0][1][1]
        back = sorted(self.lines, key=lambda one: one[1][1] == first)
        return [(self.lines, self.times)] + [(tuple(back), self.turned)] * (self.turned > 0)


class _Pace(NamedTuple):
    """Of hops along a line, in picoseconds.

    Attributes
    ----------
    byte
        What a byte takes on the busiest links.
    late
        What the hop takes without any.
    down
        When what climbs to one tier or another comes down to its NPU.
    """

    byte: float
    late: int
    down: frozenset[int]


@dataclass
class SpreadSearch:
    """All ways, what they take, and what they are as rows."""

    problem: Problem
    scene: SpreadGrid

    def __post_init__(self) -> None:
        self.units = -(-self.problem.demand.size // self.problem.demand.alignment)
        self.free = any(self.problem.free)
        self.hops = Hops(self.scene.climbs, self.problem.cost.core, {})
        self.sizes_of = dict[int, tuple[int, int]]()
        self.seen = dict[tuple[Way, int], Timed]()
        self.cuts = dict[int, list[int]]()
        self.paces = dict[Line, _Pace]()

    def ways(self) -> Iterator[Way]:
        """All that are looked at: levels outwards in all ways, joined or inwards in a few."""
        levels, seen = self.scene.levels, dict[Way, None]()
        for first in range(1, len(levels) + 1):
            joined = (sum(levels[:first], ()), *levels[first:])
            if self.scene.ladder(joined[0]) is None:
                break
            for lines in product(*map(self._along, joined)):
                self._add(sum(lines, ()), seen)
        for marks in product((False, True), repeat=len(levels) - 1):
            groups = [levels[0]]
            for level, mark in zip(levels[1:], marks, strict=True):
                groups = [*groups, level] if mark else [*groups[:-1], groups[-1] + level]
            if any(self.scene.ladder(group) is None for group in groups):
                continue
            for order in permutations(groups):
                for lines in product(*map(self._simply, order)):
                    self._add(sum(lines, ()), seen)
        yield from seen

    def _add(self, lines: Lines, seen: dict[Way, None]) -> None:
        seen[Way(lines)] = None
        act, (dimensions, ladder) = lines[0]
        others = {line[1] for _, line in lines[1:]}
        if act == "scatter" and dimensions == self.scene.levels[0] and others - {ladder}:
            seen[Way(lines, beside=True)] = None
            if (mixed := self._mixed(lines)) is not None:
                seen[mixed] = None

    def _mixed(self, lines: Lines) -> Way | None:
        """Parts in both orders of two ladders, where that loads both better than in one order."""
        best, way = _MIXING * self._load(Way(lines)), None
        for times, turned in product(_TIMES, repeat=2):
            mixed = Way(lines, times=times, turned=turned)
            if (load := self._load(mixed) / (times + turned)) < best:
                best, way = load / _MIXING, mixed
        return way

    def _load(self, way: Way) -> float:
        """What a byte of every chunk takes on the busiest links."""
        busy = dict[int, float]()
        for lines, count in way.runs:
            for _, line in lines:
                slots = (self.scene.line(line[0]) - 1) * self._together(lines, line[0]) * count
                busy[line[1]] = busy.get(line[1], 0.0) + slots * self._pace(line).byte
        return max(busy.values())

    def _along(self, level: tuple[int, ...]) -> list[Lines]:
        """Ways along one level: scattered along the first factors, copied along the others."""
        return [
            (*((self._line("scatter", level[:end]),) if end else ()), *copies)
            for end in range(len(level) + 1)
            for copies in self._copies(level[end:])
        ]

    def _simply(self, level: tuple[int, ...]) -> list[Lines]:
        return [(self._line("scatter", level),), *self._copies(level)]

    def _copies(self, dimensions: tuple[int, ...]) -> list[Lines]:
        """Ways to copy along dimensions: at once, in two or three steps, one by one."""
        size = len(dimensions)
        if size == 0:
            return [()]
        found = list[Lines]()
        for count in sorted({1, min(2, size), min(3, size), size}):
            marks = [size * i // count for i in range(count + 1)]
            parts = [dimensions[a:b] for a, b in pairwise(marks)]
            found.append(tuple(self._line("copy", part) for part in parts))
        return found

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
        return math.prod(counts) * (counts[0] + 1 if way.beside else way.times + way.turned)

    def pieces(self, shares: int) -> list[int]:
        """Numbers of pieces that leave few chunks smaller than others; or what there must be."""
        if not self.free:
            pieces, rest = divmod(self.problem.demand.chunks_per_share, shares)
            return [pieces] if rest == 0 and pieces else []
        if shares not in self.cuts:
            counts = {-(-self.units // (shares * units)) for units in _UNITS}
            most = min(self.units, MOST_CHUNKS) // shares
            self.cuts[shares] = sorted(
                count for count in counts if count <= min(most, _MOST_PIECES)
            )
        return self.cuts[shares]

    def estimates(self, way: Way) -> Iterator[tuple[float, int]]:
        """About what a way takes in numbers of pieces that may be, if steps wait for each other."""
        shares, moves, latency, steps = self.shares(way), 0, 0.0, 0
        busy, twice = dict[int, float](), 0.0  # ps a byte in a period; if no moves share their time
        shifts: dict[int, set[int]] = {}
        for lines, count, (act, line) in [(*run, one) for run in way.runs for one in run[0]]:
            length, times = self.scene.line(line[0]) - 1, 1 + (act == "scatter")
            repeats = self._repeats(way, line[0]) * count
            slots = length * self._together(lines, line[0]) * repeats
            pace = self._pace(line)
            busy[line[1]] = busy.get(line[1], 0.0) + slots * pace.byte
            shifts.setdefault(line[1], set()).update(pace.down)
            moves += slots * times
            twice += slots * pace.byte * times
            if lines is way.lines:  # parts run side by side
                steps, latency = steps + times, latency + times * pace.late
        if moves > _MOST_MOVES or sum(map(len, self.parts(way))) > MOST_STEPS:
            return
        for pieces in self.pieces(shares):
            chunk = -(-self.units // (shares * pieces)) * self.problem.demand.alignment
            period = max(_period(busy[one] * chunk, shifts[one]) for one in busy)
            sending = chunk * twice if pieces == 1 else period * (pieces - 1 + steps)
            yield latency + sending, pieces

    def _pace(self, line: Line) -> _Pace:
        if line not in self.paces:
            tops = np.unique(self.hops.tops[line]).tolist()
            small, large = (self.hops.hop(line[1], tops[-1], (size, size)) for size in _PROBES)
            byte = (large.gap - small.gap) / (_PROBES[1] - _PROBES[0])
            ends = (self.hops.hop(line[1], top, _PROBES[:1] * 2).begin[-1] for top in tops)
            self.paces[line] = _Pace(byte, small.late, frozenset(ends))
        return self.paces[line]

    def _repeats(self, way: Way, dimensions: tuple[int, ...]) -> int:
        """How many parts do so, but for those who do so at the same time."""
        first = way.lines[0][1][0]
        return self.scene.line(first) - (dimensions != first) if way.beside else 1

    def _together(self, lines: Lines, dimensions: tuple[int, ...]) -> int:
        """How many shares move along a line one after the other."""
        found, before = 1, True
        for act, line in lines:
            if line[0] == dimensions:
                before = False
            elif act == "scatter" and not before:
                found *= self.scene.line(line[0]) - 1
        return found

    def parts(self, way: Way) -> tuple[SpreadPart, ...]:
        """Steps: what was scattered is gathered in the end, last first."""
        found = list[SpreadPart]()
        for lines, count in way.runs:
            there = [SpreadStep(act, *line) for act, line in lines]
            found += [(*there, *_gathers(there))] * count
        if not way.beside:
            return tuple(found)
        (main,) = found
        box, *rest = there
        last = (*rest, *_gathers(rest), box, box._replace(act="gather"))
        return (*[main] * (self.scene.line(box.dimensions) - 1), last)

    def coarsest(self, way: Way, pieces: int) -> int:
        """Fewer pieces, if that takes hardly longer."""
        most = self.timed(way, pieces).time(pieces) * _HARDLY
        for fewer in reversed([one for one in self.pieces(self.shares(way)) if one < pieces]):
            if self.timed(way, fewer).time(fewer) > most:
                break
            pieces = fewer
        return pieces

    def timed(self, way: Way, pieces: int) -> Timed:
        """When its moves start."""
        if (way, pieces) not in self.seen:
            self.problem.progress.check()
            chunks, demand = self.shares(way) * pieces, self.problem.demand
            if chunks not in self.sizes_of:
                each = np.diff(cut(demand.size, chunks, demand.alignment))
                self.sizes_of[chunks] = int(each.min()), int(each.max())
            rows = self._rows(way, pieces, 0, np.zeros(0, dtype=np.int64))
            waves = Waves(rows, self.hops, self.sizes_of[chunks])
            timed = waves.one_by_one() if pieces == 1 else waves.in_period()
            if timed.at_once(pieces) > MOST_AT_ONCE:
                timed = waves.one_by_one()
            self.seen[way, pieces] = timed
        return self.seen[way, pieces]

    def _rows(self, way: Way, pieces: int, period: int, start: np.ndarray) -> SpreadRows:
        grid = self.scene.grid
        ladders = tuple(climb.ladder for climb in self.scene.climbs)
        sums = self.problem.demand.kind == "reduce"
        return SpreadRows(
            grid.sizes, grid.npus, ladders, self.parts(way), pieces, period, start, sums
        )

    def made(self, way: Way, pieces: int) -> Algorithm:
        problem, timed = self.problem, self.timed(way, pieces)
        demand = replace(problem.demand, chunks_per_share=self.shares(way) * pieces)
        rows = self._rows(way, pieces, timed.period, timed.start)
        timing = Timing(problem.topology, problem.cost)
        return Algorithm((demand,), rows, timing, {"method": NAME})


def _gathers(steps: Sequence[SpreadStep]) -> list[SpreadStep]:
    return [step._replace(act="gather") for step in reversed(steps) if step.act == "scatter"]


def _period(load: float, down: set[int]) -> float:
    """About the shortest period for so much on each link, if hops come down at these times."""
    shifts = (max(down) - one for one in down)
    return max(max(load, (shift + load) / (shift // load + 1)) for shift in shifts)
