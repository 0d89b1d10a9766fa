"""Bounds from what each NPU must send and receive, and from all their receives together."""

from __future__ import annotations

import numpy as np

from weft import _core
from weft.bounds.classes import ChunkClasses
from weft.bounds.lengths import Carriers
from weft.cost import CostModel
from weft.topology.model import Topology

_KINDS = ("none", "ingress", "egress", "path")

Proof = tuple[int, str, int]  # time for whole chunks, kind, time for any chunking; picoseconds


def node_bound(
    topology: Topology,
    classes: ChunkClasses,
    cost: CostModel,
    enough: int,
    budget: int,
    _known: int,
) -> Proof:
    """Ingress and egress of every NPU, with the distances chunks come from."""
    time, ideal, kind = _core.node_bound(topology.core, cost.core, classes.core, enough, budget)
    return time, _KINDS[kind], ideal


def gossip_bound(topology: Topology, classes: ChunkClasses, cost: CostModel) -> Proof:
    """All receives together, over all the bandwidth into NPUs."""
    receives = classes.receives
    if not receives.any():
        return 0, "none", 0
    chunks = int((receives * classes.count).sum())
    total = float((receives * classes.bytes.astype(float)).sum())
    into_npus = np.flatnonzero(topology.dst < topology.npus)
    time, ideal = Carriers.of(topology, classes, cost).time_through(into_npus, chunks, total)
    return time, "gossip", ideal
