"""Machines of NVIDIA: boxes and racks of GPUs on NVLink."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from weft.errors import InputError
from weft.topology.model import Topology
from weft.topology.rates import (
    EDR,
    HDR,
    NDR,
    NVLINK2,
    NVLINK3,
    NVLINK4,
    NVLINK5,
    NVLINK6,
    XDR,
    Rate,
)
from weft.topology.vendors.boxes import Boxes, never, of_boxes
from weft.topology.vendors.preset import Link, Preset, SpeedOf

_DGX1_CABLES = (
    "0-1:2 0-2:1 0-3:1 0-4:2 1-2:1 1-3:2 1-5:1 2-3:2 2-6:2 3-7:1 "
    "4-5:2 4-6:1 4-7:1 5-6:1 5-7:2 6-7:2"
)

_NVLINK2 = Link("NVLink 2", NVLINK2, 0.7)
# What TACCL and TE-CCL take for six NVLinks, whose lines carry 150 GB/s.
_DGX2_PORT = Link("NVLink 2", replace(NVLINK2 * 6, nominal=125 * 10**9), 0.35)
_NVLINK3, _NVLINK4, _NVLINK5, _NVLINK6 = (
    Link(f"NVLink {generation}", rate, 0.35)
    for generation, rate in enumerate((NVLINK3, NVLINK4, NVLINK5, NVLINK6), start=3)
)


def _nic(name: str, rate: Rate, us: float = 1.3) -> Link:
    return Link(f"the {name} network card", rate, us)


_EDR_NIC = _nic("100 Gbit/s", EDR)
_HDR_NIC = _nic("200 Gbit/s", HDR)
NDR_NIC = _nic("400 Gbit/s", NDR)
_XDR_NIC = _nic("800 Gbit/s", XDR)


def _dgx1(text: str, speed: SpeedOf) -> Topology:
    if text:
        raise InputError("dgx1 is one box; for several, take ndv2:4")
    return _ndv2(1).network(speed)


def _ndv2(count: int) -> Boxes:
    """DGX-1 boxes; the network card hangs on local GPU 0 for sending and 1 for receiving."""
    net = Boxes(count, (8,), switches=int(count > 2))
    net.cables(_DGX1_CABLES, _NVLINK2)
    _join_boxes(net, senders=net.first, receivers=net.first + 1, link=_EDR_NIC)
    return net


def _dgx2(count: int) -> Boxes:
    """16 GPUs on a switch; odd GPUs send to other boxes, even ones receive."""
    net = Boxes(count, (16,), switches=count + int(count > 2))
    net.inside(_DGX2_PORT)
    even = net.first + np.arange(0, 16, 2)
    _join_boxes(net, senders=even + 1, receivers=even, link=replace(_EDR_NIC, us=2.6))
    return net


def _join_boxes(
    net: Boxes, senders: NDArray[np.int64], receivers: NDArray[np.int64], link: Link
) -> None:
    """Two boxes directly, each sender to its receiver over there; more through one switch."""
    if net.boxes == 2:
        net.one_way(senders, receivers[::-1], link)
    elif net.boxes > 2:
        switch = net.npus + net.switches - 1
        net.one_way(senders, switch, link)
        net.one_way(switch, receivers, link)


def _a100(count: int) -> Boxes:
    """8 GPUs on a switch, each with a NIC on one of two fabric switches."""
    joined = count > 1
    net = Boxes(count, (8,), switches=count + (8 * count + 2 if joined else 0))
    net.inside(_NVLINK3 * 12)
    if joined:
        gpu = np.arange(net.npus)
        nic = net.npus + count + gpu
        fabric = net.npus + count + net.npus + gpu % 8 % 2
        net.both_ways(gpu, nic, _HDR_NIC)
        net.both_ways(nic, fabric, _HDR_NIC)
    return net


def _railed(count: int, gpus: int, nvlink: Link, nic: Link, rails: int = 8) -> Boxes:
    """GPUs on a switch that copies and adds; a leaf per place in a box or tray; a spine."""
    joined = count > 1
    net = Boxes(count, (gpus,), switches=count + (rails + 1 if joined else 0))
    net.able = count
    net.inside(nvlink)
    if joined:
        net.rails(rails, nic)
    return net


_h100 = partial(_railed, gpus=8, nvlink=_NVLINK4 * 18, nic=NDR_NIC)
_b200 = partial(_railed, gpus=8, nvlink=_NVLINK5 * 18, nic=NDR_NIC)
_b300 = partial(_railed, gpus=8, nvlink=_NVLINK5 * 18, nic=_XDR_NIC)
_gb200 = partial(_railed, gpus=72, nvlink=_NVLINK5 * 18, nic=NDR_NIC, rails=4)
_gb300 = partial(_railed, gpus=72, nvlink=_NVLINK5 * 18, nic=_XDR_NIC, rails=4)
_vr200 = partial(_railed, gpus=72, nvlink=_NVLINK6 * 36, nic=_XDR_NIC * 2, rails=4)

NVIDIA = tuple(
    Preset(name=name, example=example, summary=summary, build=build)
    for name, example, summary, build in (
        ("dgx1", "dgx1", "8 V100 with NVLink", _dgx1),
        ("ndv2", "ndv2:2", "boxes of 8 V100, as in Azure", of_boxes(_ndv2, never)),
        ("dgx2", "dgx2:2", "boxes of 16 V100 on a switch", of_boxes(_dgx2, lambda n: n == 1)),
        ("a100", "a100:2", "boxes of 8 A100 on a switch", of_boxes(_a100)),
        ("h100", "h100:4", "boxes of 8 H100 on a switch, a rail for each", of_boxes(_h100)),
        ("h200", "h200:4", "boxes of 8 H200, as h100", of_boxes(_h100)),
        ("b200", "b200:4", "boxes of 8 B200 on a switch, a rail for each", of_boxes(_b200)),
        ("b300", "b300:4", "boxes of 8 B300 on a switch, a rail for each", of_boxes(_b300)),
        ("nvl72", "nvl72:2", "racks of 72 GB200 GPUs on a switch, four rails", of_boxes(_gb200)),
        ("gb200", "gb200:2", "the same as nvl72", of_boxes(_gb200)),
        ("gb300", "gb300:2", "racks of 72 GB300 GPUs on a switch, four rails", of_boxes(_gb300)),
        ("vr200", "vr200:2", "racks of 72 Rubin packages (NVL144)", of_boxes(_vr200)),
    )
)
