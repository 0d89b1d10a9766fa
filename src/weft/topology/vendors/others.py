"""Machines of Amazon, Intel and Huawei."""

from __future__ import annotations

import numpy as np

from weft.topology.model import Topology
from weft.topology.rates import EFA200, NEURONLINK3, NEURONLINK3_FAR, ROCE200, UB
from weft.topology.vendors.boxes import Boxes, number_of_boxes, of_boxes
from weft.topology.vendors.preset import Link, Preset, SpeedOf

_NEURONLINK = Link("NeuronLink 3", NEURONLINK3, 0.7)
_FAR_NEURONLINK = Link("NeuronLink 3 between instances", NEURONLINK3_FAR, 0.7)
_EFA = Link("EFA", EFA200, 1.3)
_GAUDI_PORTS = Link("the 200 Gbit/s Ethernet inside a box", ROCE200, 0.7) * 3
_GAUDI_OUT = Link("the 200 Gbit/s Ethernet between boxes", ROCE200, 1.3) * 3
_UB = Link("the unified bus", UB, 0.2)

_CLOUDMATRIX_HOSTS = 48


def _trn2(count: int) -> Boxes:
    """16 chips, a torus of 4x4; instances joined by one switch."""
    return _trainium(count, (4, 4))


def _trn2_ultra(count: int) -> Boxes:
    """Four instances, in rings of the chips at the same place."""
    net = _trainium(count, (4, 4, 4))
    net.wired("ring", 2, _FAR_NEURONLINK)
    return net


def _trainium(count: int, box: tuple[int, ...]) -> Boxes:
    net = Boxes(count, box, switches=int(count > 1))
    net.wired("ring", 0, _NEURONLINK)
    net.wired("ring", 1, _NEURONLINK)
    _one_switch(net, _EFA)
    return net


def _gaudi3(count: int) -> Boxes:
    """8 accelerators, each joined to each; boxes joined by one switch."""
    net = Boxes(count, (8,), switches=int(count > 1))
    net.wired("fc", 0, _GAUDI_PORTS)
    _one_switch(net, _GAUDI_OUT)
    return net


def _one_switch(net: Boxes, link: Link) -> None:
    """Several boxes joined by a switch to which all NPUs lead, and by which nothing is blocked."""
    if net.boxes > 1:
        net.both_ways(np.arange(net.npus), net.npus, link)


def _cloudmatrix384(text: str, speed: SpeedOf) -> Topology:
    """48 hosts of 8 NPUs, each on a switch, with as many links to one above as down."""
    hosts = number_of_boxes(text or str(_CLOUDMATRIX_HOSTS), _CLOUDMATRIX_HOSTS)
    net = Boxes(hosts, (8,), switches=hosts + int(hosts > 1))
    net.inside(_UB)
    if hosts > 1:
        inner = net.npus + np.arange(hosts)
        net.both_ways(np.repeat(inner, 8), net.npus + hosts, _UB)
    return net.network(speed, translates=True)


OTHERS = tuple(
    Preset(name=name, example=example, summary=summary, build=build)
    for name, example, summary, build in (
        ("trn2", "trn2:2", "instances of 16 Trainium2, a torus of 4x4", of_boxes(_trn2)),
        ("trn2-ultra", "trn2-ultra:2", "UltraServers of 64 Trainium2", of_boxes(_trn2_ultra)),
        ("gaudi3", "gaudi3:2", "boxes of 8 Gaudi 3, each joined to each", of_boxes(_gaudi3)),
        ("cloudmatrix384", "cloudmatrix384:6", "48 hosts of 8 Ascend 910C", _cloudmatrix384),
    )
)
