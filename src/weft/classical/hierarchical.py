"""Hierarchical: each box sums to its leader, the leaders go round a ring, boxes copy back."""

from __future__ import annotations

import numpy as np

from weft.classical.planner import SHARED, classical
from weft.classical.trees import Ranks, Trees, npus_of, ranks_of, roots_of, serve, turns
from weft.collective import Collective
from weft.planners.sends import Sends
from weft.topology.grid import Grid, grid_of
from weft.topology.model import Topology


@classical("hierarchical", 210, SHARED, "boxes sum to leaders, which form a ring")
def hierarchical(topology: Topology, demand: Collective) -> Sends:
    """Two levels, with one NPU of each box between them.

    A box is a line of the first dimension, its leader the first NPU in it. Sums go along the
    box in a chain, from the last NPU to the leader; then the leaders, in order of their places,
    sum in a ring. The leader of the NPU that takes a share hands it over; an All-Reduce is
    shared out among the leaders. Copies go the same way back. The pieces of a share go round in
    turn up and down.
    """
    grid = grid_of(topology, demand.group)
    rank = ranks_of(demand, grid.npus)
    trees = Trees.side_by_side([_trees(grid, rank, way) for way in (1, -1)], demand.ranks)
    boxes = demand.ranks // grid.sizes[0]
    if demand.kind == "all-reduce":
        box = roots_of(demand, boxes)
        turn, place = turns(box)[0], box * grid.sizes[0]
    else:
        root = roots_of(demand)
        turn, place = turns(root)[0], grid.place_of(npus_of(demand)[root])
    return serve(demand, turn % 2 * demand.ranks + place, trees, trees)


def _trees(grid: Grid, rank: Ranks, way: int) -> Trees:
    """The tree of every place: to its leader, round the leaders, and along all boxes."""
    size, count = grid.sizes[0], len(grid.npus)
    boxes = count // size
    root = np.arange(count)
    box = root // size
    inner = np.flatnonzero(root % size)
    handed = root[inner], 0, root[inner], box[inner] * size

    turn = np.arange(boxes - 1)[:, None]
    src = (box + way * turn) % boxes
    ring = root, 1 + turn, src * size, (src + way) % boxes * size

    child = inner[:, None]
    skips = (child - 1 == root) & (root % size > 0)  # it has handed it on
    before = np.where(skips, child - 2, child - 1)
    others = np.broadcast_to(child != root, before.shape)
    columns = np.broadcast_arrays(root, boxes + child % size, before, child)
    parts = (handed, ring, [column[others] for column in columns])
    return Trees.of(*((tree, step, rank[src], rank[dst]) for tree, step, src, dst in parts))
