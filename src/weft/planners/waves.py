"""When the moves of a Broadcast or a Reduce along levels start: piece after piece, in a period.

In a period each step has its own time for every move. Moves of several steps that go equally far
share theirs if nobody makes both: where the root scatters the shares of one piece, the others tell
each other those of pieces before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm.level_table import hop_times, turn_time
from weft.algorithm.spread import SpreadRows, SpreadStage
from weft.topology.ladders import Climb

Numbers = NDArray[np.int64]
Link = tuple[int, int, bool]
"""Links of one kind: ladder, tier, whether they lead down."""

_MOST_TURNS = 256  # how often a period may be repeated before a hop comes down


@dataclass(frozen=True)
class Timed:
    """When moves start, after which time the next piece does, and when the first piece is there."""

    start: Numbers
    period: int
    span: int

    def time(self, pieces: int) -> int:
        """When all pieces are there."""
        return self.span + (pieces - 1) * self.period

    def at_once(self, pieces: int) -> int:
        """How many moves there are in pieces of which one may begin before the first is there."""
        return min(pieces, self.span // self.period + 2) * len(self.start)


@dataclass(frozen=True)
class _Hop:
    """Hops over a ladder up to a tier: when each link is free again, and when all have arrived."""

    links: list[Link]
    begin: list[int]
    hold: int
    spread: int
    late: int

    @property
    def gap(self) -> int:
        """When the next hop may follow."""
        return max(self.hold + self.spread, 1)


@dataclass
class Hops:
    """What hops take over ladders; `tops`: the tiers up to which the distances of a line lead."""

    climbs: Sequence[Climb]
    cost: _core.CostModel
    tops: dict[tuple[tuple[int, ...], int], Numbers]
    known: dict[tuple[int, int, tuple[int, int]], _Hop] = field(default_factory=dict)

    def hop(self, ladder: int, top: int, sizes: tuple[int, int]) -> _Hop:
        """A hop with chunks of these sizes, from - to."""
        key = ladder, top, sizes
        if key not in self.known:
            climb = self.climbs[ladder]
            begin = hop_times(climb, self.cost, sizes[0], top)[1]
            takes, _, end = hop_times(climb, self.cost, sizes[1], top)
            spread = turn_time(climb, self.cost, sizes, top) * climb.last_turn[top]
            tiers = [*range(top + 1), *range(top, -1, -1)]
            links = [(ladder, tier, place > top) for place, tier in enumerate(tiers)]
            hold = int((end - begin).max())
            late = max(takes, int(end.max())) + spread
            self.known[key] = _Hop(links, begin.tolist(), hold, spread, late)
        return self.known[key]


@dataclass
class Waves:
    """The moves of all parts, with chunks of these sizes, from - to."""

    rows: SpreadRows
    hops: Hops
    sizes: tuple[int, int]

    @property
    def stages(self) -> list[SpreadStage]:
        """In the order in which they run."""
        return self.rows.stages[::-1] if self.rows.sums else self.rows.stages

    def in_period(self) -> Timed:
        """All moves in a period as short as can be."""
        moment = np.zeros(len(self._zeros), dtype=np.int64)
        lines, blocks = self._lines(), list[tuple[int, int, Numbers, _Hop]]()
        slots = [np.zeros((0, 0), dtype=np.int64)] * len(lines)
        for number, line in enumerate(lines):
            width = max(column + stage.shape[1] for stage, column in line)
            tops = self._tops(line[0][0])
            slots[number] = np.zeros((len(tops), width), dtype=np.int64)
            for top in np.unique(tops).tolist():
                rows = np.flatnonzero(tops == top)
                blocks.append((top, number, rows, self._hop(line[0][0], top)))
        held: dict[Link, list[tuple[int, int]]] = {}
        for number, rows, columns, hop in self._in_turn(blocks, slots):
            count = len(rows) * len(columns)
            at = _place(hop, count, held)
            # Column by column: parts one after the other, so that each is soon done.
            times = at + np.arange(count).reshape(len(columns), len(rows)).T * hop.gap
            slots[number][np.ix_(rows, columns)] = times
        for line, times in zip(lines, slots, strict=True):
            for stage, column in line:
                mine = times[:, column : column + stage.shape[1]]
                moment[stage.first :][: stage.count] = mine.reshape(-1)
        period = _shortest(held, [hop for *_, hop in blocks])
        start = self._zeros.copy()

        def next_time(stage: SpreadStage, ready: Numbers) -> Numbers:
            mine = moment[stage.first :][: stage.count]
            found: Numbers = mine + np.maximum(-((mine - ready) // period), 0) * period
            return found

        for part in range(len(self.rows.parts)):
            self._run(part, next_time, start)
        return Timed(start, period, self._span(start))

    def _in_turn(
        self, blocks: list[tuple[int, int, Numbers, _Hop]], slots: list[Numbers]
    ) -> Iterator[tuple[int, Numbers, Numbers, _Hop]]:
        """Moves of a line with their columns, in the order in which they have their times.

        What climbs higher comes down later, so those that follow find all links free. If all climb
        as high, the parts take turns, each a turn after the line before: what they send is there.
        """
        ladders = {(hop.links[0][0], top) for top, _, _, hop in blocks}
        single = len(ladders) == len({ladder for ladder, _ in ladders})
        turns = len(self.rows.parts) if single else 1
        for turn in range(turns):
            for _, number, rows, hop in sorted(blocks, key=lambda block: block[:2]):
                mine, width = (turn - number) % turns, slots[number].shape[1]
                columns = np.arange(width * mine // turns, width * (mine + 1) // turns)
                if len(columns):
                    yield number, rows, columns, hop

    def one_by_one(self) -> Timed:
        """All moves of one piece as soon as links are free, step by step."""
        start, held = self._zeros.copy(), dict[Link, list[tuple[int, int]]]()

        def soonest(stage: SpreadStage, ready: Numbers) -> Numbers:
            tops, found = np.repeat(self._tops(stage), stage.shape[1]), np.empty_like(ready)
            order = np.argsort(ready, kind="stable")
            for top in np.unique(tops).tolist():
                hop, mine = self._hop(stage, top), order[tops[order] == top]
                after = np.arange(len(mine)) * hop.gap
                found[mine] = _place(hop, len(mine), held, int((ready[mine] - after).max())) + after
            return found

        for part in range(len(self.rows.parts)):
            self._run(part, soonest, start)
        span = self._span(start)
        return Timed(start, span, span)

    @cached_property
    def _zeros(self) -> Numbers:
        return np.zeros(sum(stage.count for stage in self.rows.stages), dtype=np.int64)

    def _tops(self, stage: SpreadStage) -> Numbers:
        step = self.rows.parts[stage.part][stage.step]
        return self.hops.tops[step.dimensions, step.ladder]

    def _hop(self, stage: SpreadStage, top: int) -> _Hop:
        return self.hops.hop(self.rows.parts[stage.part][stage.step].ladder, top, self.sizes)

    def _lines(self) -> list[list[tuple[SpreadStage, int]]]:
        """Stages that go along the same line, in the order in which they run.

        Each has its column among the moves of a distance; in one column nobody sends twice.
        """
        found: dict[tuple[tuple[int, ...], int], list[tuple[SpreadStage, int]]] = {}
        for stage in self.stages:
            step = self.rows.parts[stage.part][stage.step]
            line = found.setdefault((step.dimensions, step.ladder), [])
            taken = sorted(
                (column, column + other.shape[1])
                for other, column in line
                if not _are_apart(stage, other)
            )
            column = 0
            for begin, end in taken:
                if begin >= column + stage.shape[1]:
                    break
                column = max(column, end)
            line.append((stage, column))
        return list(found.values())

    def _late(self, stage: SpreadStage) -> Numbers:
        late = np.zeros(stage.shape[0], dtype=np.int64)
        tops = self._tops(stage)
        for top in np.unique(tops).tolist():
            late[tops == top] = self._hop(stage, top).late
        return late

    def _span(self, start: Numbers) -> int:
        return max(
            int(
                (
                    start[stage.first :][: stage.count].reshape(stage.shape).max(axis=1)
                    + self._late(stage)
                ).max()
            )
            for stage in self.rows.stages
        )

    def _run(
        self, number: int, placed: Callable[[SpreadStage, Numbers], Numbers], start: Numbers
    ) -> None:
        """Fill in `start` for a part's moves: `placed` gives those of a stage that are ready so."""
        part = self.rows.parts[number]
        scatters = [i for i, step in enumerate(part) if step.act == "scatter"]
        shares = [self.rows.line(part[i]) - 1 for i in scatters]
        there = np.zeros(shares, dtype=np.int64)
        for stage in self.stages:
            if stage.part != number:
                continue
            mine = slice(stage.first, stage.first + stage.count)
            here = scatters.index(stage.step) if stage.step in scatters else -1
            own = tuple(i for i, one in enumerate(scatters) if one not in stage.free and i != here)
            kept = [1 if i in own else n for i, n in enumerate(shares)]
            ready = there.max(axis=own, keepdims=True) if own else there
            each = stage.shape[0] if here < 0 else 1
            ready = np.tile((np.moveaxis(ready, here, 0) if here >= 0 else ready).reshape(-1), each)
            start[mine] = placed(stage, ready)
            arrived = start[mine].reshape(stage.shape) + self._late(stage)[:, None]
            if here >= 0:
                arrived = arrived.reshape(kept.pop(here), *kept)
                there = np.broadcast_to(np.moveaxis(arrived, 0, here), shares).copy()
            else:
                there = np.maximum(there, arrived.max(axis=0).reshape(kept))


