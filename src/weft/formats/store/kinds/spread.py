"""Broadcasts and Reduces along levels in a compact store."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from weft.algorithm import Algorithm, SpreadPart, SpreadRows, SpreadStep
from weft.algorithm.spread import ACTS, MOST_CHUNKS
from weft.errors import InputError
from weft.formats.limits import checked_range
from weft.formats.store._layout import Arrays, Types
from weft.formats.store.kinds import KINDS, Columns, StoredKind, Taken, context
from weft.formats.store.kinds.levels import LADDERS, ladder_columns, ladders_of
from weft.judge.spread_parts import wrong_spread
from weft.units import CLOCK_PS

_TYPES: Types = {
    "sizes": np.int64,
    "npus": np.int32,
    **LADDERS,
    "parts": np.int64,  # number of steps; of each: scatter, copy or gather; ladder, dimensions
    "start": np.int64,
}


def _take(rows: SpreadRows, _algorithm: Algorithm) -> Taken:
    parts = list[int]()
    for part in rows.parts:
        parts.append(len(part))
        for step in part:
            if list(step.dimensions) != sorted(step.dimensions):
                raise InputError("the dimensions of a step are not in ascending order")
            parts += [ACTS.index(step.act), step.ladder, sum(1 << d for d in step.dimensions)]
    columns = {
        **{"sizes": rows.sizes, "npus": rows.npus, "parts": parts, "start": rows.start},
        **ladder_columns(rows.ladders),
    }
    arrays: Columns = {name: np.array(columns[name], dtype=kind) for name, kind in _TYPES.items()}
    return arrays, {"pieces": rows.pieces, "period": rows.period}


def _make(frame: Algorithm, arrays: Arrays) -> SpreadRows:
    chunks = frame.demands[0].chunks_per_share if frame.demands else 0
    if chunks > MOST_CHUNKS:
        raise InputError(f"{chunks} chunks make no sense; expected {MOST_CHUNKS} at most")
    topology, demand = context(frame, ("broadcast", "reduce"))
    columns = arrays.columns(_TYPES)
    npus, sizes = columns["npus"], tuple(columns["sizes"].tolist())
    if not sizes or min(sizes) < 1 or len(sizes) > 62 or math.prod(sizes) != len(npus):
        raise InputError("the grid does not have as many places as NPUs")
    checked_range("npus", npus, topology.npus)
    checked_range("start", columns["start"], CLOCK_PS)
    ladders = tuple(ladders_of(columns, len(npus), topology))
    rows = SpreadRows(
        sizes,
        npus,
        ladders,
        tuple(_parts(columns["parts"].tolist(), len(sizes), len(ladders))),
        arrays.number("pieces", 1, demand.chunk_count),
        arrays.number("period", 0, CLOCK_PS),
        columns["start"],
        sums=demand.kind == "reduce",
    )
    if (wrong := wrong_spread(frame, rows)) is not None:
        raise InputError(wrong)
    return rows


def _parts(numbers: list[int], dimensions: int, ladders: int) -> Iterator[SpreadPart]:
    left = iter(numbers)
    for count in left:
        steps = list[SpreadStep]()
        for _ in range(count):
            act, ladder, bits = (next(left, -1) for _ in range(3))
            if not (0 <= act < len(ACTS) and 0 <= ladder < ladders and bits > 0):
                raise InputError("a step of a part does nothing, or has no ladder or no dimensions")
            if bits >> dimensions:
                raise InputError("a step of a part goes along a dimension that is not there")
            along = tuple(d for d in range(dimensions) if bits >> d & 1)
            steps.append(SpreadStep(ACTS[act], along, ladder))
        if not steps:
            raise InputError("a part has no steps")
        yield tuple(steps)


KINDS.add(SpreadRows.kind, StoredKind(_take, _make, most=MOST_CHUNKS))
