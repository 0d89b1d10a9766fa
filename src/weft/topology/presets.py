"""The networks of real machines, each direction of a cable as its own link.

A double connection is one link of twice the speed. NPUs are numbered box by box; switches
after them: first one per box, then NICs box by box, then those between boxes.

To add a machine, write a function from the text of its parameters and a row in `MACHINES`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weft.errors import InputError
from weft.quoting import quoted
from weft.topology.dimensions import Dimension, check_size, product
from weft.topology.kinds import Builder
from weft.topology.model import Topology
from weft.units import PS_PER_US

GB_S = 10**9

_DGX1_CABLES = (
    "0-1:2 0-2:1 0-3:1 0-4:2 1-2:1 1-3:2 1-5:1 2-3:2 2-6:2 3-7:1 "
    "4-5:2 4-6:1 4-7:1 5-6:1 5-7:2 6-7:2"
)
_MI250_CABLES = (
    "0-1:4 0-4:2 0-8:1 1-5:1 1-9:1 1-10:1 2-3:4 2-6:1 2-9:1 2-10:1 3-7:2 3-11:1 4-5:4 4-6:1 "
    "5-6:1 5-7:1 6-7:4 8-9:4 8-12:2 9-13:1 10-11:4 10-14:1 11-15:2 12-13:4 12-14:1 13-14:1 "
    "13-15:1 14-15:4"
)


class _Boxes:
    """Boxes of NPUs under construction: collects links, then makes the network."""

    def __init__(self, boxes: int, box_npus: int, switches: int) -> None:
        # No machine here has more than 32 links per NPU: enough to refuse what is absurd.
        check_size("it", boxes * box_npus, 32 * boxes * box_npus)
        self.boxes, self.switches = boxes, switches
        self.able = 0  # the first so many switches copy and add
        self.npus = boxes * box_npus
        self.dimensions = (box_npus, boxes) if boxes > 1 else (box_npus,)
        self.first = np.arange(boxes)[:, None] * box_npus
        self._links: list[NDArray[np.int64]] = []

    def one_way(self, src: ArrayLike, dst: ArrayLike, bandwidth: ArrayLike, us: float) -> None:
        """Links between nodes of the same place in two arrays (B/s, microseconds)."""
        row = np.broadcast_arrays(src, dst, bandwidth, round(us * PS_PER_US))
        self._links.append(np.stack([column.reshape(-1) for column in row]).astype(np.int64))

    def both_ways(self, a: ArrayLike, b: ArrayLike, bandwidth: ArrayLike, us: float) -> None:
        """All links from `a` to `b`, then all links back."""
        self.one_way(a, b, bandwidth, us)
        self.one_way(b, a, bandwidth, us)

    def cables(self, table: str, bandwidth: int, us: float) -> None:
        """The cables inside each box, as ``a-b:multiple of bandwidth``."""
        rows = [[int(n) for n in re.findall(r"\d+", cable)] for cable in table.split()]
        a, b, multiple = np.array(rows).T
        self.both_ways(self.first + a, self.first + b, bandwidth * multiple, us)

    def network(self, *, translates: bool = False) -> Topology:
        network = Topology.from_links(
            "machine",
            self.npus,
            *np.concatenate(self._links, axis=1),
            switches=self.switches,
            dimensions=self.dimensions,
            translates=translates,
        )
        able = range(self.npus, self.npus + self.able)
        return network.with_switches(copying=able, adding=able) if able else network


def _of_boxes(
    build: Callable[[int], _Boxes], *, translates: Callable[[int], bool] = lambda _: False
) -> Callable[[str], Topology]:
    """A machine of as many boxes as its parameters ask for; 1 without any.

    `translates`: whether so many of them do, as `Topology.translates` says.
    """

    def built(sizes: str) -> Topology:
        if not re.fullmatch(r"0*[1-9][0-9]{0,8}|", sizes):
            raise InputError(f"{quoted(sizes)} is not a number of boxes")
        boxes = int(sizes or 1)
        return build(boxes).network(translates=translates(boxes))

    return built


def _dgx1(sizes: str) -> Topology:
    if sizes:
        raise InputError("dgx1 is one box; for several, take ndv2:4")
    return _ndv2(1).network()


def _ndv2(count: int) -> _Boxes:
    """DGX-1 boxes; the network card hangs on local GPU 0 for sending and 1 for receiving."""
    net = _Boxes(count, 8, switches=int(count > 2))
    net.cables(_DGX1_CABLES, 25 * GB_S, 0.7)
    _join_boxes(net, senders=net.first, receivers=net.first + 1, bandwidth=GB_S * 25 // 2, us=1.3)
    return net


def _dgx2(count: int) -> _Boxes:
    """16 GPUs on a switch; odd GPUs send to other boxes, even ones receive."""
    net = _Boxes(count, 16, switches=count + int(count > 2))
    _box_switches(net, 16, 125 * GB_S)
    even = net.first + np.arange(0, 16, 2)
    _join_boxes(net, senders=even + 1, receivers=even, bandwidth=GB_S * 25 // 2, us=2.6)
    return net


def _box_switches(net: _Boxes, box_npus: int, bandwidth: int) -> None:
    """Every NPU to its own box's switch, the first switches of the network."""
    switch = net.npus + np.arange(net.boxes)[:, None]
    net.both_ways(net.first + np.arange(box_npus), switch, bandwidth, 0.35)


