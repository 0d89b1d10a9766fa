"""How the moves of a part go over ladders: how high they climb, and how long they take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weft.cost import CostModel
from weft.judge.ladders import Rungs
from weft.units import CLOCK_PS, format_time

Numbers = NDArray[np.int64]


class Along(Protocol):
    """A step along lines of a grid, over a ladder."""

    @property
    def dimensions(self) -> tuple[int, ...]: ...
    @property
    def ladder(self) -> int: ...


@dataclass(frozen=True, eq=False)
class PartHops:
    """One part's hops; their times hold for all sizes of its chunks.

    Attributes
    ----------
    sizes
        Of the grid.
    bytes
        The sizes of its chunks.
    """

    sizes: tuple[int, ...]
    steps: Sequence[Along]
    ladders: list[Rungs]
    cost: CostModel
    bytes: Numbers

    def away(self, step: int) -> Numbers:
        """Where the distances along a step's level lead from place 0, from 1 on."""
        return self._ways[step][0]

    def tops(self, step: int) -> Numbers:
        """The tier up to which each distance climbs; -1 if no switch is above both ends."""
        return self._ways[step][1]

    @cached_property
    def _ways(self) -> list[tuple[Numbers, Numbers]]:
        found = []
        for step in self.steps:
            index = np.arange(1, math.prod(self.sizes[d] for d in step.dimensions))
            away, differ = np.zeros_like(index), np.zeros_like(index)
            for dimension in step.dimensions:
                index, along = np.divmod(index, self.sizes[dimension])
                away += along * math.prod(self.sizes[:dimension])
                differ |= (along > 0).astype(np.int64) << dimension
            rungs = self.ladders[step.ladder]
            kinds, kind = np.unique(differ, return_inverse=True)
            tops = np.array([rungs.top(bits) for bits in kinds.tolist()], dtype=np.int64)
            found.append((away, tops[kind] if len(kinds) else differ))
        return found

    def reversed(self, step: int) -> Numbers:
        """For each distance, the one that leads back: in the arrays above, by place."""
        sizes = [self.sizes[dimension] for dimension in self.steps[step].dimensions]
        cube = np.arange(math.prod(sizes)).reshape(sizes[::-1])
        for axis in range(len(sizes)):
            cube = np.roll(np.flip(cube, axis), 1, axis)
        back: Numbers = cube.reshape(-1)[1:] - 1
        return back

    def unreached(self) -> str | None:
        """A distance of some step along which its ladder does not lead, in words."""
        for number, step in enumerate(self.steps):
            for at in np.flatnonzero(self.tops(number) < 0)[:1].tolist():
                far = self.away(number)[at]
                return f"no switch of ladder {step.ladder} is above places 0 and {far}"
        return None

    def leaving(self, step: int, latest: int) -> str | None:
        """Whether a move that starts as late as that may end after the clock, in words.

        Reckoned in whole numbers of any length. If it may not, all its times, and their sums with
        its start, are within the clock.
        """
        ladder = self.steps[step].ladder
        for top in np.unique(self.tops(step)).tolist():
            # The cost model has no longer times to push a chunk than half the clock.
            alone = self.ladders[ladder].longest(top, int(self.bytes.max()))
            if 2 * alone >= CLOCK_PS or latest + self._over(ladder, top) >= CLOCK_PS:
                return f"a move that starts at {format_time(latest)} leaves the clock (53 days)"
        return None

    def late(self, step: int) -> Numbers:
        """The latest that what a move carries arrives after its start, by distance."""
        tops, ladder = self.tops(step), self.steps[step].ladder
        late = np.zeros(len(tops), dtype=np.int64)
        for top in np.unique(tops).tolist():
            late[tops == top] = self.holds(ladder, top)[0] + self.spread(ladder, top)
        return late

    def over(self, step: int) -> int:
        """How long after its start a move may hold links, or be on its way, at the most."""
        tops = np.unique(self.tops(step)).tolist()
        return max((self._over(self.steps[step].ladder, top) for top in tops), default=0)

    def _over(self, ladder: int, top: int) -> int:
        takes, _, end = self.holds(ladder, top)
        return max(takes, int(end.max())) + self.spread(ladder, top)

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
