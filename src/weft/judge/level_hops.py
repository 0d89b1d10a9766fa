"""How the moves of a part go over ladders: how high they climb, and how long they take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm, LevelPart, LevelRows
from weft.cost import CostModel
from weft.judge.ladders import Rungs
from weft.judge.level_parts import length, sizes_of

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PartHops:
    """One part's hops; their times hold for all sizes of its chunks.

    Attributes
    ----------
    bytes
        The sizes of its chunks.
    """

    rows: LevelRows
    part: LevelPart
    ladders: list[Rungs]
    cost: CostModel
    bytes: Numbers

    @classmethod
    def of(
        cls, algorithm: Algorithm, rows: LevelRows, ladders: list[Rungs], number: int
    ) -> PartHops:
        cost, sizes = algorithm.require_timing().cost, sizes_of(algorithm, rows, number)
        return cls(rows, rows.parts[number], ladders, cost, sizes)

    def away(self, step: int) -> Numbers:
        """Where the distances along a step's level lead from place 0, from 1 on."""
        return self._ways[step][0]

    def tops(self, step: int) -> Numbers:
        """The tier up to which each distance climbs; -1 if no switch is above both ends."""
        return self._ways[step][1]

    @cached_property
    def _ways(self) -> list[tuple[Numbers, Numbers]]:
        found = []
        for step in self.part.steps:
            index = np.arange(1, length(self.rows, step))
            away, differ = np.zeros_like(index), np.zeros_like(index)
            for dimension in step.dimensions:
                index, along = np.divmod(index, self.rows.sizes[dimension])
                away += along * math.prod(self.rows.sizes[:dimension])
                differ |= (along > 0).astype(np.int64) << dimension
            rungs = self.ladders[step.ladder]
            kinds, kind = np.unique(differ, return_inverse=True)
            tops = np.array([rungs.top(bits) for bits in kinds.tolist()], dtype=np.int64)
            found.append((away, tops[kind] if len(kinds) else differ))
        return found

    def reversed(self, step: int) -> Numbers:
        """For each distance, the one that leads back: in the arrays above, by place."""
        sizes = [self.rows.sizes[dimension] for dimension in self.part.steps[step].dimensions]
        cube = np.arange(math.prod(sizes)).reshape(sizes[::-1])
        for axis in range(len(sizes)):
            cube = np.roll(np.flip(cube, axis), 1, axis)
        back: Numbers = cube.reshape(-1)[1:] - 1
        return back

    def unreached(self) -> str | None:
        """A distance of some step along which its ladder does not lead, in words."""
        for number, step in enumerate(self.part.steps):
            for at in np.flatnonzero(self.tops(number) < 0)[:1].tolist():
                far = self.away(number)[at]
                return f"no switch of ladder {step.ladder} is above places 0 and {far}"
        return None

    def late(self, step: int) -> Numbers:
        """The latest that what a move carries arrives after its start, by distance."""
        tops, ladder = self.tops(step), self.part.steps[step].ladder
        late = np.zeros(len(tops), dtype=np.int64)
        for top in np.unique(tops).tolist():
            late[tops == top] = self.holds(ladder, top)[0] + self.spread(ladder, top)
        return late

    def holds(self, ladder: int, top: int) -> tuple[int, Numbers, Numbers]:
        """See `Rungs.holds`."""
        if (ladder, top) not in self._holds:
            self._holds[ladder, top] = self.ladders[ladder].holds(self.cost, top, self.bytes)
        return self._holds[ladder, top]

    @cached_property
    def _holds(self) -> dict[tuple[int, int], tuple[int, Numbers, Numbers]]:
        return {}

    def wait(self, ladder: int, top: int) -> int:
        """How long each turn takes: as long as a chunk may hold any of the shared links."""
        _, begin, end = self.holds(ladder, top)
        shared = [tier for tier in range(top + 1) if self.ladders[ladder].shared[tier]]
        held = [int(end[i] - begin[i]) for t in shared for i in (t, 2 * top + 1 - t)]
        return max(held, default=0)

    def spread(self, ladder: int, top: int) -> int:
        """How much later than the first the last has its turn."""
        return self.wait(ladder, top) * int(self.ladders[ladder].ladder.turn[top].max())
