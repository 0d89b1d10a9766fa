"""Bounds of All-to-All without a table of pairs: what one NPU sends, what parts tell each other."""

from __future__ import annotations

import numpy as np

from weft.bounds.bound import Bound
from weft.bounds.lengths import Carriers
from weft.bounds.nodes import node_bound
from weft.bounds.parts import certificate_of, partitions_of
from weft.bounds.symmetric import sends_of, sizes_of, slowest_rank
from weft.collective import Collective
from weft.cost import CostModel
from weft.topology.model import Topology
from weft.units import NEVER


def is_exchange(demand: Collective) -> bool:
    """Whether `exchange_bound` has something to say."""
    return demand.kind == "all-to-all" and demand.ranks > 1


def exchange_bound(
    topology: Topology, demand: Collective, cost: CostModel, *, enough: int = NEVER
) -> Bound:
    """What one NPU's sends prove, and all that must get from part to part of a partition."""
    classes = sends_of(demand, slowest_rank(topology, demand))
    bound = node_bound(topology, classes, cost, enough, topology.links + topology.nodes)
    carriers, sizes = _carriers(topology, demand, cost), sizes_of(demand)
    group = np.array(demand.group)
    for partition in partitions_of(topology):
        part = partition.label[group]
        from_others = demand.ranks - np.bincount(part)[part]
        chunks = int(((sizes > 0).sum(axis=1) * from_others).sum())
        total = float((sizes.sum(axis=1) * from_others.astype(float)).sum())
        if not chunks:
            continue
        time, ideal = carriers.time_through(partition.links, chunks, total * (1 - 1e-12))
        kind = "gossip" if partition.single else "regions"
        where = () if partition.single else (certificate_of(partition.label, partition.links),)
        bound = bound.stronger(Bound(time, kind, ideal, *where))
    return bound


def _carriers(topology: Topology, demand: Collective, cost: CostModel) -> Carriers:
    """The links, for the chunks of the collective."""
    real = demand.piece_bytes[demand.piece_bytes > 0]
    return Carriers(topology, cost, int(real.min()), int(real.max()))
