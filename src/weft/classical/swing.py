"""Swing: exchanges with peers that swing from side to side, near ones first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weft.classical.planner import SHARED, classical
from weft.classical.trees import Ranks, Trees, by_exchange, roots_of, serve, turns
from weft.collective import Collective
from weft.planners.sends import Sends
from weft.topology.model import Topology


@classical("swing", 206, SHARED, "as rhd, with peers nearer on rings and tori")
def swing(topology: Topology, demand: Collective) -> Sends:
    """Sums with peers at distance 1, 1, 3, 5, 11, ..., on one side and then the other.

    Copies take the same way back. Even ranks go one way round where odd ones go the other; half
    the chunks do the mirror image of it. On a grid the dimensions take turns, and chunks begin
    with different ones. Of an odd number of ranks the last deals with each root alone.
    """
    n = demand.ranks
    sizes = _grid(topology, demand)
    even = int(np.prod(sizes))
    parts = [
        by_exchange(even, [*_peers(sizes, first, sign)][::-1])
        for first in range(len(sizes))
        for sign in (1, -1)
    ]
    if even < n:
        parts = [_with_last(trees, even) for trees in parts]
    root = roots_of(demand, even)
    # Neighbouring roots swing in opposite directions: each way of going gets both.
    part = (turns(root)[0] + root // 2) % len(parts)
    trees = Trees.side_by_side(parts, n)
    return serve(demand, part * n + root, trees, trees)


def _grid(topology: Topology, demand: Collective) -> tuple[int, ...]:
    """Sizes of the grid that the ranks fill in order; if there is none, they are one line."""
    sizes = tuple(size for size in topology.dimensions if size > 1)
    filled = demand.group == tuple(range(topology.npus))
    if len(sizes) > 1 and filled and all(size % 2 == 0 for size in sizes):
        return sizes
    return (max(demand.ranks - demand.ranks % 2, 1),)


def _peers(sizes: tuple[int, ...], first: int, sign: int) -> Iterator[Ranks]:
    """Who exchanges with whom, step by step; dimension `first` begins."""
    ranks = np.arange(int(np.prod(sizes)))
    strides = np.cumprod([1, *sizes])
    turn = [(first + d) % len(sizes) for d in range(len(sizes))]
    for step in range((max(sizes) - 1).bit_length()):
        distance = sign * (1 - (-2) ** (step + 1)) // 3
        for d in turn:
            if step < (sizes[d] - 1).bit_length():
                at = ranks // strides[d] % sizes[d]
                there = (at + np.where(at % 2 == 0, distance, -distance)) % sizes[d]
                yield ranks + (there - at) * strides[d]


def _with_last(trees: Trees, last: int) -> Trees:
    """Trees among an even number of ranks, with one rank more: each root serves it alone.

    Its own block spreads from rank 0.
    """
    edges = trees.tree, trees.step + 1, trees.src, trees.dst
    _, *lent = (column[trees.tree == 0] for column in edges)
    root = np.arange(last)
    served = root, trees.rounds + 1, root, last
    return Trees.of(edges, (last, *lent), (last, 0, last, 0), served)
