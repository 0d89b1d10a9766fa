"""Shares: collectives of many boxes that are not alike, and whose NPUs share their ways out.

Every way out of a box owns equal pieces of the buffer, as many as its rate allows. Sums go from all
boxes to the owner, copies from the owner to all boxes, by one way out of each box, so that all of
them carry what their rate allows. In a box sums meet at the NPU that is nearest to the way out, and
copies are spread from there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft.algorithm import Algorithm
from weft.collective import Chunks, all_reduce_at
from weft.errors import InputError
from weft.planners.crossings import Pieces, crossed
from weft.planners.listed import backwards, timed
from weft.planners.planner import Planner, add
from weft.planners.portions import Boxes, Floats, Numbers, assigned, even_shares
from weft.planners.problem import Problem
from weft.planners.schedule import Schedule
from weft.ragged import offsets_of
from weft.topology.model import Topology

FEW = 64
"""NPUs among which other planners find better plans in a moment."""
_HUNDREDS = 512  # of NPUs: others take very long, or have no plan that fits in memory
_FAR = 2  # over the bound: others may find something
_MOST_ROWS = 4 << 20
_MOST_PIECES = 32  # of each way out
_USUAL, _SMALL = 1 << 18, 1 << 12  # bytes of a chunk: larger and smaller ones are one plan's only
_KINDS = ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce")
_LITTLE = 1e-12


class Shares(Planner):
    """Collectives in pieces whose numbers follow what each box can send."""

    name = "shares"
    summary = "many boxes that are not alike, each with the share that its ways out can carry"
    rank = 34
    beside = judged = seeded = False

    def fits(self, problem: Problem) -> str | None:
        if (
            problem.kinds <= set(_KINDS)
            and len(problem.demands) == 1
            and any(problem.free)
            and problem.demand.ranks > FEW
            and Boxes.of(problem) is not None
        ):
            return None
        return (
            f"plans one {', '.join(_KINDS[:-1])} or {_KINDS[-1]} of more than {FEW} NPUs in boxes "
            "that are not alike, and that share their ways out"
        )

    def rivals(self, problem: Problem, best: Algorithm, other: Planner) -> bool:  # noqa: ARG002
        """Among so many NPUs others take long."""
        ours = best.provenance["method"] == self.name
        far = best.time > problem.task.ideal * _FAR and problem.demand.ranks <= _HUNDREDS
        return not ours or far

    def plan(self, problem: Problem) -> Algorithm:
        plan = self.search(problem, None)
        if plan is None:
            raise InputError(f"method {self.name} finds no way between all boxes; use auto")
        return plan

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:  # noqa: ARG002
        """The best over numbers of pieces."""
        boxes = Boxes.of(problem)
        if boxes is None:
            return None
        plans = (_planned(problem, boxes, most) for most in _counts(problem, boxes))
        return min(plans, key=lambda plan: plan.time)


def _counts(problem: Problem, boxes: Boxes) -> list[int]:
    """How many pieces each way out may own at the most.

    Many keep links busy while others wait for sums; small ones only add messages.
    """
    demand = problem.demand
    rows = demand.ranks * len(boxes.exits) * (2 if demand.kind == "all-reduce" else 1)
    many = max(1, min(_MOST_ROWS // rows, _MOST_PIECES))
    pieces = len(boxes.exits) * many
    if demand.size < pieces * _SMALL:
        return [1]
    return sorted({many, 1} if demand.size < pieces * _USUAL else {many})


def _planned(problem: Problem, boxes: Boxes, most: int) -> Algorithm:
    demand = problem.demand
    if demand.kind == "all-reduce":
        owner = _evenly(boxes, even_shares(boxes), most)
        marks = _marks(demand.size, demand.alignment, len(owner))
        cut = all_reduce_at(demand.group, marks, alignment=demand.alignment, relay=demand.relay)
        option = problem.cut([cut])
        schedule = crossed(option, boxes, _pieces(boxes, owner[: len(cut.chunks)], None))
        return timed(option, [schedule], Shares.name)

    rooted = demand.root is not None
    root = boxes.part[demand.root] if rooted else -1
    rate = np.where(boxes.exits.box == root, 0, boxes.exits.rate)
    fitting = max(1, demand.size // demand.alignment)
    count = min(len(_evenly(boxes, rate, most)), fitting) if rooted else most
    cut = replace(demand, chunks_per_share=count)

    def spread(problem: Problem, topology: Topology, chunks: Chunks) -> Schedule:  # noqa: ARG001
        source = chunks.set_members[chunks.set_offsets[chunks.pre]].astype(np.int64)
        owner = _evenly(boxes, rate, most)[:count] if rooted else _outlets(boxes, source)
        return crossed(problem, boxes, _pieces(boxes, owner, source))

    option = problem.cut([cut])
    if option.chunks.reduce.any():
        schedule = backwards(option, option.chunks, spread)
    else:
        schedule = spread(option, option.topology, option.chunks)
    return timed(option, [schedule], Shares.name)


def _evenly(boxes: Boxes, share: Floats, most: int) -> Numbers:
    """The owner of each of some equal pieces, at the most so many for each.

    With that number of pieces with which no box and no way out carries much more than its share.
    """
    exits, others = boxes.exits, len(boxes) - 1
    box_rate = np.bincount(exits.box, exits.rate)
    found, least = np.zeros(0, dtype=np.int64), np.inf
    for count in range(1, most + 1):
        counts = np.rint(share / share.max() * count).astype(np.int64)
        own = np.bincount(exits.box, counts)
        carried = (counts.sum() + (others - 1) * own) / box_rate
        load = max(carried.max(), (others * counts / exits.rate).max()) / counts.sum()
        if load < least:
            found, least = np.repeat(np.arange(len(exits)), counts), load
    return found[np.argsort(_turns(found), kind="stable")]


def _outlets(boxes: Boxes, source: Numbers) -> Numbers:
    """The way out for each chunk of an NPU: one near it, if it has room."""
    exits, box = boxes.exits, boxes.part[source]
    chunks = np.bincount(box, minlength=len(boxes))
    fair = (chunks / np.bincount(exits.box, exits.rate))[exits.box] * exits.rate
    filled = np.zeros(len(exits))
    owner = np.zeros(len(source), dtype=np.int64)
    for chunk, (npu, at) in enumerate(zip(source.tolist(), box.tolist(), strict=True)):
        own = boxes.own(at)
        near = [way for way in own.tolist() if (way, npu) in exits.out]
        free = [way for way in near if filled[way] + 1 <= np.ceil(fair[way])] or own.tolist()
        owner[chunk] = min(free, key=lambda way: (filled[way] + 1) / exits.rate[way])
        filled[owner[chunk]] += 1
    return owner


def _pieces(boxes: Boxes, owner: Numbers, source: Numbers | None) -> Pieces:
    """All pieces of a buffer, with the ways out that serve them."""
    exits = boxes.exits
    counts = np.bincount(owner, minlength=len(exits))
    room = len(owner) * exits.rate / np.bincount(exits.box, exits.rate)[exits.box]
    if source is None:
        others = len(boxes) - 1
        full = 2 * others * len(owner) / exits.rate.sum()
        room = np.maximum(full * exits.rate - others * counts, _LITTLE)
    return Pieces(owner, _turns(owner), source, assigned(boxes, counts.astype(np.float64), room))


def _turns(owner: Numbers) -> Numbers:
    """When each piece goes: those of every owner one after the other, spread over all turns."""
    counts = np.bincount(owner)
    order = np.argsort(owner, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(owner)) - np.repeat(offsets_of(counts)[:-1], counts)
    return (2 * place + 1) * counts.max() // (2 * counts[owner])


def _marks(size: int, alignment: int, pieces: int) -> Numbers:
    """Where a buffer is cut for about equal pieces; for fewer, if it is too small for so many."""
    units = size // alignment
    marks = np.arange(pieces + 1) * units // pieces * alignment
    return np.unique(np.append(marks[:-1], size))


add(Shares())
