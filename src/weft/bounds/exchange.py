"""Bounds of All-to-All without a table of pairs: what one NPU sends, what parts tell each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.bounds.bound import Bound
from weft.bounds.classes import ChunkClasses
from weft.bounds.lengths import Carriers
from weft.bounds.nodes import node_bound
from weft.bounds.parts import certificate_of, partitions_of
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
    classes = _sends_of(demand, _slowest(topology, demand))
    bound = node_bound(topology, classes, cost, enough, topology.links + topology.nodes)
    carriers, sizes = carriers_of(topology, demand, cost), sizes_of(demand)
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


def sizes_of(demand: Collective) -> NDArray[np.int64]:
    """Bytes of each chunk that an NPU has: a row for each rank it is for."""
    return demand.piece_bytes.reshape(demand.ranks, demand.chunks_per_share)


def _slowest(topology: Topology, demand: Collective) -> int:
    """The rank whose links out carry least: the first, unless some have failed."""
    out = np.bincount(topology.src, weights=topology.bandwidth, minlength=topology.nodes)
    return int(out[list(demand.group)].argmin())


def _sends_of(demand: Collective, rank: int) -> ChunkClasses:
    """What a rank has for the others: a part of the collective, so its bounds hold for all."""
    sizes = sizes_of(demand)
    real = sizes[sizes > 0]
    gets = sizes.sum(axis=1) > 0
    gets[rank] = False
    others = np.flatnonzero(gets).astype(np.int32)
    return ChunkClasses(
        np.full_like(others, rank),
        others,
        np.zeros(len(others), dtype=np.bool_),
        (sizes > 0).sum(1)[others],
        sizes.sum(1)[others],
        int(real.min()),
        int(real.max()),
        np.arange(demand.ranks + 1, dtype=np.int64),
        np.array(demand.group, dtype=np.int32),
    )


def carriers_of(topology: Topology, demand: Collective, cost: CostModel) -> Carriers:
    """The links, for the chunks of the collective."""
    sizes = sizes_of(demand)
    real = sizes[sizes > 0]
    return Carriers(topology, cost, int(real.min()), int(real.max()))
