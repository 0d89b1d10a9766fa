"""What compositions by level expand to: rows of a table, for all NPUs or some."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm.transfers import Buffer, Routes, Transfers, place
from weft.errors import InputError
from weft.topology.grid import moved
from weft.topology.ladders import Climb
from weft.units import CLOCK_PS, PS_PER_S, format_time

if TYPE_CHECKING:
    from weft.algorithm.levels import LevelPart, LevelRows, LevelStep, Stage
    from weft.algorithm.model import Algorithm
    from weft.collective import Collective

Numbers = NDArray[np.int64]
_MOST_ROUTES = 2**31 - 1


class _Moves(NamedTuple):
    """Some moves, by place in the grid: how far they go, and where what they carry belongs.

    Attributes
    ----------
    by
        Where a move leads from place 0.
    origin
        In an All-to-All: where its message has come from, seen from the sender's place.
    share
        Where its share, or its message, belongs, seen from there.
    """

    by: Numbers
    origin: Numbers
    share: Numbers
    piece: Numbers


class ListedMoves(NamedTuple):
    """Rows of a table, before they are put in order."""

    chunk: Numbers
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    reduce: bool
    route: Numbers
    start: Numbers
    end: Numbers
    read: Numbers
    write: Numbers


def in_order(parts: Sequence[ListedMoves]) -> Transfers:
    """All rows by their starts; what an NPU copies in its own memory comes before it is sent."""
    adds = np.repeat([rows.reduce for rows in parts], [len(rows.chunk) for rows in parts])
    names = ("chunk", "src", "dst", "route", "start", "end", "read", "write")
    column = {name: np.concatenate([getattr(rows, name) for rows in parts]) for name in names}
    order = np.lexsort((column["src"] != column["dst"], column["start"]))
    column = {name: values[order] for name, values in column.items()}
    short = {name: column[name].astype(np.int32) for name in names if name not in ("start", "end")}
    apart = any(not np.array_equal(column[name], column["chunk"]) for name in ("read", "write"))
    return Transfers(
        short["chunk"],
        short["src"],
        short["dst"],
        adds[order],
        short["route"],
        column["start"],
        column["end"],
        short["read"] if apart else None,
        short["write"] if apart else None,
    )


@dataclass(frozen=True, eq=False)
class LevelTable:
    """Level rows with what they mean nothing without."""

    algorithm: Algorithm
    levels: LevelRows

    @cached_property
    def climbs(self) -> list[Climb]:
        topology = self.algorithm.require_timing().topology
        return [Climb(topology, self.levels.sizes, ladder) for ladder in self.levels.ladders]

    @property
    def demand(self) -> Collective:
        return self.algorithm.demands[0]

    def moves(self, stage: Stage, which: Numbers) -> _Moves:
        """Some moves of a stage, by their number in it."""
        levels, part = self.levels, self.levels.parts[stage.part]
        step = part.steps[stage.step]
        rest, piece = np.divmod(which, part.pieces)
        distance, rest = np.divmod(rest, stage.shape[1])
        along = self._away(step, distance + 1)
        origin, later = np.zeros_like(which), np.zeros_like(which)
        for number, one in enumerate(part.steps):
            if number == stage.step or one not in levels.others(part, stage.step):
                continue
            rest, index = np.divmod(rest, levels.size(one))
            if number < stage.step:
                origin += self._away(one, index)
            else:
                later += self._away(one, index)
        still = np.zeros_like(along)
        by = moved(levels.sizes, still, along, sign=-1) if stage.back else along
        scattered = step.scatter and not stage.back
        return _Moves(by, origin, later + (along if scattered or levels.exchange else 0), piece)

    def _away(self, step: LevelStep, index: Numbers) -> Numbers:
        """Where a distance along a step's level leads from place 0."""
        return self.ways.away(step.dimensions, index)

    def latest(self, stage: Stage) -> Numbers:
        """When each move of a stage ends at the latest."""
        levels = self.levels
        by = self.moves(stage, np.arange(math.prod(stage.shape))).by
        climb, end = self._climb(stage), levels.start[stage.moves].copy()
        tops, last = climb.top(by), int(end.max(initial=0))
        check_tops(tops)
        longest = self.sizes_of(stage.part)[1]
        for top in np.unique(tops).tolist():
            wait = self._wait(climb, stage.part, top, last) * climb.last_turn[top]
            takes = self._takes(climb, top, np.array([longest]))
            end[tops == top] += wait + int(takes[0])
        return end

    def times(self, stage: Stage, which: Numbers, at: Numbers) -> tuple[Numbers, Numbers]:
        """When moves start and end, each at a place."""
        climb, moves = self._climb(stage), self.moves(stage, which)
        start, tops = self.levels.start[stage.moves][which], climb.top(moves.by)
        check_tops(tops)
        _, size = self._carried(stage, moves, at)
        last = int(start.max(initial=0))
        end = np.empty_like(start)
        for top in np.unique(tops).tolist():
            mine = tops == top
            wait = self._wait(climb, stage.part, top, last)
            start[mine] += climb.ladder.turn[top][at[mine]] * np.int64(wait)
            end[mine] = start[mine] + self._takes(climb, top, size[mine])
        return start, end

    def rows(
        self, stage: Stage, which: Numbers, at: Numbers, *, paired: bool = False
    ) -> ListedMoves:
        """Rows of some moves, each from all these places; `paired`: from one of them each."""
        levels, step = self.levels, self.levels.parts[stage.part].steps[stage.step]
        if not paired:
            which, at = np.repeat(which, len(at)), np.tile(at, len(which))
        moves, (start, end) = self.moves(stage, which), self.times(stage, which, at)
        chunk, _ = self._carried(stage, moves, at)
        adds = not stage.back and not levels.exchange
        read = chunk if step.scatter or not adds else chunk + self._kept(stage)
        src, dst = levels.npus[at], levels.npus[moved(levels.sizes, at, moves.by)]
        route = self.ways.route(step.dimensions, step.ladder, moves.by, at)
        return ListedMoves(chunk, src, dst, adds, route, start, end, read, chunk)

    def _climb(self, stage: Stage) -> Climb:
        return self.climbs[self.levels.parts[stage.part].steps[stage.step].ladder]

    def _carried(self, stage: Stage, moves: _Moves, at: Numbers) -> tuple[Numbers, Numbers]:
        """Numbers and bytes of the chunks that moves carry from places."""
        origin = moved(self.levels.sizes, at, moves.origin, sign=-1)
        share = moved(self.levels.sizes, at, moves.share)
        return self._chunks(stage.part, origin, share, moves)

    def copies(self, stage: Stage, at: Numbers) -> ListedMoves | None:
        """What places keep apart before they send it in one shot."""
        step = self.levels.parts[stage.part].steps[stage.step]
        if step.scatter or self.levels.exchange:
            return None
        count = math.prod(stage.shape[1:])
        when = self.levels.start[stage.moves].reshape(-1, count).min(axis=0)
        moves = _Moves(*(np.repeat(c, len(at)) for c in self.moves(stage, np.arange(count))))
        here = np.tile(at, count)
        share = moved(self.levels.sizes, here, moves.share)
        chunk, _ = self._chunks(stage.part, here, share, moves)
        npu, start = self.levels.npus[here], np.repeat(when, len(at))
        route = np.full_like(chunk, self.ways.count)
        return ListedMoves(
            chunk, npu, npu, False, route, start, start, chunk, chunk + self._kept(stage)
        )

    def _kept(self, stage: Stage) -> int:
        """What makes a chunk's number that of the place where a copy of it is kept."""
        steps = self.levels.parts[stage.part].steps[: stage.step]
        slots = sum(len(demand.chunks) for demand in self.algorithm.demands)
        return place(Buffer.SCRATCH, sum(not step.scatter for step in steps) * slots)

    def _chunks(
        self, part: int, origin: Numbers, share: Numbers, moves: _Moves
    ) -> tuple[Numbers, Numbers]:
        """Numbers and bytes of chunks: of shares that belong to places, or from place to place."""
        pieces, demand = self.levels.parts[part].pieces, self.demand
        group, rank = self._ranks
        if demand.kind == "all-reduce":
            chunk = self._first_chunk(part) + self._share(part, share) * pieces + moves.piece
            return chunk + group[share] * len(self._bytes), self._bytes[chunk]
        first = sum(one.pieces for one in self.levels.parts[:part])
        piece = rank[share] * demand.chunks_per_share + first + moves.piece
        size = self._bytes[piece]
        if self.levels.exchange:
            piece = piece + rank[origin] * (demand.ranks * demand.chunks_per_share)
        return piece + group[share] * demand.chunk_count, size

    @cached_property
    def _bytes(self) -> Numbers:
        """Of all chunks of one buffer."""
        return self.demand.piece_bytes if self.demand.parts is None else self.demand.chunks.bytes

    def _share(self, part: int, at: Numbers) -> Numbers:
        """Numbers of shares of a part by the places to which they belong."""
        sizes, total, stride = self.levels.sizes, np.zeros_like(at), 1
        for step in self.levels.parts[part].steps:
            for dimension in step.dimensions if step.scatter else ():
                along = at // math.prod(sizes[:dimension]) % sizes[dimension]
                total, stride = total + along * stride, stride * sizes[dimension]
        return total

    def _first_chunk(self, part: int) -> int:
        """The number of the first chunk of a part of an All-Reduce."""
        return sum(self._chunk_count(one) for one in self.levels.parts[:part])

    def _chunk_count(self, part: LevelPart) -> int:
        return part.pieces * math.prod(self.levels.size(s) for s in part.steps if s.scatter)

    @cached_property
    def _ranks(self) -> tuple[Numbers, Numbers]:
        """The group of each place, and its rank there."""
        npus = self.levels.npus
        known = np.zeros((2, int(npus.max()) + 1), dtype=np.int64)
        for number, demand in enumerate(self.algorithm.demands):
            members = np.array(demand.group)
            known[:, members] = np.stack([np.full_like(members, number), np.arange(len(members))])
        return known[0, npus], known[1, npus]

    def sizes_of(self, part: int) -> tuple[int, int]:
        """Bytes of the smallest and the largest chunk of a part."""
        levels = self.levels
        if self.demand.kind == "all-reduce":
            first = self._first_chunk(part)
            sizes = self._bytes[first : first + self._chunk_count(levels.parts[part])]
        else:
            first = sum(one.pieces for one in levels.parts[:part])
            pieces = self._bytes.reshape(-1, self.demand.chunks_per_share)
            sizes = pieces[:, first : first + levels.parts[part].pieces]
        return int(sizes.min()), int(sizes.max())

    def _wait(self, climb: Climb, part: int, top: int, last: int) -> int:
        """How long each turn on shared links takes; `last`: when moves start at the latest."""
        cost = self.algorithm.require_timing().cost.core
        return checked_wait(climb, cost, self.sizes_of(part), top, last)

    def _takes(self, climb: Climb, top: int, size: Numbers) -> Numbers:
        """How long chunks of these sizes are on their way."""
        return takes(climb, self.algorithm.require_timing().cost.core, top, size)

    @cached_property
    def ways(self) -> Ways:
        steps = [
            (step.dimensions, step.ladder) for part in self.levels.parts for step in part.steps
        ]
        return Ways(self.levels.sizes, self.climbs, steps)


