"""Boxes that are not alike and share their ways out: what each way out owns and carries."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weft.collective import Chunks
from weft.planners.exits import Exits, Links, ways_inside
from weft.planners.problem import Problem
from weft.topology.levels import looks_alike, uneven_parts

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
_ROUNDS, _STEPS = 3, 50  # of evening out what each way out carries


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes and their ways out.

    Attributes
    ----------
    part
        The box of every NPU, -1 for those that do not take part.
    inside
        The way from every NPU of a box to every other.
    """

    part: NDArray[np.int32]
    exits: Exits
    inside: dict[tuple[int, int], Links]

    def __len__(self) -> int:
        return int(self.part.max()) + 1

    @classmethod
    def of(cls, problem: Problem) -> Boxes | None:
        """Worked out once; None if boxes are alike, or not joined by switches of their own.

        Where NPUs have ways out that they share with nobody, gateways are better, and soon found.
        """
        memo = problem.task.memo
        if "shares" not in memo:
            memo["shares"] = _boxes_of(problem)
        found: Boxes | None = memo["shares"]
        return found

    def nearest(self, chunks: Chunks) -> Boxes:
        """With ways inside that may use the links of ways out: some take less time, if alone."""
        ways = ways_inside(self.exits, chunks, self.part, apart=False)
        return self if ways is None else replace(self, inside=ways)

    @property
    def shares(self) -> Floats:
        """What each way out can carry of all that its box gets."""
        rate, box = self.exits.rate, self.exits.box
        shares: Floats = rate / np.bincount(box, rate)[box]
        return shares

    def own(self, box: int) -> Numbers:
        """The ways out of a box."""
        return np.flatnonzero(self.exits.box == box)


def _boxes_of(problem: Problem) -> Boxes | None:
    topology, demand = problem.topology, problem.demand
    group = sorted(demand.group)
    if not topology.switches or looks_alike(topology, group):
        return None
    for division in uneven_parts(topology, group):
        part = np.full(topology.npus, -1, dtype=np.int32)
        part[group] = division
        exits = Exits.of(topology, part)
        if exits is None or not exits.shared or not exits.joined():
            continue
        inside = ways_inside(exits, demand.chunks, part)
        if inside is not None:
            return Boxes(part, exits, inside)
    return None


def even_shares(boxes: Boxes) -> tuple[Floats, Numbers]:
    """What each way out owns of sums, and who serves whom, so that all carry what they can.

    Besides what its box sends to other owners, q, a way out that owns the share s carries s to and
    from each of the other boxes: q + (boxes - 1) · s is to be as its rate.
    """
    rate, others = boxes.exits.rate, len(boxes) - 1
    share: Floats = rate / rate.sum()
    full = 2 * others / rate.sum()  # what each carries, over its rate
    for _ in range(_ROUNDS):
        by = assigned(boxes, share, np.maximum(full * rate - others * share, 1e-12))
        far = by >= 0
        for _ in range(_STEPS):
            sent = np.bincount(by[far], np.broadcast_to(share, by.shape)[far], len(rate))
            wanted = np.maximum(full * rate - sent, 0) / others
            share = (share + wanted / wanted.sum()) / 2
    return share, by


def assigned(boxes: Boxes, share: Floats, room: Floats) -> Numbers:
    """By box and owner: the way out of the box that serves this owner; -1 for its own.

    One on the owner's switch, else one that has room: of those the one at the same place as the
    owner's among its box's, as on a rail.
    """
    return np.stack([_assigned(boxes, box, share, room) for box in range(len(boxes))])


def _assigned(boxes: Boxes, box: int, share: Floats, room: Floats) -> Numbers:
    exits, own = boxes.exits, boxes.own(box)
    by = np.full(len(exits), -1, dtype=np.int64)
    carried, room = np.zeros(len(own)), room[own]
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


def middles(exits: Exits, share: Floats, by: Numbers) -> list[list[Links]]:
    """By box and owner, the way between their ports: of several the least loaded so far."""
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
