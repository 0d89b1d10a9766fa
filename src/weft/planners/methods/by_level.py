"""Compositions by level: boxes, leaves, pods or dimensions one after the other.

Along each level a part of the buffer is summed in one shot or in shares; parts may differ. What a
composition takes at least follows from its latencies and from the load of every link; the most
promising ones are simulated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations, product

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm
from weft.collective import Collective, all_reduce_at
from weft.collective.chunks import cut
from weft.engine import simulate
from weft.planners.composition import Part, Step
from weft.planners.layouts import Frame, frames_of
from weft.planners.planner import Planner, add
from weft.planners.problem import ROUNDED, Problem
from weft.planners.sends import Sends, untimed
from weft.topology.model import Topology

KINDS = ("all-reduce", "all-gather", "reduce-scatter")
_MOST_ORDERED = 3  # levels whose orders are all tried; of more, only those that begin elsewhere
_FEW_ROWS, _MOST_ROWS = 1 << 16, 1 << 18  # of a first look, and of a plan
_LOOKS, _FINALISTS = 10, 3
_WEIGHTS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 7 / 8, 15 / 16)
_MOST_DOUBLED = 5  # how often pieces are halved
_HOPE = 1.6  # what should take so much longer than the best is not looked at
_WORTH = 1.002  # more pieces must gain at least this much


class ByLevel(Planner):
    """All-Reduce, All-Gather and Reduce-Scatter, level by level."""

    name = "by-level"
    summary = "boxes, leaves or dimensions one after the other, in one shot or in shares"
    rank = 30
    beside = judged = seeded = False

    def fits(self, problem: Problem) -> str | None:
        kinds = problem.kinds
        if len(kinds) == 1 and kinds <= set(KINDS) and _are_whole(problem) and _frames(problem):
            return None
        return f"plans {', '.join(KINDS)} in which lines of NPUs are joined directly or in rings"

    def plan(self, problem: Problem) -> Algorithm:
        return _Search(problem, _frames(problem)).run()

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:  # noqa: ARG002
        return self.plan(problem)


def _are_whole(problem: Problem) -> bool:
    """Whether all collectives are alike but for their groups, and have something to do."""
    first = problem.demand
    return first.ranks > 1 and all(
        demand.parts is None and replace(demand, group=first.group) == first
        for demand in problem.demands
    )


def _frames(problem: Problem) -> list[Frame]:
    memo = problem.task.memo
    if "frames" not in memo:
        memo["frames"] = frames_of(problem.topology, problem.demands)
    found: list[Frame] = memo["frames"]
    return found


@dataclass(frozen=True, eq=False)
class _Lane:
    """A part on one of the frames, and what it costs at the least.

    Attributes
    ----------
    alpha
        Seconds of latencies.
    load
        Seconds that each link is held for each byte of the part.
    """

    frame: Frame
    part: Part
    alpha: float
    load: NDArray[np.float64]

    def time(self, size: float) -> float:
        return self.alpha + float(self.load.max()) * size

    def weighing(self, weight: float) -> _Lane:
        return replace(self, part=replace(self.part, weight=weight))


Mix = tuple[_Lane, ...]


@dataclass
class _Search:
    problem: Problem
    frames: list[Frame]
    best: Algorithm | None = None
    seen: dict[tuple[object, ...], Algorithm] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return self.problem.demand.size

    @property
    def free(self) -> bool:
        return bool(self.problem.free) and all(self.problem.free)

    def run(self) -> Algorithm:
        ranked = sorted(self._mixes(), key=lambda pair: pair[0])
        hope = ranked[0][0] * _HOPE
        looks = [(self._look(mix), mix) for least, mix in ranked[:_LOOKS] if least <= hope]
        looks.sort(key=lambda pair: pair[0].time)
        for _, mix in looks[:_FINALISTS]:
            self._climb(mix)
        assert self.best is not None
        return self.best

    def _mixes(self) -> Iterator[tuple[float, Mix]]:
        """Parts alone, parts that begin with different levels, and pairs; the least they take."""
        lanes = [lane for frame in self.frames for lane in self._lanes(frame)]
        yield from ((lane.time(self.size), (lane,)) for lane in lanes)
        if not self.free:
            return
        for frame in self.frames:
            yield from self._turned(frame)
        lanes.sort(key=lambda lane: lane.time(self.size))
        for pair in combinations(lanes[:8], 2):
            a, b = sorted(pair, key=lambda lane: -lane.alpha)  # what takes longest goes first
            for x in _WEIGHTS:
                load = float((x * a.load + (1 - x) * b.load).max())
                least = max(
                    a.time(x * self.size),
                    b.time((1 - x) * self.size),
                    b.alpha + load * self.size,
                )
                yield least, (a.weighing(x), b.weighing(1 - x))

    def _lanes(self, frame: Frame) -> Iterator[_Lane]:
        """Every order of levels, and every way along each."""
        count = len(frame.sizes)
        orders: Iterable[Sequence[int]] = permutations(range(count))
        if count > _MOST_ORDERED:
            orders = [range(count)]
        ways = (True, False) if self.problem.demand.kind == "all-reduce" else (True,)
        for order in orders:
            for modes in product(ways, repeat=count):
                yield self._lane(frame, zip(order, modes, strict=True))

    def _turned(self, frame: Frame) -> Iterator[tuple[float, Mix]]:
        """As many parts as levels, each of which begins with another one."""
        count = len(frame.sizes)
        shares = range(count + 1) if self.problem.demand.kind == "all-reduce" else (count,)
        for scattered in shares if count > 1 else ():
            mix = tuple(
                self._lane(frame, [((first + i) % count, i < scattered) for i in range(count)])
                for first in range(count)
            )
            load = float(np.mean([lane.load for lane in mix], axis=0).max())
            least = max(lane.alpha for lane in mix) + load * self.size
            yield least, tuple(lane.weighing(1 / count) for lane in mix)

    def _lane(self, frame: Frame, steps: Iterable[tuple[int, bool]]) -> _Lane:
        part = Part(tuple(Step(*step) for step in steps))
        alpha, load, held = 0.0, np.zeros(self.problem.topology.links), 1.0
        both = 2 if self.problem.demand.kind == "all-reduce" else 1
        for step in part.steps:
            level, times = frame.levels[step.level], both if step.scatter else 1
            held /= frame.sizes[step.level] if step.scatter else 1
            alpha += level.alpha * times
            load = load + level.load * held * times
        return _Lane(frame, part, alpha, load)

    def _look(self, mix: Mix) -> Algorithm:
        """The mix with so many pieces that it costs little."""
        return self._made(mix, self._pieces(mix, _FEW_ROWS))

    def _climb(self, mix: Mix) -> None:
        """More and more pieces, while that gains something."""
        rows, last = 2 * _FEW_ROWS, self._look(mix)
        while rows <= _MOST_ROWS and not self._is_done:
            made = self._made(mix, self._pieces(mix, rows))
            if made is not last and made.time * _WORTH > last.time:
                return
            rows, last = 2 * rows, made

    @property
    def _is_done(self) -> bool:
        """Whether the best plan meets its bound."""
        best = self.best
        return best is not None and best.time <= self.problem.cut(best.demands).bound + ROUNDED

    def _pieces(self, mix: Mix, rows: int) -> tuple[int, ...]:
        """How many pieces each share of each part is cut in, all about as long, for so many rows."""
        demand = self.problem.demand
        shares = [lane.part.shares(lane.frame.sizes) for lane in mix]
        if not self.free:
            return (demand.chunk_count // shares[0],)
        weights = np.array([lane.part.weight for lane in mix])
        each = np.array([lane.part.rows(lane.frame.sizes) for lane in mix], dtype=float)
        if demand.kind != "all-reduce":
            each /= 2
        per_share = weights * demand.size / shares  # bytes
        most = np.maximum(per_share // demand.alignment, 1)
        pieces, longest = np.ones(len(mix)), float(per_share.max())
        for finer in 2 ** (np.arange(2 * _MOST_DOUBLED + 1) / 2):
            finest = np.clip(np.rint(per_share / longest * finer), 1, most)
            if finest @ each * len(self.problem.demands) > rows:
                break
            pieces = finest
        return tuple(int(count) for count in pieces)

    def _made(self, mix: Mix, pieces: tuple[int, ...]) -> Algorithm:
        """The plan with exact times."""
        key = (*((lane.frame, lane.part) for lane in mix), pieces)
        if key in self.seen:
            return self.seen[key]
        problem, kind = self.problem, self.problem.demand.kind
        demands = [self._cut(demand, mix, pieces) for demand in problem.demands]
        number = {demand.group: i for i, demand in enumerate(demands)}

        def sends(_topology: Topology, demand: Collective) -> Sends:
            chunks, made = self._chunks(demand, mix, pieces), []
            for rank, (lane, chunk) in enumerate(zip(mix, chunks, strict=True)):
                layout = lane.frame.layouts[number[demand.group]]
                sums, copies = kind != "all-gather", kind != "reduce-scatter"
                part = layout.sends(
                    lane.part, chunk, len(demand.chunks), rank, sums=sums, copies=copies
                )
                made.append(part)
            return Sends.together(made)

        problem.progress.check()
        rows = untimed("by-level", sends, problem.topology, demands)
        found = simulate(rows, problem.topology, problem.cost).timed()
        if self.best is None or found.time < self.best.time:
            self.best = found
        self.seen[key] = found
        return found

    def _cut(self, demand: Collective, mix: Mix, pieces: tuple[int, ...]) -> Collective:
        if not self.free:
            return demand
        if demand.kind != "all-reduce":
            return replace(demand, chunks_per_share=sum(pieces))
        marks = self._marks(demand, mix, pieces)
        return all_reduce_at(demand.group, marks, alignment=demand.alignment, relay=demand.relay)

    def _marks(self, demand: Collective, mix: Mix, pieces: tuple[int, ...]) -> NDArray[np.int64]:
        """Where the buffer is cut: in parts, in shares, in pieces."""
        weights = np.cumsum([lane.part.weight for lane in mix])[:-1]
        units = np.rint(weights * (demand.size / demand.alignment)).astype(np.int64)
        ends = np.concatenate([[0], (units * demand.alignment).clip(max=demand.size), [demand.size]])
        found = [np.zeros(1, dtype=np.int64)]
        for lane, count, begin, end in zip(mix, pieces, ends[:-1], ends[1:], strict=True):
            shares = lane.part.shares(lane.frame.sizes)
            size = max(int(end - begin), 0)
            marks = cut(size, shares * count, demand.alignment) if size else np.zeros(shares * count + 1, dtype=np.int64)
            found.append(begin + marks[1:])
        return np.concatenate(found)

    def _chunks(
        self, demand: Collective, mix: Mix, pieces: tuple[int, ...]
    ) -> Iterator[NDArray[np.int64]]:
        """The chunks of each part, by share and piece; -1 for those without bytes."""
        if demand.kind == "all-reduce":
            if self.free:
                real = np.diff(self._marks(self.problem.demand, mix, pieces)) > 0
            else:
                real = demand.piece_bytes > 0
        else:
            real = demand.piece_bytes > 0
        number, first = np.where(real, np.cumsum(real) - 1, -1), 0
        for lane, count in zip(mix, pieces, strict=True):
            shares = lane.part.shares(lane.frame.sizes)
            if demand.kind == "all-reduce":
                yield number[first : first + shares * count].reshape(shares, count)
                first += shares * count
            else:
                layout = lane.frame.layouts[[d.group for d in self.problem.demands].index(demand.group)]
                owner = layout.owners(lane.part)
                rank = np.argsort(demand.group)[np.searchsorted(np.sort(demand.group), owner)]
                yield number.reshape(demand.ranks, -1)[rank, first : first + count]
                first += count


add(ByLevel())
