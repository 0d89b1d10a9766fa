"""Blocks that spread along trees, and sums that come back along them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weft.collective import Collective
from weft.planners.sends import Sends
from weft.ragged import owners, ranges

Ranks = NDArray[np.int64]
_NO_EDGES = [np.empty(0, dtype=np.int64)] * 4


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees over ranks, each from its root to all others: edges, with the step of each.

    Attributes
    ----------
    tree
        Number of the tree that an edge belongs to (int64).
    step
        When it is crossed, on the way from the root; later than the edge before it (int64).
    src, dst
        Ranks; `src` is nearer to the root (int64).
    """

    tree: Ranks
    step: Ranks
    src: Ranks
    dst: Ranks

    @classmethod
    def of(cls, *parts: Sequence[ArrayLike]) -> Trees:
        """Trees from edges in any order: of each part, four columns that broadcast together."""
        edges = np.concatenate([_flat(part) for part in [_NO_EDGES, *parts]], axis=1)
        return cls(*edges[:, np.argsort(edges[0], kind="stable")])

    @classmethod
    def side_by_side(cls, parts: Sequence[Trees], count: int) -> Trees:
        """Several with `count` trees each: those of part p begin with number p · count."""
        return cls.of(*((t.tree + p * count, t.step, t.src, t.dst) for p, t in enumerate(parts)))

    @property
    def rounds(self) -> int:
        """How many steps there are."""
        return int(self.step.max(initial=-1)) + 1

    def copies(self, group: Ranks, tree: Ranks, begin: ArrayLike = 0) -> Sends:
        """Chunks from the roots to all others: chunk c along ``tree[c]``, from step `begin` on."""
        chunk, edge = self._edges(tree)
        step = np.broadcast_to(begin, tree.shape)[chunk] + self.step[edge]
        return Sends.of(step, chunk, group[self.src[edge]], group[self.dst[edge]], False)

    def sums(self, group: Ranks, tree: Ranks, begin: ArrayLike = 0) -> Sends:
        """The same backwards: every rank adds its part to that of the rank nearer to the root."""
        chunk, edge = self._edges(tree)
        step = np.broadcast_to(begin, tree.shape)[chunk] + self.rounds - 1 - self.step[edge]
        return Sends.of(step, chunk, group[self.dst[edge]], group[self.src[edge]], True)

    def _edges(self, tree: Ranks) -> tuple[Ranks, Ranks]:
        """Every chunk with every edge of its tree."""
        first = np.searchsorted(self.tree, tree, side="left")
        counts = np.searchsorted(self.tree, tree, side="right") - first
        return owners(counts), ranges(first, counts)


def _flat(part: Sequence[ArrayLike]) -> NDArray[np.int64]:
    return np.stack([column.reshape(-1) for column in np.broadcast_arrays(*part)]).astype(np.int64)


def by_exchange(n: int, peers: Sequence[Ranks]) -> Trees:
    """The tree of every rank if, step by step, each gives its peer all that the peer lacks."""
    has = np.eye(n, dtype=np.bool_)  # by block and rank
    edges = []
    for step, peer in enumerate(peers):
        new = has[:, peer] & ~has
        block, rank = np.nonzero(new)
        edges.append((block, step, peer[rank], rank))
        has |= new
    return Trees.of(*edges)


def serve(demand: Collective, tree: Ranks, down: Trees, up: Trees) -> Sends:
    """A collective along the tree of each chunk.

    All-Gather and Broadcast go down, Reduce-Scatter and Reduce up, All-Reduce up and then down.
    """
    group = npus_of(demand)
    if demand.kind in ("all-gather", "broadcast"):
        return down.copies(group, tree)
    if demand.kind in ("reduce-scatter", "reduce"):
        return up.sums(group, tree)
    return Sends.together([up.sums(group, tree), down.copies(group, tree, up.rounds)])


def npus_of(demand: Collective) -> Ranks:
    """The NPU of each rank."""
    return np.array(demand.group, dtype=np.int64)


def roots_of(demand: Collective, ranks: int | None = None) -> Ranks:
    """The rank from which each chunk spreads, and to which its parts come.

    Of an All-Reduce, whose chunks have no owner, each of the first `ranks` ranks (all, if not
    given) gets as many, in order of the buffer.
    """
    chunks, group = demand.chunks, npus_of(demand)
    if demand.kind == "all-reduce":
        return np.arange(len(chunks)) * (ranks or len(group)) // max(len(chunks), 1)
    sets = chunks.post if demand.kind in ("reduce-scatter", "reduce") else chunks.pre
    return ranks_of(demand, chunks.set_members[chunks.set_offsets[sets]])


def ranks_of(demand: Collective, npu: NDArray[np.int32]) -> Ranks:
    """The ranks of NPUs of the group."""
    group = npus_of(demand)
    rank = np.zeros(group.max() + 1, dtype=np.int64)
    rank[group] = np.arange(len(group))
    return rank[npu]


def depths(parent: Ranks) -> Ranks:
    """How far each place of a tree is from the root, which has no parent (-1)."""
    depth, above = np.zeros(len(parent), dtype=np.int64), parent
    while (inner := above >= 0).any():
        depth += inner
        above = np.where(inner, parent[above], -1)
    return depth


def turns(root: Ranks) -> tuple[Ranks, Ranks]:
    """The number of each chunk among those of its root, and how many there are."""
    order = np.argsort(root, kind="stable")
    counts = np.bincount(root)
    turn = np.empty(len(root), dtype=np.int64)
    turn[order] = np.arange(len(root)) - (np.cumsum(counts) - counts)[root[order]]
    return turn, counts[root]
