"""What compositions by level must be before their times are looked at: their grid, groups, parts.

How their moves are numbered is said here a second time, for the judge alone: see `LevelRows`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm, LevelPart, LevelRows, LevelStep
from weft.collective import Collective
from weft.judge.table import malformed_column

_KINDS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")
_MOST_SIZES = 64  # of chunks of one part, each of which has times of its own

Numbers = NDArray[np.int64]


class Phase(NamedTuple):
    """The moves of one step of a part.

    Attributes
    ----------
    step
        The number of the step.
    back
        Whether they are copies.
    first
        The number of the first of them.
    shape
        By distance; by where shares belong along later levels, or messages along all others; by
        piece.
    """

    step: int
    back: bool
    first: int
    shape: tuple[int, int, int]

    def of(self, column: Numbers) -> Numbers:
        """A column's values for these moves."""
        return column[self.first : self.first + math.prod(self.shape)].reshape(self.shape)


def wrong_parts(algorithm: Algorithm, rows: LevelRows) -> str | None:
    """What is wrong with rows but for their ladders and times, if anything."""
    return _unfit(algorithm, rows) or _malformed(algorithm, rows)


def _unfit(algorithm: Algorithm, rows: LevelRows) -> str | None:
    """Why level rows cannot be what serves these collectives on this network, if so."""
    topology, demand = algorithm.require_timing().topology, algorithm.demands[0]
    if demand.kind not in _KINDS:
        return f"compositions by level serve {', '.join(_KINDS)}, not {demand.kind}"
    said = rows.exchange, rows.sums, rows.copies
    if said != (
        demand.kind == "all-to-all",
        demand.kind in ("reduce-scatter", "all-reduce"),
        demand.kind in ("all-gather", "all-reduce"),
    ):
        return f"the rows are not those of an {demand.kind}"
    if topology.buffers:
        return "compositions by level need switches that can hold any chunk"
    if not all(_is_like(demand, other) for other in algorithm.demands[1:]):
        return "compositions by level serve groups that all do the same"
    smallest = demand.smallest_chunk
    return "compositions by level need chunks that are not empty" if smallest == 0 else None


def _is_like(one: Collective, other: Collective) -> bool:
    if (one.parts is None) != (other.parts is None):
        return False
    if one.parts is not None and other.parts is not None:
        same = np.array_equal(one.chunks.bytes, other.chunks.bytes)
        return same and one.kind == other.kind and one.ranks == other.ranks
    return one.ranks == other.ranks and replace(other, group=one.group) == one


def _malformed(algorithm: Algorithm, rows: LevelRows) -> str | None:
    """What is wrong with the grid, the parts and the columns, if anything."""
    topology, demand = algorithm.require_timing().topology, algorithm.demands[0]
    if (wrong := malformed_column("npus", rows.npus, np.int32)) is not None:
        return wrong
    if min(rows.sizes, default=0) < 1 or math.prod(rows.sizes) != len(rows.npus):
        return "the grid does not have as many places as NPUs"
    if rows.npus.min() < 0 or rows.npus.max() >= topology.npus:
        return "some place of the grid has no NPU"
    if (topology.ranks[rows.npus] < 0).any() or len(np.unique(rows.npus)) < len(rows.npus):
        return "some place of the grid has no NPU of its own"
    if not rows.parts:
        return "there are no parts"
    dimensions = {d for step in rows.parts[0].steps for d in step.dimensions}
    for part in rows.parts:
        used = [dimension for step in part.steps for dimension in step.dimensions]
        if sorted(used) != sorted(dimensions) or not set(used) <= set(range(len(rows.sizes))):
            return "some part does not go along every dimension of the groups once"
        if part.pieces < 1 or not all(0 <= step.ladder < len(rows.ladders) for step in part.steps):
            return "some part has no pieces, or a step that has no ladder"
    wrong = _other_groups(algorithm, rows, dimensions) or _other_shares(demand, rows)
    if wrong is not None:
        return wrong
    if any(len(_sizes(demand, rows, number)) > _MOST_SIZES for number in range(len(rows.parts))):
        return f"some part has chunks of more than {_MOST_SIZES} sizes"
    count = sum(math.prod(phase.shape) for _, phases in all_phases(rows) for phase in phases)
    if (wrong := malformed_column("start", rows.start, np.int64, count)) is not None:
        return wrong
    return "some move starts before the beginning" if (rows.start < 0).any() else None


