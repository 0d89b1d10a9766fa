"""Cuts swept through a network: nodes in the order of how much nearer one landmark is.

On a mesh the landmarks are corners or sides, and the cuts are its planes.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.topology.model import Topology

_MOST_NODES = 2048  # a number is kept for each two of them

Cut = NDArray[np.bool_]  # per link: whether it crosses


def best_sweep(
    topology: Topology,
    capacity: NDArray[np.float64],
    src: NDArray[np.int32],
    dst: NDArray[np.int32],
    amount: NDArray[np.int64],
    landmarks: int,
) -> tuple[float, Cut]:
    """The cut with the most that must cross over the capacity that can carry it, in seconds."""
    best, cut = 0.0, np.zeros(topology.links, dtype=bool)
    if topology.nodes > _MOST_NODES:
        return best, cut
    needs = np.zeros((topology.nodes, topology.nodes))
    np.add.at(needs, (src, dst), amount)
    carries = np.zeros_like(needs)
    np.add.at(carries, (topology.src, topology.dst), capacity)
    for one, two in combinations(_distances(topology, landmarks), 2):
        _, level = np.unique(one - two, return_inverse=True)
        for axis in (0, 1):
            needed, carried = (_leaving(matrix, level, axis) for matrix in (needs, carries))
            # What is less than that is what rounding leaves of nothing.
            real = carried > 1e-9 * capacity.sum()
            ratio = np.divide(needed, carried, where=real, out=np.zeros_like(needed))
            if len(ratio) == 0 or ratio.max() <= best:
                continue
            best = float(ratio.max())
            below = level <= ratio.argmax()
            from_, to = (topology.src, topology.dst) if axis == 0 else (topology.dst, topology.src)
            cut = below[from_] & ~below[to]
    return best, cut


def _leaving(
    matrix: NDArray[np.float64], level: NDArray[np.intp], axis: int
) -> NDArray[np.float64]:
    """What goes from levels up to each one to those above it; the other way round for axis 1."""
    order = np.argsort(level, kind="stable")
    starts = np.flatnonzero(np.diff(level[order], prepend=-1))
    blocks = np.add.reduceat(np.add.reduceat(matrix[order], starts, 0)[:, order], starts, 1)
    within = np.cumsum(np.cumsum(blocks, 0), 1).diagonal()
    result: NDArray[np.float64] = (np.cumsum(blocks.sum(1 - axis)) - within)[:-1]
    return np.maximum(result, 0)


def _distances(topology: Topology, count: int) -> list[NDArray[np.int64]]:
    """Hops from landmarks, each as far as can be from those before it."""
    first = _hops(topology, int(topology.members[0]))
    found: list[NDArray[np.int64]] = []
    nearest = first
    for _ in range(count):
        away = np.where(nearest <= topology.nodes, nearest, -1)[topology.members]
        mark = int(topology.members[away.argmax()])
        found.append(_hops(topology, mark))
        nearest = found[0] if len(found) == 1 else np.minimum(nearest, found[-1])
    return found


def _hops(topology: Topology, source: int) -> NDArray[np.int64]:
    hops = _core.distances(topology.core, source, False).astype(np.int64)
    return np.where(hops < 0, 2 * topology.nodes, hops)
