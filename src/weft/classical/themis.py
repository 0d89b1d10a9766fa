"""Themis: pieces of the buffer take the dimensions in orders that keep all of them busy."""

from __future__ import annotations

import numpy as np

from weft.classical.blueconnect import Order, by_dimensions
from weft.classical.paths import direct_dimensions, load_of
from weft.classical.planner import SHARED, classical
from weft.classical.trees import roots_of, turns
from weft.collective import Collective
from weft.planners.sends import Sends
from weft.topology.grid import Grid, grid_of
from weft.topology.model import Topology


@classical("themis", 212, SHARED, "dimensions in orders that keep all of them busy")
def themis(topology: Topology, demand: Collective) -> Sends:
    """Every piece is summed along the dimension first that has had the least to do so far.

    The dimension that comes first carries most. So each piece of all shares (a chunk of the
    paper, Rashidi et al., 2022) takes them in order of their load, the least first and the
    lowest number of equals, and adds to it: bytes over the bandwidth that the dimension has. It
    takes them as they are numbered where that leaves the busiest dimension less busy.
    """
    grid = grid_of(topology, demand.group)
    direct = direct_dimensions(topology, demand, grid)
    loads = [load_of(topology, demand, grid, d, direct=kind) for d, kind in enumerate(direct)]
    return by_dimensions(demand, grid, direct, _orders(demand, grid, loads))


def _orders(demand: Collective, grid: Grid, loads: list[int]) -> list[Order]:
    """The order of dimensions of each piece; `loads` are those of one byte."""
    piece = turns(roots_of(demand))[0]
    sizes = np.bincount(piece, demand.chunks.bytes, minlength=1).astype(np.int64).tolist()
    plain = tuple(range(len(loads)))
    busy = [0] * len(loads)
    orders: list[Order] = []
    for size in sizes:
        balanced = tuple(sorted(plain, key=lambda d: (busy[d], d)))
        ends = [(_busier(busy, order, size, grid, loads), order) for order in (plain, balanced)]
        busy, order = min(ends, key=lambda end: max(end[0]))
        orders.append(order)
    return orders


def _busier(busy: list[int], order: Order, size: int, grid: Grid, loads: list[int]) -> list[int]:
    """The loads after one more piece, which takes the dimensions in this order."""
    after = list(busy)
    left = size * len(grid.npus)  # so that all divisions are exact
    for dimension in order:
        left //= grid.sizes[dimension]
        after[dimension] += left * loads[dimension]
    return after
