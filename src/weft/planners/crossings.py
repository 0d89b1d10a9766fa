"""Chunks that go between boxes by given ways out: the tree of each, and its rows in boxes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Routes
from weft.planners.exits import Links
from weft.planners.portions import Boxes, middles
from weft.planners.problem import Problem
from weft.planners.schedule import Schedule
from weft.ragged import offsets_of, places

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pieces:
    """Chunks, each with a way out that owns it: from there it goes to all boxes.

    Attributes
    ----------
    owner, turn
        Of each chunk; those of lower turns go first.
    source
        The only holder of each; None if all boxes send their sums to the owner first. A holder in
        another box sends it to the owner.
    by
        By box and way out: the way out of the box by which it serves chunks of this owner.
    lag
        How many turns later than a chunk's sums its results go.
    """

    owner: Numbers
    turn: Numbers
    source: Numbers | None
    by: Numbers
    lag: int

    @classmethod
    def of(cls, owner: Numbers, source: Numbers | None, by: Numbers, lag: int = 0) -> Pieces:
        """Pieces in turns that are even for every owner."""
        return cls(owner, turns_of(owner), source, by, lag)

    def __len__(self) -> int:
        return len(self.owner)


def turns_of(owner: Numbers) -> Numbers:
    """When each piece goes: those of every owner one after the other, spread over all turns."""
    counts = np.bincount(owner)
    order = np.argsort(owner, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(owner)) - np.repeat(offsets_of(counts)[:-1], counts)
    turn: Numbers = (2 * place + 1) * counts.max() // (2 * counts[owner])
    return turn


def crossed(problem: Problem, boxes: Boxes, pieces: Pieces) -> Schedule:
    """When all rows go: those between boxes by list scheduling, those inside just before or after.

    Start and end say in which order, and are no times.
    """
    return _Crossings(problem, boxes, pieces).schedule()


class _Crossings:
    """The tree of every chunk: sums of boxes to the owner and results back, and inside boxes."""

    def __init__(self, problem: Problem, boxes: Boxes, pieces: Pieces) -> None:
        self.problem, self.boxes, self.pieces = problem, boxes, pieces
        exits, owner, source = boxes.exits, pieces.owner, pieces.source
        chunks = np.arange(len(pieces))
        self.home = exits.box[owner]
        self.begin = self.home if source is None else boxes.part[source].astype(np.int64)
        """The box from which copies go out."""
        count = np.array([len(npus) for npus in exits.npus])
        near = np.full((len(count), int(count.max())), -1, dtype=np.int64)
        for number, npus in enumerate(exits.npus):
            near[number, : len(npus)] = npus
        by = pieces.by[:, owner].T  # chunk, box
        by[chunks, self.home] = owner
        # All NPUs near a way out in turn; neighbours on a rail are owners of one box after another.
        turn = (self.home + pieces.turn)[:, None] + np.arange(len(boxes))[None, :]
        self.gate = near[by, turn % count[by]]
        """By chunk and box: the NPU where sums of the box meet, and from which results spread."""
        if source is not None:
            is_near = (near[by[chunks, self.begin]] == source[:, None]).any(axis=1)
            self.gate[chunks[is_near], self.begin[is_near]] = source[is_near]
        self.root = self.gate[chunks, self.home]

    def schedule(self) -> Schedule:
        """Boxes send to the next, to the one after it, and so on."""
        problem, boxes, home = self.problem, len(self.boxes), self.home
        chunk, box = np.nonzero(np.arange(boxes)[None, :] != home[:, None])
        owner = self.pieces.owner[chunk]
        by = self.pieces.by[box, owner]
        table, hop = self._hops(box, by, self.gate[chunk, box], owner, self.root[chunk])
        away = (home[chunk] - box) % boxes
        turn = self.pieces.turn[chunk] * boxes
        later = turn + self.pieces.lag * boxes
        each = offsets_of(np.full(len(home), boxes - 1))
        sums = self.pieces.source is None
        first = (box == self.begin[chunk]) & (not sums)
        order = np.lexsort((~first, chunk))
        down = np.where(first, hop, hop + len(table.src) // 2)
        trees = _core.GivenTrees(
            up_offsets=each if sums else np.zeros_like(each),
            up=(hop if sums else hop[:0]).astype(np.int32),
            down_offsets=each,
            down=down[order].astype(np.int32),
            up_turn=(turn + away if sums else turn[:0]).astype(np.int32),
            down_turn=(later + np.where(first, 0, boxes - away))[order].astype(np.int32),
        )
        found = _core.shares(
            problem.topology.core,
            problem.cost.core,
            problem.chunks.core,
            table.given,
            trees,
            problem.search(),
        )
        across = Schedule.from_core(problem.topology, found, None)
        return self._merged(across, [*self._ends(across), *self._own(across)])

    def _hops(
        self, box: Numbers, by: Numbers, gate: Numbers, owner: Numbers, root: Numbers
    ) -> tuple[_Hops, Numbers]:
        """All hops between boxes, each followed by its way back so many places on."""
        exits = self.boxes.exits
        load = np.bincount(self.pieces.owner, minlength=len(exits)).astype(np.float64)
        middle = middles(exits, load, self.pieces.by)
        keys = np.stack([box, by, gate, owner, root], axis=1)
        each, hop = np.unique(keys, axis=0, return_inverse=True)
        there: list[Links] = []
        for at, way, here, end, last in each.tolist():
            inwards = exits.back(exits.out[end, last])
            there.append(exits.out[way, here] + middle[at][end] + inwards)
        ways = there + [exits.back(way) for way in there]
        src = np.concatenate([each[:, 2], each[:, 4]])
        dst = np.concatenate([each[:, 4], each[:, 2]])
        lane = np.concatenate([each[:, 1], each[:, 3]])
        return _Hops(src, dst, lane, ways), hop.reshape(-1)

    def _ends(self, across: Schedule) -> list[_Inner]:
        """Inside boxes, before what they send as sums and after what they get."""
        gate = np.where(across.reduce, across.src, across.dst).astype(np.int64)
        row, npu = self._members(self.boxes.part[gate].astype(np.int64))
        reduce = across.reduce[row]
        time = np.where(reduce, across.start[row] - self._lead, across.end[row])
        src, dst = np.where(reduce, npu, gate[row]), np.where(reduce, gate[row], npu)
        return [_Inner.of(across.chunk[row], src, dst, reduce, time)]

    def _own(self, across: Schedule) -> list[_Inner]:
        """Inside the box from which each chunk's copies go out, about when the first one does."""
        first = np.full(len(self.pieces), np.iinfo(np.int64).max)
        copies = ~across.reduce
        np.minimum.at(first, across.chunk[copies], across.start[copies])
        chunk, npu = self._members(self.begin)
        gate = self.gate[np.arange(len(self.pieces)), self.begin]
        source, no, yes = self.pieces.source, np.False_, np.True_
        if source is None:
            before = _Inner.of(chunk, npu, gate[chunk], yes, first[chunk] - self._lead)
        else:
            before = _Inner.of(np.arange(len(gate)), source, gate, no, first - self._lead)
            kept = npu != source[chunk]
            chunk, npu = chunk[kept], npu[kept]
        return [before, _Inner.of(chunk, gate[chunk], npu, no, first[chunk])]

    def _members(self, box: Numbers) -> tuple[Numbers, Numbers]:
        """All NPUs of some boxes, one box after the other: which of the boxes, and the NPU."""
        members = [np.flatnonzero(self.boxes.part == one) for one in range(len(self.boxes))]
        count = np.array([len(npus) for npus in members])
        row = np.repeat(np.arange(len(box)), count[box])
        return row, np.concatenate(members)[places(offsets_of(count), box)]

    def _merged(self, across: Schedule, parts: list[_Inner]) -> Schedule:
        """All rows in order."""
        npus, inside = self.problem.topology.npus, self.boxes.inside
        pairs = sorted(inside)
        keys = np.array([a * npus + b for a, b in pairs], dtype=np.int64)
        routes, shifts = Routes.joined([across.routes, self._inner])
        columns: dict[str, list[NDArray[np.generic]]] = {
            name: [getattr(across, name), *(getattr(part, name) for part in parts)]
            for name in ("chunk", "src", "dst", "reduce", "start")
        }
        ways = (np.searchsorted(keys, part.src * npus + part.dst) + shifts[1] for part in parts)
        columns["route"] = [across.route + shifts[0], *ways]
        joined = {name: np.concatenate(column) for name, column in columns.items()}
        order = np.argsort(joined["start"], kind="stable")
        types = {"reduce": np.bool_, "start": np.int64}
        rows: dict[str, Any] = {
            name: column[order].astype(types.get(name, np.int32)) for name, column in joined.items()
        }
        return Schedule(**rows, end=np.arange(len(order)), routes=routes, slot=None)

    @cached_property
    def _inner(self) -> Routes:
        """The ways inside boxes, by pair of NPUs."""
        inside = self.boxes.inside
        ways = [inside[pair] for pair in sorted(inside)]
        links = np.array([link for way in ways for link in way], dtype=np.int32)
        return Routes(offsets_of([len(way) for way in ways]), links)

    @cached_property
    def _lead(self) -> int:
        """How long before a sum leaves its box the sums inside begin (ps)."""
        topology, largest = self.problem.topology, self.problem.chunks.largest
        slowest = topology.bandwidth[self._inner.links].min()
        part = self.boxes.part
        most = int(np.bincount(part[part >= 0]).max())
        latency = int(topology.latency[self._inner.links].max())
        return int(most * largest / slowest * 1e12) + 2 * latency + 1


