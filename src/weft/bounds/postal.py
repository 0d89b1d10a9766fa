"""Bounds from how fast the holders of a chunk can become more: one send after the other."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from weft.bounds.bound import NONE, Bound, Certificate
from weft.bounds.classes import ChunkClasses
from weft.bounds.lengths import Carriers
from weft.bounds.overheads import Overheads
from weft.cost import CostModel
from weft.topology.model import Topology

_MOST_NPUS = 1024
_MOST_CLASSES = 64

Times = NDArray[np.int64]


def postal_bound(topology: Topology, classes: ChunkClasses, cost: CostModel) -> Bound:
    """For chunks moved whole; nothing where switches copy, or add, or with too many NPUs.

    Copies go from one NPU to many, parts of a sum from many to one, which is the same backwards.
    Of a sum for many, what one contributes must get to all of them.
    """
    best = NONE
    shared = topology.copying or (topology.adding and classes.reduce.any())
    if shared or topology.npus > _MOST_NPUS or not 0 < len(classes) <= _MOST_CLASSES:
        return best
    for backwards in (False, True):
        near, far = (classes.pre, classes.post)[:: -1 if backwards else 1]
        sends = _Sends(topology, classes, cost, backwards)
        for row, others in _spreading(classes, near, far, backwards):
            root, count = -1, 1
            if classes.set_sizes[near[row]] == 1:
                root, count = int(classes.members(int(near[row]))[0]), int(classes.count[row])
            time = sends.wait(root, count) + sends.until(others)
            if time > best.time:
                best = Bound(time, "postal", 0, Certificate.of([[root]] if root >= 0 else []))
    return best


def _spreading(
    classes: ChunkClasses, near: NDArray[np.int32], far: NDArray[np.int32], backwards: bool
) -> Iterator[tuple[int, int]]:
    """Classes of chunks that one NPU has, or wants, and how many others are at the far end."""
    for row in range(len(classes)):
        alone = classes.set_sizes[near[row]] == 1
        if not classes.reduce[row] and (backwards or not alone):
            continue
        others = classes.members(int(far[row]))
        inside = np.isin(classes.members(int(near[row])), others).all()
        if len(others) - int(inside) > 1:
            yield row, len(others) - int(inside)


class _Sends:
    """How soon NPUs can have sent the smallest chunk; backwards, have received it."""

    def __init__(
        self, topology: Topology, classes: ChunkClasses, cost: CostModel, backwards: bool
    ) -> None:
        overheads = Overheads.of(topology, cost)
        self.gap = Carriers.of(topology, classes, cost).gap
        # Nothing is across before a first one is; and k of them take k holds and more.
        self.first = self.gap + overheads.once
        self.later = self.gap + overheads.across
        self.links = topology.dst if backwards else topology.src
        self.npus = topology.npus
        self.known = dict[int, int]()
        cut_through = cost.switching == "cut-through"
        early = overheads.early.astype(bool) & (topology.src >= topology.npus) & cut_through
        self.even = ~early | (not backwards)  # whether hops end, or start, a gap apart

    def wait(self, root: int, count: int) -> int:
        """When the last of so many chunks can first be sent by the NPU that has them."""
        mine = np.flatnonzero(self.links == root)
        if count == 1 or not self.even[mine].all() or len(mine) == 0:
            return 0
        starts = [np.arange(count) * gap for gap in self.gap[mine]]
        return int(np.partition(np.concatenate(starts), count - 1)[count - 1])

    def until(self, others: int) -> int:
        """When so many others can have it, if all NPUs were as well connected as the best."""
        if others not in self.known:
            self.known[others] = _spread(self._ends(others))
        return self.known[others]

    def _ends(self, count: int) -> Times:
        """When the first, the second and so on of an NPU's sends can be over, at best."""
        ports: dict[int, list[tuple[int, ...]]] = {}
        columns = (each.tolist() for each in (self.links, self.gap, self.first, self.later))
        for node, *port in zip(*columns, strict=True):
            if node < self.npus:
                ports.setdefault(node, []).append(tuple(port))
        best = np.full(count, np.iinfo(np.int64).max // 4)
        for kind in set(map(tuple, ports.values())):
            ends = [np.maximum(first, later + np.arange(count) * gap) for gap, first, later in kind]
            best = np.minimum(best, np.sort(np.concatenate(ends))[:count])
        return best


def _spread(ends: Times) -> int:
    """When as many as there are `ends` can have got it, each of whom sends it on from then."""
    after = ends.tolist()
    waiting = [(after[0], 0, 0)]  # when a send ends, since when it is had, which it is
    now = 0
    for _ in after:
        now, since, number = heappop(waiting)
        heappush(waiting, (now + after[0], now, 0))
        if number + 1 < len(after):
            heappush(waiting, (since + after[number + 1], since, number + 1))
    return now
