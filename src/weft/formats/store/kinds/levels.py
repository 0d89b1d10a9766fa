"""Compositions by level in a compact store."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from weft.algorithm import Algorithm, LevelPart, LevelRows, LevelStep
from weft.errors import InputError
from weft.formats.limits import checked_range
from weft.formats.store._layout import Arrays, Types
from weft.formats.store.kinds import KINDS, StoredKind, Taken
from weft.judge.level_parts import wrong_parts
from weft.topology.ladders import Ladder
from weft.topology.model import Topology
from weft.units import CLOCK_PS

LADDERS: Types = {
    "tiers": np.int64,  # of each ladder
    "up": np.int32,  # ladder by ladder, tier by tier, place by place
    "down": np.int32,
    "turn": np.int32,
}
_TYPES: Types = {
    "sizes": np.int64,
    "npus": np.int32,
    **LADDERS,
    "parts": np.int64,  # pieces, number of steps; of each: in shares, ladder, dimensions as bits
    "start": np.int64,
}
_SERVED = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")


def _take(rows: LevelRows, _algorithm: Algorithm) -> Taken:
    parts = list[int]()
    for part in rows.parts:
        parts += [part.pieces, len(part.steps)]
        for step in part.steps:
            if list(step.dimensions) != sorted(step.dimensions):
                raise InputError("the dimensions of a step are not in ascending order")
            parts += [step.scatter, step.ladder, sum(1 << d for d in step.dimensions)]
    columns = {
        "sizes": rows.sizes,
        "npus": rows.npus,
        "parts": parts,
        "start": rows.start,
        **ladder_columns(rows.ladders),
    }
    return {name: np.array(columns[name], dtype=kind) for name, kind in _TYPES.items()}, {}


def _make(frame: Algorithm, arrays: Arrays) -> LevelRows:
    demand = frame.demands[0]
    if frame.timing is None or demand.kind not in _SERVED:
        raise InputError(f"such rows cannot be those of this {demand.kind}")
    columns = arrays.columns(_TYPES)
    npus, sizes = columns["npus"], tuple(columns["sizes"].tolist())
    count, topology = len(npus), frame.timing.topology
    if not sizes or min(sizes) < 1 or len(sizes) > 62 or math.prod(sizes) != count:
        raise InputError("the grid does not have as many places as NPUs")
    for name, end in {"npus": topology.npus, "start": CLOCK_PS}.items():
        checked_range(name, columns[name], end)
    rows = LevelRows(
        sizes,
        npus,
        tuple(ladders_of(columns, count, topology)),
        tuple(_parts(columns["parts"].tolist(), len(sizes), len(columns["tiers"]))),
        columns["start"],
        exchange=demand.kind == "all-to-all",
        sums=demand.kind in ("reduce-scatter", "all-reduce"),
        copies=demand.kind in ("all-gather", "all-reduce"),
    )
    if (wrong := wrong_parts(frame, rows)) is not None:
        raise InputError(wrong)
    return rows


def ladder_columns(ladders: Sequence[Ladder]) -> dict[str, Any]:
    """Ladders as columns: see `LADDERS`."""
    columns: dict[str, Any] = {"tiers": [ladder.tiers for ladder in ladders]}
    for name in ("up", "down", "turn"):
        columns[name] = np.concatenate([getattr(one, name).reshape(-1) for one in ladders])
    return columns


def ladders_of(columns: dict[str, Any], count: int, topology: Topology) -> Iterator[Ladder]:
    """Ladders from columns, for so many places."""
    links = topology.links
    for name, end in {"turn": count, "tiers": 63, "up": links, "down": links}.items():
        checked_range(name, columns[name], end)
    tiers = columns["tiers"].tolist()
    if any(len(columns[name]) != sum(tiers) * count for name in ("up", "down", "turn")):
        raise InputError("the ladders do not have one link for every place")
    first = 0
    for rungs in tiers:
        end = first + rungs * count
        yield Ladder(
            *(columns[name][first:end].reshape(rungs, count) for name in ("up", "down", "turn"))
        )
        first = end


def _parts(numbers: list[int], dimensions: int, ladders: int) -> Iterator[LevelPart]:
    left = iter(numbers)
    for pieces in left:
        steps = list[LevelStep]()
        for _ in range(next(left, 0)):
            scatter, ladder, bits = (next(left, -1) for _ in range(3))
            if scatter not in (0, 1) or not 0 <= ladder < ladders or bits < 1:
                raise InputError("a step of a part has no ladder, or no dimensions")
            if bits >> dimensions:
                raise InputError("a step of a part goes along a dimension that is not there")
            along = tuple(d for d in range(dimensions) if bits >> d & 1)
            steps.append(LevelStep(along, bool(scatter), ladder))
        if not steps:
            raise InputError("a part has no steps")
        yield LevelPart(tuple(steps), pieces)


KINDS.add(LevelRows.kind, StoredKind(_take, _make, of_one=True))
