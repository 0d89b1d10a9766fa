"""Judges compositions by level by one NPU's moves, and by the ladders."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm, LevelPart, LevelRows, LevelStep
from weft.collective import Collective
from weft.judge.kinds import Progress, judges
from weft.judge.ladders import Rungs, are_apart, wrong_ladder
from weft.judge.table import LISTED, judge_table, malformed_column
from weft.judge.verdict import Verdict
from weft.units import format_time

_KINDS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")

Numbers = NDArray[np.int64]


@judges(LevelRows)
def judge_levels(algorithm: Algorithm, rows: LevelRows, _progress: Progress = None) -> Verdict:
    """Judge what one NPU sends, and that what all send never meets.

    That the parts' steps go along every dimension of the groups once makes sums complete and
    brings them back to all; what is left is time. Each move must start when what it sends has
    arrived, by whatever turn it was sent. And where two moves use links of one kind, one must be
    over before the other begins. Both are proved in docs/verification.md.
    """
    wrong = _unfit(algorithm, rows) or _malformed(algorithm, rows)
    if wrong is not None:
        return Verdict(False, wrong, "structure")
    topology = algorithm.require_timing().topology
    ladders = list[Rungs]()
    for ladder in rows.ladders:
        found = wrong_ladder(topology, rows.sizes, rows.npus, ladder)
        if isinstance(found, str):
            return Verdict(False, found, "structure")
        ladders.append(found)
    judge = _Judge(algorithm, rows, ladders)
    verdict = judge.times() or judge.links()
    if verdict is not None:
        return verdict
    if len(rows) > LISTED:
        return Verdict(True)
    verdict = judge_table(algorithm)
    text = f"listed for all NPUs: {verdict.violation}"
    return verdict if verdict else Verdict(False, text, verdict.kind, verdict.row)


def _unfit(algorithm: Algorithm, rows: LevelRows) -> str | None:
    """Why level rows cannot be what serves these collectives on this network, if so."""
    topology, demand = algorithm.require_timing().topology, algorithm.demands[0]
    if demand.kind not in _KINDS:
        return f"compositions by level serve {', '.join(_KINDS)}, not {demand.kind}"
    said = rows.exchange, rows.sums, rows.copies
    if said != (
        demand.kind == "all-to-all",
        demand.kind in ("reduce-scatter", "all-reduce"),
        demand.kind in ("all-gather", "all-reduce"),
    ):
        return f"the rows are not those of an {demand.kind}"
    if topology.buffers:
        return "compositions by level need switches that can hold any chunk"
    if not all(_is_like(demand, other) for other in algorithm.demands[1:]):
        return "compositions by level serve groups that all do the same"
    smallest = demand.smallest_chunk
    return "compositions by level need chunks that are not empty" if smallest == 0 else None


def _is_like(one: Collective, other: Collective) -> bool:
    if (one.parts is None) != (other.parts is None):
        return False
    if one.parts is not None and other.parts is not None:
        same = np.array_equal(one.chunks.bytes, other.chunks.bytes)
        return same and one.kind == other.kind and one.ranks == other.ranks
    return one.ranks == other.ranks and replace(other, group=one.group) == one


def _malformed(algorithm: Algorithm, rows: LevelRows) -> str | None:
    """What is wrong with the grid, the parts and the columns, if anything."""
    topology, demand = algorithm.require_timing().topology, algorithm.demands[0]
    if (wrong := malformed_column("npus", rows.npus, np.int32)) is not None:
        return wrong
    if math.prod(rows.sizes) != len(rows.npus) or min(rows.sizes, default=0) < 1:
        return "the grid does not have as many places as NPUs"
    ranks = topology.ranks
    if rows.npus.min() < 0 or rows.npus.max() >= topology.npus or (ranks[rows.npus] < 0).any():
        return "some place of the grid has no NPU"
    if not rows.parts:
        return "there are no parts"
    dimensions = {d for step in rows.parts[0].steps for d in step.dimensions}
    for part in rows.parts:
        used = [dimension for step in part.steps for dimension in step.dimensions]
        if sorted(used) != sorted(dimensions) or not set(used) <= set(range(len(rows.sizes))):
            return "some part does not go along every dimension of the groups once"
        if part.pieces < 1 or not all(0 <= step.ladder < len(rows.ladders) for step in part.steps):
            return "some part has no pieces, or a step that has no ladder"
    if (wrong := _other_groups(algorithm, rows, dimensions)) is not None:
        return wrong
    if (wrong := _other_shares(demand, rows)) is not None:
        return wrong
    count = sum(math.prod(shape) for part in rows.parts for _, _, shape in _stages(rows, part))
    if (wrong := malformed_column("start", rows.start, np.int64, count)) is not None:
        return wrong
    return "some move starts before the beginning" if (rows.start < 0).any() else None


def _other_groups(algorithm: Algorithm, rows: LevelRows, dimensions: set[int]) -> str | None:
    """Why the grid's lines along these dimensions are not the groups, if so."""
    cube = np.arange(len(rows.npus)).reshape(rows.sizes[::-1])
    axes = [len(rows.sizes) - 1 - d for d in sorted(dimensions, reverse=True)]
    places = np.moveaxis(cube, axes, range(-len(axes), 0))
    lines = rows.npus[places.reshape(-1, math.prod(rows.sizes[d] for d in dimensions))]
    if len(lines) != len(algorithm.demands):
        return f"the grid has {len(lines)} groups, not {len(algorithm.demands)}"
    expected = {demand.group[0]: demand.group for demand in algorithm.demands}
    mine = np.sort(lines, axis=1)
    others = np.array([sorted(group) for group in expected.values()])
    if len(expected) != len(lines) or mine.shape != others.shape:
        return "the lines of the grid are not the groups"
    same = mine[np.argsort(mine[:, 0])] == others[np.argsort(others[:, 0])]
    return None if same.all() else "the lines of the grid are not the groups"