@dataclass(frozen=True, eq=False)
class _Inner:
    """Rows inside boxes."""

    chunk: NDArray[np.integer]
    src: Numbers
    dst: Numbers
    reduce: NDArray[np.bool_]
    start: Numbers

    @classmethod
    def of(
        cls,
        chunk: NDArray[np.integer],
        src: Numbers,
        dst: Numbers,
        reduce: NDArray[np.bool_] | np.bool_,
        start: Numbers,
    ) -> _Inner:
        """Those of them that go from one NPU to another."""
        columns = (chunk, src, dst, np.broadcast_to(reduce, chunk.shape), start)
        return cls(*(column[src != dst] for column in columns))


@dataclass(frozen=True, eq=False)
class _Hops:
    """Hops between boxes, and the way out from which each is sent."""

    src: Numbers
    dst: Numbers
    lane: Numbers
    ways: list[Links]

    @property
    def given(self) -> _core.GivenHops:
        """The same for the kernel."""
        links = np.array([link for way in self.ways for link in way], dtype=np.int32)
        return _core.GivenHops(
            offsets=offsets_of([len(way) for way in self.ways]),
            links=links,
            src=self.src.astype(np.int32),
            dst=self.dst.astype(np.int32),
            lane=self.lane.astype(np.int32),
        )
