"""Compositions by level: boxes, leaves, pods or dimensions one after the other.

Along each level a part of the buffer is summed in one shot or in shares; parts may differ. What a
composition takes at least follows from its latencies and from the load of every link; the most
promising ones are simulated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm
from weft.collective import Collective, all_reduce_at
from weft.collective.chunks import cut
from weft.engine import simulate
from weft.planners.composition import Part, Step
from weft.planners.layouts import Frame, Scene, scene_of
from weft.planners.planner import Planner, add
from weft.planners.problem import ROUNDED, Problem
from weft.planners.sends import Sends, untimed
from weft.topology.model import Topology

KINDS = ("all-reduce", "all-gather", "reduce-scatter")
_NO_RING = 3  # NPUs that are all neighbours of each other
_MOST_ORDERED = 3  # levels whose orders are all tried; of more, only those that begin elsewhere
_FEW_ROWS, _MOST_ROWS = 1 << 17, 1 << 19
_RULES = (1, 0)  # as in cpp/planners/by_level/by_level.h  # of a first look, and of a plan
_LOOKS, _FINALISTS = 40, 3
_WEIGHTS = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
_FINEST = 1 / 128
_MATES, _MOST_PARTS = 12, 3
_MOST_DOUBLED = 5  # how often pieces are halved
_HOPE = 1.6  # what should take so much longer than the best is not looked at
_EXACT = 4  # how many of the best get exact times
_TRUE = 1.005  # a plan that takes longer than all NPUs alike promised is held against others
_WORTH = 1.002  # more pieces must gain at least this much


class ByLevel(Planner):
    """All-Reduce, All-Gather and Reduce-Scatter, level by level."""

    name = "by-level"
    summary = "boxes, leaves or dimensions one after the other, in one shot or in shares"
    rank = 30
    beside = judged = seeded = False

    def fits(self, problem: Problem) -> str | None:
        kinds = problem.kinds
        if len(kinds) == 1 and kinds <= set(KINDS) and _are_alike(problem) and _scene(problem):
            return None
        return f"plans {', '.join(KINDS)} in which lines of NPUs are joined directly or in rings"

    def plan(self, problem: Problem) -> Algorithm:
        scene = _scene(problem)
        assert scene is not None
        search = _Search(problem, scene)
        best = search.run()
        if best.time <= search.promised * _TRUE:
            return best
        # Messages meet between switches: perhaps what has all NPUs wait for each other is better.
        other = _Search(problem, scene, in_step=True).run()
        return min(best, other, key=lambda algorithm: algorithm.time)

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:  # noqa: ARG002
        return self.plan(problem)


def _are_alike(problem: Problem) -> bool:
    """Whether all collectives are alike but for their groups, and have something to do."""
    first = problem.demand
    return first.ranks > 1 and all(
        demand.parts is None and replace(demand, group=first.group) == first
        for demand in problem.demands
    )


def _scene(problem: Problem) -> Scene | None:
    memo = problem.task.memo
    if "scene" not in memo:
        memo["scene"] = scene_of(problem.topology, problem.demands, problem.cost)
    found: Scene | None = memo["scene"]
    return found


@dataclass(frozen=True)
class _Lane:
    """A part on one of the frames, and what it costs at the least.

    Attributes
    ----------
    alpha
        Seconds of latencies.
    load
        Seconds that each kind of link is held for each byte of the part.
    """

    frame: Frame
    part: Part
    alpha: float = field(compare=False)
    load: NDArray[np.float64] = field(compare=False)

    def time(self, size: float) -> float:
        return self.alpha + float(self.load.max()) * size

    def weighing(self, weight: float) -> _Lane:
        return replace(self, part=replace(self.part, weight=weight))

    @property
    def shares(self) -> int:
        return self.part.shares(self.frame.sizes)


Mix = tuple[_Lane, ...]
Pieces = tuple[int, ...]


def _beside(mix: Mix, lane: _Lane, weight: float) -> Mix:
    """A mix that leaves so much of the buffer to another part."""
    total = sum(other.part.weight for other in mix) / (1 - weight)
    return (*(other.weighing(other.part.weight / total) for other in mix), lane.weighing(weight))


@dataclass
class _Search:
    problem: Problem
    scene: Scene
    in_step: bool = False
    seen: dict[tuple[Mix, Pieces, int], int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return self.problem.demand.size

    @property
    def kind(self) -> str:
        return self.problem.demand.kind

    @property
    def ways(self) -> dict[str, bool]:
        return {"sums": self.kind != "all-gather", "copies": self.kind != "reduce-scatter"}

    @property
    def free(self) -> bool:
        return bool(self.problem.free) and all(self.problem.free)

    def run(self) -> Algorithm:
        """Parts alone first; then ever more parts beside each other; then more pieces."""
        lanes = sorted(
            (lane for frame in self.scene.frames for lane in self._lanes(frame)),
            key=lambda lane: lane.time(self.size),
        )
        mixes: list[Mix] = [(lane,) for lane in lanes]
        if self.free:
            mixes += (mix for frame in self.scene.frames for mix in self._turned(frame))
        mixes.sort(key=self._estimate)
        hope = self._estimate(mixes[0]) * _HOPE
        mixes = [mix for mix in mixes[:_LOOKS] if self._estimate(mix) <= hope]
        found = sorted(mixes, key=self._look)[:_FINALISTS]
        if self.free:
            found = [self._mixed(mix, lanes[:_MATES]) for mix in found]
        for mix in found:
            self._climb(mix)
        return self._best()

    def _best(self) -> Algorithm:
        """The best with exact times: where messages meet between switches, that is not the first.

        Few are tried, each in its best number of pieces.
        """
        ranked = sorted(self.seen, key=lambda key: self.seen[key])
        first = {tuple(lane.part for lane in mix): (mix, *how) for mix, *how in reversed(ranked)}
        keys = sorted(first.values(), key=lambda key: self.seen[key])
        best = self._made(*keys[0])
        for key in keys[1:_EXACT] if best.time > self.promised * _TRUE else ():
            best = min(best, self._made(*key), key=lambda algorithm: algorithm.time)
        return best

    def _estimate(self, mix: Mix) -> float:
        """About how many seconds a mix takes: its latencies, and the busiest link."""
        load = sum(lane.part.weight * lane.load for lane in mix)
        return max(lane.alpha for lane in mix) + float(np.max(load)) * self.size

    @property
    def promised(self) -> int:
        """What the best takes if all NPUs do the same, in picoseconds."""
        return min(self.seen.values())

    def _look(self, mix: Mix) -> int:
        """What a mix takes in few pieces."""
        return self._time(mix, self._pieces(mix, _FEW_ROWS), _RULES[0])

    def _mixed(self, mix: Mix, lanes: Sequence[_Lane]) -> Mix:
        """The mix with other parts beside it, as long as each gains something."""
        for _ in range(_MOST_PARTS):
            least = self._look(mix)
            beside = (_beside(mix, lane, x) for lane in lanes for x in _WEIGHTS)
            better = min(beside, key=self._look, default=mix)
            if self._look(better) * _WORTH > least:
                return mix
            mix = self._balanced(better)
        return mix

    def _balanced(self, mix: Mix) -> Mix:
        """The mix with the last part made larger or smaller, while that gains something."""
        step = _WEIGHTS[0]
        while step > _FINEST:
            x = mix[-1].part.weight
            others = [_beside(mix[:-1], mix[-1], y) for y in (x - step, x + step) if 0 < y < 1]
            better = min(others, key=self._look, default=mix)
            if self._look(better) < self._look(mix):
                mix = better
            else:
                step /= 2
        return mix

    def _lanes(self, frame: Frame) -> Iterator[_Lane]:
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
            levels = [[(first + i) % count for i in range(count)] for first in range(count)]
            mix = tuple(
                self._lane(
                    frame,
                    (Step(level, i < scattered, frame.rings[level]) for i, level in enumerate(order)),
                )
                for order in levels
            )
            yield tuple(lane.weighing(1 / count) for lane in mix)

    def _lane(self, frame: Frame, steps: Iterable[Step]) -> _Lane:
        part = Part(tuple(steps))
        alpha, held = 0.0, 1.0
        load = np.zeros(len(self.scene.rate))
        both = sum(self.ways.values())
        for step in part.steps:
            _, scatter, ring = step
            times, size = both if scatter else 1, frame.sizes[step.level]
            held /= size if scatter else 1
            moves = frame.moves_of(step)
            alpha += float(frame.alpha[moves].max()) * times * (size // 2 if ring else 1)
            each = frame.load[moves].sum(axis=0) * ((size - 1) / 2 if ring else 1)
            load = load + each / self.scene.rate * held * times
        return _Lane(frame, part, alpha, load)

    def _climb(self, mix: Mix) -> None:
        """More and more pieces, while that gains something."""
        rows, last = _FEW_ROWS, self._look(mix)
        while (rows := 2 * rows) <= _MOST_ROWS:
            pieces = self._pieces(mix, rows)
            time = min(self._time(mix, pieces, rule) for rule in _RULES)
            if time * _WORTH > last:
                return
            last = time

    def _pieces(self, mix: Mix, rows: int) -> Pieces:
        """How many pieces each share of each part is cut in, all about as long, for so many rows."""
        demand = self.problem.demand
        shares = [lane.shares for lane in mix]
        if not self.free:
            return (demand.part_count * demand.chunks_per_share // shares[0],)
        weights = np.array([lane.part.weight for lane in mix])
        each = np.array([lane.part.rows(lane.frame.sizes) for lane in mix], dtype=float)
        each *= sum(self.ways.values()) / 2
        per_share = weights * demand.size / shares  # bytes
        most = np.maximum(per_share // demand.alignment, 1)
        pieces, longest = np.ones(len(mix)), float(per_share.max())
        for finer in 2 ** (np.arange(2 * _MOST_DOUBLED + 1) / 2):
            finest = np.clip(np.rint(per_share / longest * finer), 1, most)
            if finest @ each * len(self.problem.demands) > rows:
                break
            pieces = finest
        return tuple(int(count) for count in pieces)

    def _time(self, mix: Mix, pieces: Pieces, rule: int) -> int:
        """What a mix takes if all NPUs do the same, in picoseconds."""
        key = (mix, pieces, rule)
        if key not in self.seen:
            self.problem.progress.check()
            _, _, self.seen[key] = self._composed(mix, pieces, rule)
        return self.seen[key]

    def _composed(self, mix: Mix, pieces: Pieces, rule: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        demand = self._cut(self.problem.demand, mix, pieces)
        lanes = [
            self.scene.lane(lane.frame, lane.part, count, max(int(demand.chunks.bytes[chunk[chunk >= 0]].max(initial=1)), 1), in_step=self.in_step, **self.ways)
            for lane, count, chunk in zip(mix, pieces, self._chunks(0, demand, mix, pieces), strict=True)
        ]
        return _core.compose(lanes, len(self.scene.rate), rule, self.problem.progress)

    def _made(self, mix: Mix, pieces: Pieces, rule: int) -> Algorithm:
        """The plan with exact times."""
        problem = self.problem
        ready, start, _ = self._composed(mix, pieces, rule)
        demands = [self._cut(demand, mix, pieces) for demand in problem.demands]
        numbers = iter(range(len(demands)))

        def sends(_topology: Topology, demand: Collective) -> Sends:
            number, made, first = next(numbers), [], 0
            chunks = self._chunks(number, demand, mix, pieces)
            for lane, chunk in zip(mix, chunks, strict=True):
                layout = lane.frame.layouts[number]
                count = chunk.shape[1] * sum(layout._moves(lane.part, i) * ((s.scatter and self.ways["copies"]) + self.ways["sums"]) for i, s in enumerate(lane.part.steps))
                times = ready[first : first + count], start[first : first + count]
                first += count
                made.append(layout.sends(lane.part, chunk, len(demand.chunks), times, **self.ways))
            return Sends.together(made)

        rows = untimed("by-level", sends, problem.topology, demands)
        return min(
            (simulate(rows, problem.topology, problem.cost, order=order).timed() for order in ("table", "fifo")),
            key=lambda algorithm: algorithm.time,
        )

    def _cut(self, demand: Collective, mix: Mix, pieces: Pieces) -> Collective:
        if not self.free:
            return demand
        if demand.kind != "all-reduce":
            return replace(demand, chunks_per_share=sum(pieces))
        marks = self._marks(demand, mix, pieces)
        return all_reduce_at(demand.group, marks, alignment=demand.alignment, relay=demand.relay)

    def _marks(self, demand: Collective, mix: Mix, pieces: Pieces) -> NDArray[np.int64]:
        """Where the buffer is cut: in parts, in shares, in pieces."""
        weights = np.cumsum([lane.part.weight for lane in mix])[:-1]
        units = np.rint(weights * (demand.size / demand.alignment)).astype(np.int64)
        ends = [0, *(units * demand.alignment).clip(max=demand.size).tolist(), demand.size]
        found = [np.zeros(1, dtype=np.int64)]
        for lane, count, begin, end in zip(mix, pieces, ends[:-1], ends[1:], strict=True):
            found.append(begin + cut(end - begin, lane.shares * count, demand.alignment)[1:])
        return np.concatenate(found)

    def _chunks(
        self, number: int, demand: Collective, mix: Mix, pieces: Pieces
    ) -> Iterator[NDArray[np.int64]]:
        """The chunks of each part, by share and piece; -1 for those without bytes."""
        if self.free and self.kind == "all-reduce":
            real = np.diff(self._marks(self.problem.demand, mix, pieces)) > 0
        else:
            real = demand.piece_bytes > 0
        numbers, first = np.where(real, np.cumsum(real) - 1, -1), 0
        for lane, count in zip(mix, pieces, strict=True):
            if self.kind == "all-reduce":
                yield numbers[first : first + lane.shares * count].reshape(lane.shares, count)
                first += lane.shares * count
            else:
                owner = lane.frame.layouts[number].owners(lane.part)
                rank = np.argsort(demand.group)[np.searchsorted(np.sort(demand.group), owner)]
                yield numbers.reshape(demand.ranks, -1)[rank, first : first + count]
                first += count


add(ByLevel())