def _are_apart(stage: SpreadStage, other: SpreadStage) -> bool:
    """Whether nobody sends in both."""
    pairs = ((stage, other), (other, stage))
    return any(set(line) <= set(two.zero) for one, two in pairs for line in one.apart)


def _place(hop: _Hop, count: int, held: dict[Link, list[tuple[int, int]]], ready: int = 0) -> int:
    """When so many hops, one after the other, can begin; their links are held from then on."""
    ways = list(zip(hop.links, hop.begin, strict=True))
    at = max(ready, *(held[link][-1][1] - begin for link, begin in ways if link in held), 0)
    for link, begin in ways:
        held.setdefault(link, []).append((at + begin, at + begin + count * hop.gap))
    return at


def _shortest(held: dict[Link, list[tuple[int, int]]], hops: Sequence[_Hop]) -> int:
    """The shortest period in which links are free again before they are held the next time.

    Links down are held later than links up, the later the higher a hop climbs. What is held after
    the end of a period may fall in any gap of those that follow.
    """
    load = max(sum(end - begin for begin, end in times) for times in held.values())
    whole = max(times[-1][1] - times[0][0] for times in held.values())
    begins: dict[Link, set[int]] = {}
    for hop in hops:
        for link, begin in zip(hop.links, hop.begin, strict=True):
            begins.setdefault(link, set()).add(begin)
    later = {b - a for some in begins.values() for a in some for b in some if b > a}
    tried = {load, whole}
    for shift in later:
        most = min(shift // load, _MOST_TURNS)
        tried |= {-(-(shift + load) // (count + 1)) for count in range(most + 1)}
    fitting = (period for period in sorted(tried) if load <= period < whole)
    return next((period for period in fitting if _fits(held, period)), whole)


def _fits(held: dict[Link, list[tuple[int, int]]], period: int) -> bool:
    """Whether no link is held twice at a time if all is repeated after a period."""
    for times in held.values():
        round_ = sorted((begin % period, end - begin) for begin, end in times)
        follow = [begin for begin, _ in round_[1:]] + [round_[0][0] + period]
        if any(at + long > after for (at, long), after in zip(round_, follow, strict=True)):
            return False
    return True
