"""Judges Broadcasts and Reduces along levels by the moves of one piece, and by the ladders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm, SpreadRows
from weft.algorithm.spread import MOST_AT_ONCE
from weft.judge.kinds import Progress, judges
from weft.judge.ladders import Rungs, wrong_ladder
from weft.judge.level_hops import PartHops
from weft.judge.level_links import Going, meeting
from weft.judge.spread_parts import Wave, waves, wrong_spread
from weft.judge.table import LISTED, judge_table
from weft.judge.verdict import Verdict
from weft.units import format_time

Numbers = NDArray[np.int64]


@judges(SpreadRows)
def judge_spread(algorithm: Algorithm, rows: SpreadRows, _progress: Progress = None) -> Verdict:
    """Judge the moves of one piece, and that those of pieces after each other never meet.

    That scatters and gathers pair, and that steps go along every dimension once, makes each chunk's
    ways a tree that spans all places; what is left is time. Each move must start when what it sends
    has arrived, by whatever way. And where two moves use links of one kind, one must be over before
    the other begins, unless they go equally far at the same time and nobody makes both. Both are
    proved in docs/verification.md.
    """
    if (wrong := wrong_spread(algorithm, rows)) is not None:
        return Verdict(False, wrong, "structure")
    timing, ladders = algorithm.require_timing(), list[Rungs]()
    for ladder in rows.ladders:
        found = wrong_ladder(timing.topology, rows.sizes, rows.npus, ladder)
        if isinstance(found, str):
            return Verdict(False, found, "structure")
        ladders.append(found)
    sizes = np.unique(algorithm.demands[0].piece_bytes)
    parts = [PartHops(rows.sizes, part, ladders, timing.cost, sizes) for part in rows.parts]
    for hops in parts:
        if (unreached := hops.unreached()) is not None:
            return Verdict(False, unreached, "route")
    if (leaving := _leaving(rows, parts)) is not None:
        return Verdict(False, leaving, "structure")
    verdict = _early(rows, parts)
    if verdict is None:  # a verdict of something wrong is false
        verdict = _meeting(algorithm, rows, ladders, parts)
    if verdict is not None:
        return verdict
    if len(rows) > LISTED:
        return Verdict(True)
    verdict = judge_table(algorithm)
    text = f"listed for all NPUs: {verdict.violation}"
    return verdict if verdict else Verdict(False, text, verdict.kind, verdict.row)


def _leaving(rows: SpreadRows, parts: list[PartHops]) -> str | None:
    """A move that may end after the clock, in words."""
    later = (rows.pieces - 1) * rows.period
    for hops, part in zip(parts, waves(rows), strict=True):
        for wave in part:
            latest = int(rows.start[wave.first :][: wave.count].max()) + later
            if (leaving := hops.leaving(wave.step, latest)) is not None:
                return leaving
    return None


def _late(rows: SpreadRows, hops: PartHops, wave: Wave) -> Numbers:
    """The latest that what a move carries arrives after its start, by distance."""
    late = hops.late(wave.step)
    return late[hops.reversed(wave.step)] if rows.sums else late


def _early(rows: SpreadRows, parts: list[PartHops]) -> Verdict | None:
    """A move that starts before what it sends is there, if there is one."""
    for hops, part in zip(parts, waves(rows), strict=True):
        for wave, ready in _ready(rows, hops, part):
            start = rows.start[wave.moves].reshape(wave.shape)
            for at in np.flatnonzero((start < ready).reshape(-1))[:1].tolist():
                ready = np.broadcast_to(ready, start.shape)
                when = [format_time(int(times.reshape(-1)[at])) for times in (start, ready)]
                move = f"move {wave.first + at} starts at {when[0]}"
                text = f"{move}, but what it sends is there only at {when[1]}"
                return Verdict(False, text, "order")
    return None


def _ready(rows: SpreadRows, hops: PartHops, part: list[Wave]) -> Iterator[tuple[Wave, Numbers]]:
    """Waves in the order in which they run, and when each of their moves may start."""
    # When every share is wherever it is by now, or summed there: by share along each scatter.
    there = np.zeros(part[0].shares, dtype=np.int64)
    for wave in reversed(part) if rows.sums else part:
        late = _late(rows, hops, wave)
        late = late.reshape(-1, *[1] * len(wave.sent))
        arrived = rows.start[wave.moves].reshape(wave.shape) + late
        ready = there.max(axis=wave.own, keepdims=True) if wave.own else there
        if wave.scattered >= 0:
            # A distance leads to the share that is sent there.
            yield wave, np.moveaxis(ready, wave.scattered, 0).reshape(wave.shape)
            free = [1 if i in wave.own else n for i, n in enumerate(wave.shares)]
            by_share = arrived.reshape(free.pop(wave.scattered), *free)
            arrived = np.moveaxis(by_share, 0, wave.scattered)
            there = np.broadcast_to(arrived, wave.shares).copy()
        else:
            yield wave, ready.reshape(1, *wave.shape[1:])
            free = [1 if i in wave.own else n for i, n in enumerate(wave.shares)]
            there = np.maximum(there, arrived.max(axis=0).reshape(free))


def _meeting(
    algorithm: Algorithm, rows: SpreadRows, ladders: list[Rungs], parts: list[PartHops]
) -> Verdict | None:
    """Two moves that may hold one link at the same time, if there are."""
    found = [(hops, wave) for hops, part in zip(parts, waves(rows), strict=True) for wave in part]
    # Pieces so far apart that the last move of one is over before the first of the other begins.
    last = max(int(rows.start[wave.moves].max()) + hops.over(wave.step) for hops, wave in found)
    span, count = last - int(rows.start.min()), len(rows.start)
    apart = span // rows.period + 1 if rows.period else rows.pieces
    unrolled = min(rows.pieces, apart + 1)
    if unrolled * count > MOST_AT_ONCE:
        text = (
            f"{unrolled:,} pieces of {count:,} moves are on their way at once; the judge looks at "
            f"{MOST_AT_ONCE:,} moves at most"
        )
        return Verdict(False, text, "structure")
    start = (np.arange(unrolled)[:, None] * rows.period + rows.start).reshape(-1)
    kept = _with_links_of_their_own(rows, found, start)
    goings = [
        Going(hops, wave.step, rows.sums, np.where(kept[moves], moves, -1))
        for hops, wave in found
        for moves in [_repeated(wave, np.arange(unrolled) * count)]
    ]
    topology = algorithm.require_timing().topology
    return meeting(topology, rows.sizes, ladders, start, goings)


def _repeated(wave: Wave, first: Numbers) -> Numbers:
    """The moves of a wave in several pieces, of which each begins with a number."""
    moves: Numbers = wave.moves[:, None] + first[:, None]
    return moves.reshape(wave.distances, -1)


def _with_links_of_their_own(
    rows: SpreadRows, found: list[tuple[PartHops, Wave]], start: Numbers
) -> NDArray[np.bool_]:
    """Which moves are not made at the same time as one before, equally far, by others.

    Together such moves use no more links than if all places made one of them.
    """
    count = len(rows.start)
    number, ladder, by = (np.empty(count, dtype=np.int64) for _ in range(3))
    for i, (hops, wave) in enumerate(found):
        number[wave.moves], ladder[wave.moves] = i, hops.steps[wave.step].ladder
        by[wave.moves] = hops.away(wave.step)[:, None]
    number, ladder, by = (np.tile(column, len(start) // count) for column in (number, ladder, by))
    order = np.lexsort((number, by, ladder, start))
    number = number[order]
    news = [np.diff(column[order], prepend=-1) != 0 for column in (start, ladder, by)]
    like = np.cumsum(np.any(news, axis=0))
    twice = np.flatnonzero((np.diff(like) == 0) & (np.diff(number) == 0))
    kept = np.zeros(len(start), dtype=np.bool_)
    if len(twice):  # two of one step meet, whatever others do
        kept[order[twice[0] : twice[0] + 2]] = True
        return kept
    apart = _Apart.of([wave for _, wave in found])
    # Now no more than there are steps are alike.
    kept[order[np.diff(like, prepend=0) > 0]] = True
    at, back = np.arange(len(start)), 0
    while len(at):
        back += 1
        at = at[at >= back]
        at = at[like[at] == like[at - back]]
        are_apart = apart.are(number[at], number[at - back])
        kept[order[at[~are_apart]]] = True
        at = at[are_apart]
    return kept


@dataclass(frozen=True)
class _Apart:
    """Whether nobody sends in both of two waves.

    Attributes
    ----------
    at_root
        See `Wave`; of each.
    off_root
        The same, one row each; -1 where there are fewer lines than in others.
    """

    at_root: Numbers
    off_root: Numbers

    @classmethod
    def of(cls, waves: list[Wave]) -> _Apart:
        most = max(len(wave.off_root) for wave in waves)
        off_root = [wave.off_root + (-1,) * (most - len(wave.off_root)) for wave in waves]
        shape = len(waves), most
        return cls(
            np.array([wave.at_root for wave in waves], dtype=np.int64),
            np.array(off_root, dtype=np.int64).reshape(shape),
        )

    def are(self, one: Numbers, two: Numbers) -> NDArray[np.bool_]:
        """Of waves by their numbers, pair by pair."""
        found = np.zeros(len(one), dtype=np.bool_)
        for a, b in ((one, two), (two, one)):
            for line in self.off_root.T:
                found |= line[a] & ~self.at_root[b] == 0
        return found
