"""Whether a grid translates onto itself, found from its links alone.

The orbit of a link is what all translations make of it. On a grid that translates onto itself it
has one link from every NPU (to every NPU, for links from switches), all of one speed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.judge.translations import apart
from weft.ragged import lengths_of, offsets_of, owners, places, positions
from weft.topology.model import Topology

Numbers = NDArray[np.int64]


class NotAlikeError(Exception):
    """The network is not vertex-transitive; the message says where."""


@dataclass(frozen=True, eq=False)
class Orbits:
    """The orbits of a network's links, and the ways from an NPU to others that they make.

    Attributes
    ----------
    links
        ``links[o, u]`` is the link of orbit o at NPU u.
    way_of
        Number of the way from NPU 0 to each NPU, -1 if there is none: over one link, or through
        one switch.
    ways
        Orbits each way crosses: ``ways[offsets[w]:offsets[w + 1]]``.
    """

    links: NDArray[np.int32]
    way_of: NDArray[np.int32]
    ways: Numbers
    offsets: Numbers

    def crossed(
        self, way: NDArray[np.int32], src: NDArray[np.int32], dst: NDArray[np.int32]
    ) -> tuple[Numbers, Numbers, NDArray[np.int32]]:
        """What hops cross, one link after the other: place in `way`, place in `ways`, link."""
        counts = lengths_of(self.offsets, way)
        row = owners(counts)
        place = places(self.offsets, way)
        at = np.where(positions(counts) == 0, src[row], dst[row])
        return row, place, self.links[self.ways[place], at]


def find_orbits(topology: Topology) -> Orbits:
    """The orbits of a network's links.

    Raises
    ------
    NotAlikeError
        It does not translate onto itself.
    """
    sizes, npus = topology.dimensions, topology.npus
    if math.prod(sizes) != npus or not sizes:
        raise NotAlikeError("its NPUs sit on no grid")
    if topology.removed or topology.buffers:  # what is judged by orbits shares no transmission
        raise NotAlikeError("NPUs are removed, or switches are special")
    to_switch, from_switch = topology.dst >= npus, topology.src >= npus
    if (to_switch & from_switch).any():
        raise NotAlikeError("switches are linked to each other")
    direct = np.flatnonzero(~to_switch & ~from_switch)
    step = apart(sizes, topology.src[direct], topology.dst[direct])
    kinds, orbit = np.unique(step, return_inverse=True)
    tables = [_orbits(topology, direct, orbit, topology.src[direct], len(kinds))]
    way_of = np.full(npus, -1, dtype=np.int32)
    way_of[kinds] = np.arange(len(kinds))
    ways, counts = list(range(len(kinds))), [1] * len(kinds)
    dimensions: list[int] = []
    if topology.switches:
        up, down = np.flatnonzero(to_switch), np.flatnonzero(from_switch)
        dimensions, up_orbit = _lines(topology, topology.src[up], topology.dst[up])
        others, down_orbit = _lines(topology, topology.dst[down], topology.src[down])
        if dimensions != others:
            raise NotAlikeError("switches are not linked both ways")
        for links, orbit, at in (
            (up, up_orbit, topology.src[up]),
            (down, down_orbit, topology.dst[down]),
        ):
            tables.append(_orbits(topology, links, orbit, at, len(dimensions)))
        # A line may end at one switch and begin at another, where the others have one for both.
        for _, npu in np.argwhere(topology.dst[tables[1]] != topology.src[tables[2]])[:1].tolist():
            raise NotAlikeError(f"NPU {npu} sends to one switch and receives from another")
    for i, dimension in enumerate(dimensions):
        behind = np.arange(1, sizes[dimension]) * math.prod(sizes[:dimension])
        way_of[behind[way_of[behind] < 0]] = len(counts)
        ways += [len(kinds) + i, len(kinds) + len(dimensions) + i]
        counts.append(2)
    offsets = offsets_of(counts)
    return Orbits(np.concatenate(tables), way_of, np.array(ways, dtype=np.int64), offsets)


def _orbits(
    topology: Topology, links: Numbers, orbit: Numbers, at: NDArray[np.int32], count: int
) -> NDArray[np.int32]:
    """The links by orbit and NPU; raises unless each is there once, and of its orbit's speed."""
    table = np.full((count, topology.npus), -1, dtype=np.int32)
    table[orbit, at] = links
    for o, npu in np.argwhere(table < 0)[:1].tolist():
        like = topology.link_name(int(links[np.flatnonzero(orbit == o)[0]]))
        raise NotAlikeError(f"there is no link like {like} at NPU {npu}")
    if table.size != len(links):
        twice = np.setdiff1d(links, table)[0]
        raise NotAlikeError(f"there are two links {topology.link_name(int(twice))}")
    for column in (topology.bandwidth, topology.latency):
        speeds = column[table]
        for o, npu in np.argwhere(speeds != speeds[:, :1])[:1].tolist():
            one, two = topology.link_name(int(table[o, 0])), topology.link_name(int(table[o, npu]))
            raise NotAlikeError(f"links {one} and {two} differ in speed")
    return table


def _lines(
    topology: Topology, npu: NDArray[np.int32], switch: NDArray[np.int32]
) -> tuple[list[int], Numbers]:
    """The dimensions along which switches join whole lines, and the place of each link's there."""
    order = np.lexsort((npu, switch))
    ordered, firsts = (
        npu[order].astype(np.int64),
        np.flatnonzero(np.diff(switch[order], prepend=-1)),
    )
    sizes = np.diff(np.append(firsts, len(order)))
    strides = np.cumprod([1, *topology.dimensions[:-1]])
    by_stride = {
        int(stride): d
        for d, (stride, size) in enumerate(zip(strides, topology.dimensions, strict=True))
        if size > 1
    }
    gaps = ordered[np.minimum(firsts + 1, len(order) - 1)] - ordered[firsts]
    dimension = np.array([by_stride.get(gap, -1) for gap in gaps.tolist()], dtype=np.int64)
    line, inner = owners(sizes), positions(sizes)
    grid = np.array(topology.dimensions)
    fits = (dimension >= 0) & (sizes == grid[dimension])
    fits &= ordered[firsts] // strides[dimension] % grid[dimension] == 0
    whole = fits[line] & (ordered == ordered[firsts][line] + inner * strides[dimension][line])
    for bad in np.flatnonzero(~whole)[:1]:
        name = topology.node_name(int(switch[order][bad]))
        raise NotAlikeError(f"the NPUs at switch {name} are not a line of the grid")
    kinds, place = np.unique(dimension, return_inverse=True)
    orbit = np.empty(len(order), dtype=np.int64)
    orbit[order] = place[line]
    return kinds.tolist(), orbit
