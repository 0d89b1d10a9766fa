"""When the moves of a Broadcast or a Reduce along levels start: piece after piece, in a period.

In a period each step has its own time for every move. Moves of several steps that go equally far
share theirs if nobody makes both: where the root scatters the shares of one piece, the others tell
each other those of pieces before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


@dataclass(frozen=True)
class Timed:
    """When moves start, after which time the next piece does, and when the first piece is there."""

    start: Numbers
    period: int
    span: int

    def time(self, pieces: int) -> int:
        """When all pieces are there."""
        return self.span + (pieces - 1) * self.period


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
        free: dict[Link, int] = {}
        first: dict[Link, int] = {}
        for line in self._lines():
            width = max(column + stage.shape[1] for stage, column in line)
            tops = np.repeat(self._tops(line[0][0]), width)
            slots = self._placed(line[0][0], tops, free, first).reshape(-1, width)
            for stage, column in line:
                mine = slots[:, column : column + stage.shape[1]]
                moment[stage.first :][: stage.count] = mine.reshape(-1)
        period = max(free[link] - first[link] for link in free)
        start = self._zeros.copy()

        def next_time(stage: SpreadStage, ready: Numbers) -> Numbers:
            mine = moment[stage.first :][: stage.count]
            return mine + np.maximum(-((mine - ready) // period), 0) * period

        for part in range(len(self.rows.parts)):
            self._run(part, next_time, start)
        return Timed(start, period, self._span(start))

    def one_by_one(self) -> Timed:
        """All moves of one piece as soon as links are free, step by step."""
        start, free = self._zeros.copy(), dict[Link, int]()

        def soonest(stage: SpreadStage, ready: Numbers) -> Numbers:
            tops = np.repeat(self._tops(stage), stage.shape[1])
            return self._placed(stage, tops, free, {}, ready)

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

    def _placed(
        self,
        stage: SpreadStage,
        tops: Numbers,
        free: dict[Link, int],
        first: dict[Link, int],
        ready: Numbers | None = None,
    ) -> Numbers:
        """Times of moves one after the other, once their links are free and they are ready."""
        found = np.empty(len(tops), dtype=np.int64)
        order = np.arange(len(tops)) if ready is None else np.argsort(ready, kind="stable")
        for top in np.unique(tops).tolist():
            hop, mine = self._hop(stage, top), order[tops[order] == top]
            ways = list(zip(hop.links, hop.begin, strict=True))
            at = max(0, *(free.get(link, 0) - begin for link, begin in ways))
            after = np.arange(len(mine)) * hop.gap
            if ready is not None:
                at = max(at, int((ready[mine] - after).max()))
            found[mine] = at + after
            for link, begin in ways:
                first.setdefault(link, at + begin)
                free[link] = at + begin + len(mine) * hop.gap
        return found

    def _late(self, stage: SpreadStage) -> Numbers:
        late = np.zeros(stage.shape[0], dtype=np.int64)
        tops = self._tops(stage)
        for top in np.unique(tops).tolist():
            late[tops == top] = self._hop(stage, top).late
        return late

    def _span(self, start: Numbers) -> int:
        return max(
            int((start[stage.first :][: stage.count].reshape(stage.shape).max(axis=1)
            + self._late(stage)).max())
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
            own = tuple(
                i for i, one in enumerate(scatters) if one not in stage.free and i != here
            )
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
