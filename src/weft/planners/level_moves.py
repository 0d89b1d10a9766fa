"""The same search where all NPUs see the same: what is found are moves, and no rows are listed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, LevelRows, Timing
from weft.planners.composition import Step
from weft.planners.cutting import Cutting
from weft.planners.layouts import Frame
from weft.planners.level_search import FEW_ROWS, MOST_LOOKS, NAME, RULES, LevelSearch
from weft.planners.mixes import Lane, Mix
from weft.planners.problem import Problem
from weft.planners.terraces import TerracedScene
from weft.units import NEVER

_MANY = 512  # NPUs, of whom no table is made
_MOST_MOVES, _MOVES_A_ROW = 1 << 20, 1 / 8  # of one NPU
_LITTLE = 1.04  # times what is good enough


def ranks_of(problem: Problem) -> int:
    """How many NPUs all collectives have."""
    return sum(demand.ranks for demand in problem.demands)


def are_many(problem: Problem) -> bool:
    """Whether there are so many NPUs that others could not plan for them in reasonable time."""
    return ranks_of(problem) >= _MANY


@dataclass
class MoveSearch(LevelSearch):
    """The same where all NPUs see the same: what is found are moves, and no rows are listed."""

    scene: TerracedScene

    @property
    def looks(self) -> int:
        return max(1, min(MOST_LOOKS, _MOST_MOVES // (2 * self.problem.demand.ranks)))

    def _lanes(self, frame: Frame) -> Iterator[Lane]:
        """Those whose shares all have bytes."""
        units = self.size // self.problem.demand.alignment
        if not self.free:
            units = self.problem.demand.ranks
        return (lane for lane in super()._lanes(frame) if lane.shares <= units)

    def _turned(self, frame: Frame) -> Iterator[Mix]:
        units = self.size // self.problem.demand.alignment
        for mix in super()._turned(frame):
            if all(lane.shares * len(mix) <= units for lane in mix):
                yield mix

    def _steps(self, frame: Frame, level: int) -> Iterator[Step]:
        """None goes round rings: behind switches all are neighbours.

        Where that is cheap each way is there twice even so: parts of one way, one a bit after the
        other, fill the gaps that latencies leave.
        """
        return (one for one in super()._steps(frame, level) if self.is_cheap or not one.ring)

    @property
    def is_cheap(self) -> bool:
        """Whether there are few moves: else parts are not mixed."""
        return self.looks == MOST_LOOKS

    def _look(self, mix: Mix) -> int:
        """By both rules, until some plan is good enough."""
        for rule in RULES:
            if min(self.seen.values(), default=NEVER) > self._enough:
                self._time(self._cut(mix, FEW_ROWS), rule)
        cut = self._cut(mix, FEW_ROWS)
        return min(self.seen.get((cut, rule), NEVER) for rule in RULES)

    def _mixed(self, mix: Mix, lanes: Sequence[Lane]) -> Mix:
        """Not where that is dear, for what little may be gained."""
        near = are_many(self.problem) and min(self.seen.values()) <= self._enough * _LITTLE
        return super()._mixed(mix, lanes) if self.is_cheap and not near else mix

    def _climb(self, mix: Mix) -> None:
        if self.is_cheap:
            super()._climb(mix)

    def _cut(self, mix: Mix, rows: int) -> Cutting:
        """In so many pieces that one NPU sends so much less than all do where rows are listed."""
        if not self.free:
            return Cutting.of(self.problem.demand, mix, None)
        ranks = self.problem.demand.ranks
        moves = sum(lane.part.rows(lane.frame.sizes) for lane in mix) // ranks
        wanted = max(rows * _MOVES_A_ROW * 2 / max(sum(self.ways.values()), 1), moves)
        return Cutting.of(self.problem.demand, mix, min(wanted, _MOST_MOVES) * ranks)

    def _time(self, cutting: Cutting, rule: int) -> int:
        """Only chunks that all have bytes will do."""
        key = cutting, rule
        if key not in self.seen:
            self.problem.progress.check()
            empty = any(smallest == 0 for smallest, _ in cutting.sizes(self.problem.demand))
            self.seen[key] = NEVER if empty else self._composed(cutting, rule)[2]
        return self.seen[key]

    def _composed(
        self, cutting: Cutting, rule: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        sizes = cutting.sizes(self.problem.demand)
        parts = [
            (lane.frame, lane.part, pieces, size)
            for lane, pieces, size in zip(cutting.mix, cutting.pieces, sizes, strict=True)
        ]
        lanes = self.scene.lanes(parts, **self.ways, exchange=self.kind == "all-to-all")
        return _core.compose(lanes, len(self.scene.rate), rule, self.problem.progress)

    def _best(self) -> Algorithm:
        best = min(self.seen, key=lambda key: self.seen[key])
        return self._made(*self._coarser(*best))

    def _made(self, cutting: Cutting, rule: int, *, early: bool = False) -> Algorithm:  # noqa: ARG002
        problem, scene = self.problem, self.scene
        _, start, _ = self._composed(cutting, rule)
        whole = len(cutting.mix) == 1 and cutting.mix[0].shares == problem.demand.ranks
        demands = [
            replace(demand, chunks_per_share=cutting.pieces[0])
            if whole and cutting.free
            else cutting.demand(demand)
            for demand in problem.demands
        ]
        parts = tuple(
            scene.part(lane.frame, lane.part, pieces)
            for lane, pieces in zip(cutting.mix, cutting.pieces, strict=True)
        )
        rows = LevelRows(
            scene.grid.sizes,
            scene.grid.npus,
            tuple(climb.ladder for climb in scene.climbs),
            parts,
            start,
            exchange=self.kind == "all-to-all",
            **self.ways,
        )
        timing = Timing(problem.topology, problem.cost)
        return Algorithm(tuple(demands), rows, timing, {"method": NAME})
