"""TTO: All-Reduce on a 2D mesh by three trees, with sums and copies overlapped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weft.classical.planner import classical
from weft.classical.trees import Trees, depths
from weft.collective import Collective
from weft.errors import InputError
from weft.planners.sends import Sends
from weft.topology.grid import Grid, Places, grid_of
from weft.topology.model import Topology

TREES = 3


@classical("tto", 214, ("all-reduce",), "three trees on a 2D mesh, sums and copies overlapped")
def tto(topology: Topology, demand: Collective) -> Sends:
    """A third of the chunks over each tree, one after the other: three-tree overlap.

    A chunk is summed up its tree to the root and copied back down; while it comes down, the next
    go up. The roots are three corners, and every NPU is as near to them as the mesh allows. If no
    side is shorter than three, no two neighbours are joined in all three trees: a link carries
    two thirds of the buffer at most (Laskar et al., 2024, in our reading).
    """
    grid = _mesh(topology, demand)
    trees, chunk = _three_trees(grid), np.arange(len(demand.chunks))
    tree, turn = chunk % TREES, 2 * (chunk // TREES)
    npus = grid.npus.astype(np.int64)
    up = trees.sums(npus, tree, turn)
    down = trees.copies(npus, tree, turn + trees.rounds)
    return replace(Sends.together([up, down]), waits=_held_back(trees, len(chunk)))


def _mesh(topology: Topology, demand: Collective) -> Grid:
    """The group's grid, if it is a 2D mesh with all its links."""
    grid = grid_of(topology, demand.group)
    if len(grid.sizes) != 2:
        raise InputError(
            f"tto needs a group that fills a 2D mesh; on {topology.name} the group has "
            f"{'x'.join(map(str, grid.sizes))} NPUs"
        )
    width = topology.nodes
    present = topology.src.astype(np.int64) * width + topology.dst
    for src, dst in _mesh_links(grid):
        missing = np.flatnonzero(~np.isin(src.astype(np.int64) * width + dst, present))
        for i in missing[:1]:
            raise InputError(
                f"tto needs a 2D mesh; {topology.name} has no link {src[i]}>{dst[i]} between "
                "neighbours"
            )
    return grid


def _mesh_links(grid: Grid) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """The two ends of all links of a mesh, for each dimension and direction."""
    npus = grid.npus.reshape(grid.sizes[::-1])
    pairs = [(npus[:, :-1], npus[:, 1:]), (npus[:-1], npus[1:])]
    flat = [(low.reshape(-1), high.reshape(-1)) for low, high in pairs]
    return flat + [(high, low) for low, high in flat]


def _three_trees(grid: Grid) -> Trees:
    """Three trees over places."""
    trees = []
    for parent in _parents(grid):
        child = np.flatnonzero(parent >= 0)
        trees.append(Trees.of((0, depths(parent)[child] - 1, parent[child], child)))
    return Trees.side_by_side(trees, 1)


def _parents(grid: Grid) -> list[Places]:
    """For each tree, the place above each place; -1 at the root."""
    width, height = grid.sizes
    place = np.arange(len(grid.npus))
    x, y = place % width, place // width
    left, right, down, up = place - 1, place + 1, place - width, place + width
    top, last = y == height - 1, x == width - 1
    low_left = np.where((x == 0) | (top & ~last), down, left)
    low_right = np.where(last, down, right)
    high_left = np.where(top, left, up)
    if width > 2 and height > 2:
        # Else the edge left of the fourth corner would be in all three trees.
        below = (x == width - 2) & (y == height - 2)
        low_left = np.where(below, down, low_left)
        high_left = np.where(below, left, high_left)
        low_right = np.where(top & (x == width - 2), down, low_right)
    roots = (0, width - 1, (height - 1) * width)
    trees = [low_left, low_right, high_left]
    for tree, root in zip(trees, roots, strict=True):
        tree[root] = -1
    return trees


def _held_back(trees: Trees, chunks: int) -> NDArray[np.int64]:
    """What sums, which come before copies in the same order, wait for.

    A leaf sends the next chunk when the one that many before it has come down to it as there are
    hops on the way. Else all that leaves send would be ahead of what comes down.
    """
    edges = len(trees.tree) // TREES
    sums = chunks * edges
    edge = np.arange(chunks)[:, None] % TREES * edges + np.arange(edges)
    inner = np.isin(trees.tree * (edges + 1) + trees.dst, trees.tree * (edges + 1) + trees.src)
    before = TREES * (trees.rounds + trees.step + 1)[edge]
    held = (np.arange(chunks)[:, None] >= before) & ~inner[edge]
    return np.append(np.where(held, sums - before * edges, 0), np.zeros(sums, dtype=np.int64))
