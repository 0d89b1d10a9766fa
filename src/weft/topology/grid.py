"""The grid on which the NPUs of a group sit, for algorithms that go dimension by dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.topology.model import Topology

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Grid:
    """A grid of NPUs; its places are numbered with the first dimension varying fastest.

    Attributes
    ----------
    sizes
        NPUs along each dimension: from 2 on, but for a single NPU.
    npus
        The NPU at each place (int32).
    """

    sizes: tuple[int, ...]
    npus: NDArray[np.int32]

    def stride(self, dimension: int) -> int:
        """How far neighbours along a dimension are apart, in places."""
        return math.prod(self.sizes[:dimension])

    def along(self, dimension: int, place: Places) -> Places:
        """The coordinate of places in one dimension."""
        return place // self.stride(dimension) % self.sizes[dimension]

    def lines(self, dimensions: Sequence[int]) -> Places:
        """All places whose coordinates are 0 but in these dimensions, ascending."""
        places = np.zeros(1, dtype=np.int64)
        for dimension in sorted(dimensions):
            steps = np.arange(self.sizes[dimension]) * self.stride(dimension)
            places = (steps[:, None] + places).reshape(-1)
        return places

    def place_of(self, npu: NDArray[np.integer]) -> Places:
        """The places of NPUs of the grid."""
        order = np.argsort(self.npus)
        return order[np.searchsorted(self.npus, npu, sorter=order)]


def moved(
    sizes: Sequence[int], place: Places, by: Places, dimensions: int = -1, sign: int = 1
) -> Places:
    """Places of a grid moved round, in each dimension by as far as `by` is away from place 0.

    `dimensions`: those in which they are moved, as bits.
    """
    total, stride = np.zeros(np.broadcast_shapes(place.shape, by.shape), dtype=np.int64), 1
    for dimension, size in enumerate(sizes):
        along = place // stride % size
        if dimensions >> dimension & 1:
            along = (along + sign * (by // stride % size)) % size
        total += along * stride
        stride *= size
    return total


def grid_of(topology: Topology, group: Sequence[int]) -> Grid:
    """The part of the network's grid that a group fills, whatever the order of its ranks.

    All NPUs, a row, a plane, or every second NPU of each row: any group that has, with some
    coordinates in each dimension, all their combinations. Dimensions with one coordinate are
    left out. Any other group, and any on a network without dimensions, is one dimension in
    order of rank.
    """
    members = np.array(group, dtype=np.int32)
    if topology.dimensions:
        coordinates = np.unravel_index(members, topology.dimensions[::-1])[::-1]
        sizes = [len(np.unique(column)) for column in coordinates]
        if math.prod(sizes) == len(members):
            return Grid(tuple(size for size in sizes if size > 1) or (1,), np.sort(members))
    return Grid((len(members),), members)
