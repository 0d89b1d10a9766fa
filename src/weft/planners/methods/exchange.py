"""All-to-All behind switches: everybody sends in the same order, straight or level by level.

NPUs in a box that want something in other boxes can hand it to the one that has the taker's place
there: from it the way may be shorter, as on rails. Links serve first come first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm
from weft.engine import simulate
from weft.planners.chunking import leaves_a_gap
from weft.planners.methods.steiner import Steiner
from weft.planners.planner import Planner, add
from weft.planners.problem import Problem
from weft.planners.sends import Sends, in_steps
from weft.topology.grid import Grid, Places, grid_of
from weft.topology.levels import crossing, levels_of
from weft.topology.model import Topology

_COUNTS = (1, 2, 4, 8, 16)  # links that take turns like powers of two
_MOST_ROWS = 1 << 17  # over which a plan in more chunks is not tried
_WORTH = 1.001  # more chunks must gain at least this much
_HOPELESS = 2  # what takes so many times the ideal lacks something else than chunks
# What takes no longer than this over the ideal is as good as what Steiner trees find for many
# NPUs, and other planners for very many.
_SURE, _MANY_NPUS, _VERY_MANY_NPUS = 1.05, 32, 128
# Among so many others take minutes, for a few percent at the most.
_FAR, _HUNDREDS = 1.25, 256
_TOO_MANY = 512  # others take ten minutes and more


class Exchange(Planner):
    """All-to-All of NPUs behind switches."""

    name = "exchange"
    summary = "All-to-All behind switches, straight or level by level"
    rank = 35
    beside = judged = seeded = False

    def fits(self, problem: Problem) -> str | None:
        network, demand = problem.topology, problem.demand
        known = demand.kind == "all-to-all" and len(problem.demands) == 1
        behind = network.src[network.dst >= network.npus]  # a switch
        if (
            known
            and demand.parts is None
            and demand.ranks > 1
            and np.isin(demand.group, behind).all()
        ):
            return None
        return "plans all-to-all of NPUs behind switches"

    def rivals(self, problem: Problem, best: Algorithm, other: Planner) -> bool:
        """Others take long where there are many pairs, Steiner trees most of all."""
        if best.provenance.get("method") != self.name or other.judged or not other.seeded:
            return True
        many = _MANY_NPUS if isinstance(other, Steiner) else _VERY_MANY_NPUS
        if problem.demand.ranks > _TOO_MANY:
            return False
        hope = _SURE if problem.demand.ranks < _HUNDREDS else _FAR
        return problem.demand.ranks < many or best.time > problem.task.ideal * hope

    def plan(self, problem: Problem) -> Algorithm:
        problem.planning(self.name, problem.demand.chunk_count)
        ways = _Ways.of(problem)
        made = [ways.made(problem, stop) for stop in ways.stops()]
        return min(made, key=lambda algorithm: algorithm.time)

    def search(self, problem: Problem, best: Algorithm | None) -> Algorithm | None:
        """More and more chunks, while that gains something."""
        if not any(problem.free):
            return self.plan(problem)
        demand, found = problem.demand, best
        for count in _COUNTS:
            cut = replace(demand, chunks_per_share=count)
            small = cut.smallest_chunk == 0 or cut.chunk_count > _MOST_ROWS
            if found is not None and (small or not leaves_a_gap(problem, found.time)):
                break
            problem.progress.check()
            made = self.plan(problem.cut([cut]))
            gains = found is None or made.time * _WORTH < found.time
            found = made if found is None or made.time < found.time else found
            if not gains or made.time > problem.task.ideal * _HOPELESS:
                break
        return found


@dataclass(frozen=True, eq=False)
class _Ways:
    """The levels of the group, and the places of both ends of each chunk there."""

    grid: Grid
    network: Topology
    src: Places
    dst: Places

    @classmethod
    def of(cls, problem: Problem) -> _Ways:
        network, group, chunks = problem.topology, problem.demand.group, problem.chunks
        grid = levels_of(network, group) or grid_of(network, group)
        first = chunks.set_members[chunks.set_offsets[:-1]]
        place = np.zeros(network.npus, dtype=np.int64)
        place[grid.npus] = np.arange(len(grid.npus))
        return cls(grid, network, place[first[chunks.pre]], place[first[chunks.post]])

    def stops(self) -> Iterator[Places]:
        """Where each chunk stops on its way: nowhere; after the levels inside, or outside; both.

        Of both, half the chunks do the one and half the other: so links of either level are busy
        from the start.
        """
        yield self.dst
        if (balanced := self._balanced()) is not None:
            yield balanced
        odd = sum(self._away(level) for level in range(len(self.grid.sizes))) % 2 == 1
        for level in range(1, len(self.grid.sizes)):
            stride = self.grid.stride(level)
            inside = self.src - self.src % stride + self.dst % stride
            outside = self.dst - self.dst % stride + self.src % stride
            yield inside
            yield outside
            yield np.where(odd, inside, outside)

    def _balanced(self) -> Places | None:
        """Straight, but others in the box take over what a slow way out or in cannot; or None.

        Of what NPUs exchange with other boxes, each carries as much as its links allow.
        """
        if len(self.grid.sizes) < 2:
            return None
        size, network = self.grid.sizes[0], self.network
        box = np.full(network.npus, -1)
        box[self.grid.npus] = np.arange(len(self.grid.npus)) // size
        stop = self.dst.copy()
        for inward, ends, others in ((False, self.src, self.dst), (True, self.dst, self.src)):
            links = crossing(network, box, inward=inward)
            npu = (network.dst if inward else network.src)[links]
            carried = np.bincount(npu, network.bandwidth[links], network.npus)
            rate = carried[self.grid.npus].astype(np.float64)
            if (rate == rate[0]).all():
                continue
            across = np.flatnonzero((ends // size != others // size) & (stop == self.dst))
            mate = _handed_over(ends[across], rate, size)
            moved = mate != ends[across]
            stop[across[moved]] = mate[moved]
        return None if np.array_equal(stop, self.dst) else stop

    def made(self, problem: Problem, stop: Places) -> Algorithm:
        """The plan with exact times: near places inside first, of these all boxes in turn."""
        levels = range(len(self.grid.sizes))
        last = self._away(levels[-1]) == 0  # what crosses most links goes first
        order = np.lexsort((*(self._away(level) for level in reversed(levels)), last))
        sends = []
        for step, here, there in ((0, self.src, stop), (1, stop, self.dst)):
            moves = order[(here != there)[order]]
            first = step * (self.src != stop)[moves]  # the only hop of some
            ends = self.grid.npus[here[moves]], self.grid.npus[there[moves]]
            sends.append(Sends.of(first, moves, *ends, False))
        sent, _ = in_steps(Exchange.name, problem.demands, [Sends.together(sends)])
        return simulate(sent, problem.topology, problem.cost).timed()

    def _away(self, level: int) -> Places:
        """How far each chunk has to go along a level."""
        ends = (self.grid.along(level, end) for end in (self.dst, self.src))
        return np.subtract(*ends) % self.grid.sizes[level]


def _handed_over(ends: Places, rate: NDArray[np.float64], size: int) -> Places:
    """Who sends (or receives) each chunk instead of its own end, so that loads follow rates."""
    count = np.bincount(ends, minlength=len(rate)).reshape(-1, size)
    rates = np.maximum(rate.reshape(-1, size), 1e-9)
    fair = np.floor(count.sum(axis=1, keepdims=True) * rates / rates.sum(axis=1, keepdims=True))
    spare = np.maximum(fair - count, 0).astype(np.int64)
    taken = ends.copy()
    for end in np.flatnonzero((count > fair + 1).reshape(-1)).tolist():
        mine, first = np.flatnonzero(ends == end), end - end % size
        # In turn to mates that have room, evenly over all that it sends.
        mates = np.repeat(np.arange(size), spare[end // size])
        extra = int(min(count.reshape(-1)[end] - fair.reshape(-1)[end], len(mates)))
        if extra < 1:
            continue
        some = mates[np.arange(extra) * len(mates) // extra]
        np.subtract.at(spare[end // size], some, 1)
        order = np.argsort(np.arange(extra) % size, kind="stable")
        taken[mine[np.arange(extra) * len(mine) // extra]] = first + some[order]
    return taken


add(Exchange())
