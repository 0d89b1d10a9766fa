"""Bruck's algorithms: log n rounds for any number of ranks."""

from __future__ import annotations

import numpy as np

from weft.classical.planner import classical
from weft.classical.trees import Trees, npus_of, ranks_of, roots_of, serve
from weft.collective import Collective
from weft.planners.sends import Sends
from weft.topology.model import Topology


@classical(
    "bruck",
    209,
    ("all-gather", "all-to-all", "all-to-allv"),
    "log n rounds for any number of ranks",
)
def bruck(_topology: Topology, demand: Collective) -> Sends:
    """Round s crosses a distance of 2^s.

    In an All-Gather everybody sends all it has downwards, as far as the other lacks it. In an
    All-to-All a block moves up in the rounds of the bits of the distance it has to go.
    """
    if demand.kind == "all-gather":
        trees = _dissemination(demand.ranks)
        return serve(demand, roots_of(demand), trees, trees)
    return _by_bits(demand)


def _dissemination(n: int) -> Trees:
    root, distance = np.arange(n)[:, None], np.arange(1, n)
    step = np.array([d.bit_length() - 1 for d in range(1, n)], dtype=np.int64)
    dst = (root - distance) % n
    return Trees.of((root, step, (dst + (1 << step)) % n, dst))


def _by_bits(demand: Collective) -> Sends:
    chunks, group, n = demand.chunks, npus_of(demand), demand.ranks
    holder = ranks_of(demand, chunks.set_members[chunks.set_offsets[chunks.pre]])
    taker = ranks_of(demand, chunks.set_members[chunks.set_offsets[chunks.post]])
    distance = (taker - holder) % n
    step = np.arange((n - 1).bit_length())
    chunk, step = np.nonzero(distance[:, None] >> step & 1)
    src = holder[chunk] + (distance[chunk] & ((1 << step) - 1))
    return Sends.of(step, chunk, group[src % n], group[(src + (1 << step)) % n], False)
