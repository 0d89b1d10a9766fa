"""What a Broadcast or a Reduce along levels must be before its times are looked at.

How its moves are numbered, and who makes them, is said here a second time, for the judge alone: see
`SpreadRows`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm, SpreadPart, SpreadRows, SpreadStep
from weft.algorithm.spread import MOST_STEPS
from weft.judge.table import malformed_column
from weft.units import CLOCK_PS

_KINDS = ("broadcast", "reduce")
_MOST_SIZES = 64  # of chunks, each of which has times of its own

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Wave:
    """The moves of one step of a part.

    Attributes
    ----------
    step
        The number of the step.
    shares
        Of each scattering step of the part, in order: into how many shares it cuts.
    own
        Among those, the ones of whose shares each sender has its own alone.
    scattered
        Which of them a scattering step is; -1 if the step does not scatter.
    first
        The number of the first move.
    distances
        How many there are; the second axis of the moves is by shares that are not in `own`, nor
        scattered here, the last varying fastest.
    at_root, off_root
        Dimensions in which all senders of a Broadcast have the root's coordinates, as bits; and
        lines along which none has them in all.
    """

    step: int
    shares: tuple[int, ...]
    own: tuple[int, ...]
    scattered: int
    first: int
    distances: int
    at_root: int
    off_root: tuple[int, ...]

    @property
    def sent(self) -> tuple[int, ...]:
        """Scattering steps all of whose shares go the same way."""
        some = (*self.own, self.scattered)
        return tuple(i for i in range(len(self.shares)) if i not in some)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.distances, *(self.shares[i] for i in self.sent))

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def moves(self) -> Numbers:
        """Their numbers, by distance."""
        return self.first + np.arange(self.count).reshape(self.distances, -1)


def bits(step: SpreadStep) -> int:
    """The dimensions of a step."""
    return sum(1 << dimension for dimension in step.dimensions)


def line(rows: SpreadRows, step: SpreadStep) -> int:
    """How many NPUs a line of a step has."""
    return math.prod(rows.sizes[dimension] for dimension in step.dimensions)


def waves(rows: SpreadRows) -> list[list[Wave]]:
    """All moves: by part, then in order."""
    found, first = [], 0
    for part in rows.parts:
        mine = list(_waves(rows, part, first))
        first = mine[-1].first + mine[-1].count
        found.append(mine)
    return found


def _waves(rows: SpreadRows, part: SpreadPart, first: int) -> Iterator[Wave]:
    shares = tuple(line(rows, step) - 1 for step in part if step.act == "scatter")
    untouched, number, own = (1 << len(rows.sizes)) - 1, 0, list[int]()
    lines = [bits(step) for step in part if step.act == "scatter"]
    for i, step in enumerate(part):
        scattered = number if step.act == "scatter" else -1
        off_root = tuple(lines[one] for one in own)
        wave = Wave(
            *(i, shares, tuple(own), scattered, first, line(rows, step) - 1), untouched, off_root
        )
        yield wave
        first += wave.count
        untouched &= ~bits(step)
        if step.act == "scatter":
            own.append(number)
            number += 1
        elif step.act == "gather":
            own.pop()


def wrong_spread(algorithm: Algorithm, rows: SpreadRows) -> str | None:
    """What is wrong with rows but for their ladders and times, if anything."""
    return _unfit(algorithm, rows) or _malformed(algorithm, rows)


def _unfit(algorithm: Algorithm, rows: SpreadRows) -> str | None:
    """Why such rows cannot be what serves this collective on this network, if so."""
    topology, demand = algorithm.require_timing().topology, algorithm.demands[0]
    if len(algorithm.demands) > 1 or demand.kind not in _KINDS:
        return f"spreads by level serve one {' or '.join(_KINDS)}"
    if rows.sums != (demand.kind == "reduce"):
        return f"the rows are not those of a {demand.kind}"
    if topology.buffers:
        return "spreads by level need switches that can hold any chunk"
    if demand.smallest_chunk == 0:
        return "spreads by level need chunks that are not empty"
    if len(np.unique(demand.piece_bytes)) > _MOST_SIZES:
        return f"there are chunks of more than {_MOST_SIZES} sizes"
    return None


def _malformed(algorithm: Algorithm, rows: SpreadRows) -> str | None:
    """What is wrong with the grid, the parts and the columns, if anything."""
    demand = algorithm.demands[0]
    if (wrong := malformed_column("npus", rows.npus, np.int32)) is not None:
        return wrong
    if min(rows.sizes, default=0) < 1 or math.prod(rows.sizes) != len(rows.npus):
        return "the grid does not have as many places as NPUs"
    if not np.array_equal(np.sort(rows.npus), np.sort(np.array(demand.group))):
        return "the places of the grid are not the group"
    if rows.npus[0] != demand.root:
        return f"the first place of the grid is that of NPU {rows.npus[0]}, not of the root"
    if not rows.parts or rows.pieces < 1:
        return "there are no parts, or no pieces"
    if (steps := sum(map(len, rows.parts))) > MOST_STEPS:
        return f"the parts have {steps:,} steps; expected {MOST_STEPS:,} at most"
    for part in rows.parts:
        if (wrong := _wrong_part(rows, part)) is not None:
            return wrong
    chunks = rows.pieces * sum(
        math.prod(line(rows, step) - 1 for step in part if step.act == "scatter")
        for part in rows.parts
    )
    if chunks != demand.chunk_count:
        return f"the parts have {chunks} chunks, not {demand.chunk_count}"
    count = sum(wave.count for part in waves(rows) for wave in part)
    if (wrong := malformed_column("start", rows.start, np.int64, count)) is not None:
        return wrong
    if rows.period < 0 or (rows.start < 0).any():
        return "some move starts before the beginning"
    if int(rows.start.max(initial=0)) + rows.pieces * rows.period >= CLOCK_PS:
        return "some move starts after the end of the clock"
    return None


def _wrong_part(rows: SpreadRows, part: SpreadPart) -> str | None:
    """Why steps do not bring a part of the buffer everywhere, if so."""
    untouched, opened = set(range(len(rows.sizes))), list[tuple[int, ...]]()
    for step in part:
        if not 0 <= step.ladder < len(rows.ladders):
            return "some step of a part has no ladder"
        if step.act == "gather":
            if not opened or opened.pop() != step.dimensions:
                return "some part gathers what was not the last to be scattered"
            continue
        if step.act not in ("scatter", "copy"):
            return f"some step of a part is not to {step.act}"
        if (
            len(set(step.dimensions)) < len(step.dimensions)
            or not set(step.dimensions) <= untouched
        ):
            return "some part goes along a dimension twice, or along one that is not there"
        if line(rows, step) < 2:
            return "some step of a part goes along no line"
        untouched -= set(step.dimensions)
        if step.act == "scatter":
            opened.append(step.dimensions)
    if untouched or opened:
        return "some part does not go along every dimension, or does not gather what it scatters"
    return None
