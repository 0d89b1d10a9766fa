"""Rows of a Broadcast or a Reduce along the levels of a grid, in which all who send do the same.

NPUs sit on a grid whose place 0 is the root. A *move* stands for the messages that all who have
something to send do so at once, each to the NPU as far away along some dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.level_table import in_order
from weft.algorithm.rows import CompactRows
from weft.algorithm.spread_table import SpreadTable
from weft.algorithm.transfers import Routes, Transfers
from weft.topology.grid import moved
from weft.topology.ladders import Ladder

if TYPE_CHECKING:
    from weft.algorithm.model import Algorithm

Numbers = NDArray[np.int64]
ACTS = ("scatter", "copy", "gather")
MOST_CHUNKS = 1 << 22  # that planners make, and that are read back from a few rows
MOST_STEPS = 1 << 10  # of all parts together, too
MOST_AT_ONCE = 1 << 22  # moves of pieces that are on their way together, which are compared


class SpreadStep(NamedTuple):
    """What those at the root's coordinates do along a line: scatter shares, or copy all they have.

    A gather follows the scatter along the same dimensions: each tells its share to all others.
    """

    act: str
    dimensions: tuple[int, ...]
    ladder: int


SpreadPart = tuple[SpreadStep, ...]
"""Steps in order; gathers close what was scattered last. All dimensions are there once."""


@dataclass(frozen=True)
class SpreadStage:
    """The moves of one step of a part.

    An array of them has two axes: the distance along the step's line, from 1 on, and which shares
    are sent along the lines in `free`, the last varying fastest.

    Attributes
    ----------
    part, step
        Numbers of the part, and of the step in it.
    first
        The number of the first move.
    shape
        How many moves there are along each axis.
    zero
        Dimensions in which senders have the root's coordinates: nothing went along them yet.
    apart
        Lines along which senders are not where the root is: each has a share of its own there.
    free
        Steps that scatter, of whose shares senders have all.
    known
        Receivers with the root's coordinates in all of these have it since it was scattered; they
        are left out.
    """

    part: int
    step: int
    first: int
    shape: tuple[int, int]
    zero: tuple[int, ...]
    apart: tuple[tuple[int, ...], ...]
    free: tuple[int, ...]
    known: tuple[int, ...]

    @property
    def count(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False, repr=False)
class SpreadRows(CompactRows):
    """When the moves of a Broadcast or a Reduce start.

    Lines have a share less than NPUs: the root's own coordinate has none. A Reduce is a Broadcast
    backwards: last step first, each move from where the Broadcast's leads, with sums. On links that
    several share places take turns, as in compositions by level.

    Attributes
    ----------
    sizes
        Of the grid, the first dimension varying fastest.
    npus
        The NPU at each place (int32); the first is the root.
    ladders
        The ways between places: see `Ladder`.
    parts
        Parts of the buffer, one after the other: their shares in order.
    pieces
        In how many chunks each share is cut.
    period
        How much later than those of a piece the moves of the next one start, in picoseconds.
    start
        When each move of the first piece starts, in picoseconds (int64): part by part, step by
        step.
    """

    kind = "spread"

    sizes: tuple[int, ...]
    npus: NDArray[np.int32]
    ladders: tuple[Ladder, ...]
    parts: tuple[SpreadPart, ...]
    pieces: int
    period: int
    start: Numbers
    sums: bool = False

    def line(self, step: SpreadStep) -> int:
        """How many NPUs a line of a step has."""
        return math.prod(self.sizes[dimension] for dimension in step.dimensions)

    def shares(self, part: SpreadPart) -> tuple[int, ...]:
        """Into how many shares each step of a part that scatters cuts it."""
        return tuple(self.line(step) - 1 for step in part if step.act == "scatter")

    @cached_property
    def stages(self) -> list[SpreadStage]:
        """All stages, in the order of their moves."""
        found, first = list[SpreadStage](), 0
        for number, part in enumerate(self.parts):
            for stage in self._stages(number, part, first):
                found.append(stage)
                first += stage.count
        return found

    def _stages(self, number: int, part: SpreadPart, first: int) -> Iterator[SpreadStage]:
        untouched = set(range(len(self.sizes)))
        scatters = [i for i, step in enumerate(part) if step.act == "scatter"]
        opened = list[tuple[int, tuple[int, ...]]]()  # scatters, and what was untouched before
        for i, step in enumerate(part):
            here, known = i, tuple[int, ...]()
            if step.act == "gather":
                here, known = opened.pop()
            before = [one for one, _ in opened]
            free = tuple(one for one in scatters if one != here and one not in before)
            apart = [part[one].dimensions for one in before]
            count = math.prod(self.line(part[one]) - 1 for one in free)
            yield SpreadStage(
                *(number, i, first, (self.line(step) - 1, count)),
                zero=tuple(sorted(untouched)),
                apart=(*apart, step.dimensions) if step.act == "gather" else tuple(apart),
                free=free,
                known=known,
            )
            first += (self.line(step) - 1) * count
            if step.act == "scatter":
                opened.append((i, tuple(sorted(untouched))))
            untouched -= set(step.dimensions)

    def __len__(self) -> int:
        shares = sum(math.prod(self.shares(part)) for part in self.parts)
        return shares * self.pieces * (len(self.npus) - 1)

    def described(self) -> dict[str, Any]:
        return {"form": "moves of all who send at once", "own_rows": len(self.start)}

    def time(self, algorithm: Algorithm) -> int:
        table, latest = SpreadTable(algorithm, self), 0
        for stage in self.stages:
            # Those that may be the last, by the longest of their chunks; then exactly.
            end = (table.latest(stage)[:, None] + table.unlike * self.period).reshape(-1)
            places = table.senders(stage)
            for at in np.argsort(-end, kind="stable").tolist():
                if end[at] <= latest:
                    break
                which = np.full_like(places, at // len(table.unlike))
                piece = int(table.unlike[at % len(table.unlike)])
                latest = max(latest, table.end(stage, which, places, piece))
        return latest

    def of_npu(self, algorithm: Algorithm, npu: int) -> Transfers:
        table, here = SpreadTable(algorithm, self), np.flatnonzero(self.npus == npu)
        pieces, found = np.arange(self.pieces), []
        for stage in self.stages:
            which = np.arange(stage.count)
            before = moved(self.sizes, here, table.by(stage, which), sign=-1)
            found.append(table.rows(stage, which, np.repeat(here, len(which)), pieces))
            found.append(table.rows(stage, which, before, pieces))
        return in_order(found)

    def near(self, algorithm: Algorithm, npu: int, rows: Transfers) -> Numbers:
        table, here = SpreadTable(algorithm, self), np.flatnonzero(self.npus == npu)
        return table.ways.near(int(here[0]), rows.require_times().route)

    def table(self, algorithm: Algorithm) -> tuple[Transfers, Routes]:
        table, found = SpreadTable(algorithm, self), []
        for stage in self.stages:
            places, which = table.senders(stage), np.arange(stage.count)
            each, at = np.repeat(which, len(places)), np.tile(places, len(which))
            found.append(table.rows(stage, each, at, np.arange(self.pieces)))
        return in_order(found), table.ways.routes()
