"""Bounds from what each NPU must send and receive."""

from __future__ import annotations

from weft import _core
from weft.bounds.bound import Bound, Certificate
from weft.bounds.classes import ChunkClasses
from weft.cost import CostModel
from weft.topology.model import Topology

_KINDS = ("none", "ingress", "egress", "path")


def node_bound(
    topology: Topology, classes: ChunkClasses, cost: CostModel, enough: int, budget: int
) -> Bound:
    """Ingress and egress of every NPU, with the distances chunks come from."""
    time, ideal, kind, npu, other = _core.node_bound(
        topology.core, cost.core, classes.core, enough, budget
    )
    parts = [[node] for node in (npu, other) if node >= 0]
    return Bound(time, _KINDS[kind], ideal, Certificate.of(parts))
