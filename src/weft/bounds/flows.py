"""The bound from concurrent flow: link lengths that make everything that must move costly.

Whatever lengths are given to links, all bytes times the shortest distance each of them has to go
is no more than what all links can carry, weighed with their lengths. The lengths are searched in
floating point; what they prove is then worked out from whole numbers, and rounded down.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.bounds.bound import NONE, Bound
from weft.bounds.classes import ChunkClasses
from weft.bounds.lengths import Carriers, Lengths, Price, whole_lengths
from weft.bounds.parts import narrowest
from weft.bounds.sweeps import best_sweep
from weft.cost import CostModel
from weft.ragged import offsets_of
from weft.topology.model import Topology

_THREADS = 2
_PARALLEL = 1_000_000  # link visits of one routing that are worth a second thread
_POLISHES = 1000  # steps of the last search; with fewer than that by far it gains nothing
_SMALLEST_STRIDE = 1e-3
_MET = 1 - 1e-7


def flow_bound(
    topology: Topology, classes: ChunkClasses, cost: CostModel, enough: int, budget: int
) -> Bound:
    """What the best lengths found prove."""
    if not _worth_searching(classes):
        return NONE
    flows = Flows.of(topology, classes, cost)
    if flows.none:
        return NONE
    cheap = flows.candidate(landmarks=8)
    time, ideal = flows.prove(*cheap)
    goal = enough / 1e12
    if time < enough and budget >= 2 * flows.visits:
        steps = min(_POLISHES, budget // 4 // flows.visits)
        steps = steps if steps > _POLISHES // 4 else 0
        left = budget - 2 * steps * flows.visits
        balanced, loads = _core.balance(
            flows.network, flows.capacity, flows.bytes, goal, left, flows.threads
        )
        # Lengths of a cut are a corner that steps hardly leave: start from the others as well.
        starts = (cheap[0], balanced)
        polished = [flows.polished(start, loads, goal, steps) for start in starts]
        lengths = max(*starts, *polished, key=flows.seconds)
        whole, any_chunks = flows.prove(lengths, flows.total(lengths))
        time, ideal = max(time, whole), max(ideal, any_chunks)
    return Bound(time, "flow", ideal)


def quick_flow_bound(topology: Topology, classes: ChunkClasses, cost: CostModel) -> tuple[int, int]:
    """What cheap lengths prove where every chunk has one holder and one taker, in picoseconds.

    For whole chunks, and for any chunking.
    """
    if not (classes.are_pairs and _worth_searching(classes)):
        return 0, 0
    flows = Flows.of(topology, classes, cost)
    return (0, 0) if flows.none else flows.prove(*flows.candidate(landmarks=6))


def _worth_searching(classes: ChunkClasses) -> bool:
    """Not if all have the same takers, or come from the same NPUs: cuts say as much."""
    pre, post = classes.pre, classes.post
    return len(classes) > 0 and bool((pre != pre[0]).any() and (post != post[0]).any())


@dataclass(frozen=True, eq=False)
class Flows:
    """What must go from one NPU to another, at the least.

    Attributes
    ----------
    src, dst
        One row a class: a holder (or contributor) and a taker far from it.
    rows
        The classes the rows stand for, by source.
    """

    topology: Topology
    classes: ChunkClasses
    cost: CostModel
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    rows: NDArray[np.intp]

    @classmethod
    def of(cls, topology: Topology, classes: ChunkClasses, cost: CostModel) -> Flows:
        """One pair of each class: exact where it has one holder and one taker."""
        sizes, first = classes.set_sizes, classes.set_offsets[:-1]
        # A copy that several have at the start may come from any of them: no single pair holds.
        usable = classes.reduce | (sizes[classes.pre] == 1)
        src = classes.set_members[first[classes.pre]]
        dst = classes.set_members[first[classes.post]]
        for row in np.flatnonzero(usable & (sizes[classes.post] > 1) & (sizes[classes.pre] == 1)):
            takers = classes.members(int(classes.post[row]))
            dst[row] = _farthest(topology, src[row], takers, reverse=False)
        for row in np.flatnonzero(usable & (sizes[classes.pre] > 1)):
            givers = classes.members(int(classes.pre[row]))
            src[row] = _farthest(topology, dst[row], givers, reverse=True)
        rows = np.flatnonzero(usable & (src != dst))
        rows = rows[np.argsort(src[rows], kind="stable")]
        return cls(topology, classes, cost, src[rows], dst[rows], rows)

    @property
    def none(self) -> bool:
        """Whether nothing moves, or nothing can."""
        return len(self.rows) == 0 or self.topology.links == 0

    @property
    def network(self) -> _core.Network:
        return self.topology.core

    @property
    def visits(self) -> int:
        """Of links, in one routing of everything."""
        return int(np.count_nonzero(np.diff(self.offsets))) * self.topology.links

    @property
    def threads(self) -> int:
        return _THREADS if self.visits > _PARALLEL else 1

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        return offsets_of(np.bincount(self.src, minlength=self.topology.nodes))

    @cached_property
    def amount(self) -> NDArray[np.int64]:
        """Bytes of each flow."""
        return self.classes.bytes[self.rows]

    @cached_property
    def bytes(self) -> _core.Flows:
        return _core.Flows(offsets=self.offsets, dst=self.dst, amount=self.amount)

    @cached_property
    def chunks(self) -> _core.Flows:
        amount = self.classes.count[self.rows]
        return _core.Flows(offsets=self.offsets, dst=self.dst, amount=amount)

    @cached_property
    def links(self) -> Carriers:
        return Carriers.of(self.topology, self.classes, self.cost)

    @property
    def capacity(self) -> NDArray[np.float64]:
        return self.links.capacity

    def total(self, lengths: Lengths) -> float:
        """All bytes times the distance each has to go."""
        return self._route(lengths)[0]

    def seconds(self, lengths: Lengths) -> float:
        """What the lengths prove for whole chunks, overheads left out."""
        return self.total(lengths) / float(lengths @ self.capacity)

    def _route(self, lengths: Lengths) -> tuple[float, NDArray[np.float64]]:
        return _core.shortest_routing(self.network, lengths, self.bytes, self.threads)

    def candidate(self, landmarks: int) -> tuple[Lengths, float]:
        """The best of lengths that cost little to find, and their total.

        All links alike in time; or 1 on the links of a cut, where only what crosses it counts.
        """
        network, ends = self.topology, (self.src, self.dst, self.amount)
        lengths = whole_lengths(1 / self.capacity)
        total = self.total(lengths)
        sweep = best_sweep(network, self.capacity, *ends, landmarks)
        for below in (sweep, *(narrowest(network, *ends) if network.switches else ())):
            cut = (below[network.src] & ~below[network.dst]).astype(np.int64)
            crossing = float(self.amount[below[self.src] & ~below[self.dst]].sum())
            if crossing * float(lengths @ self.capacity) > total * float(cut @ self.capacity):
                lengths, total = cut, crossing
        return lengths, total

    def polished(self, lengths: Lengths, loads: Price, goal: float, steps: int) -> Lengths:
        """Lengths a little better yet, by steps along the loads of all routings so far.

        Barahona and Anbil's volume algorithm. `loads` are those of some flow of everything, in
        seconds; the busiest link of such a flow says what no lengths can exceed.
        """
        best, price = self.seconds(lengths), lengths * self.capacity
        price = price / price.sum()
        least, stride, misses = float(loads.max()), 0.5, 0
        for _ in range(steps):
            least = min(least, float(loads.max()))
            if best >= min(goal, least * _MET):
                break
            ahead = loads - loads.mean()
            slope = float(ahead @ ahead)
            if slope == 0 or stride < _SMALLEST_STRIDE:
                break
            step = stride * (min(best * 1.1, least) - best) / slope
            tried = _on_simplex(price + step * ahead)
            whole = whole_lengths(tried / self.capacity)
            total, found = self._route(whole)
            seconds = total / float(whole @ self.capacity)
            change = found / self.capacity - loads
            if seconds > best * (1 + 1e-9):
                best, price, lengths, misses = seconds, tried, whole, 0
                stride = min(stride * 1.3, 2.0)
            else:
                misses += 1
                if misses == 8:
                    stride, misses = stride * 0.7, 0
            norm = float(change @ change)
            if norm > 0:
                loads = loads + np.clip(-float(ahead @ change) / norm, 0.005, 0.1) * change
        return lengths

    def prove(self, lengths: Lengths, total: float) -> tuple[int, int]:
        """Picoseconds, for whole chunks and for any chunking, rounded down."""
        if self.classes.smallest == self.classes.largest:
            chunks = total / self.classes.largest
        else:
            chunks = _core.shortest_routing(self.network, lengths, self.chunks, self.threads)[0]
        return self.links.prove(lengths, total, chunks)


def _farthest(
    topology: Topology, npu: np.int32, others: NDArray[np.int32], *, reverse: bool
) -> np.int32:
    """The one most hops away."""
    away = _core.distances(topology.core, int(npu), reverse)[others]
    farthest: np.int32 = others[away.argmax()]
    return farthest


def _on_simplex(point: Price) -> Price:
    """The nearest point with no negative entry and the sum of one."""
    falling = np.sort(point)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(point) + 1)
    kept = int(np.flatnonzero(falling > excess)[-1])
    nearest: Price = np.maximum(point - excess[kept], 0)
    return nearest
