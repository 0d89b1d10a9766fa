"""What a Broadcast or a Reduce along levels expands to: rows of a table, for all NPUs or some."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm.level_table import ListedMoves, Ways, check_tops, checked_wait, takes
from weft.topology.grid import moved
from weft.topology.ladders import Climb

if TYPE_CHECKING:
    from weft.algorithm.model import Algorithm
    from weft.algorithm.spread import SpreadRows, SpreadStage, SpreadStep

Numbers = NDArray[np.int64]


class _Made(NamedTuple):
    """What moves carry, from where and how far, and when."""

    chunk: Numbers
    at: Numbers
    by: Numbers
    start: Numbers
    end: Numbers


@dataclass(frozen=True, eq=False)
class SpreadTable:
    """Such rows with what they mean nothing without."""

    algorithm: Algorithm
    spread: SpreadRows

    @cached_property
    def ways(self) -> Ways:
        topology, spread = self.algorithm.require_timing().topology, self.spread
        climbs = [Climb(topology, spread.sizes, ladder) for ladder in spread.ladders]
        steps = [(step.dimensions, step.ladder) for part in spread.parts for step in part]
        return Ways(spread.sizes, climbs, steps)

    @cached_property
    def _bytes(self) -> Numbers:
        """Of all chunks."""
        return self.algorithm.demands[0].piece_bytes

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """Bytes of the smallest and the largest chunk."""
        return int(self._bytes.min()), int(self._bytes.max())

    @cached_property
    def unlike(self) -> Numbers:
        """Pieces with chunks of other sizes than the next one's, and the last: one ends last."""
        sizes = self._bytes.reshape(-1, self.spread.pieces)
        return np.flatnonzero(np.append((sizes[:, 1:] != sizes[:, :-1]).any(axis=0), True))

    def _step(self, stage: SpreadStage) -> SpreadStep:
        return self.spread.parts[stage.part][stage.step]

    def by(self, stage: SpreadStage, which: Numbers) -> Numbers:
        """Where moves of a Broadcast lead from place 0."""
        distance = which // stage.shape[1] + 1
        return self.ways.away(self._step(stage).dimensions, distance)

    def senders(self, stage: SpreadStage) -> Numbers:
        """The places from which a Broadcast's moves go."""
        places = np.arange(len(self.spread.npus))
        return places[self._sends(stage, places)]

    def _sends(self, stage: SpreadStage, at: Numbers) -> NDArray[np.bool_]:
        sends: NDArray[np.bool_] = self._index(stage.zero, at) == 0
        for line in stage.apart:
            sends &= self._index(line, at) > 0
        return sends

    def _index(self, dimensions: tuple[int, ...], at: Numbers) -> Numbers:
        """Where places are along a line, the first dimension varying fastest."""
        sizes, total, stride = self.spread.sizes, np.zeros_like(at), 1
        for dimension in dimensions:
            total += at // math.prod(sizes[:dimension]) % sizes[dimension] * stride
            stride *= sizes[dimension]
        return total

    def latest(self, stage: SpreadStage) -> Numbers:
        """When each move of the first piece ends at the latest."""
        spread, climb = self.spread, self._climb(stage)
        tops = climb.top(self._displacement(self.by(stage, np.arange(stage.count))))
        check_tops(tops)
        end = spread.start[stage.first :][: stage.count].copy()
        for top in np.unique(tops).tolist():
            waits = self._wait(stage, top) * climb.last_turn[top]
            longest = int(takes(climb, self._cost, top, np.array(self._sizes[1:]))[0])
            end[tops == top] += waits + longest
        return end

    def rows(self, stage: SpreadStage, which: Numbers, at: Numbers, pieces: Numbers) -> ListedMoves:
        """Rows of moves, each from one place, for these pieces; without those that nobody makes."""
        made = self._made(stage, which, at, pieces)
        step, npus = self._step(stage), self.spread.npus
        route = self.ways.route(step.dimensions, step.ladder, made.by, made.at)
        ends = npus[made.at], npus[moved(self.spread.sizes, made.at, made.by)]
        adds, times = self.spread.sums, (made.start, made.end)
        return ListedMoves(made.chunk, *ends, adds, route, *times, made.chunk, made.chunk)

    def end(self, stage: SpreadStage, which: Numbers, at: Numbers, piece: int) -> int:
        """When the last of such rows ends."""
        made = self._made(stage, which, at, np.array([piece]))
        return int(made.end.max(initial=0))

    def _made(self, stage: SpreadStage, which: Numbers, at: Numbers, pieces: Numbers) -> _Made:
        spread, by = self.spread, self.by(stage, which)
        sends = self._sends(stage, at)
        if stage.known:
            sends &= self._index(stage.known, moved(spread.sizes, at, by)) > 0
        which, at, by = which[sends], at[sends], by[sends]
        share = self._first_share(stage.part) + self._share(stage, which, at)
        chunk = (share[:, None] * spread.pieces + pieces).reshape(-1)
        start = (spread.start[stage.first + which][:, None] + pieces * spread.period).reshape(-1)
        if spread.sums:
            at, by = moved(spread.sizes, at, by), self._displacement(by)
        at, by = np.repeat(at, len(pieces)), np.repeat(by, len(pieces))
        start, end = self._times(stage, start, by, at, self._bytes[chunk])
        return _Made(chunk, at, by, start, end)

    def _displacement(self, by: Numbers) -> Numbers:
        """Where messages lead from place 0: those of a Reduce the other way round."""
        return moved(self.spread.sizes, np.zeros_like(by), by, sign=-1) if self.spread.sums else by

    def _times(
        self, stage: SpreadStage, start: Numbers, by: Numbers, at: Numbers, size: Numbers
    ) -> tuple[Numbers, Numbers]:
        climb, end = self._climb(stage), np.empty_like(start)
        tops = climb.top(by)
        check_tops(tops)
        for top in np.unique(tops).tolist():
            mine = tops == top
            start[mine] += climb.ladder.turn[top][at[mine]] * np.int64(self._wait(stage, top))
            end[mine] = start[mine] + takes(climb, self._cost, top, size[mine])
        return start, end

    def _climb(self, stage: SpreadStage) -> Climb:
        return self.ways.climbs[self._step(stage).ladder]

    @property
    def _cost(self) -> _core.CostModel:
        return self.algorithm.require_timing().cost.core

    def _wait(self, stage: SpreadStage, top: int) -> int:
        """How long each turn on shared links takes."""
        spread, mine = self.spread, self.spread.start[stage.first :][: stage.count]
        last = int(mine.max()) + (spread.pieces - 1) * spread.period
        return checked_wait(self._climb(stage), self._cost, self._sizes, top, last)

    def _first_share(self, part: int) -> int:
        spread = self.spread
        return sum(math.prod(spread.shares(one)) for one in spread.parts[:part])

    def _share(self, stage: SpreadStage, which: Numbers, at: Numbers) -> Numbers:
        """Numbers of the shares that moves carry from places, in their part."""
        spread, part = self.spread, self.spread.parts[stage.part]
        distance, rest = np.divmod(which, stage.shape[1])
        counts = [spread.line(part[one]) - 1 for one in stage.free]
        sent = dict(zip(stage.free, np.unravel_index(rest, counts), strict=True)) if counts else {}
        total = np.zeros_like(which)
        for number, step in enumerate(part):
            if step.act != "scatter":
                continue
            if number == stage.step:
                along = distance
            else:
                along = sent[number] if number in sent else self._index(step.dimensions, at) - 1
            total = total * (spread.line(step) - 1) + along
        return total