def _join_boxes(
    net: _Boxes,
    senders: NDArray[np.int64],
    receivers: NDArray[np.int64],
    bandwidth: int,
    us: float,
) -> None:
    """Two boxes directly, each sender to its receiver over there; more through one switch."""
    if net.boxes == 2:
        net.one_way(senders, receivers[::-1], bandwidth, us)
    elif net.boxes > 2:
        switch = net.npus + net.switches - 1
        net.one_way(senders, switch, bandwidth, us)
        net.one_way(switch, receivers, bandwidth, us)


def _a100(count: int) -> _Boxes:
    """8 GPUs on a switch, each with a NIC on one of two fabric switches."""
    joined = count > 1
    net = _Boxes(count, 8, switches=count + (8 * count + 2 if joined else 0))
    _box_switches(net, 8, 300 * GB_S)
    if joined:
        gpu = np.arange(net.npus)
        nic = net.npus + count + gpu
        fabric = net.npus + count + net.npus + gpu % 8 % 2
        net.both_ways(gpu, nic, 25 * GB_S, 1.3)
        net.both_ways(nic, fabric, 25 * GB_S, 1.3)
    return net


def _h100(count: int) -> _Boxes:
    """8 GPUs on a switch that copies and adds; a leaf per local GPU number, and a spine."""
    joined = count > 1
    net = _Boxes(count, 8, switches=count + (9 if joined else 0))
    net.able = count
    _box_switches(net, 8, 450 * GB_S)
    if joined:
        gpu = np.arange(net.npus)
        leaves = net.npus + count + np.arange(8)
        net.both_ways(gpu, leaves[gpu % 8], 50 * GB_S, 1.3)
        net.both_ways(np.repeat(leaves, count), leaves[-1] + 1, 50 * GB_S, 1.3)
    return net


def _nvl72(count: int) -> _Boxes:
    """72 GPUs on a switch that copies and adds, four a tray; a leaf per place there, a spine."""
    joined, rails = count > 1, 4
    net = _Boxes(count, 72, switches=count + (rails + 1 if joined else 0))
    net.able = count
    _box_switches(net, 72, 900 * GB_S)
    if joined:
        gpu = np.arange(net.npus)
        leaves = net.npus + count + np.arange(rails)
        net.both_ways(gpu, leaves[gpu % rails], 50 * GB_S, 1.3)
        ports = net.npus // rails
        net.both_ways(np.repeat(leaves, ports), leaves[-1] + 1, 50 * GB_S, 1.3)
    return net


def _mi250(count: int) -> _Boxes:
    """16 GCDs cabled directly; boxes joined by one fabric switch."""
    net = _Boxes(count, 16, switches=int(count > 1))
    net.cables(_MI250_CABLES, 50 * GB_S, 0.7)
    if count > 1:
        net.both_ways(np.arange(net.npus), net.npus, 16 * GB_S, 1.3)
    return net


def _tpuv4(sizes: str) -> Topology:
    """A 3D torus."""
    parts = sizes.lower().split("x")
    if len(parts) != 3 or not all(re.fullmatch(r"0*[1-9][0-9]{0,8}", p.strip()) for p in parts):
        raise InputError("it needs three sizes from 1")
    dimensions = [Dimension("ring", int(part), 0) for part in parts]
    return product("it", dimensions, [50 * GB_S], [PS_PER_US])


def _any(_boxes: int) -> bool:
    return True


def _one(boxes: int) -> bool:
    return boxes == 1


MACHINES = tuple(
    Builder(name=name, example=example, summary=summary, build=build, rank=30)
    for name, example, summary, build in (
        ("dgx1", "dgx1", "8 V100 with NVLink", _dgx1),
        ("ndv2", "ndv2:2", "boxes of 8 V100, as in Azure", _of_boxes(_ndv2)),
        ("dgx2", "dgx2:2", "boxes of 16 V100 on a switch", _of_boxes(_dgx2, translates=_one)),
        ("a100", "a100:2", "boxes of 8 A100 on a switch", _of_boxes(_a100, translates=_any)),
        (
            "h100",
            "h100:4",
            "boxes of 8 H100 on a switch, a rail for each",
            _of_boxes(_h100, translates=_any),
        ),
        (
            "nvl72",
            "nvl72:2",
            "racks of 72 GB200 GPUs on a switch, four rails",
            _of_boxes(_nvl72, translates=_any),
        ),
        ("mi250", "mi250:2", "boxes of 16 MI250 dies", _of_boxes(_mi250)),
        ("tpuv4", "tpuv4:4x4x4", "a 3D torus of TPU v4", _tpuv4),
    )
)
