"""Shares: collectives of many boxes that are not alike, and whose NPUs share their ways out.

Every way out of a box owns equal pieces of the buffer, as many as its rate allows. Sums go from all
boxes to the owner, copies from the owner to all boxes, by one way out of each box, so that all of
them carry what their rate allows. In a box sums meet at the NPU that is nearest to the way out, and
copies are spread from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from weft.algorithm import Algorithm
from weft.collective import Chunks, all_reduce_at
from weft.errors import InputError
from weft.planners.crossings import Pieces, crossed, turns_of
from weft.planners.listed import backwards, timed
from weft.planners.planner import Planner, add
from weft.planners.portions import Boxes, Floats, Numbers, assigned, even_shares
from weft.planners.problem import Problem
from weft.planners.schedule import Schedule
from weft.topology.model import Topology

FEW = 64
"""NPUs among which other planners find better plans in a moment."""
_HUNDREDS = 512  # of NPUs: others take very long, or have no plan that fits in memory
_FAR = 2  # over the bound: others may find something
_MOST_ROWS = 4 << 20
_MOST_PIECES = 32  # of each way out
_USUAL, _SMALL = 1 << 18, 1 << 12  # bytes of a chunk: larger and smaller ones are one plan's only
_ABOUT = 1 + 1e-9
_KINDS = ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce")


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
        made = _sums(problem, boxes) if problem.kinds == {"all-reduce"} else _copies(problem, boxes)
        return min(made, key=lambda plan: plan.time)


def _sums(problem: Problem, boxes: Boxes) -> Iterator[Algorithm]:
    """All-Reduce with a piece for each way out, or many, alike or not.

    Many keep links busy while others wait for sums; small ones only add messages. Alike they stay
    in step. Where boxes are few, results are better sent between sums; where there are many, an
    owner needs so long to send to all of them that sums must be there soon.
    """
    demand, ways = problem.demand, len(boxes.exits)
    share, by = even_shares(boxes)
    many = _many(2 * demand.ranks * ways)
    few = demand.ranks <= _HUNDREDS
    each = np.arange(ways)
    cuts = [(each, share)] if demand.size < ways * many * _USUAL else []
    if few or demand.size >= ways * many * _SMALL:
        equal = _evenly(boxes, share, by, ways * many)
        cuts.append((equal, np.ones(len(equal))))
        if few:
            cuts.append((np.tile(each, many), np.tile(share, many)))
    for owner, weight in cuts:
        marks = np.rint(np.cumsum(weight) / weight.sum() * (demand.size // demand.alignment))
        marks = np.append(0, marks.astype(np.int64) * demand.alignment)
        marks[-1] = demand.size
        kept = owner[np.diff(marks) > 0]
        cut = all_reduce_at(
            demand.group, np.unique(marks), alignment=demand.alignment, relay=demand.relay
        )
        option = problem.cut([cut])
        option.planning(Shares.name, len(kept))
        turns = int(np.bincount(kept).max())
        within = [boxes, boxes.nearest(option.chunks)] if few and len(cuts) > 2 else [boxes]
        for inside, lag in product(within, sorted({1, turns} if few else {turns})):
            schedule = crossed(option, inside, Pieces.of(kept, None, by, lag))
            yield timed(option, [schedule], Shares.name)


def _copies(problem: Problem, boxes: Boxes) -> Iterator[Algorithm]:
    """What is spread from one holder each, or backwards summed for one taker each."""
    demand, exits = problem.demand, boxes.exits
    rooted = demand.root is not None
    root = boxes.part[demand.root] if rooted else -1
    rate = np.where(exits.box == root, 0, exits.rate)
    by = assigned(boxes, rate, rate.sum() * boxes.shares)
    for count in _cuts(problem, boxes):
        owner = np.zeros(0, dtype=np.int64)
        if rooted:
            owner = _evenly(boxes, rate, by, count)[: max(1, demand.size // demand.alignment)]
        cut = replace(demand, chunks_per_share=len(owner) or count)
        option = problem.cut([cut])
        option.planning(Shares.name, len(option.chunks))

        def spread(
            problem: Problem,
            topology: Topology,  # noqa: ARG001 - the same both ways
            chunks: Chunks,
            owner: Numbers = owner,
        ) -> Schedule:
            source = chunks.set_members[chunks.set_offsets[chunks.pre]].astype(np.int64)
            owners = owner if rooted else _outlets(boxes, source)
            return crossed(problem, boxes, Pieces.of(owners, source, by))

        if option.chunks.reduce.any():
            schedule = backwards(option, option.chunks, spread)
        else:
            schedule = spread(option, option.topology, option.chunks)
        yield timed(option, [schedule], Shares.name)


def _many(rows: int) -> int:
    """Pieces for each owner, given how many rows a plan with one each has."""
    return max(1, min(_MOST_ROWS // rows, _MOST_PIECES))


def _cuts(problem: Problem, boxes: Boxes) -> list[int]:
    """How many pieces of all there should be, with one root; else of each NPU's."""
    demand, ways = problem.demand, len(boxes.exits)
    if demand.root is not None:
        few, many = ways, ways * _many(demand.ranks * ways)
        piece = demand.size // many
    else:
        # So many that ways out of one box carry about as many of them.
        npus, own = np.bincount(boxes.part[boxes.part >= 0]), np.bincount(boxes.exits.box)
        counts = range(1, _many(demand.ranks**2) + 1)
        many = min(counts, key=lambda count: float((-(-count * npus // own)).max()) / count)
        few, piece = 1, demand.size // (demand.ranks * many)
    if piece < _SMALL:
        return [few]
    return [many] if piece >= _USUAL else sorted({few, many})


def _evenly(boxes: Boxes, share: Floats, by: Numbers, most: int) -> Numbers:
    """The owner of each of some equal pieces, of at the most so many.

    With that number of pieces with which all ways out carry about what their share would be.
    """
    exits = boxes.exits
    on_switch = np.argsort(exits.port, kind="stable")
    ideal = _load(boxes, share / share.sum(), by)
    found, least = np.zeros(0, dtype=np.int64), np.inf
    for count in range(1, int(most * share.max() / share.sum()) + 1):
        wanted = share / share.max() * count
        # Those alike the same; or, what rounding takes from one, to the next on its switch.
        passed_on = np.zeros(len(exits))
        passed_on[on_switch] = np.diff(np.rint(np.cumsum(wanted[on_switch])), prepend=0)
        for counts in (np.rint(wanted), passed_on):
            off = np.abs(_load(boxes, counts / counts.sum(), by) - ideal).max()
            if off <= least * _ABOUT:  # more pieces keep more links busy
                found, least = np.repeat(np.arange(len(exits)), counts.astype(np.int64)), off
    return found[np.argsort(turns_of(found), kind="stable")]


def _load(boxes: Boxes, share: Floats, by: Numbers) -> Floats:
    """For how long each way out carries sums, if each owns such a share (seconds per byte)."""
    exits, far = boxes.exits, by >= 0
    sent = np.bincount(by[far], np.broadcast_to(share, by.shape)[far], len(exits))
    load: Floats = (sent + (len(boxes) - 1) * share) / exits.rate
    return load


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


add(Shares())