@dataclass(frozen=True, eq=False)
class Ways:
    """The routes of moves along lines of a grid: one for every distance and place.

    Attributes
    ----------
    steps
        Dimensions and ladder of each line that moves go along; some may be there again.
    """

    sizes: tuple[int, ...]
    climbs: list[Climb]
    steps: list[tuple[tuple[int, ...], int]]

    def away(self, dimensions: tuple[int, ...], index: Numbers) -> Numbers:
        """Where a distance along a line leads from place 0."""
        total = np.zeros_like(index)
        for dimension in dimensions:
            index, along = np.divmod(index, self.sizes[dimension])
            total += along * math.prod(self.sizes[:dimension])
        return total

    @cached_property
    def _first(self) -> dict[tuple[tuple[int, ...], int], int]:
        """The first way of each line and ladder: there is one for every distance."""
        found, first = dict[tuple[tuple[int, ...], int], int](), 0
        for dimensions, ladder in dict.fromkeys(self.steps):
            found[dimensions, ladder] = first
            first += self._length(dimensions) - 1
        return found

    def _length(self, dimensions: tuple[int, ...]) -> int:
        return math.prod(self.sizes[dimension] for dimension in dimensions)

    @property
    def _places(self) -> int:
        return math.prod(self.sizes)

    @property
    def count(self) -> int:
        """How many routes there are."""
        return sum(self._length(one) - 1 for one, _ in self._first) * self._places

    def route(self, dimensions: tuple[int, ...], ladder: int, by: Numbers, at: Numbers) -> Numbers:
        """Numbers of routes, way by way; those within an NPU's memory come last."""
        if self.count > _MOST_ROUTES:
            raise InputError(f"there are more than {_MOST_ROUTES:,} routes, too many to list")
        index, stride = np.zeros_like(by), 1
        for dimension in dimensions:
            size = self.sizes[dimension]
            index += by // math.prod(self.sizes[:dimension]) % size * stride
            stride *= size
        return (self._first[dimensions, ladder] + index - 1) * self._places + at

    def routes(self) -> Routes:
        """All routes, as `route` numbers them."""
        lengths, links = [np.zeros(1, dtype=np.int64)], []
        everywhere = np.arange(self._places)
        for dimensions, ladder in self._first:
            away = self.away(dimensions, np.arange(1, self._length(dimensions)))
            for by in away.tolist():
                climb = self.climbs[ladder]
                top = int(climb.top(np.array([by]))[0])
                crossed = climb.links(everywhere, np.array([by]), top)
                lengths.append(np.full(len(everywhere), crossed.shape[1], dtype=np.int64))
                links.append(crossed.reshape(-1))
        lengths.append(np.zeros(1, dtype=np.int64))
        return Routes(np.cumsum(np.concatenate(lengths)), np.concatenate(links).astype(np.int32))

    def near(self, place: int, route: NDArray[np.integer]) -> Numbers:
        """The first switch above a place on each of its routes."""
        switch = [int(climb.switch[0, place]) for climb in self.climbs]
        firsts = np.array(list(self._first.values())) * self._places
        way = np.searchsorted(firsts, route, side="right") - 1
        return np.array([switch[ladder] for _, ladder in self._first])[way]


