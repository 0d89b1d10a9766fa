"""Judges compositions by level by one NPU's moves, and by the ladders."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm, LevelPart, LevelRows
from weft.judge.kinds import Progress, judges
from weft.judge.ladders import Rungs, wrong_ladder
from weft.judge.level_hops import PartHops
from weft.judge.level_links import Going, meeting
from weft.judge.level_parts import Phase, all_phases, length, sizes_of, wrong_parts
from weft.judge.table import LISTED, judge_table
from weft.judge.verdict import Verdict
from weft.units import format_time

Numbers = NDArray[np.int64]


@judges(LevelRows)
def judge_levels(algorithm: Algorithm, rows: LevelRows, _progress: Progress = None) -> Verdict:
    """Judge what one NPU sends, and that what all send never meets.

    That the parts' steps go along every dimension of the groups once makes sums complete and
    brings them back to all; what is left is time. Each move must start when what it sends has
    arrived, by whatever turn it was sent. And where two moves use links of one kind, one must be
    over before the other begins. Both are proved in docs/verification.md.
    """
    if (wrong := wrong_parts(algorithm, rows)) is not None:
        return Verdict(False, wrong, "structure")
    topology = algorithm.require_timing().topology
    ladders = list[Rungs]()
    for ladder in rows.ladders:
        found = wrong_ladder(topology, rows.sizes, rows.npus, ladder)
        if isinstance(found, str):
            return Verdict(False, found, "structure")
        ladders.append(found)
    cost = algorithm.require_timing().cost
    parts = [
        PartHops(rows.sizes, part.steps, ladders, cost, sizes_of(algorithm, rows, number))
        for number, part in enumerate(rows.parts)
    ]
    for part in parts:
        if (unreached := part.unreached()) is not None:
            return Verdict(False, unreached, "route")
    for number, phases in all_phases(rows):
        for phase in phases:
            latest = int(phase.of(rows.start).max(initial=0))
            if (leaving := parts[number].leaving(phase.step, latest)) is not None:
                return Verdict(False, leaving, "structure")
    verdict = _early(rows, parts)
    if verdict is None:  # a verdict of something wrong is false
        verdict = meeting(topology, rows.sizes, ladders, rows.start, _goings(rows, parts))
    if verdict is not None:
        return verdict
    if len(rows) > LISTED:
        return Verdict(True)
    verdict = judge_table(algorithm)
    text = f"listed for all NPUs: {verdict.violation}"
    return verdict if verdict else Verdict(False, text, verdict.kind, verdict.row)


def _goings(rows: LevelRows, parts: list[PartHops]) -> Iterator[Going]:
    for number, phases in all_phases(rows):
        for step, back, first, shape in phases:
            moves = first + np.arange(math.prod(shape)).reshape(shape[0], math.prod(shape[1:]))
            yield Going(parts[number], step, back, moves)


def _early(rows: LevelRows, parts: list[PartHops]) -> Verdict | None:
    """A move that starts before what it sends is there, if there is one."""
    for number, phases in all_phases(rows):
        judged = _exchanged if rows.exchange else _composed
        for phase, ready, what in judged(_Part(rows, rows.parts[number], parts[number], phases)):
            start = phase.of(rows.start)
            for at in np.flatnonzero((start < ready).reshape(-1))[:1].tolist():
                ready = np.broadcast_to(ready, start.shape)
                when = [format_time(int(times.reshape(-1)[at])) for times in (start, ready)]
                text = f"move {phase.first + at} starts at {when[0]}, but {what} only at {when[1]}"
                return Verdict(False, text, "order")
    return None


@dataclass(frozen=True)
class _Part:
    """A part with its moves."""

    rows: LevelRows
    part: LevelPart
    hops: PartHops
    phases: list[Phase]

    @property
    def pieces(self) -> int:
        return self.part.pieces

    @property
    def sizes(self) -> list[int]:
        return [length(self.rows, step) for step in self.part.steps]

    def arrived(self, phase: Phase) -> Numbers:
        """When what each move of a phase carries is there at the latest."""
        late = self.hops.late(phase.step)
        if phase.back:  # what lies at a distance comes from there
            late = late[self.hops.reversed(phase.step)]
        return phase.of(self.rows.start) + late[:, None, None]


_SENT, _KEPT = "what it sends is there", "its receivers keep a copy of what they have"


def _composed(part: _Part) -> Iterator[tuple[Phase, Numbers, str]]:
    """Phases, and when each of their moves may start, and why."""
    sizes, steps, pieces = part.sizes, part.part.steps, part.pieces
    # When sums are complete before a step, and when what was sent in one shot has been kept apart:
    # by where shares belong along the levels to come, in their order, the first varying fastest.
    shares = int(np.prod([s for s, step in zip(sizes, steps, strict=True) if step.scatter]))
    complete = np.zeros((shares if part.rows.sums else 1, pieces), dtype=np.int64)
    kept = np.zeros_like(complete)
    for phase in part.phases:
        size = sizes[phase.step]
        arrived = part.arrived(phase)
        if phase.back:
            yield phase, complete[None], _SENT
            # The NPU's own share, and those that come from all distances; this level the fastest.
            complete = np.concatenate([complete[None], arrived]).transpose(1, 0, 2)
            complete = complete.reshape(-1, pieces)
        elif steps[phase.step].scatter:
            own, kept = complete.reshape(-1, size, pieces), kept.reshape(-1, size, pieces)[:, 0]
            yield phase, own[:, 1:].transpose(1, 0, 2), _SENT
            yield phase, kept[None], _KEPT
            complete = np.maximum(own[:, 0], arrived.max(axis=0, initial=0))
        else:
            yield phase, complete[None], _SENT
            complete = np.maximum(complete, arrived.max(axis=0, initial=0))
            kept = phase.of(part.rows.start).min(axis=0)


def _exchanged(part: _Part) -> Iterator[tuple[Phase, Numbers, str]]:
    """The same for messages that go along one level after the other."""
    sizes = part.sizes
    # When messages are where a step begins, by how far they go along each level.
    there = np.zeros((*sizes[::-1], part.pieces), dtype=np.int64)
    for phase in part.phases:
        along = np.moveaxis(there, len(sizes) - 1 - phase.step, 0)[1:]
        yield phase, along.reshape(phase.shape), _SENT
        along[:] = part.arrived(phase).reshape(along.shape)
