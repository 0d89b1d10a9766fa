"""Compositions by level: boxes, leaves, pods or dimensions one after the other.

Along each level a part of the buffer is summed in one shot or in shares, directly or round rings;
parts may differ. What a mix of parts takes follows from the moves that all NPUs make at once, which
is cheap to find; only the best get rows and exact times.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, LevelRows, Timing
from weft.engine import placed
from weft.errors import InputError
from weft.planners.composition import Part, Step
from weft.planners.cutting import Cutting
from weft.planners.layouts import Frame, Scene, scene
from weft.planners.listed import timed
from weft.planners.mixes import Lane, Mix, beside
from weft.planners.planner import Planner, add
from weft.planners.problem import ROUNDED, Problem
from weft.planners.schedule import Schedule
from weft.planners.sends import Sends, in_steps
from weft.planners.terraces import TerracedScene, terraced
from weft.units import NEVER

KINDS = ("all-reduce", "all-gather", "reduce-scatter")
_NO_RING = 3  # NPUs that are all neighbours of each other
_MOST_ORDERED = 3  # levels whose orders are all tried; of more, only those that begin elsewhere
_FEW_ROWS, _MOST_ROWS = 1 << 16, 1 << 20  # of a first look, and of a plan
_FEW_PIECES = 4  # a share has at least, if that is not too many rows
_RULES = (1, 0)  # as in cpp/planners/by_level/by_level.h
_LOOKS, _FINALISTS, _MATES, _MOST_PARTS = 32, 2, 5, 2
_WEIGHTS, _FINEST = (1 / 16, 1 / 8, 1 / 4, 1 / 2), 1 / 1024
_HOPE = 1.6  # what should take so much longer than the best is not looked at
_EXACT = 4  # how many mixes get exact times where the first takes longer than all alike would
_TRUE = 1.005
# Among fewer NPUs others are cheap enough to ask, and among more there are too many rows for a mix
# of parts; not if the plan is so close.
_MANY, _MOST_MIXED, _CLOSE = 32, 512, 1.01
_LOST = 0.1  # of the time in which links are shared
_HARDLY = 1.0002
_MOST_MOVES, _MOVES_A_ROW = 1 << 20, 1 / 8  # of one NPU, where all do the same
# NPUs whose rows are listed even so: exact times gain a little, and more where links are shared.
_MOST_LISTED, _MOST_SHARING = 128, 512
_LITTLE = 1.04  # times what is good enough
_WORTH = 1.002  # more pieces, and more parts, must gain at least this much


class ByLevel(Planner):
    """All-Reduce, All-Gather and Reduce-Scatter, level by level."""

    name = "by-level"
    summary = "boxes, leaves or dimensions one after the other, in one shot or in shares"
    rank = 30
    beside = judged = seeded = False
    keeps_apart = True

    def fits(self, problem: Problem) -> str | None:
        kinds = problem.kinds
        if len(kinds) > 1 or not kinds <= {*KINDS, "all-to-all"} or not _are_alike(problem):
            return f"plans {', '.join(KINDS)} and all-to-all, of one group or of several alike"
        if _alike(problem) is not None:
            full = problem.demand.smallest_chunk > 0 or kinds == {"all-reduce"}
            return None if full else "plans chunks that are not empty"
        if kinds == {"all-to-all"}:
            return "plans all-to-all among NPUs that all see the same switches"
        if problem.topology.buffers and problem.cost.switching == "store-and-forward":
            return "plans switches that can hold any chunk"
        if sum(demand.ranks**2 for demand in problem.demands) > _MOST_ROWS:
            return f"plans groups of up to {math.isqrt(_MOST_ROWS)} NPUs"
        regular = problem.topology.switches > 0 or _is_regular(problem)
        if not regular or scene(problem) is None:
            return "plans groups in which lines of NPUs are joined directly or in rings"
        return None

    def plans_alike(self, problem: Problem) -> bool:
        return self.fits(problem) is None and _alike(problem) is not None

    def rivals(self, problem: Problem, best: Algorithm, other: Planner) -> bool:
        """Behind switches, where all NPUs see the same, nobody finds much that is better.

        Only where messages meet on links that they share, a plain ring may: it hardly uses them.
        And where switches copy, others may use that.
        """
        is_users = other.seeded and other.judged
        if self.plans_alike(problem) and _are_many(problem):
            return is_users
        seen = scene(problem) if self.fits(problem) is None else None
        network = problem.topology
        plain = network.switches > 0 and not network.copying
        alike = plain and seen is not None and seen.is_even
        many = _MANY <= problem.demand.ranks <= _MOST_MIXED
        hope = _HOPE if many else _CLOSE
        if seen is None or not alike or best.time > problem.task.ideal * hope:
            return True
        return is_users or (seen.is_shared and other.name == "ring")

    def plan(self, problem: Problem) -> Algorithm:
        reverse = problem.topology.reverse_links
        sums = problem.demand.kind == "reduce-scatter"
        if not sums or reverse is None or _alike(problem) is not None:
            return _planned(problem)
        # The same run backwards: so both take the same time.
        gathers = [replace(demand, kind="all-gather") for demand in problem.demands]
        task = replace(problem.task, demands=tuple(gathers))
        gathered = _planned(replace(problem, task=task))
        demands = [replace(demand, kind="reduce-scatter") for demand in gathered.demands]
        backwards = Schedule.of(gathered).backwards(reverse)
        return timed(problem.cut(demands), [backwards], self.name)

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:  # noqa: ARG002
        return self.plan(problem)


def _planned(problem: Problem) -> Algorithm:
    if (alike := _alike(problem)) is not None:
        return _Compact(problem, alike).run()
    seen = scene(problem)
    if seen is None:
        raise InputError("method by-level plans groups that have levels; use auto")
    return _Search(problem, seen).run()


def _ranks(problem: Problem) -> int:
    return sum(demand.ranks for demand in problem.demands)


def _are_many(problem: Problem) -> bool:
    """Whether there are so many NPUs that others could not plan for them in reasonable time."""
    return _ranks(problem) >= _MOST_MIXED


def _alike(problem: Problem) -> TerracedScene | None:
    """What all NPUs see, where they see the same and are many."""
    ranks = _ranks(problem)
    if ranks <= _MOST_LISTED and problem.kinds <= set(KINDS):
        return None
    found = terraced(problem)
    few = found is not None and found.is_shared and ranks <= _MOST_SHARING
    return None if few and problem.kinds <= set(KINDS) else found


def _are_alike(problem: Problem) -> bool:
    """Whether all collectives are alike but for their groups, and have something to do."""
    first = problem.demand
    return first.ranks > 1 and all(
        demand.parts is None and replace(demand, group=first.group) == first
        for demand in problem.demands
    )


def _is_regular(problem: Problem) -> bool:
    """Whether members have as many neighbours: else lines at some edge are no rings."""
    network = problem.topology
    joined = np.unique(network.src * np.int64(network.nodes) + network.dst)
    neighbours = np.bincount(joined // network.nodes, minlength=network.nodes)[network.members]
    everybody = len(problem.demands) == 1 and problem.demand.ranks == len(network.members)
    return not everybody or int(neighbours.min()) == int(neighbours.max())


@dataclass
class _Search:
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
        return _LOOKS

    def run(self) -> Algorithm:
        """Parts alone first; then ever more parts beside each other; then more pieces."""
        self.problem.say("composing levels")
        lanes = [lane for frame in self.scene.frames for lane in self._lanes(frame)]
        mixes: list[Mix] = [(lane,) for lane in lanes]
        turned = [mix for frame in self.scene.frames for mix in self._turned(frame)]
        mixes += (mix for mix in turned if len(mix) <= self.most_parts)
        mixes.sort(key=self._estimate)
        hope = self._estimate(mixes[0]) * _HOPE
        mixes = [mix for mix in mixes[: self.looks] if self._estimate(mix) <= hope]
        mixes.sort(key=self._look)
        # What goes well beside others: what is good alone, is over soon, or uses other links.
        mates = [mix[0] for mix in mixes if len(mix) == 1][:_MATES]
        mates += sorted(lanes, key=lambda lane: (lane.alpha, lane.load.max()))[:_MATES]
        first = {lane.part.steps[0].level: lane for lane in sorted(lanes, key=self._work)[::-1]}
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
        rows, last = _FEW_ROWS, self._look(mix)
        while (rows := 2 * rows) <= _MOST_ROWS:
            time = min(self._time(self._cut(mix, rows), rule) for rule in _RULES)
            if time * _WORTH > last:
                return
            last = time

    def _look(self, mix: Mix) -> int:
        """What a mix takes in few pieces."""
        return self._time(self._cut(mix, _FEW_ROWS), _RULES[0])

    def _cut(self, mix: Mix, rows: int) -> Cutting:
        """In so many pieces that there are so many rows, or a few at least."""
        if not self.free:
            return Cutting.of(self.problem.demand, mix, None)
        one = sum(lane.part.rows(lane.frame.sizes) for lane in mix)
        per_row = len(self.problem.demands) * sum(self.ways.values()) / 2
        few = min(_FEW_PIECES * one * per_row, _MOST_ROWS // 2)
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
            for key in product([*cuts, self._cut(mix, 2 * _FEW_ROWS)][:2], _RULES):
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
        rows, steps = in_steps(ByLevel.name, demands, sends)
        earliest = np.zeros_like(steps) if early else steps // 2
        return placed(rows, problem.topology, problem.cost, earliest)


@dataclass
class _Compact(_Search):
    """The same where all NPUs see the same: what is found are moves, and no rows are listed."""

    scene: TerracedScene

    @property
    def looks(self) -> int:
        return max(1, min(_LOOKS, _MOST_MOVES // (2 * self.problem.demand.ranks)))

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
        """None goes round rings: behind switches all are neighbours."""
        return (step for step in super()._steps(frame, level) if not step.ring)

    @property
    def is_cheap(self) -> bool:
        """Whether there are few moves: else parts are not mixed."""
        return self.looks == _LOOKS

    def _look(self, mix: Mix) -> int:
        """By both rules, until some plan is good enough."""
        for rule in _RULES:
            if min(self.seen.values(), default=NEVER) > self._enough:
                self._time(self._cut(mix, _FEW_ROWS), rule)
        cut = self._cut(mix, _FEW_ROWS)
        return min(self.seen.get((cut, rule), NEVER) for rule in _RULES)

    def _mixed(self, mix: Mix, lanes: Sequence[Lane]) -> Mix:
        """Not where that is dear, for what little may be gained."""
        near = _are_many(self.problem) and min(self.seen.values()) <= self._enough * _LITTLE
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
        return Algorithm(tuple(demands), rows, timing, {"method": ByLevel.name})


add(ByLevel())
