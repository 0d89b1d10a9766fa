"""What the network offers along each dimension of a grid: hops, and how busy they get."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Routes
from weft.collective import Collective
from weft.cost import CostModel
from weft.topology.grid import Grid
from weft.topology.model import Topology


class Paths(NamedTuple):
    """The hops and links that messages cross.

    Attributes
    ----------
    hops
        How many hops from NPU to NPU each message takes (int64).
    links
        The links that each hop crosses, all messages' one after the other (int32).
    """

    hops: NDArray[np.int64]
    links: NDArray[np.int32]


def direct_dimensions(topology: Topology, demand: Collective, grid: Grid) -> list[bool]:
    """For each dimension: whether every NPU of a line is one hop from every other."""
    return [_is_direct(topology, demand, grid, d) for d in range(len(grid.sizes))]


def _is_direct(topology: Topology, demand: Collective, grid: Grid, dimension: int) -> bool:
    line = grid.npus[grid.lines([dimension])]
    if not _one_hop(_paths(topology, demand, line[1:], np.full_like(line[1:], line[0]))):
        return False  # without a look at all pairs of all lines
    others = np.arange(1, grid.sizes[dimension])
    return _one_hop(_paths(topology, demand, *_pairs(grid, dimension, others)))


def _one_hop(found: Paths | None) -> bool:
    return found is not None and bool((found.hops == 1).all())


def load_of(
    topology: Topology, demand: Collective, grid: Grid, dimension: int, *, direct: bool
) -> int:
    """How long a Reduce-Scatter along a dimension keeps its busiest link, as a whole number.

    It is the time for 2 · size bytes on every NPU, times 10¹⁸, without latencies; 0 if there is
    no path.
    """
    size = grid.sizes[dimension]
    steps = np.arange(1, size) if direct else np.array([1, -1])
    found = _paths(topology, demand, *_pairs(grid, dimension, steps))
    if found is None:
        return 0
    # Of a part's two bytes a pair gets both; or one goes round up and one down, size - 1 hops.
    crossed = np.bincount(found.links, minlength=topology.links) * (2 if direct else size - 1)
    return max(
        (
            int(crossed[topology.bandwidth == rate].max()) * 10**18 // int(rate)
            for rate in np.unique(topology.bandwidth)
        ),
        default=0,
    )


def _pairs(
    grid: Grid, dimension: int, steps: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """From every NPU to those so many steps further round its line."""
    place = np.arange(len(grid.npus))[:, None]
    here = grid.along(dimension, place)
    there = (here + steps) % grid.sizes[dimension]
    other = grid.npus[place + (there - here) * grid.stride(dimension)]
    return np.repeat(grid.npus, len(steps)), other.reshape(-1)


def _paths(
    topology: Topology, demand: Collective, src: NDArray[np.int32], dst: NDArray[np.int32]
) -> Paths | None:
    """The paths that sends of the collective's chunks take; None if one has none."""
    chunks = demand.chunks
    reach = np.full(len(src), chunks.reach[0] if len(chunks) else -1, dtype=np.int32)
    found = _core.forward(topology.core, CostModel().core, chunks.core, src, dst, reach)
    if found.lost >= 0:
        return None
    _, links = Routes(found.route_offsets, found.route_links).crossed(found.route)
    return Paths(np.diff(found.hop_offsets), links)
