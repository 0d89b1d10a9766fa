"""Grids of any size whose levels are joined by ladders: what moves along them occupy.

Where all NPUs see the same, a level needs no table of its messages: one NPU's ladders say what a
move takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import LevelPart, LevelStep
from weft.algorithm.level_table import hop_times, turn_time
from weft.collective import Collective
from weft.cost import CostModel
from weft.planners.composition import Layout, Part
from weft.planners.layouts import Frame, Scene
from weft.planners.problem import Problem
from weft.ragged import offsets_of
from weft.topology.grid import Grid, grid_of, moved
from weft.topology.ladders import Climb, ladders_of
from weft.topology.levels import levels_of
from weft.topology.model import Topology

_MOST_FOUND = 4096  # NPUs among which levels are looked for if the network declares none
_MOST_SPLIT = 8192  # NPUs of which a level may be taken in two steps
_SHORT = 16  # levels are not split that are shorter
Dimensions = tuple[int, ...]


class Hop(NamedTuple):
    """A kind of hop: over which ladder, up to which tier.

    `aside`: how far it goes in the dimensions in which turns differ; what comes down with it has
    the turns of places as far away.
    """

    ladder: int
    top: int
    aside: int


@dataclass(frozen=True, eq=False)
class Terraces(Frame):
    """A way to see a grid as levels.

    Attributes
    ----------
    levels
        Dimensions and ladder of each level.
    hops
        For each move, the number of its kind of hop.
    """

    levels: tuple[tuple[Dimensions, int], ...]
    hops: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TerracedScene(Scene):
    """Groups on a grid that ladders join.

    Attributes
    ----------
    grid
        In dimensions so fine that each level is some of them.
    climbs
        The ladders.
    hops
        All kinds of hops.
    """

    grid: Grid
    climbs: tuple[Climb, ...]
    hops: tuple[Hop, ...]
    cost: CostModel

    def lanes(
        self,
        parts: Sequence[tuple[Frame, Part, int, tuple[int, int]]],
        *,
        sums: bool,
        copies: bool,
        exchange: bool,
    ) -> list[_core.Lane]:
        """Parts for the kernel, each with its pieces, and its smallest and largest chunk."""
        turns: dict[tuple[int, ...], int] = {}
        lanes = []
        for frame, part, pieces, sizes in parts:
            assert isinstance(frame, Terraces)
            levels = [step.level for step in part.steps]
            lanes.append(
                _core.Lane(
                    size=np.array([frame.sizes[level] for level in levels], dtype=np.int32),
                    scatter=np.array([step.scatter for step in part.steps]),
                    ring=np.zeros(len(levels), dtype=np.bool_),
                    first=np.array([frame.first[level] for level in levels], dtype=np.int32),
                    there=frame.hops,
                    back=frame.hops,
                    pieces=pieces,
                    sums=sums,
                    copies=copies,
                    exchange=exchange,
                    types=self._hop_types(sizes, turns),
                )
            )
        return lanes

    def part(self, frame: Frame, part: Part, pieces: int) -> LevelPart:
        """A part as rows have it."""
        assert isinstance(frame, Terraces)
        steps = []
        for step in part.steps:
            dimensions, ladder = frame.levels[step.level]
            steps.append(LevelStep(dimensions, step.scatter, ladder))
        return LevelPart(tuple(steps), pieces)

    @property
    def has_ways_beside(self) -> bool:
        """Whether several ladders lead along a single level."""
        ladders = {frame.levels[0][1] for frame in self.frames if isinstance(frame, Terraces)}
        return len(self.frames[0].sizes) == 1 and len(ladders) > 1

    @cached_property
    def resources(self) -> dict[tuple[int, int, bool], int]:
        """Numbers of the kinds of links: by ladder and tier, up or down."""
        keys = [
            (number, tier, down)
            for number, climb in enumerate(self.climbs)
            for tier in range(climb.ladder.tiers)
            for down in (False, True)
        ]
        return {key: number for number, key in enumerate(keys)}

    def crossed(self, hop: Hop) -> list[int]:
        """The kinds of links that a hop crosses, in order."""
        ways = [(tier, False) for tier in range(hop.top + 1)]
        ways += [(tier, True) for tier in reversed(range(hop.top + 1))]
        return [self.resources[hop.ladder, tier, down] for tier, down in ways]

    def _hop_types(
        self, sizes: tuple[int, int], turns: dict[tuple[int, ...], int]
    ) -> _core.MoveTypes:
        """What hops take with chunks of these sizes; `turns` numbers who takes turns how."""
        duration, resource, times, turn = [], [], [], list[int]()
        known = {
            way: self._way(*way, sizes) for way in {(hop.ladder, hop.top) for hop in self.hops}
        }
        for hop in self.hops:
            takes, wait, way = known[hop.ladder, hop.top]
            duration.append(takes)
            resource.append(self.crossed(hop))
            times.append(way)
            for place in range(2 * hop.top + 2):
                aside = hop.aside if place > hop.top else 0
                key = (hop.ladder, hop.top, aside, wait)
                turn.append(turns.setdefault(key, len(turns) + 1) if wait else 0)
        begin, same, other = (np.concatenate(column) for column in zip(*times, strict=True))
        return _core.MoveTypes(
            duration=np.array(duration, dtype=np.int64),
            offsets=offsets_of([len(links) for links in resource]),
            resource=np.concatenate(resource).astype(np.int32),
            begin=begin,
            same=np.maximum(same, begin + 1),
            other=np.maximum(other, begin + 1),
            turns=np.array(turn, dtype=np.int32),
        )

    def _way(
        self, ladder: int, top: int, sizes: tuple[int, int]
    ) -> tuple[int, int, list[NDArray[np.int64]]]:
        """How long a hop takes in the last turn, how long a turn is, and when links are free."""
        climb, cost = self.climbs[ladder], self.cost.core
        _, begin, _ = hop_times(climb, cost, sizes[0], top)
        takes, _, end = hop_times(climb, cost, sizes[1], top)
        wait = turn_time(climb, cost, sizes, top)
        spread = wait * climb.last_turn[top]
        shared = np.array([*climb.shared[: top + 1], *climb.shared[top::-1]])
        free = [begin, end + np.where(shared, spread, 0), end + spread]
        return takes + spread, wait, free


def terraced(problem: Problem) -> TerracedScene | None:
    """The groups of a problem on a grid that ladders join, worked out once; None if none does."""
    memo = problem.task.memo
    if "terraces" not in memo:
        memo["terraces"] = _terraced(problem.topology, problem.demands, problem.cost)
    found: TerracedScene | None = memo["terraces"]
    return found


def _terraced(
    topology: Topology, demands: Sequence[Collective], cost: CostModel
) -> TerracedScene | None:
    if topology.buffers or topology.switches == 0:
        return None
    lines = _grid(topology, demands)
    if lines is None:
        return None
    grid, levels = lines
    climbs = tuple(Climb(topology, grid.sizes, ladder) for ladder in ladders_of(topology, grid))
    if any(is_uneven(climb) for climb in climbs):
        return None
    known = dict[Hop, int]()
    drafts = [draft for split in _splits(levels) if (draft := _draft(grid, climbs, split, known))]
    if len(levels) == 1 and drafts:
        # Beside the fastest way along a single level others can carry a part: NICs beside NVLink.
        others = (i for i in range(len(climbs)) if i != drafts[0][0][1])
        split = next(_splits(levels))
        drafts += [d for i in others if (d := _draft(grid, climbs[: i + 1], split, known, first=i))]
    if not drafts:
        return None
    hops = tuple(known)
    scene = TerracedScene((), np.zeros(0), np.zeros(0), True, grid, climbs, hops, cost)
    return _with_frames(scene, drafts)


def is_uneven(climb: Climb) -> bool:
    """Whether places share their first switches, but not line by line: a box lost an NPU."""
    first = climb.switch[0]
    return not climb.above[0] and len(np.unique(first)) < len(first)


def _grid(
    topology: Topology, demands: Sequence[Collective]
) -> tuple[Grid, list[list[Dimensions]]] | None:
    """A fine grid of all members, and its levels: each as the dimensions of its two halves."""
    members = sum(demand.ranks for demand in demands)
    if len(demands) == 1:
        whole = grid_of(topology, demands[0].group)
        if len(whole.sizes) == 1 and not topology.dimensions and members <= _MOST_FOUND:
            whole = levels_of(topology, demands[0].group) or whole
        sizes = [(size, True) for size in whole.sizes]
    else:
        everyone = sorted(npu for demand in demands for npu in demand.group)
        whole = grid_of(topology, everyone)
        lattice = _lattice(whole, demands)
        if lattice is None:
            return None
        sizes = lattice
    fine, levels = list[int](), list[list[Dimensions]]()
    for size, along in sizes:
        halves = _halves(size) if along and members <= _MOST_SPLIT else (size,)
        if along:
            levels.append([(len(fine) + i,) for i in range(len(halves))])
        fine += halves
    return Grid(tuple(fine), whole.npus), levels


def _halves(size: int) -> tuple[int, ...]:
    """Two factors that are as near as can be, of a size that is worth it."""
    low = next(n for n in range(math.isqrt(size), 0, -1) if size % n == 0)
    return (size,) if size < _SHORT or low < 3 else (low, size // low)


def _lattice(grid: Grid, demands: Sequence[Collective]) -> list[tuple[int, bool]] | None:
    """The grid's dimensions so cut that groups lie along some of them; None if they do not.

    For each: its size, and whether it is one along which groups lie.
    """
    first = np.sort(grid.place_of(np.array(demands[0].group, dtype=np.int32)))
    if len(first) < 2 or first[0] != 0:
        return None
    # Strides and lengths of the first group, the shortest stride first.
    runs, step = list[tuple[int, int]](), first
    while len(step) > 1:
        stride = int(step[1])
        length = int((step == np.arange(len(step)) * stride).argmin() or len(step))
        if len(step) % length:
            return None
        runs.append((stride, length))
        step = step[::length]
    own = {stride * n for stride, length in runs for n in (1, length)}
    marks = sorted(own | {math.prod(grid.sizes[:d]) for d in range(len(grid.sizes) + 1)})
    if any(high % low for low, high in pairwise(marks)):
        return None
    inside = [(stride, stride * length) for stride, length in runs]
    sizes = [
        (high // low, any(begin <= low and high <= end for begin, end in inside))
        for low, high in pairwise(marks)
    ]
    return sizes if _are_lines(grid, sizes, demands) else None


def _are_lines(
    grid: Grid, sizes: Sequence[tuple[int, bool]], demands: Sequence[Collective]
) -> bool:
    """Whether the groups are the lines along some of the dimensions."""
    fine = Grid(tuple(size for size, _ in sizes), grid.npus)
    line = fine.lines([d for d, (_, along) in enumerate(sizes) if along])
    begin = fine.lines([d for d, (_, along) in enumerate(sizes) if not along])
    lines = np.sort(grid.npus[begin[:, None] + line], axis=1)
    groups = [sorted(demand.group) for demand in demands]
    if lines.shape != (len(groups), len(groups[0])):
        return False
    return bool((lines[lines[:, 0].argsort()] == np.array(sorted(groups))).all())


def _splits(levels: list[list[Dimensions]]) -> Iterator[tuple[Dimensions, ...]]:
    """Ways to see a grid as levels: each as one; the long ones in two; all in one line."""
    joined = [sum(halves, ()) for halves in levels]
    yield tuple(joined)
    split = tuple(half for halves in levels for half in halves)
    if len(split) > len(joined):
        yield split
    if len(joined) > 1:
        yield (tuple(dimension for level in joined for dimension in level),)


_Draft = list[tuple[Dimensions, int, NDArray[np.int32]]]
"""Of each level: its dimensions, its ladder, and the kind of hop of each distance."""


def _draft(
    grid: Grid,
    climbs: Sequence[Climb],
    levels: Sequence[Dimensions],
    known: dict[Hop, int],
    first: int = 0,
) -> _Draft | None:
    """How hops go along levels; None if no ladder leads along some. Adds kinds of hops.

    `first`: the number of the first ladder that may be used.
    """
    draft: _Draft = []
    for dimensions in levels:
        away = grid.lines(dimensions)[1:]
        reaching = [
            (slowness(climb, int(tops.max())), number, tops)
            for number, climb in enumerate(climbs)
            if number >= first
            if (tops := climb.top(away)).min() >= 0
        ]
        if not reaching:
            return None
        _, number, tops = min(reaching, key=lambda found: found[:2])
        kind = np.zeros(len(away), dtype=np.int32)
        for top in np.unique(tops).tolist():
            mine = tops == top
            turning = climbs[number].turning(top)
            aside, which = np.unique(
                moved(grid.sizes, np.zeros(1, dtype=np.int64), away[mine], turning),
                return_inverse=True,
            )
            numbers = [
                known.setdefault(Hop(number, top, one), len(known)) for one in aside.tolist()
            ]
            kind[mine] = np.array(numbers, dtype=np.int32)[which]
        draft.append((tuple(dimensions), number, kind))
    return draft


def _with_frames(scene: TerracedScene, drafts: Sequence[_Draft]) -> TerracedScene:
    """The scene with its frames, which know what their moves take."""
    shape = len(scene.hops), len(scene.resources)
    load, (alpha, per_byte) = np.zeros(shape), np.zeros((2, shape[0]))
    rate, held = np.ones(shape[1]), np.zeros(shape[1])
    blocking = 1e-12 if scene.cost.latency_model == "blocking" else 0.0
    stored = scene.cost.switching == "store-and-forward"
    for number, hop in enumerate(scene.hops):
        climb, links = scene.climbs[hop.ladder], scene.crossed(hop)
        bandwidth, latency = climb.speeds(hop.top)
        load[number, links] = climb.users(hop.top)
        rate[links], held[links] = bandwidth, latency * blocking
        alpha[number] = latency.sum() * 1e-12
        per_byte[number] = (1 / bandwidth).sum() if stored else (1 / bandwidth).max()
    frames = []
    for draft in drafts:
        sizes = tuple(len(kind) + 1 for _, _, kind in draft)
        hops = np.concatenate([kind for _, _, kind in draft])
        first = tuple(offsets_of([len(kind) for _, _, kind in draft]).tolist()[:-1])
        layout = Layout(Grid(sizes, scene.grid.npus[: math.prod(sizes)]))
        levels = tuple((dimensions, ladder) for dimensions, ladder, _ in draft)
        rings, times = (False,) * len(sizes), (alpha[hops], alpha[hops], per_byte[hops])
        frames.append(Terraces((layout,), rings, first, *times, load[hops], levels, hops))
    return replace(scene, frames=tuple(frames), rate=rate, held=held)


def slowness(climb: Climb, top: int) -> tuple[float, float]:
    """Seconds that a byte of everybody takes, and latency."""
    bandwidth, latency = climb.speeds(top)
    return float((climb.users(top) / bandwidth).max()), float(latency.sum())