def _other_shares(demand: Collective, rows: LevelRows) -> str | None:
    """Why the parts are not what the buffer is cut into, if so."""
    if demand.parts is None:
        if not all(step.scatter for part in rows.parts for step in part.steps):
            return "a buffer that is cut in shares is scattered along every level"
        pieces = sum(part.pieces for part in rows.parts)
        if pieces == demand.chunks_per_share:
            return None
        return f"the parts have {pieces} pieces of a share, not {demand.chunks_per_share}"
    if demand.kind != "all-reduce":
        return "only an All-Reduce has a buffer that is not cut in shares"
    chunks = sum(_chunks(rows, part) for part in rows.parts)
    if chunks == len(demand.chunks):
        return None
    return f"the parts have {chunks} chunks, not {len(demand.chunks)}"


def _chunks(rows: LevelRows, part: LevelPart) -> int:
    return part.pieces * math.prod(_size(rows, step) for step in part.steps if step.scatter)


def _size(rows: LevelRows, step: LevelStep) -> int:
    return math.prod(rows.sizes[dimension] for dimension in step.dimensions)


def _stages(rows: LevelRows, part: LevelPart) -> Iterator[tuple[int, bool, tuple[int, int, int]]]:
    """Number of the step, whether it is one of copies, and how many moves there are.

    By distance; by where shares belong along later levels, or messages along all others; by piece.
    """
    sizes = [_size(rows, step) for step in part.steps]
    if rows.exchange:
        for i, size in enumerate(sizes):
            yield i, False, (size - 1, math.prod(sizes) // size, part.pieces)
        return
    count = len(sizes)
    later = [
        math.prod(sizes[j] for j in range(i + 1, count) if part.steps[j].scatter)
        for i in range(count)
    ]
    if rows.sums:
        for i in range(count):
            yield i, False, (sizes[i] - 1, later[i], part.pieces)
    if rows.copies:
        for i in reversed(range(count)):
            if part.steps[i].scatter:
                yield i, True, (sizes[i] - 1, later[i], part.pieces)


@dataclass(frozen=True)
class _Hops:
    """How moves of one part along one level go, by distance.

    Attributes
    ----------
    by
        Where they lead from place 0.
    top
        The highest tier they climb.
    late
        The latest that what they carry arrives after the start of the move.
    """

    by: Numbers
    top: Numbers
    late: Numbers


@dataclass
class _Use:
    """Moves that use links of one kind, in lists of arrays: when at the earliest and the latest.

    Attributes
    ----------
    begin
        When the first who sends takes its link.
    same, other
        When a move after it may begin that has the same turns, and one that may have others.
    turns
        Which turns it has.
    first
        The number of the first move.
    """

    begin: list[Numbers] = field(default_factory=list)
    same: list[Numbers] = field(default_factory=list)
    other: list[Numbers] = field(default_factory=list)
    turns: list[Numbers] = field(default_factory=list)
    move: list[Numbers] = field(default_factory=list)


@dataclass(frozen=True)
class _Judge:
    algorithm: Algorithm
    rows: LevelRows
    ladders: list[Rungs]
    waits: dict[tuple[int, int], int] = field(default_factory=dict)

    def times(self) -> Verdict | None:
        """A move that starts before what it sends is there, if there is one."""
        first = 0
        for number, part in enumerate(self.rows.parts):
            moves = dict[tuple[int, bool], tuple[Numbers, int]]()
            for step, back, shape in _stages(self.rows, part):
                end = first + math.prod(shape)
                moves[step, back] = self.rows.start[first:end].reshape(shape), first
                first = end
            judged = self._exchanged if self.rows.exchange else self._composed
            for start, ready, begins in judged(number, part, moves):
                early = np.flatnonzero((start < ready).reshape(-1))
                for at in early[:1].tolist():
                    when = [
                        format_time(int(np.broadcast_to(x, start.shape).reshape(-1)[at]))
                        for x in (start, ready)
                    ]
                    return Verdict(
                        False,
                        f"move {begins + at} starts at {when[0]}, but what it sends is there only "
                        f"at {when[1]}",
                        "order",
                    )
        return None

    def _composed(
        self, number: int, part: LevelPart, moves: dict[tuple[int, bool], tuple[Numbers, int]]
    ) -> Iterator[tuple[Numbers, Numbers, int]]:
        """Starts of moves and when what they send is there, stage by stage."""
        sizes = [_size(self.rows, step) for step in part.steps]
        shares = math.prod(s for s, step in zip(sizes, part.steps, strict=True) if step.scatter)
        # When sums are complete before a step, by where shares belong along the levels to come.
        complete = np.zeros((shares, part.pieces), dtype=np.int64)
        for i, step in enumerate(part.steps) if self.rows.sums else ():
            start, first = moves[i, False]
            arrived = start + self._hops(number, step, back=False).late[:, None, None]
            if step.scatter:
                own = complete.reshape(-1, sizes[i], part.pieces)
                yield start, own[:, 1:].transpose(1, 0, 2), first
                complete = np.maximum(own[:, 0], arrived.max(axis=0))
            else:
                yield start, complete[None], first
                complete = np.maximum(complete, arrived.max(axis=0))
        if not self.rows.sums:
            complete = np.zeros((1, part.pieces), dtype=np.int64)
        for i in reversed(range(len(sizes))) if self.rows.copies else ():
            if not part.steps[i].scatter:
                continue
            start, first = moves[i, True]
            yield start, complete[None], first
            arrived = start + self._hops(number, part.steps[i], back=True).late[:, None, None]
            both = np.concatenate([complete[None], arrived])
            complete = both.transpose(1, 0, 2).reshape(-1, part.pieces)

    def _exchanged(
        self, number: int, part: LevelPart, moves: dict[tuple[int, bool], tuple[Numbers, int]]
    ) -> Iterator[tuple[Numbers, Numbers, int]]:
        """The same for messages that go along one level after the other."""
        sizes = [_size(self.rows, step) for step in part.steps]
        # When messages are where the step begins, by how far they go along each level.
        there = np.zeros((*sizes[::-1], part.pieces), dtype=np.int64)
        for i, step in enumerate(part.steps):
            start, first = moves[i, False]
            axis = len(sizes) - 1 - i
            ready = np.moveaxis(there, axis, 0)
            shape = ready[1:].shape
            yield start, ready[1:].reshape(start.shape), first
            late = self._hops(number, step, back=False).late[:, None, None]
            there = there.copy()
            np.moveaxis(there, axis, 0)[1:] = (start + late).reshape(shape)

    def _hops(self, number: int, step: LevelStep, *, back: bool) -> _Hops:
        rungs = self.ladders[step.ladder]
        coordinates = list(product(*(range(self.rows.sizes[d]) for d in step.dimensions[::-1])))
        along = np.array(coordinates, dtype=np.int64)[1:, ::-1]
        sizes = np.array([self.rows.sizes[d] for d in step.dimensions])
        strides = np.array([math.prod(self.rows.sizes[:d]) for d in step.dimensions])
        by = ((sizes - along) % sizes if back else along) @ strides
        dims = np.array(step.dimensions)
        kinds, kind = np.unique(along > 0, axis=0, return_inverse=True)
        tops = [rungs.top(frozenset(dims[one].tolist())) for one in kinds]
        top = np.array([-1 if one is None else one for one in tops])[kind.reshape(-1)]
        late = np.zeros(len(by), dtype=np.int64)
        for one in np.unique(top[top >= 0]).tolist():
            takes, _, _ = self._holds(number, rungs, one)
            late[top == one] = takes + self._wait(number, rungs, one) * _last_turn(rungs, one)
        return _Hops(by, top, late)

    def _holds(self, number: int, rungs: Rungs, top: int) -> tuple[int, Numbers, Numbers]:
        return rungs.holds(self.algorithm.require_timing().cost, top, *self._bytes(number))

    def _wait(self, number: int, rungs: Rungs, top: int) -> int:
        """How long each turn takes: as long as a chunk may hold any of the shared links."""
        _, begin, end = self._holds(number, rungs, top)
        shared = [tier for tier in range(top + 1) if rungs.shared[tier]]
        held = [int(end[i] - begin[i]) for t in shared for i in (t, 2 * top + 1 - t)]
        return max(held, default=0)

    def _bytes(self, number: int) -> tuple[int, int]:
        """Of the smallest and the largest chunk of a part."""
        demand, parts = self.algorithm.demands[0], self.rows.parts
        if demand.parts is None:
            ends = np.cumsum([0, *(part.pieces for part in parts)])
            sizes = demand.piece_bytes.reshape(-1, demand.chunks_per_share)
            mine = sizes[:, ends[number] : ends[number + 1]]
        else:
            ends = np.cumsum([0, *(_chunks(self.rows, part) for part in parts)])
            mine = demand.chunks.bytes[ends[number] : ends[number + 1]]
        return int(mine.min()), int(mine.max())

    def links(self) -> Verdict | None:
        """Two moves that may hold one link at the same time, if there are; or no way at all."""
        uses = dict[tuple[int, int, bool], _Use]()
        first = 0
        for number, part in enumerate(self.rows.parts):
            for i, back, shape in _stages(self.rows, part):
                step, end = part.steps[i], first + math.prod(shape)
                hops = self._hops(number, step, back=back)
                for at in np.flatnonzero(hops.top < 0)[:1].tolist():
                    text = f"no switch of ladder {step.ladder} is above places 0 and {hops.by[at]}"
                    return Verdict(False, text, "route")
                start = self.rows.start[first:end].reshape(shape)
                for top in np.unique(hops.top).tolist():
                    some = np.flatnonzero(hops.top == top)
                    moves = (
                        first
                        + some[:, None] * math.prod(shape[1:])
                        + np.arange(math.prod(shape[1:]))
                    )
                    mine = start[some].reshape(len(some), -1)
                    wrong = self._used(uses, number, step, top, hops.by[some], mine, moves)
                    if wrong is not None:
                        return wrong
                first = end
        return self._twice(uses) or next(
            (met for use in uses.values() if (met := _meeting(use)) is not None), None
        )

    def _used(
        self,
        uses: dict[tuple[int, int, bool], _Use],
        number: int,
        step: LevelStep,
        top: int,
        by: Numbers,
        start: Numbers,
        moves: Numbers,
    ) -> Verdict | None:
        """Add the moves of one part over one tier to the links they use."""
        rungs = self.ladders[step.ladder]
        _, begin, end = self._holds(number, rungs, top)
        wait = self._wait(number, rungs, top)
        spread = wait * _last_turn(rungs, top)
        for tier, down in product(range(top + 1), (False, True)):
            place = 2 * top + 1 - tier if down else tier
            use = uses.setdefault((step.ladder, tier, down), _Use())
            # What makes turns on a link those of other places than its own.
            shift = np.zeros_like(by)
            if down and wait:
                dims = rungs.changed(top, tier) & rungs.turning[top]
                shift = _only(self.rows.sizes, by, dims)
            link = (rungs.ladder.down if down else rungs.ladder.up)[tier]
            if rungs.shared[tier]:
                for one in np.unique(shift).tolist():
                    if not are_apart(self.rows.sizes, link, rungs.ladder.turn[top], one):
                        text = "places that share a link have the same turn"
                        return Verdict(False, text, "link")
            several = spread if rungs.shared[tier] else 0
            use.begin.append((start + begin[place]).reshape(-1))
            use.same.append((start + end[place] + several).reshape(-1))
            use.other.append((start + end[place] + spread).reshape(-1))
            turns = self._turns(wait, top) * len(self.rows.npus) + shift
            use.turns.append(np.repeat(turns, start.shape[1]))
            use.move.append(moves.reshape(-1))
        return None

    def _turns(self, wait: int, top: int) -> int:
        """A number for each way to take turns, 0 for none."""
        return self.waits.setdefault((wait, top), len(self.waits) + 1) if wait else 0

    def _twice(self, uses: dict[tuple[int, int, bool], _Use]) -> Verdict | None:
        """Links that are on two ladders, or on two tiers of one."""
        used = []
        for ladder, tier, down in uses:
            links = self.ladders[ladder].ladder
            used.append(np.unique((links.down if down else links.up)[tier]))
        together = np.sort(np.concatenate(used)) if used else np.zeros(0, dtype=np.int32)
        for at in np.flatnonzero(np.diff(together) == 0)[:1]:
            name = self.algorithm.require_timing().topology.link_name(int(together[at]))
            return Verdict(False, f"link {name} is on two tiers", "structure")
        return None


def _last_turn(rungs: Rungs, top: int) -> int:
    return int(rungs.ladder.turn[top].max())


def _only(sizes: tuple[int, ...], by: Numbers, dims: frozenset[int]) -> Numbers:
    """Places with the coordinates of `by` in some dimensions, and 0 in others."""
    strides = [math.prod(sizes[:d]) for d in range(len(sizes))]
    found = np.zeros_like(by)
    for d in dims:
        found += by // strides[d] % sizes[d] * strides[d]
    return found


def _meeting(use: _Use) -> Verdict | None:
    """Two moves of which one may begin before the other is over.

    In the order in which they begin, moves that follow each other with the same turns are a run.
    """
    begin, same, other, turns, move = (
        np.concatenate(column) for column in (use.begin, use.same, use.other, use.turns, use.move)
    )
    order = np.lexsort((move, begin))
    begin, same, other, turns, move = (c[order] for c in (begin, same, other, turns, move))
    news = np.flatnonzero(np.diff(turns, prepend=turns[:1] - 1))
    latest = np.concatenate([[0], np.maximum.accumulate(other)])[news]
    lengths = np.diff(np.append(news, len(turns)))
    until = np.repeat(latest, lengths)
    until[1:] = np.maximum(until[1:], np.maximum.accumulate(same)[:-1])
    for at in np.flatnonzero(begin < until)[:1].tolist():
        return Verdict(
            False,
            f"move {move[at]} takes links from {format_time(int(begin[at]))} on, but moves before "
            f"it may hold them until {format_time(int(until[at]))}",
            "link",
        )
    return None
