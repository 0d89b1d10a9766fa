"""The search for the best mix of ways through levels: parts alone first, then beside each other.

What a mix of parts takes follows from the moves that all NPUs make at once, which is cheap to find;
only the best get rows and exact times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm
from weft.engine import placed
from weft.planners.composition import Part, Step
from weft.planners.cutting import Cutting
from weft.planners.layouts import Frame, Scene
from weft.planners.mixes import Lane, Mix, beside
from weft.planners.problem import ROUNDED, Problem
from weft.planners.sends import Sends, in_steps
from weft.units import NEVER

NAME = "by-level"
RULES = (1, 0)  # as in cpp/planners/by_level/by_level.h
MOST_ROWS, FEW_ROWS = 1 << 20, 1 << 16  # of a plan, and of a first look
MOST_LOOKS = 32
HOPE = 1.6  # what should take so much longer than the best is not looked at
_NO_RING = 3  # NPUs that are all neighbours of each other
_MOST_ORDERED = 3  # levels whose orders are all tried; of more, only those that begin elsewhere
_FEW_PIECES = 4  # a share has at least, if that is not too many rows
_FINALISTS, _MATES, _MOST_PARTS = 2, 5, 2
_WEIGHTS, _FINEST = (1 / 16, 1 / 8, 1 / 4, 1 / 2), 1 / 1024
_EXACT = 4  # how many mixes get exact times where the first takes longer than all alike would
_TRUE = 1.005
_LOST = 0.1  # of the time in which links are shared
_HARDLY = 1.0002
_WORTH = 1.002  # more pieces, and more parts, must gain at least this much


@dataclass
class LevelSearch:
    """The best mix; `seen` has what those looked at take if all NPUs do the same."""

    problem: Problem
    scene: Scene
    seen: dict[tuple[Cutting, int], int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return self.problem.demand.size

    @property
    def kind(self) -> str:
        return self.problem.demand.kind

    @property
    def ways(self) -> dict[str, bool]:
        return {
            "sums": self.kind in ("all-reduce", "reduce-scatter"),
            "copies": self.kind in ("all-reduce", "all-gather"),
        }

    @property
    def free(self) -> bool:
        return bool(self.problem.free) and all(self.problem.free)

    @property
    def most_parts(self) -> int:
        """How many parts there may be: each needs chunks of its own."""
        return NEVER if self.free else self.problem.demand.chunks_per_share

    @property
    def looks(self) -> int:
        """How many mixes are looked at."""
        return MOST_LOOKS

    def run(self) -> Algorithm:
        """Parts alone first; then ever more parts beside each other; then more pieces."""
        self.problem.say("composing levels")
        lanes = [lane for frame in self.scene.frames for lane in self._lanes(frame)]
        mixes: list[Mix] = [(lane,) for lane in lanes]
        turned = [mix for frame in self.scene.frames for mix in self._turned(frame)]
        mixes += (mix for mix in turned if len(mix) <= self.most_parts)
        mixes.sort(key=self._estimate)
        hope = self._estimate(mixes[0]) * HOPE
        mixes = [mix for mix in mixes[: self.looks] if self._estimate(mix) <= hope]
        mixes.sort(key=self._look)
        # What goes well beside others: what is good alone, is over soon, or uses other links.
        mates = [mix[0] for mix in mixes if len(mix) == 1][:_MATES]
        mates += sorted(lanes, key=lambda lane: (lane.alpha, lane.load.max()))[:_MATES]
        first = {
            (lane.frame, lane.part.steps[0].level): lane
            for lane in sorted(lanes, key=self._work)[::-1]
        }
        mates += first.values()
        for mix in mixes[:_FINALISTS]:
            if min(self.seen.values()) <= self._enough:
                break
            mixed = self._mixed(mix, mates)
            if self.free:
                self._climb(mixed)
        return self._best()

    @cached_property
    def _enough(self) -> float:
        """What ends the search, in picoseconds: as good as a bound, for given chunks if so."""
        task = self.problem.task
        return (task.ideal if self.free else task.bound) * task.near + ROUNDED

    def _lanes(self, frame: Frame) -> Iterator[Lane]:
        """Every order of levels, and every way along each."""
        count = len(frame.sizes)
        orders: Iterable[Sequence[int]] = permutations(range(count))
        if count > _MOST_ORDERED:
            orders = [range(count)]
        for order in orders:
            for steps in product(*(self._steps(frame, level) for level in order)):
                yield self._lane(frame, steps)

    def _steps(self, frame: Frame, level: int) -> Iterator[Step]:
        """The ways along a level."""
        if not frame.rings[level]:
            yield Step(level, scatter=True)
            if self.kind == "all-reduce":
                yield Step(level, scatter=False)
        if frame.sizes[level] > _NO_RING and len(frame.sizes) <= _MOST_ORDERED:
            yield Step(level, scatter=True, ring=True)

    def _turned(self, frame: Frame) -> Iterator[Mix]:
        """As many parts as levels, each of which begins with another one."""
        count = len(frame.sizes)
        shoots = self.kind == "all-reduce" and not any(frame.rings)
        for scattered in range(0 if shoots else count, count + 1) if count > 1 else ():
            orders = ([(first + i) % count for i in range(count)] for first in range(count))
            yield tuple(
                self._lane(
                    frame,
                    [
                        Step(level, i < scattered, frame.rings[level])
                        for i, level in enumerate(order)
                    ],
                ).weighing(1 / count)
                for order in orders
            )

    def _lane(self, frame: Frame, steps: Iterable[Step]) -> Lane:
        both, exchange = self.kind == "all-reduce", self.kind == "all-to-all"
        return Lane.of(frame, Part(tuple(steps)), self.scene.rate, both=both, exchange=exchange)

    def _work(self, lane: Lane) -> float:
        """How many seconds links are held, and latencies."""
        return lane.alpha + float(lane.load.sum()) * self.size

    def _estimate(self, mix: Mix) -> float:
        """About how many seconds a mix takes: its latencies, and the busiest link."""
        load = np.sum([lane.part.weight * lane.load for lane in mix], axis=0)
        longest = max(mix, key=lambda lane: lane.alpha)
        return replace(longest, load=load).time(self.size)

    def _mixed(self, mix: Mix, lanes: Sequence[Lane]) -> Mix:
        """The mix with other parts beside it, as long as each gains something."""
        mix = self._balanced(mix) if len(mix) > 1 else mix
        for _ in range(min(_MOST_PARTS, self.most_parts - len(mix))):
            steps = {(lane.frame, lane.part.steps) for lane in mix}
            new = [lane for lane in lanes if (lane.frame, lane.part.steps) not in steps]
            others = (beside(mix, lane, x) for lane in new for x in _WEIGHTS)
            better = min(others, key=self._look, default=mix)
            if self._look(better) * _WORTH > self._look(mix):
                return mix
            mix = self._balanced(better)
        return mix

    def _balanced(self, mix: Mix) -> Mix:
        """The mix with the last part made larger or smaller, while that gains something."""
        step = _WEIGHTS[0]
        while step > _FINEST:
            x = mix[-1].part.weight
            others = [beside(mix[:-1], mix[-1], y) for y in (x - step, x + step) if 0 < y < 1]
            better = min(others, key=self._look)
            if self._look(better) < self._look(mix):
                mix = better
            else:
                step /= 2
        return mix

    def _climb(self, mix: Mix) -> None:
        """More and more pieces, while that gains something."""
        rows, last = FEW_ROWS, self._look(mix)
        while (rows := 2 * rows) <= MOST_ROWS:
            time = min(self._time(self._cut(mix, rows), rule) for rule in RULES)
            if time * _WORTH > last:
                return
            last = time

    def _look(self, mix: Mix) -> int:
        """What a mix takes in few pieces."""
        return self._time(self._cut(mix, FEW_ROWS), RULES[0])

    def _cut(self, mix: Mix, rows: int) -> Cutting:
        """In so many pieces that there are so many rows, or a few at least."""
        if not self.free:
            return Cutting.of(self.problem.demand, mix, None)
        one = sum(lane.part.rows(lane.frame.sizes) for lane in mix)
        per_row = len(self.problem.demands) * sum(self.ways.values()) / 2
        few = min(_FEW_PIECES * one * per_row, MOST_ROWS // 2)
        return Cutting.of(self.problem.demand, mix, max(rows, few) / per_row)

    def _time(self, cutting: Cutting, rule: int) -> int:
        """What a mix takes if all NPUs do the same, in picoseconds.

        Where messages pass a link one by one, NPUs do not: some of that time is lost.
        """
        key = cutting, rule
        if key not in self.seen:
            self.problem.progress.check()
            _, _, time = self._composed(cutting, rule)
            shared = sum(lane.part.weight * lane.shared for lane in cutting.mix) * self.size
            self.seen[key] = time + round(shared * _LOST * 1e12)
        return self.seen[key]

    def _composed(
        self, cutting: Cutting, rule: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        lanes = [
            self.scene.lane(lane.frame, lane.part, pieces, max(largest, 1), **self.ways)
            for lane, pieces, (_, largest) in zip(
                cutting.mix, cutting.pieces, cutting.sizes(self.problem.demand), strict=True
            )
        ]
        return _core.compose(lanes, len(self.scene.rate), rule, self.problem.progress)

    def _best(self) -> Algorithm:
        """The best with exact times: where messages meet between switches, that is not the first.

        Few are tried, in few and in many pieces, by both rules.
        """
        ranked = sorted(self.seen, key=lambda key: self.seen[key])
        first = self._coarser(*ranked[0])
        best = self._made(*first)
        if best.time <= self.seen[first] * _TRUE:
            early = best if best.time <= self._enough else self._made(*first, early=True)
            return min(best, early, key=lambda algorithm: algorithm.time)
        made = dict[tuple[Cutting, int], Algorithm]()
        for mix in list(dict.fromkeys(cutting.mix for cutting, _ in ranked))[:_EXACT]:
            cuts = dict.fromkeys(cutting for cutting, _ in ranked if cutting.mix == mix)
            for key in product([*cuts, self._cut(mix, 2 * FEW_ROWS)][:2], RULES):
                made[key] = self._made(*key)
        # Of the best, what else fits in the gaps that messages leave while they wait?
        order = sorted(made, key=lambda key: made[key].time)
        gaps = [self._made(*key, early=True) for key in order[:_EXACT]]
        return min([best, *made.values(), *gaps], key=lambda algorithm: algorithm.time)

    def _coarser(self, cutting: Cutting, rule: int) -> tuple[Cutting, int]:
        """In fewer pieces, if that takes hardly longer."""
        most = self.seen[cutting, rule] * _HARDLY
        while self.free and max(cutting.pieces) > 1:
            fewer = replace(cutting, pieces=tuple(-(-count // 2) for count in cutting.pieces))
            if self._time(fewer, rule) > most:
                break
            cutting = fewer
        return cutting, rule

    def _made(self, cutting: Cutting, rule: int, *, early: bool = False) -> Algorithm:
        """The plan with exact times; `early`: rows may start sooner than if all did the same."""
        problem = self.problem
        ready, start, _ = self._composed(cutting, rule)
        demands = [cutting.demand(demand) for demand in problem.demands]
        parts = []
        for number, demand in enumerate(demands):
            first = 0
            for lane, chunk in zip(cutting.mix, cutting.chunks(demand, number), strict=True):
                layout = lane.frame.layouts[number]
                end = first + chunk.shape[1] * layout.moves(lane.part, **self.ways)
                times = ready[first:end], start[first:end]
                slots = len(demand.chunks)
                parts.append((number, layout.sends(lane.part, chunk, slots, times, **self.ways)))
                first = end
        sends = [
            Sends.together([part for owner, part in parts if owner == number])
            for number in range(len(demands))
        ]
        rows, steps = in_steps(NAME, demands, sends)
        earliest = np.zeros_like(steps) if early else steps // 2
        return placed(rows, problem.topology, problem.cost, earliest)
