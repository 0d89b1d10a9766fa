"""Two binary trees, each for half of the chunks; the inner ranks of one are leaves of the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft.classical.planner import ROOTED, classical
from weft.classical.trees import Ranks, Trees, depths, npus_of, serve
from weft.collective import Collective
from weft.planners.sends import Sends
from weft.topology.model import Topology


@classical(
    "double-binary-tree", 207, ("all-reduce", *ROOTED), "two trees, sums up and then copies down"
)
def double_binary_tree(_topology: Topology, demand: Collective) -> Sends:
    """Sums go up the tree of their chunk, copies go down, one chunk behind the other.

    In an All-Reduce a tree begins to copy when its root has the sum of its last chunk.
    """
    trees, chunk = _two_trees(demand), np.arange(len(demand.chunks))
    if demand.kind != "all-reduce":
        return serve(demand, chunk % 2, trees, trees)
    sends = _up_and_down(demand, trees, wait=len(chunk) // 2)
    waits = np.zeros(len(sends), dtype=np.int64)
    roots = npus_of(demand)[trees.src[trees.step == 0]]  # a root has one child
    for tree, root in enumerate(roots):
        mine = sends.chunk % 2 == tree
        last = sends.chunk[mine].max(initial=0)
        brings_last = sends.reduce & (sends.dst == root) & (sends.chunk == last)
        begins = np.flatnonzero(mine & ~sends.reduce & (sends.src == root))
        waits[begins] = np.flatnonzero(brings_last)[-1:] - begins
    return replace(sends, waits=waits)


@classical("c-cube", 208, ("all-reduce",), "two trees, sums up while copies go down")
def overlapped_double_tree(_topology: Topology, demand: Collective) -> Sends:
    """A root copies the sum of a chunk as soon as it has it, while later chunks come up."""
    return _up_and_down(demand, _two_trees(demand), wait=0)


def _up_and_down(demand: Collective, trees: Trees, wait: int) -> Sends:
    """An All-Reduce, one chunk per step behind the other; copies begin `wait` steps later."""
    group, chunk = npus_of(demand), np.arange(len(demand.chunks))
    up = trees.sums(group, chunk % 2, chunk // 2)
    down = trees.copies(group, chunk % 2, chunk // 2 + trees.rounds + wait)
    return Sends.together([up, down])


def _two_trees(demand: Collective) -> Trees:
    """Tree 0 and tree 1 over all ranks; the root of a Broadcast or a Reduce is that of both."""
    rank = np.arange(demand.ranks)
    if demand.root is None:
        return _placed(rank, _other_order(rank))
    root, *others = np.roll(rank, -demand.group.index(demand.root))
    return _placed(*(np.array([root, *order]) for order in (others, _other_order(others))))


def _other_order(ranks: Ranks | list[np.int64]) -> Ranks:
    """The same ranks, so that those at odd places get even ones."""
    return np.flip(ranks) if len(ranks) % 2 == 0 else np.roll(ranks, 1)


def _placed(*orders: Ranks) -> Trees:
    """Ranks in two orders, put on the places of the same tree.

    Place 0 is its root. Below it is a binary tree in which the places 1, 2, ... lie from left to
    right: odd ones are leaves, and the lowest bit of a place says how high it is.
    """
    n = len(orders[0])
    place = np.arange(1, n)
    bit = place & -place
    parent = (place ^ bit) | bit << 1
    parent = np.where(parent < n, parent, place ^ bit)
    depth = depths(np.append(-1, parent))[1:]
    trees = [Trees.of((0, depth - 1, order[parent], order[place])) for order in orders]
    return Trees.side_by_side(trees, 1)
