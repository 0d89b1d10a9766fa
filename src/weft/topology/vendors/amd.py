"""Machines of AMD: boxes of GPUs joined by Infinity Fabric (xGMI)."""

from __future__ import annotations

from functools import partial

import numpy as np

from weft.topology.rates import ROCE400, XGMI_GFX90A, XGMI_GFX942, XGMI_GFX950, Rate
from weft.topology.vendors.boxes import Boxes, never, of_boxes
from weft.topology.vendors.nvidia import NDR_NIC
from weft.topology.vendors.preset import Link, Preset

_MI250_CABLES = (
    "0-1:4 0-4:2 0-8:1 1-5:1 1-9:1 1-10:1 2-3:4 2-6:1 2-9:1 2-10:1 3-7:2 3-11:1 4-5:4 4-6:1 "
    "5-6:1 5-7:1 6-7:4 8-9:4 8-12:2 9-13:1 10-11:4 10-14:1 11-15:2 12-13:4 12-14:1 13-14:1 "
    "13-15:1 14-15:4"
)


def _xgmi(rate: Rate) -> Link:
    return Link("xGMI", rate, 0.7)


_MI250_PORT = Link("the way out of a box", Rate(16 * 10**9), 1.3)
_ETHERNET = Link("the 400 Gbit/s network card", ROCE400, 1.3)


def _mi250(count: int) -> Boxes:
    """16 GCDs cabled directly; boxes joined by one fabric switch."""
    net = Boxes(count, (16,), switches=int(count > 1))
    net.cables(_MI250_CABLES, _xgmi(XGMI_GFX90A))
    if count > 1:
        net.both_ways(np.arange(net.npus), net.npus, _MI250_PORT)
    return net


def _mesh(count: int, xgmi: Link, nic: Link) -> Boxes:
    """8 GPUs, each cabled to each; a leaf per local GPU number, and a spine."""
    net = Boxes(count, (8,), switches=9 if count > 1 else 0)
    net.wired("fc", 0, xgmi)
    if count > 1:
        net.rails(8, nic)
    return net


_mi300x = partial(_mesh, xgmi=_xgmi(XGMI_GFX942), nic=NDR_NIC)
_mi325x = partial(_mesh, xgmi=_xgmi(XGMI_GFX942), nic=_ETHERNET)
_mi350x = partial(_mesh, xgmi=_xgmi(XGMI_GFX950), nic=_ETHERNET)

AMD = tuple(
    Preset(name=name, example=example, summary=summary, build=build)
    for name, example, summary, build in (
        ("mi250", "mi250:2", "boxes of 16 MI250 dies", of_boxes(_mi250, never)),
        ("mi300x", "mi300x:2", "boxes of 8 MI300X, each joined to each", of_boxes(_mi300x)),
        ("mi325x", "mi325x:2", "boxes of 8 MI325X, each joined to each", of_boxes(_mi325x)),
        ("mi350x", "mi350x:2", "boxes of 8 MI350X, each joined to each", of_boxes(_mi350x)),
        ("mi355x", "mi355x:2", "boxes of 8 MI355X, as mi350x", of_boxes(_mi350x)),
    )
)
