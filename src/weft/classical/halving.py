"""Pairwise exchanges in log n rounds: recursive halving and doubling."""

from __future__ import annotations

import numpy as np

from weft.algorithm import Buffer, place
from weft.classical.planner import SHARED, classical
from weft.classical.trees import Ranks, Trees, by_exchange, npus_of, roots_of, serve
from weft.collective import Collective
from weft.planners.sends import Sends
from weft.topology.model import Topology


@classical("rhd", 204, SHARED, "recursive halving and doubling: log n rounds of pairs")
def halving_doubling(_topology: Topology, demand: Collective) -> Sends:
    """Recursive halving to sum, recursive doubling to gather.

    Sums are exchanged at distance 1, 2, 4, ..., half as much each time; copies backwards. Beyond
    a power of two, ranks leave it to a neighbour to act for them.
    """
    n = demand.ranks
    acting = _acting(n)
    trees = _folded(by_exchange(len(acting), _peers(len(acting))[::-1]), acting, n)
    root = roots_of(demand, len(acting))
    if demand.kind == "all-reduce":
        root = acting[root]
    return serve(demand, root, trees, trees)


@classical(
    "recursive-doubling", 205, ("all-reduce",), "pairs exchange whole buffers: half the rounds"
)
def recursive_doubling(_topology: Topology, demand: Collective) -> Sends:
    """Pairs at distance 1, 2, 4, ... exchange all they have and add it up.

    What comes from a peer lies apart until it is added: what was there must be sent first.
    """
    group, chunk = npus_of(demand), np.arange(len(demand.chunks))
    acting = _acting(len(group))
    idle = np.setdiff1d(np.arange(len(group)), acting)
    for_idle, by_idle = group[idle + 1][:, None], group[idle][:, None]
    npu = group[acting]
    parts = [_in_place(0, chunk, by_idle, for_idle, reduce=True)]
    peers = _peers(len(acting))
    for step, peer in enumerate(peers):
        apart = chunk + place(Buffer.SCRATCH, step * len(chunk))
        src, dst = npu[:, None], npu[peer][:, None]
        parts.append(Sends.of(1 + 2 * step, chunk, src, dst, False, chunk, apart))
        parts.append(Sends.of(2 + 2 * step, chunk, dst, dst, True, apart, chunk))
    parts.append(_in_place(1 + 2 * len(peers), chunk, for_idle, by_idle, reduce=False))
    return Sends.together(parts)


def _in_place(step: int, chunk: Ranks, src: Ranks, dst: Ranks, *, reduce: bool) -> Sends:
    return Sends.of(step, chunk, src, dst, reduce, chunk, chunk)


def _peers(n: int) -> list[Ranks]:
    """Who exchanges with whom at distance 1, 2, 4, ... among a power of two."""
    return [np.arange(n) ^ (1 << bit) for bit in range(n.bit_length() - 1)]


def _acting(n: int) -> Ranks:
    """The ranks that take part, a power of two: of the first pairs only the odd one."""
    surplus = n - (1 << (n.bit_length() - 1))
    return np.concatenate([np.arange(1, 2 * surplus, 2), np.arange(2 * surplus, n)])


def _folded(trees: Trees, acting: Ranks, n: int) -> Trees:
    """Trees among those that act, with the others beside them: tree r begins at rank r."""
    idle = np.setdiff1d(np.arange(n), acting)
    if not len(idle):
        return trees
    edges = acting[trees.tree], trees.step + 1, acting[trees.src], acting[trees.dst]
    # An idle rank gives its block to its neighbour, whose tree goes on from there.
    tree, *lent = (column[np.isin(edges[0] - 1, idle)] for column in edges)
    first = idle, 0, idle, idle + 1
    taker, other = np.nonzero(idle[:, None] != np.arange(n))
    last = other, trees.rounds + 1, idle[taker] + 1, idle[taker]
    return Trees.of(edges, (tree - 1, *lent), first, last)
