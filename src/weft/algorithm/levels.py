"""Rows of collectives composed level by level, in which all NPUs do the same.

NPUs sit on a grid. A *move* stands for the messages that all send at once, each to the NPU as far
away along some dimensions. So a plan takes as much memory as one NPU's part in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.level_table import LevelTable, ListedMoves, in_order
from weft.algorithm.rows import CompactRows
from weft.algorithm.transfers import Routes, Transfers
from weft.topology.grid import moved
from weft.topology.ladders import Ladder

if TYPE_CHECKING:
    from weft.algorithm.model import Algorithm

Numbers = NDArray[np.int64]


class LevelStep(NamedTuple):
    """One level of a part: along which dimensions, in shares or all at once, over which ladder."""

    dimensions: tuple[int, ...]
    scatter: bool
    ladder: int


@dataclass(frozen=True)
class LevelPart:
    """A part of the buffer: its levels in order, and in how many pieces each share of it is cut."""

    steps: tuple[LevelStep, ...]
    pieces: int


@dataclass(frozen=True)
class Stage:
    """The moves of one step of a part: sums towards owners of shares, or copies back.

    An array of the moves of a stage has three axes. The first is the distance along the step's
    level, from 1 on. The second is where the share belongs along the levels scattered later, the
    next one varying fastest; in an All-to-All where the message comes from and goes to along all
    other levels. The third is the piece.

    Attributes
    ----------
    part, step
        Numbers of the part, and of the step in it.
    back
        Whether they are copies: what lies at a distance comes from there.
    first
        The number of the first move.
    shape
        How many moves there are along each axis.
    """

    part: int
    step: int
    back: bool
    first: int
    shape: tuple[int, int, int]

    @property
    def moves(self) -> slice:
        return slice(self.first, self.first + math.prod(self.shape))


@dataclass(frozen=True, eq=False, repr=False)
class LevelRows(CompactRows):
    """When the moves of compositions by level start.

    Before a step of sums, an NPU has sums of all shares that belong to places which have its own
    coordinates along the levels scattered before. It sends each to the NPU of its line to which it
    belongs; in one shot, everything to all of its line. Copies take the same ways back, last level
    first. In an All-to-All, messages go along one level after the other.

    A move starts at each place at the same time; only where a way up to the same tier is shared
    by several, each waits for its turn: for as many times as a chunk holds the slowest of the
    shared links as it has turns before it.

    Attributes
    ----------
    sizes
        Of the grid, the first dimension varying fastest. Groups that run at once lie apart along
        dimensions that no step goes along.
    npus
        The NPU at each place (int32).
    ladders
        The ways between places: see `Ladder`.
    parts
        Parts of the buffer, one after the other. If the collective's buffer is cut in shares, each
        is some of the pieces of every share, and scattered along all levels.
    start
        When each move starts, in picoseconds (int64): part by part, stage by stage (see `Stage`).
    """

    kind = "levels"
    several = True

    sizes: tuple[int, ...]
    npus: NDArray[np.int32]
    ladders: tuple[Ladder, ...]
    parts: tuple[LevelPart, ...]
    start: NDArray[np.int64]
    exchange: bool = False
    sums: bool = True
    copies: bool = True

    def size(self, step: LevelStep) -> int:
        """How many NPUs a line of a step has."""
        return math.prod(self.sizes[dimension] for dimension in step.dimensions)

    @cached_property
    def stages(self) -> list[Stage]:
        """All stages, in the order of their moves."""
        found, first = list[Stage](), 0
        for number, part in enumerate(self.parts):
            count = len(part.steps)
            forward = [(i, False) for i in range(count) if self.sums or self.exchange]
            back = [(i, True) for i in reversed(range(count)) if part.steps[i].scatter]
            for step, is_back in forward + back * (self.copies and not self.exchange):
                others = math.prod(self.size(one) for one in self.others(part, step))
                shape = (self.size(part.steps[step]) - 1, others, part.pieces)
                found.append(Stage(number, step, is_back, first, shape))
                first += math.prod(shape)
        return found

    def others(self, part: LevelPart, step: int) -> list[LevelStep]:
        """The steps that the second axis of a stage is about."""
        if self.exchange:
            return [one for i, one in enumerate(part.steps) if i != step]
        return [one for one in part.steps[step + 1 :] if one.scatter]

    def __len__(self) -> int:
        local = sum(
            math.prod(stage.shape[1:])
            for stage in self.stages
            if not stage.back and not self.parts[stage.part].steps[stage.step].scatter
        )
        return (len(self.start) + local * (not self.exchange)) * len(self.npus)

    def described(self) -> dict[str, Any]:
        return {"form": "moves of all NPUs at once", "own_rows": len(self.start)}

    def time(self, algorithm: Algorithm) -> int:
        table, latest, everywhere = LevelTable(algorithm, self), 0, np.arange(len(self.npus))
        # Those that may be the last, by the longest of their chunks; then exactly.
        for stage in self.stages:
            end = table.latest(stage)
            for move in np.argsort(-end, kind="stable").tolist():
                if end[move] <= latest:
                    break
                _, ends = table.times(stage, np.full_like(everywhere, move), everywhere)
                latest = max(latest, int(ends.max()))
        return latest

    def of_npu(self, algorithm: Algorithm, npu: int) -> Transfers:
        table, here = LevelTable(algorithm, self), np.flatnonzero(self.npus == npu)
        found = list[ListedMoves | None]()
        for stage in self.stages:
            moves = np.arange(math.prod(stage.shape))
            by = table.moves(stage, moves).by
            sent = table.rows(stage, moves, here)
            got = table.rows(stage, moves, moved(self.sizes, here, by, sign=-1), paired=True)
            found += [sent, got, table.copies(stage, here)]
        return in_order([rows for rows in found if rows is not None])

    def near(self, algorithm: Algorithm, npu: int, rows: Transfers) -> Numbers:
        table, here = LevelTable(algorithm, self), np.flatnonzero(self.npus == npu)
        return table.ways.near(int(here[0]), rows.require_times().route)

    def table(self, algorithm: Algorithm) -> tuple[Transfers, Routes]:
        table, everywhere = LevelTable(algorithm, self), np.arange(len(self.npus))
        found = list[ListedMoves | None]()
        for stage in self.stages:
            found.append(table.rows(stage, np.arange(math.prod(stage.shape)), everywhere))
            found.append(table.copies(stage, everywhere))
        return in_order([rows for rows in found if rows is not None]), table.ways.routes()
