"""Networks as products of dimensions: rings, lines, full meshes and switches along each axis.

NPUs sit on a grid whose first dimension varies fastest: in ``mesh:8x4`` the NPU at (x, y) is
x + 8·y. A *line* of a dimension is the set of NPUs that differ in that coordinate only; every
line is wired the same way.

Order of links: dimension by dimension; within one, line by line in order of the line's first
NPU; within a line, as the dimension's wiring lists them (see `WIRINGS`). Switches are numbered
after the NPUs in the same order: dimension by dimension, line by line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.errors import InputError
from weft.topology.model import Topology

MAX_NPUS = 4_000_000
MAX_LINKS = 64_000_000

Nodes = NDArray[np.int64]
Ends = tuple[Nodes, Nodes]


def _line_ends(size: int) -> Ends:
    """All steps up (0>1, 1>2, ...), then all steps down (1>0, 2>1, ...)."""
    low = np.arange(size - 1)
    return np.concatenate([low, low + 1]), np.concatenate([low + 1, low])


def _ring_ends(size: int) -> Ends:
    """All steps up (0>1, ..., n-1>0), then all steps down (1>0, ..., 0>n-1)."""
    if size <= 2:
        return _line_ends(size)
    here = np.arange(size)
    after = (here + 1) % size
    return np.concatenate([here, after]), np.concatenate([after, here])


def _full_ends(size: int) -> Ends:
    """Every ordered pair, by source, then by destination."""
    src, step = np.divmod(np.arange(size * (size - 1)), max(size - 1, 1))
    return src, step + (step >= src)


def _switch_ends(size: int) -> Ends:
    """All links up to the switch, then all links down; the switch has number `size`."""
    here = np.arange(size if size > 1 else 0)
    switch = np.full_like(here, size)
    return np.concatenate([here, switch]), np.concatenate([switch, here])


@dataclass(frozen=True)
class Wiring:
    """How one line of a dimension is wired, with NPUs 0..size-1 and at most one switch."""

    ends: Callable[[int], Ends]
    links: Callable[[int], int]
    switched: bool = False
    translates: bool = True  # moving all NPUs round by one maps links to links


WIRINGS = {
    "line": Wiring(_line_ends, lambda size: 2 * (size - 1), translates=False),
    "ring": Wiring(_ring_ends, lambda size: 2 * size if size > 2 else 2 * (size - 1)),
    "fc": Wiring(_full_ends, lambda size: size * (size - 1)),
    "switch": Wiring(_switch_ends, lambda size: 2 * size if size > 1 else 0, switched=True),
}


@dataclass(frozen=True)
class Dimension:
    """One axis of the grid; a size of 1 has neither links nor a switch.

    Attributes
    ----------
    wiring
        A key of `WIRINGS`.
    size
        NPUs in a line of this dimension.
    speed
        Which of the given bandwidths and latencies its links have.
    """

    wiring: str
    size: int
    speed: int


def check_size(name: str, npus: int, links: int) -> None:
    """Refuse networks too large to hold, before anything is allocated."""
    if npus > MAX_NPUS:
        raise InputError(f"{name} has more than {MAX_NPUS} NPUs, the most Weft builds")
    if links > MAX_LINKS:
        raise InputError(f"{name} has {links} links; Weft builds at most {MAX_LINKS}")


def product(
    name: str, dimensions: Sequence[Dimension], bandwidth: Sequence[int], latency: Sequence[int]
) -> Topology:
    """The product of `dimensions`, with speeds (B/s) and latencies (ps) by `Dimension.speed`."""
    npus = math.prod(d.size for d in dimensions)
    counts = [npus // d.size * WIRINGS[d.wiring].links(d.size) for d in dimensions]
    check_size(name, npus, sum(counts))
    ends: list[Ends] = []
    stride, nodes = 1, npus
    for dimension in dimensions:
        ends.append(dimension_ends(dimension, npus, stride, nodes))
        stride *= dimension.size
        if WIRINGS[dimension.wiring].switched and dimension.size > 1:
            nodes += npus // dimension.size
    return levelled(
        name,
        [d.size for d in dimensions],
        nodes - npus,
        ends,
        [bandwidth[d.speed] for d in dimensions],
        [latency[d.speed] for d in dimensions],
        translates=all(WIRINGS[d.wiring].translates or d.size <= 2 for d in dimensions),
    )


def levelled(
    name: str,
    grid: Sequence[int],
    switches: int,
    ends: Sequence[Ends],
    bandwidth: Sequence[int],
    latency: Sequence[int],
    *,
    translates: bool = False,
) -> Topology:
    """A network of links level by level, each level with its speed, and NPUs on a grid."""
    counts = [len(src) for src, _ in ends]
    return Topology.from_links(
        name,
        math.prod(grid),
        np.concatenate([src for src, _ in ends]),
        np.concatenate([dst for _, dst in ends]),
        np.repeat(bandwidth, counts),
        np.repeat(latency, counts),
        switches=switches,
        dimensions=grid,
        translates=translates,
    )


def dimension_ends(dimension: Dimension, npus: int, stride: int, first_switch: int) -> Ends:
    """The ends of all links of one dimension, whose neighbours are `stride` NPUs apart."""
    low = np.arange(stride)
    high = np.arange(npus // (stride * dimension.size)) * (stride * dimension.size)
    first = (high[:, None] + low).reshape(-1, 1)
    switch = first_switch + np.arange(len(first))[:, None]
    src, dst = WIRINGS[dimension.wiring].ends(dimension.size)

    def place(end: Nodes) -> Nodes:
        return np.where(end == dimension.size, switch, first + end * stride).reshape(-1)

    return place(src), place(dst)