def _other_groups(algorithm: Algorithm, rows: LevelRows, dimensions: set[int]) -> str | None:
    """Why the grid's lines along these dimensions are not the groups, if so."""
    cube = rows.npus.reshape(rows.sizes[::-1])
    axes = [len(rows.sizes) - 1 - d for d in sorted(dimensions, reverse=True)]
    ranks = math.prod(rows.sizes[d] for d in dimensions)
    lines = np.moveaxis(cube, axes, range(-len(axes), 0)).reshape(-1, ranks)
    if len(lines) != len(algorithm.demands):
        return f"the grid has {len(lines)} groups, not {len(algorithm.demands)}"
    if any(demand.ranks != ranks for demand in algorithm.demands):
        return "the lines of the grid are not the groups"
    mine = np.sort(lines, axis=1)
    others = np.sort(np.array([demand.group for demand in algorithm.demands]), axis=1)
    same = mine[np.argsort(mine[:, 0])] == others[np.argsort(others[:, 0])]
    return None if same.all() else "the lines of the grid are not the groups"


def _other_shares(demand: Collective, rows: LevelRows) -> str | None:
    """Why the parts are not what the buffer is cut into, if so."""
    if demand.kind == "all-reduce":
        chunks, expected = sum(_chunks(rows, part) for part in rows.parts), len(_bytes(demand))
        return None if chunks == expected else f"the parts have {chunks} chunks, not {expected}"
    if not all(step.scatter for part in rows.parts for step in part.steps):
        return "a buffer that is cut in shares is scattered along every level"
    pieces, expected = sum(part.pieces for part in rows.parts), demand.chunks_per_share
    return None if pieces == expected else f"the parts have {pieces} pieces, not {expected}"


def _chunks(rows: LevelRows, part: LevelPart) -> int:
    return part.pieces * math.prod(length(rows, step) for step in part.steps if step.scatter)


def length(rows: LevelRows, step: LevelStep) -> int:
    """How many NPUs a line of a step has."""
    return math.prod(rows.sizes[dimension] for dimension in step.dimensions)


def all_phases(rows: LevelRows) -> Iterator[tuple[int, list[Phase]]]:
    """All moves: by part, then in order."""
    first = 0
    for number, part in enumerate(rows.parts):
        phases = []
        for step, back, shape in _phases(rows, part):
            phases.append(Phase(step, back, first, shape))
            first += math.prod(shape)
        yield number, phases


def _phases(rows: LevelRows, part: LevelPart) -> Iterator[tuple[int, bool, tuple[int, int, int]]]:
    sizes = [length(rows, step) for step in part.steps]
    if rows.exchange:
        for i, size in enumerate(sizes):
            yield i, False, (size - 1, math.prod(sizes) // size, part.pieces)
        return
    later = [
        math.prod(sizes[j] for j in range(i + 1, len(sizes)) if part.steps[j].scatter)
        for i in range(len(sizes))
    ]
    if rows.sums:
        for i, size in enumerate(sizes):
            yield i, False, (size - 1, later[i], part.pieces)
    if rows.copies:
        for i in reversed(range(len(sizes))):
            if part.steps[i].scatter:
                yield i, True, (sizes[i] - 1, later[i], part.pieces)


def sizes_of(algorithm: Algorithm, rows: LevelRows, number: int) -> Numbers:
    """The sizes of the chunks of a part, ascending."""
    return _sizes(algorithm.demands[0], rows, number)


def _sizes(demand: Collective, rows: LevelRows, number: int) -> Numbers:
    if demand.kind == "all-reduce":
        first = sum(_chunks(rows, part) for part in rows.parts[:number])
        mine = _bytes(demand)[first : first + _chunks(rows, rows.parts[number])]
    else:
        first = sum(part.pieces for part in rows.parts[:number])
        sizes = demand.piece_bytes.reshape(-1, demand.chunks_per_share)
        mine = sizes[:, first : first + rows.parts[number].pieces]
    return np.unique(mine)


def _bytes(demand: Collective) -> Numbers:
    """Of all chunks, in order."""
    return demand.piece_bytes if demand.parts is None else demand.chunks.bytes
