"""Pairwise exchanges in log n rounds: recursive halving and doubling."""

from __future__ import annotations

import numpy as np

from weft.algorithm import Buffer, place
from weft.classical.mapping import Sends
from weft.classical.planner import SHARED, add_classical
from weft.classical.trees import Ranks, Trees, by_exchange, npus_of, roots_of, serve
from weft.collective import Collective
from weft.topology.model import Topology


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
    edges = np.stack([acting[trees.tree], trees.step + 1, acting[trees.src], acting[trees.dst]])
    # An idle rank gives its block to its neighbour, whose tree goes on from there.
    lent = edges[:, np.isin(edges[0] - 1, idle)] - np.array([[1], [0], [0], [0]])
    first = np.stack([idle, np.zeros_like(idle), idle, idle + 1])
    tree, taker = (axis.reshape(-1) for axis in np.meshgrid(np.arange(n), idle))
    last = np.stack([tree, np.full_like(tree, trees.rounds + 1), taker + 1, taker])
    return Trees.of(*np.concatenate([edges, lent, first, last[:, tree != taker]], axis=1))


add_classical(
    "rhd", halving_doubling, SHARED, "recursive halving and doubling: log n rounds of pairs", 204
)
add_classical(
    "recursive-doubling",
    recursive_doubling,
    ("all-reduce",),
    "pairs exchange whole buffers: half the rounds",
    205,
)
