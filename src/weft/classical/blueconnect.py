"""BlueConnect: a Reduce-Scatter in one dimension after the other, then All-Gathers back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from weft.classical.paths import direct_dimensions
from weft.classical.planner import SHARED, classical
from weft.classical.trees import Trees, npus_of, ranks_of, roots_of, serve, turns
from weft.collective import Collective
from weft.planners.sends import Sends
from weft.topology.grid import Grid, grid_of
from weft.topology.model import Topology

Order = tuple[int, ...]


@classical("blueconnect", 211, SHARED, "one dimension after the other")
def blueconnect(topology: Topology, demand: Collective) -> Sends:
    """Sums go through the dimensions from the first to the last, copies back (Cho et al., 2019).

    After dimension d an NPU has 1/size of what it had before, so slow dimensions, if they come
    last, carry little. Along a dimension in which every NPU of a line is one hop from every
    other, each sends to each; along any other, in rings. The pieces of a share go round in turn
    up and down.
    """
    grid = grid_of(topology, demand.group)
    order = tuple(range(len(grid.sizes)))
    pieces = int(turns(roots_of(demand))[0].max(initial=0)) + 1
    direct = direct_dimensions(topology, demand, grid)
    return by_dimensions(demand, grid, direct, [order] * pieces)


def by_dimensions(
    demand: Collective, grid: Grid, direct: Sequence[bool], orders: Sequence[Order]
) -> Sends:
    """Sums and copies whose pieces take the dimensions each in an order of its own.

    Parameters
    ----------
    direct
        For each dimension: whether all send to all of a line, not round a ring.
    orders
        For each piece of a share, the order of dimensions in which it is summed. It is copied in
        the opposite order.
    """
    ways = list(zip(orders, _up_and_down(orders), strict=True))
    kinds = list(dict.fromkeys(ways))
    trees = [_trees(grid, direct, order, way) for order, way in kinds]
    # From places of the grid to ranks of the group.
    rank = ranks_of(demand, grid.npus)
    all_trees = Trees.side_by_side(trees, demand.ranks)
    all_trees = Trees(all_trees.tree, all_trees.step, rank[all_trees.src], rank[all_trees.dst])
    root = roots_of(demand)
    kind = np.array([kinds.index(way) for way in ways])[turns(root)[0]]
    tree = kind * demand.ranks + grid.place_of(npus_of(demand)[root])
    return serve(demand, tree, all_trees, all_trees)


def _up_and_down(orders: Sequence[Order]) -> list[int]:
    """Up (1) and down (-1) in turn among the pieces that take the same order."""
    ways, before = [], Counter[Order]()
    for order in orders:
        ways.append(1 - 2 * (before[order] % 2))
        before[order] += 1
    return ways


def _trees(grid: Grid, direct: Sequence[bool], order: Order, way: int) -> Trees:
    """The tree of every place: along the last dimension of the order first."""
    root = np.arange(len(grid.npus))[:, None]
    edges, step = [], 0
    for i in reversed(range(len(order))):
        dimension = order[i]
        size, stride = grid.sizes[dimension], grid.stride(dimension)
        # Lines in which somebody has it: where the root is in dimensions still to come.
        line = sum((grid.along(d, root) * grid.stride(d) for d in order[:i]), np.zeros_like(root))
        line = line + grid.lines(order[i + 1 :])
        here = grid.along(dimension, root)
        turn = np.arange(size - 1)[:, None, None]
        src = here + np.zeros_like(turn) if direct[dimension] else (here + way * turn) % size
        dst = (here + (1 if direct[dimension] else way) * (turn + 1)) % size
        edges.append((root, step + turn, line + src * stride, line + dst * stride))
        step += size - 1
    return Trees.of(*edges)
