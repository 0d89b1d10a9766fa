"""Networks that translate onto themselves: the hops out of one NPU, moved, are those of all.

A hop out of NPU 0 (over one link, or up to a switch and down) is a *direction*; what it occupies
is a *resource*. Over a link that is the direction itself: moved by every NPU it takes each link of
its kind once. All directions behind one switch share the port to it. Rows that follow each other
on every resource never collide, whatever they are moved by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.cost import CostModel
from weft.errors import InputError
from weft.ragged import offsets_of
from weft.topology.links import links_between
from weft.topology.model import Topology
from weft.values import Value

Npus = NDArray[np.integer[Any]]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Translations(Value):
    """The grid of a network with `Topology.translates`, and its directions.

    Directions are in order of dimension and step, which is that of `shift`.

    Attributes
    ----------
    topology
        The network.
    shift
        Where each direction leads from NPU 0 (int64).
    dimension, step
        Along which dimension, and by how many places, from 1 up (int32).
    resource
        What each direction occupies (int32).
    offsets, links
        The links of each direction's hop out of NPU 0, as in `Routes`.
    """

    topology: Topology
    shift: Numbers
    dimension: NDArray[np.int32]
    step: NDArray[np.int32]
    resource: NDArray[np.int32]
    offsets: Numbers
    links: Numbers

    @classmethod
    def of(cls, topology: Topology) -> Translations:
        """The directions of a network that translates onto itself."""
        hops: list[tuple[int, int, list[int]]] = []  # where to, what is occupied, links
        for link in np.flatnonzero(topology.src == 0).tolist():
            end = int(topology.dst[link])
            if end < topology.npus:
                hops.append((end, link, [link]))
                continue
            downs = np.flatnonzero((topology.src == end) & (topology.dst != 0)).tolist()
            hops += [(int(topology.dst[down]), link, [link, down]) for down in downs]
        hops.sort()
        shift = np.array([to for to, _, _ in hops], dtype=np.int64)
        _, resource = np.unique([held for _, held, _ in hops], return_inverse=True)
        strides = _strides(topology)
        # Of dimensions with one stride the last is meant: all others have size 1.
        dimension = np.searchsorted(strides, shift, side="right") - 1
        return cls(
            topology,
            shift,
            dimension.astype(np.int32),
            (shift // strides[dimension]).astype(np.int32),
            resource.astype(np.int32),
            offsets_of([len(links) for _, _, links in hops]),
            np.array([link for _, _, links in hops for link in links], dtype=np.int64),
        )

    def moved(self, npus: Npus, by: Npus) -> Numbers:
        """The NPUs moved by as many places along each dimension as `by` is away from NPU 0."""
        return self._combined(npus, by, 1)

    def between(self, src: Npus, dst: Npus) -> Numbers:
        """What `src` must be moved by to give `dst`."""
        return self._combined(dst, src, -1)

    def _combined(self, npus: Npus, by: Npus, sign: int) -> Numbers:
        result = np.zeros(np.broadcast_shapes(np.shape(npus), np.shape(by)), dtype=np.int64)
        stride = 1
        for size in self.topology.dimensions:
            place = npus // stride % size + sign * (by // stride % size)
            result += place % size * stride
            stride *= size
        return result

    def direction(self, src: Npus, dst: Npus) -> Numbers:
        """Numbers of the directions that lead from each of `src` to each of `dst`.

        Raises
        ------
        InputError
            Some are neither next to each other nor behind one switch.
        """
        wanted = self.between(src, dst)
        found: Numbers = np.searchsorted(self.shift, wanted)
        known = np.append(self.shift, -1)[found] == wanted
        for row in np.flatnonzero(~known)[:1].tolist():
            raise InputError(
                f"{self.topology.name}: no hop leads from NPU {src[row]} to NPU {dst[row]}"
            )
        return found

    def opposite(self, direction: NDArray[np.int32]) -> NDArray[np.int32]:
        """Numbers of the directions that lead back."""
        back = self.between(self.shift, np.zeros_like(self.shift))
        return np.searchsorted(self.shift, back)[direction].astype(np.int32)

    def durations(self, cost: CostModel, size: int) -> Numbers:
        """How long a chunk of so many bytes is on its way in each direction."""
        return self._times(cost, size)[0]

    def holds(self, cost: CostModel, largest: int, smallest: int) -> Numbers:
        """How long after a chunk another may follow in each direction, of whatever size both are.

        Switches that store chunks pass on small ones earlier than large ones.
        """
        _, begin, length = self._times(cost, largest)
        _, early, _ = self._times(cost, smallest)
        return np.maximum.reduceat(begin + length - early, self.offsets[:-1])

    def _times(self, cost: CostModel, size: int) -> tuple[Numbers, Numbers, Numbers]:
        speeds = (self.topology.bandwidth[self.links], self.topology.latency[self.links])
        return _core.hop_times(cost.core, *speeds, self.offsets, size)

    def hop_links(self, src: Numbers, direction: Numbers) -> tuple[Numbers, Numbers]:
        """The first and the last link of each hop, which are the same where it is one link.

        Raises
        ------
        InputError
            The network does not translate onto itself, as a file may wrongly say.
        """
        dst = self.moved(src, self.shift[direction])
        switched = np.diff(self.offsets) == 2
        first, last = np.full(len(src), -1), np.full(len(src), -1)
        single = ~switched[direction]
        first[single] = last[single] = links_between(self.topology, src[single], dst[single])
        for dimension in np.unique(self.dimension[switched]).tolist():
            up, down = self._ports(dimension)
            mine = (self.dimension[direction] == dimension) & ~single
            first[mine], last[mine] = up[src[mine]], down[dst[mine]]
        ends, begins = self.topology.dst, self.topology.src
        known = (first >= 0) & (last >= 0) & (begins[first] == src) & (ends[last] == dst)
        known &= single | (ends[first] == begins[last])
        for row in np.flatnonzero(~known)[:1].tolist():
            raise InputError(
                f"{self.topology.name} is not vertex-transitive: no hop leads from NPU "
                f"{src[row]} to NPU {dst[row]}"
            )
        return first, last

    def _ports(self, dimension: int) -> tuple[Numbers, Numbers]:
        """Each NPU's link to the switch of its line in a dimension, and the link back."""
        topology = self.topology
        up, down = np.full(topology.npus, -1), np.full(topology.npus, -1)
        lowest = np.full(topology.nodes, topology.npus, dtype=np.int64)
        highest = np.full(topology.nodes, -1, dtype=np.int64)
        out = np.flatnonzero(topology.src >= topology.npus)
        np.minimum.at(lowest, topology.src[out], topology.dst[out])
        np.maximum.at(highest, topology.src[out], topology.dst[out])
        # The two ends of a line are as far apart as in no other dimension.
        span = int(_strides(topology)[dimension]) * (topology.dimensions[dimension] - 1)
        mine = highest - lowest == span
        mine[: topology.npus] = False
        into, out = np.flatnonzero(mine[topology.dst]), out[mine[topology.src[out]]]
        up[topology.src[into]] = into
        down[topology.dst[out]] = out
        return up, down


def _strides(topology: Topology) -> Numbers:
    """How far apart the numbers of neighbours are in each dimension."""
    return np.cumprod([1, *topology.dimensions[:-1]], dtype=np.int64)
