"""Shares: All-Reduce among many boxes that are not alike.

Every way out of a box owns a share of the buffer, and every other box sends its sum of that share
by one of its own ways out, so that all of them carry what their rate allows: the more a box can
send besides its own sum, the more it owns. In a box sums meet at the NPU that is nearest to the way
out, and results are spread from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, Routes
from weft.collective import all_reduce_at
from weft.errors import InputError
from weft.planners.exits import Exits, Links, ways_inside
from weft.planners.listed import timed
from weft.planners.planner import Planner, add
from weft.planners.problem import Problem
from weft.planners.schedule import Schedule
from weft.ragged import offsets_of, places
from weft.topology.levels import looks_alike, uneven_parts
from weft.units import NEVER

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
FEW = 64
"""NPUs among which other planners find better plans in a moment."""
_MOST_ROWS = 4 << 20
_ROUNDS, _STEPS = 3, 50  # of evening out what each way out carries
_FAR = 2  # over the bound: others may find something
_MOST_PIECES = 32  # of each share
_USUAL = 1 << 18  # bytes of a chunk that is worth a message of its own


class Shares(Planner):
    """All-Reduce in shares that follow what each box can send."""

    name = "shares"
    summary = "many boxes that are not alike, each with the share that its ways out can carry"
    rank = 34
    beside = judged = seeded = False

    def fits(self, problem: Problem) -> str | None:
        if (
            problem.kinds == {"all-reduce"}
            and len(problem.demands) == 1
            and any(problem.free)
            and problem.demand.ranks > FEW
            and _frame(problem) is not None
        ):
            return None
        return f"plans one all-reduce of more than {FEW} NPUs in boxes that are not alike"

    def rivals(self, problem: Problem, best: Algorithm, other: Planner) -> bool:  # noqa: ARG002
        """Among so many NPUs others take long."""
        ours = best.provenance["method"] == self.name
        return not ours or best.time > problem.task.ideal * _FAR

    def plan(self, problem: Problem) -> Algorithm:
        plan = self.search(problem, None)
        if plan is None:
            raise InputError(f"method {self.name} finds no way between all boxes; use auto")
        return plan

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:  # noqa: ARG002
        """The best over numbers of pieces that each share is cut in."""
        frame = _frame(problem)
        if frame is None:
            return None
        demand = problem.demand
        rows = 2 * (demand.ranks - 1) * len(frame.exits)
        most = max(1, min(_MOST_ROWS // rows, _MOST_PIECES))
        # Pieces keep links busy while others wait for sums; small ones only add messages.
        counts = {most, 1} if demand.size < len(frame.exits) * most * _USUAL else {most}
        plans = (_planned(problem, frame, pieces) for pieces in sorted(counts))
        return min((plan for plan in plans if plan), key=lambda plan: plan.time, default=None)


@dataclass(frozen=True, eq=False)
class _Frame:
    """Boxes, their ways out, and what does not depend on how the buffer is cut.

    Attributes
    ----------
    part
        The box of every NPU, -1 for those that do not take part.
    inside
        The way from every NPU of a box to every other.
    share
        What each way out owns of the buffer.
    by
        By box and owner: the way out by which the box sends its sum; -1 for its own.
    middle
        Likewise: the links between the ports of both, on the way to the owner.
    """

    part: NDArray[np.int32]
    exits: Exits
    inside: dict[tuple[int, int], Links]
    share: Floats
    by: Numbers
    middle: list[list[Links]]

    @property
    def boxes(self) -> int:
        return len(self.by)


def _frame(problem: Problem) -> _Frame | None:
    """Worked out once; None if boxes are alike, or not joined by switches of their own."""
    memo = problem.task.memo
    if "shares" not in memo:
        memo["shares"] = _frame_of(problem)
    found: _Frame | None = memo["shares"]
    return found


def _frame_of(problem: Problem) -> _Frame | None:
    topology, demand = problem.topology, problem.demand
    group = sorted(demand.group)
    if not topology.switches or looks_alike(topology, group):
        return None
    for division in uneven_parts(topology, group):
        part = np.full(topology.npus, -1, dtype=np.int32)
        part[group] = division
        exits = Exits.of(topology, part)
        if exits is None or not exits.joined():
            continue
        inside = ways_inside(topology, demand.chunks, part)
        if inside is not None:
            share, by = _shares(exits, int(part.max()) + 1)
            return _Frame(part, exits, inside, share, by, _middles(exits, share, by))
    return None


def _shares(exits: Exits, boxes: int) -> tuple[Floats, Numbers]:
    """What each way out owns, and by which one each box sends its sum to which owner.

    Besides what its box sends to other owners, q, a way out that owns the share s carries s to and
    from each of the other boxes: q + (boxes - 1) · s is to be as its rate.
    """
    rate = exits.rate
    share = rate / rate.sum()
    full = 2 * (boxes - 1) / rate.sum()  # what each carries, over its rate
    own = [np.flatnonzero(exits.box == box) for box in range(boxes)]
    by = np.full((boxes, len(exits)), -1, dtype=np.int64)
    for _ in range(_ROUNDS):
        for box in range(boxes):
            room = np.maximum(full * rate[own[box]] - (boxes - 1) * share[own[box]], 1e-12)
            by[box] = _assigned(exits, box, own[box], room, share)
        others = by >= 0
        for _ in range(_STEPS):
            sent = np.bincount(by[others], np.broadcast_to(share, by.shape)[others], len(exits))
            wanted = np.maximum(full * rate - sent, 0) / (boxes - 1)
            share = (share + wanted / wanted.sum()) / 2
    return share, by


def _assigned(exits: Exits, box: int, own: Numbers, room: Floats, share: Floats) -> Numbers:
    """The way out of a box for each owner: one on the owner's switch, else one that has room.

    Of those the one at the same place as the owner's among its box's, as on a rail.
    """
    by = np.full(len(exits), -1, dtype=np.int64)
    carried = np.zeros(len(own))
    place = np.arange(len(exits)) - np.searchsorted(exits.box, exits.box)
    far = []
    for owner in np.flatnonzero(exits.box != box).tolist():
        same = np.flatnonzero(exits.port[own] == exits.port[owner])
        if not len(same):
            far.append(owner)
            continue
        best = same[int(np.argmin(carried[same] / room[same]))]
        by[owner] = own[best]
        carried[best] += share[owner]
    for owner in far:
        filled = (carried + share[owner]) / room
        best = int(np.argmin(filled))
        if place[owner] < len(own) and filled[place[owner]] <= 1:
            best = int(place[owner])
        by[owner] = own[best]
        carried[best] += share[owner]
    return by


def _middles(exits: Exits, share: Floats, by: Numbers) -> list[list[Links]]:
    """The way between the ports of each box and owner: of several the one least loaded so far."""
    rate = exits.topology.bandwidth.astype(np.float64)
    load = np.zeros(len(rate))
    middle: list[list[Links]] = [[()] * len(exits) for _ in by]
    for owner in range(len(exits)):
        for box, way in enumerate(by[:, owner].tolist()):
            if way < 0 or exits.port[way] == exits.port[owner]:
                continue
            found = exits.ways(int(exits.port[way]), int(exits.port[owner]))
            filled = ((load[found] + share[owner]) / rate[found]).max(axis=1)
            best = found[int(np.argmin(filled))]
            load[best] += share[owner]
            middle[box][owner] = tuple(best.tolist())
    return middle


def _planned(problem: Problem, frame: _Frame, pieces: int) -> Algorithm | None:
    """The plan with each share in so many pieces; None if boxes do not all meet."""
    demand, share = problem.demand, frame.share
    ends = np.cumsum(np.tile(share / pieces, pieces)) * (demand.size / demand.alignment)
    marks = np.round(ends).astype(np.int64) * demand.alignment
    marks = np.append(0, np.append(marks[:-1], demand.size))
    kept = np.flatnonzero(np.diff(marks) > 0)
    cut = all_reduce_at(
        demand.group, np.unique(marks), alignment=demand.alignment, relay=demand.relay
    )
    option = problem.cut([cut])
    option.planning(Shares.name, len(kept))
    piece, owner = np.divmod(kept, len(share))
    trees = _Trees(option, frame, piece, owner)
    schedule = trees.schedule()
    return None if schedule is None else timed(option, [schedule], Shares.name)


class _Trees:
    """The tree of every chunk: sums of boxes to the owner and results back, and inside boxes."""

    def __init__(self, problem: Problem, frame: _Frame, piece: Numbers, owner: Numbers) -> None:
        self.problem, self.frame = problem, frame
        self.piece, self.owner = piece, owner
        count = np.array([len(npus) for npus in frame.exits.npus])
        self.npus = np.zeros((len(count), int(count.max())), dtype=np.int64)
        for number, npus in enumerate(frame.exits.npus):
            self.npus[number, : len(npus)] = npus
        boxes = np.arange(frame.boxes)
        by = frame.by[:, owner].T  # chunk, box
        self.home = frame.exits.box[owner]
        by[np.arange(len(owner)), self.home] = owner
        # All NPUs near a way out in turn; neighbours on a rail are owners of one box after another.
        turn = (self.home + piece)[:, None] + boxes[None, :]
        self.by = by
        self.gate = self.npus[by, turn % count[by]]
        """By chunk and box: the NPU where sums of the box meet, and from which results spread."""
        self.root = self.gate[np.arange(len(owner)), self.home]

    def schedule(self) -> Schedule | None:
        problem, frame, boxes = self.problem, self.frame, self.frame.boxes
        chunk, box = np.nonzero(np.arange(boxes)[None, :] != self.home[:, None])
        key = (frame.by[box, self.owner[chunk]], self.gate[chunk, box], self.owner[chunk])
        table, hop = self._hops(box, *key, self.root[chunk])
        away = (self.home[chunk] - box) % boxes
        up_turn = self.piece[chunk] * boxes + away
        down_turn = (self.piece[chunk] + 1) * boxes + (boxes - away)
        offsets = offsets_of(np.full(len(self.owner), boxes - 1))
        count = len(table.src) // 2
        trees = _core.GivenTrees(
            up_offsets=offsets,
            up=hop.astype(np.int32),
            down_offsets=offsets,
            down=(hop + count).astype(np.int32),
            up_turn=up_turn.astype(np.int32),
            down_turn=down_turn.astype(np.int32),
        )
        found = _core.shares(
            problem.topology.core,
            problem.cost.core,
            problem.chunks.core,
            table.given,
            trees,
            problem.search(problem.task.goal),
        )
        if found.time == NEVER:
            return None
        return self._with_boxes(Schedule.from_core(problem.topology, found, None))

    def _hops(
        self, box: Numbers, by: Numbers, gate: Numbers, owner: Numbers, root: Numbers
    ) -> tuple[_Hops, Numbers]:
        """All hops between boxes, each followed by its way back so many places on."""
        exits = self.frame.exits
        keys = np.stack([box, by, gate, owner, root], axis=1)
        each, hop = np.unique(keys, axis=0, return_inverse=True)
        there: list[Links] = []
        for at, way, here, end, last in each.tolist():
            inwards = exits.back(exits.out[end, last])
            there.append(exits.out[way, here] + self.frame.middle[at][end] + inwards)
        ways = there + [exits.back(way) for way in there]
        src = np.concatenate([each[:, 2], each[:, 4]])
        dst = np.concatenate([each[:, 4], each[:, 2]])
        lane = np.concatenate([each[:, 1], each[:, 3]])
        return _Hops(src, dst, lane, ways), hop.reshape(-1)

    def _with_boxes(self, across: Schedule) -> Schedule:
        """The rows between boxes with those inside, which come just before or just after."""
        frame = self.frame
        members = [np.flatnonzero(frame.part == box) for box in range(frame.boxes)]
        # Ends, chunk, time: of sums in each box, then of results.
        box = frame.part[np.where(across.reduce, across.src, across.dst)].astype(np.int64)
        count = np.array([len(npus) for npus in members])[box]
        row = np.repeat(np.arange(len(box)), count)
        offsets = offsets_of([len(npus) for npus in members])
        npu = np.concatenate(members)[places(offsets, box)]
        gate = np.where(across.reduce, across.src, across.dst)[row]
        ends = self._inner(across.chunk[row], npu, gate, across.reduce[row])
        at = np.where(ends.reduce, across.start[row][ends.kept], across.end[row][ends.kept])
        first = np.full(len(self.owner), NEVER, dtype=np.int64)
        np.minimum.at(first, across.chunk[~across.reduce], across.start[~across.reduce])
        chunk = np.repeat(np.arange(len(self.owner)), np.diff(offsets)[self.home])
        mine = np.concatenate(members)[places(offsets, self.home)]
        own = [
            self._inner(chunk, mine, self.root[chunk], np.full(len(chunk), reduce))
            for reduce in (True, False)
        ]
        parts = [ends, *own]
        times = [at, *(first[chunk[part.kept]] for part in own)]
        return self._merged(across, parts, times)

    def _inner(
        self,
        chunk: NDArray[np.integer],
        npu: Numbers,
        gate: NDArray[np.integer],
        reduce: NDArray[np.bool_],
    ) -> _Inner:
        """Rows between the NPUs of a box and its gate, without that of the gate itself."""
        kept = np.flatnonzero(npu != gate)
        npu, gate, reduce = npu[kept], gate[kept].astype(np.int64), reduce[kept]
        src, dst = np.where(reduce, npu, gate), np.where(reduce, gate, npu)
        return _Inner(kept, chunk[kept], src, dst, reduce)

    def _merged(self, across: Schedule, parts: list[_Inner], times: list[Numbers]) -> Schedule:
        topology = self.problem.topology
        pairs = sorted(self.frame.inside)
        inner = Routes(
            offsets_of([len(self.frame.inside[pair]) for pair in pairs]),
            np.array([link for pair in pairs for link in self.frame.inside[pair]], dtype=np.int32),
        )
        routes, shifts = Routes.joined([across.routes, inner])
        keys = np.array([a * topology.npus + b for a, b in pairs], dtype=np.int64)
        lead = self._lead(inner)
        columns: dict[str, list[NDArray[np.generic]]] = {
            name: [getattr(across, name)] for name in ("chunk", "src", "dst", "reduce", "start")
        }
        columns["route"] = [across.route + shifts[0]]
        for part, time in zip(parts, times, strict=True):
            route = np.searchsorted(keys, part.src * topology.npus + part.dst) + shifts[1]
            columns["start"].append(np.where(part.reduce, time - lead, time))
            columns["route"].append(route)
            for name in ("chunk", "src", "dst", "reduce"):
                columns[name].append(getattr(part, name))
        joined = {name: np.concatenate(column) for name, column in columns.items()}
        # Results inside the owner's box start with those to others, after its own sums.
        order = np.argsort(joined["start"], kind="stable")
        types = {"reduce": np.bool_, "start": np.int64}
        rows: dict[str, Any] = {
            name: column[order].astype(types.get(name, np.int32)) for name, column in joined.items()
        }
        return Schedule(**rows, end=rows["start"], routes=routes, slot=None)

    def _lead(self, inner: Routes) -> int:
        """How long before a sum leaves its box the sums inside begin (ps)."""
        topology, largest = self.problem.topology, self.problem.chunks.largest
        slowest = topology.bandwidth[inner.links].min()
        rounds = int(np.bincount(self.frame.part[self.frame.part >= 0]).max())
        return int(rounds * largest / slowest * 1e12) + int(topology.latency[inner.links].max()) * 2


@dataclass(frozen=True, eq=False)
class _Inner:
    """Rows inside boxes, and which of those asked for they are."""

    kept: Numbers
    chunk: NDArray[np.integer]
    src: Numbers
    dst: Numbers
    reduce: NDArray[np.bool_]


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


add(Shares())
