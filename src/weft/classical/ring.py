"""Rings: one, both ways round, or several at once."""

from __future__ import annotations

import numpy as np

from weft.classical.planner import ROOTED, SHARED, classical
from weft.classical.rings import find_rings
from weft.classical.trees import Ranks, Trees, roots_of, serve, turns
from weft.collective import Collective
from weft.planners.sends import Sends
from weft.topology.model import Topology


@classical("ring", 201, (*SHARED, *ROOTED), "every rank sends to the next only")
def ring(_topology: Topology, demand: Collective) -> Sends:
    """Every rank sends to the next, and only there.

    A block goes round from its owner; its sum goes round from the owner's next to the owner.
    Broadcast and Reduce are chains from and to the root.
    """
    ranks = np.arange(demand.ranks)
    return serve(demand, roots_of(demand), _round(ranks), _round(ranks[::-1]))


@classical(
    "bidirectional-ring", 202, (*SHARED, *ROOTED), "a ring, half of each share either way round"
)
def bidirectional_ring(_topology: Topology, demand: Collective) -> Sends:
    """Half the chunks of each share go round one way, half the other.

    Of an odd number the last goes both ways at once, half round each: of one chunk per share, the
    way is half as long.
    """
    n, root = demand.ranks, roots_of(demand)
    ranks = np.arange(n)
    up, down, both = _round(ranks), _round(ranks[::-1]), _half_round(n)
    turn, count = turns(root)
    way = np.where((count % 2 == 1) & (turn == count - 1), 2, turn % 2)
    # A sum that comes up to its owner takes the tree down from it.
    return serve(
        demand,
        way * n + root,
        Trees.side_by_side([up, down, both], n),
        Trees.side_by_side([down, up, both], n),
    )


@classical("multi-ring", 203, (*SHARED, *ROOTED), "several rings at once, on hops of their own")
def multi_ring(topology: Topology, demand: Collective) -> Sends:
    """Several rings at once, on hops of their own where the network has them."""
    n, root = demand.ranks, roots_of(demand)
    rings = find_rings(topology, demand.group)
    which = (turns(root)[0] + root) % len(rings)
    return serve(
        demand,
        which * n + root,
        Trees.side_by_side([_round(order) for order in rings], n),
        Trees.side_by_side([_round(order[::-1]) for order in rings], n),
    )


def _round(order: Ranks) -> Trees:
    """A tree for each rank: the chain that begins there and goes once round."""
    n = len(order)
    position, step = np.arange(n)[:, None], np.arange(n - 1)
    src, dst = order[(position + step) % n], order[(position + step + 1) % n]
    return Trees.of((order[position], step, src, dst))


def _half_round(n: int) -> Trees:
    """A tree for each rank: two chains that part there and meet half-way round.

    Where one must be longer, it is the one upwards for odd ranks.
    """
    root, step = np.arange(n)[:, None], np.arange(n // 2)
    longer = (n - 1 + root % 2) // 2
    chains = []
    for sign, length in ((1, longer), (-1, n - 1 - longer)):
        tree, steps = np.broadcast_arrays(root, step)
        real = steps < length
        tree, steps = tree[real], steps[real]
        chains.append((tree, steps, (tree + sign * steps) % n, (tree + sign * (steps + 1)) % n))
    return Trees.of(*chains)