def takes(climb: Climb, cost: _core.CostModel, top: int, size: Numbers) -> Numbers:
    """How long chunks of these sizes are on their way."""
    sizes = np.unique(size)
    each = [hop_times(climb, cost, int(one), top)[0] for one in sizes]
    return np.array(each, dtype=np.int64)[np.searchsorted(sizes, size)]


def check_tops(tops: Numbers) -> None:
    if (tops < 0).any():
        raise InputError("no ladder leads as far as a move of the rows does")


def hop_times(
    climb: Climb, cost: _core.CostModel, size: int, top: int
) -> tuple[int, Numbers, Numbers]:
    """How long a hop up to a tier and down takes, and when it holds each link: begin, end."""
    speeds = climb.speeds(top)
    takes, begin, length = _core.hop_times(cost, *speeds, np.array([0, len(speeds[0])]), size)
    return int(takes[0]), begin, begin + length


def turn_time(climb: Climb, cost: _core.CostModel, sizes: tuple[int, int], top: int) -> int:
    """How long each turn on the shared links of a hop takes; `sizes`: of chunks, from - to."""
    shared = np.array([*climb.shared[: top + 1], *climb.shared[top::-1]])
    if not shared.any():
        return 0
    begin, end = hop_times(climb, cost, sizes[0], top)[1], hop_times(climb, cost, sizes[1], top)[2]
    return int((end - begin)[shared].max())


def checked_wait(
    climb: Climb, cost: _core.CostModel, sizes: tuple[int, int], top: int, last: int
) -> int:
    """How long each turn takes; raise if who starts at `last`, with all turns, leaves the clock.

    Reckoned in whole numbers of any length: links one after the other are never faster than a hop,
    and the cost model has no longer times to push a chunk than half the clock.
    """
    rate, latency = (column.tolist() for column in climb.speeds(top))
    alone = sum(-(-sizes[1] * PS_PER_S // one) for one in rate) + sum(latency)
    if 2 * alone < CLOCK_PS:
        wait, longest = turn_time(climb, cost, sizes, top), hop_times(climb, cost, sizes[1], top)[0]
        if last + wait * climb.last_turn[top] + longest < CLOCK_PS:
            return wait
    raise InputError(f"a move that starts at {format_time(last)} leaves the clock (53 days)")
