"""MultiTree: a tree for every NPU, all grown together over the links that are free."""

from __future__ import annotations

import numpy as np

from weft import _core
from weft.classical.planner import SHARED, classical
from weft.classical.trees import Trees, npus_of, roots_of
from weft.collective import Collective
from weft.cost import CostModel
from weft.planners.sends import Sends
from weft.reachability import unreachable
from weft.topology.model import Topology


@classical("multitree", 213, SHARED, "a tree for every rank, grown over free links")
def multitree(topology: Topology, demand: Collective) -> Sends:
    """Every share is copied down the tree of its NPU, or summed up it (Huang et al., 2021).

    The trees are grown slot by slot: in a slot every link serves one edge at most, and trees take
    turns in order of their ranks. An edge's slot is the step in which it is sent. For sums they
    are grown on the network with all links turned round.
    """
    if demand.kind == "all-gather":
        return _copies(topology, demand, 0)
    sums, rounds = _sums(topology, demand)
    if demand.kind == "reduce-scatter":
        return sums
    return Sends.together([sums, _copies(topology, demand, rounds)])


def _copies(topology: Topology, demand: Collective, begin: int) -> Sends:
    trees = _grown(topology, topology, demand)
    return trees.copies(np.arange(topology.npus), roots_of(demand), begin)


def _sums(topology: Topology, demand: Collective) -> tuple[Sends, int]:
    """The rows, and how many steps they take."""
    trees = _grown(topology, topology.reversed(), demand)
    sends = trees.sums(np.arange(topology.npus), roots_of(demand))
    order = np.argsort(sends.step, kind="stable")
    chunk, src, dst = sends.chunk[order], sends.src[order], sends.dst[order]
    # What comes to a relay first is not added: it has no part of its own.
    _, opening = np.unique(chunk.astype(np.int64) * topology.npus + dst, return_index=True)
    reduce = np.ones(len(order), dtype=np.bool_)
    reduce[opening] = np.isin(dst[opening], demand.group)
    return Sends.of(sends.step[order], chunk, src, dst, reduce), trees.rounds


def _grown(topology: Topology, network: Topology, demand: Collective) -> Trees:
    """A tree of NPUs for every rank, on `network`: that is `topology`, or it turned round."""
    chunks, group = demand.chunks, npus_of(demand).astype(np.int32)
    found = _core.grow_trees(network.core, CostModel().core, chunks.core, group)
    if found.lost >= 0:
        raise unreachable(topology, chunks)
    return Trees.of((found.tree, found.slot, found.src, found.dst))
