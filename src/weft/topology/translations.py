"""Networks that translate onto themselves: the hops out of one NPU, moved, are those of all.

A hop out of NPU 0 along a dimension of the grid (over one link, or up to a switch and down) is a
*direction*; what it occupies is a *resource*. Over a link that is the direction itself: moved by
every NPU it takes each link of its kind once. All directions behind one switch share the port to
it. Rows that follow each other on every resource never collide, whatever they are moved by. Ways
over several switches are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.cost import CostModel
from weft.errors import InputError
from weft.ragged import earlier_equals, offsets_of
from weft.topology.links import LinkIndex
from weft.topology.model import Topology
from weft.values import Value

Npus = NDArray[np.integer[Any]]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Translations(Value):
    """The grid of a network with `Topology.translates`, and its directions.

    Directions are in order of dimension and step, which is that of `shift`. In each dimension
    they are links, or lead through one switch to all others of the line: the fastest there is.

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
        hops = sorted(_hops(topology))  # where to, what is occupied, links
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
        return np.maximum.reduceat(self._holds(cost, largest, smallest), self.offsets[:-1])

    def arrivals(self, cost: CostModel, size: int) -> Numbers:
        """How long after a chunk another of this size may follow on the last link of a direction.

        That is all that counts where switches copy: what they send on need not come twice.
        """
        return self._holds(cost, size, size)[self.offsets[1:] - 1]

    def _holds(self, cost: CostModel, largest: int, smallest: int) -> Numbers:
        _, begin, length = self._times(cost, largest)
        _, early, _ = self._times(cost, smallest)
        return begin + length - early

    def _times(self, cost: CostModel, size: int) -> tuple[Numbers, Numbers, Numbers]:
        speeds = (self.topology.bandwidth[self.links], self.topology.latency[self.links])
        return _core.hop_times(cost.core, *speeds, self.offsets, size)

    @property
    def join(self) -> bool:
        """Whether they lead from any NPU to any other, by ways that kernels know.

        In each dimension to all others of the line, or one place on and back, as on a ring.
        """
        held = 0
        for dimension, size in enumerate(self.topology.dimensions):
            mine = self.dimension == dimension
            steps = self.step[mine]
            if size > 1 and len(steps) != size - 1 and set(steps.tolist()) != {1, size - 1}:
                return False
            held += len(np.unique(self.resource[mine]))
        return held == len(np.unique(self.resource))  # none by several dimensions

    @property
    def complete(self) -> bool:
        """Whether they are all the hops that there are."""
        topology = self.topology
        inner = (topology.src >= topology.npus) & (topology.dst >= topology.npus)
        from_zero = np.flatnonzero(topology.src == 0)
        held = set(self.links[self.offsets[:-1]].tolist())
        return not inner.any() and held.issuperset(from_zero.tolist())

    def hop_links(self, src: Numbers, direction: Numbers) -> tuple[Numbers, Numbers]:
        """The first and the last link of each hop, which are the same where it is one link.

        Raises
        ------
        InputError
            The network does not translate onto itself, as a file may wrongly say.
        """
        index = LinkIndex(self.topology)
        dst = self.moved(src, self.shift[direction])
        switched = np.diff(self.offsets) == 2
        first, last = np.full(len(src), -1), np.full(len(src), -1)
        single = ~switched[direction]
        first[single] = last[single] = index.between(src[single], dst[single])
        for dimension in np.unique(self.dimension[switched]).tolist():
            up, down = self._ports(index, dimension)
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

    def _ports(self, index: LinkIndex, dimension: int) -> tuple[Numbers, Numbers]:
        """Each NPU's link to the switch of its line in a dimension, and the link back."""
        topology, npu = self.topology, np.arange(self.topology.npus)
        place = npu // _strides(topology)[dimension] % topology.dimensions[dimension]
        head = npu - place * _strides(topology)[dimension]  # the first NPU of the line
        one = int(np.flatnonzero((self.dimension == dimension) & (np.diff(self.offsets) == 2))[0])
        like_up, like_down = (
            _like(topology, int(link))
            for link in self.links[self.offsets[one] : self.offsets[one + 1]]
        )
        up, down = np.full(topology.npus, -1), np.full(topology.npus, -1)
        out = np.flatnonzero(like_up & (topology.src < topology.npus))
        out = out[topology.dst[out] >= topology.npus]
        out = out[np.argsort(topology.src[out], kind="stable")]
        turn = earlier_equals(topology.src[out])
        for number in range(int(turn.max(initial=-1)) + 1):
            # Those whose line has no switch yet try the next one of its first NPU.
            switch = np.full(topology.npus, -1)
            switch[topology.src[out[turn == number]]] = topology.dst[out[turn == number]]
            switch = np.where(up < 0, switch[head], -1)
            there, back = index.between(npu, switch), index.between(switch, npu)
            fits = (switch >= 0) & (there >= 0) & (back >= 0) & like_up[there] & like_down[back]
            whole = np.bincount(head, fits, topology.npus) == topology.dimensions[dimension]
            found = whole[head]
            up[found], down[found] = there[found], back[found]
        return up, down


def translates_by_hops(topology: Topology) -> bool:
    """Whether all NPUs have the same hops, over a link or a switch, that lead everywhere."""
    unlimited = not topology.buffers and not topology.removed
    return unlimited and topology.shifts and Translations.of(topology).join


def _hops(topology: Topology) -> Iterator[tuple[int, int, list[int]]]:
    """Of each hop out of NPU 0 along a dimension: where to, what it occupies, its links."""
    out = np.flatnonzero(topology.src == 0)
    ends = topology.dst[out].tolist()
    direct = {
        end: link for end, link in zip(ends, out.tolist(), strict=True) if end < topology.npus
    }
    down = np.flatnonzero(topology.src >= topology.npus)
    down = down[topology.dst[down] < topology.npus]
    speeds = topology.bandwidth, -topology.latency
    for stride, size in zip(_strides(topology).tolist(), topology.dimensions, strict=True):
        line = range(stride, stride * size, stride)
        if any(end in direct for end in line):
            yield from ((end, direct[end], [direct[end]]) for end in line if end in direct)
            continue
        ways = []
        for switch, link in zip(ends, out.tolist(), strict=True):
            mine = down[topology.src[down] == switch] if switch >= topology.npus else down[:0]
            back = dict(zip(topology.dst[mine].tolist(), mine.tolist(), strict=True))
            if line and all(end in back for end in line):
                ways.append([(end, link, [link, back[end]]) for end in line])
        yield from max(
            ways,
            key=lambda way: [min(int(column[link]) for link in way[0][2]) for column in speeds],
            default=[],
        )


def _like(topology: Topology, link: int) -> NDArray[np.bool_]:
    """Links as fast as one."""
    like: NDArray[np.bool_] = topology.bandwidth == topology.bandwidth[link]
    like &= topology.latency == topology.latency[link]
    return like


def _strides(topology: Topology) -> Numbers:
    """How far apart the numbers of neighbours are in each dimension."""
    return np.cumprod([1, *topology.dimensions[:-1]], dtype=np.int64)
