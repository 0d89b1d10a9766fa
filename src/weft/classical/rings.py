"""Rings through a group of NPUs, on hops of their own: Hamiltonian cycles, as many as are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import gcd

import numpy as np
from numpy.typing import NDArray

from weft.classical.cycles import join_cycles
from weft.topology.model import Topology

Ring = NDArray[np.int64]
_MOST_STEPS = 20_000  # of a search for one ring
_MOST_UNITS = 4  # rings on a hop


@lru_cache(maxsize=8)  # the same rings serve for every number of chunks
def find_rings(topology: Topology, group: tuple[int, ...]) -> list[Ring]:
    """Orders of the group's ranks; rings on hops of their own where the network allows it.

    Boxes in which fast hops join all are crossed one after the other, by each ring from another
    rank on. Where hops join all ranks, neighbours are 1, 2, 3, ... apart: all strides without a
    common factor with the number of ranks. Else it is a bounded search for rings along hops,
    each used both ways if it can; a hop twice as fast as another may be in two rings where the
    other is in one. If none is found, it is the order of the ranks.
    """
    hops = _hops(topology, group)
    n = len(hops)
    # Ranks that are joined by links as fast as the fastest that leaves one of them.
    fastest = int(topology.bandwidth[np.isin(topology.src, group)].max(initial=0))
    boxes = _boxes(_hops(topology, group, fastest) > 0)
    if boxes is not None:
        return [_through(boxes, first) for first in range(boxes.shape[1])]
    if n < 4 or (hops > 0).sum() == n * (n - 1):
        return [np.arange(n) * stride % n for stride in range(1, max(n, 2)) if gcd(stride, n) == 1]
    found = join_cycles(np.minimum(hops, hops.T))
    if found:
        return [order for ring in found for order in (ring, ring[::-1])]
    return list(_one_by_one(hops)) or [np.arange(n)]


def _hops(topology: Topology, group: Sequence[int], slowest: int = 0) -> NDArray[np.int64]:
    """How many rings each hop may be in, from row to column; links from `slowest` B/s on count.

    A link counts for as many as its bandwidth is times that of the slowest, a way through
    switches for one.
    """
    at, npus, nodes = np.array(group), topology.npus, topology.nodes
    used = topology.bandwidth >= slowest
    src, dst, bandwidth = topology.src[used], topology.dst[used], topology.bandwidth[used]
    inside = np.isin(src, at) & np.isin(dst, at)
    units = bandwidth // bandwidth.min(where=inside, initial=bandwidth.max(initial=1))
    links = np.zeros((nodes, nodes), dtype=np.int64)
    np.add.at(links, (src, dst), np.clip(units, 1, _MOST_UNITS))
    hops: NDArray[np.int64] = links[np.ix_(at, at)]
    if topology.switches:
        joined = (links > 0).astype(np.float32)
        inner = joined[npus:, npus:] + np.eye(topology.switches, dtype=np.float32)
        for _ in range(topology.switches.bit_length()):
            inner = np.minimum(inner @ inner, 1)
        hops += joined[at, npus:] @ inner @ joined[npus:, at] > 0
    np.fill_diagonal(hops, 0)
    return hops


def _boxes(fast: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """Sets of ranks, of one size, all joined within and not to others; None if it is not so."""
    n = len(fast)
    beside = fast | np.eye(n, dtype=np.bool_)
    size = int(beside[0].sum())
    if not 1 < size < n or (beside.sum(axis=1) != size).any():
        return None
    first = beside.argmax(axis=1)
    if not (beside == (first[:, None] == first)).all():
        return None
    return np.argsort(first, kind="stable").reshape(-1, size)


def _through(boxes: NDArray[np.int64], first: int) -> Ring:
    """A ring through box after box, from the `first` rank of one on, back in the next."""
    turned = np.roll(boxes, -first, axis=1)
    turned[1::2] = turned[1::2, ::-1]
    return turned.reshape(-1)


def _one_by_one(hops: NDArray[np.int64]) -> Iterator[Ring]:
    """Rings that only go one way, found one after the other."""
    left = hops.copy()
    while (ring := _search(left)) is not None:
        left[ring, np.roll(ring, -1)] -= 1
        yield ring


def _search(hops: NDArray[np.int64]) -> Ring | None:
    """A ring by depth-first search, to the rank with the fewest ways on first."""
    n = len(hops)
    ways = [sum(1 << int(rank) for rank in np.flatnonzero(row)) for row in hops]
    last = sum(1 << int(rank) for rank in np.flatnonzero(hops[:, 0]))
    path, free = [0], (1 << n) - 2
    options = [_fewest_first(ways, ways[0] & free, free)]
    for _ in range(_MOST_STEPS):
        if not free and ways[path[-1]] & 1:
            return np.array(path)
        if options[-1] and last & free:
            rank = options[-1].pop()
            path.append(rank)
            free ^= 1 << rank
            options.append(_fewest_first(ways, ways[rank] & free, free))
        elif len(path) == 1:
            return None
        else:
            free |= 1 << path.pop()
            options.pop()
    return None


def _fewest_first(ways: list[int], among: int, free: int) -> list[int]:
    """Ranks to go to, the best last."""
    ranks = []
    while among:
        bit = among & -among
        ranks.append(bit.bit_length() - 1)
        among ^= bit
    return sorted(ranks, key=lambda rank: (ways[rank] & free).bit_count(), reverse=True)
