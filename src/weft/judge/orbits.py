"""Whether a grid translates onto itself, found from its links alone.

The orbit of a link is what all translations make of it. On a grid that translates onto itself it
has one link from every NPU (to every NPU, for links from switches), all of one speed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

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

    Links that are on no way along a line of the grid, such as those between switches, are left
    out: no way crosses them.

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
    direct = np.flatnonzero((topology.dst < npus) & (topology.src < npus))
    step = apart(sizes, topology.src[direct], topology.dst[direct])
    kinds, orbit = np.unique(step, return_inverse=True)
    tables = list(_orbits(topology, direct, orbit, topology.src[direct], len(kinds)))
    way_of = np.full(npus, -1, dtype=np.int32)
    way_of[kinds] = np.arange(len(kinds))
    ways, counts = list(range(len(kinds))), [1] * len(kinds)
    dimensions = [d for d, size in enumerate(sizes) if size > 1] if topology.switches else []
    index = _Index(topology)
    known = dict[bytes, int]()  # a switch behind which several dimensions are has one port an NPU
    for dimension in dimensions:
        ports = _ports(topology, index, dimension)
        if ports is None:
            continue
        behind = np.arange(1, sizes[dimension]) * math.prod(sizes[:dimension])
        way_of[behind[way_of[behind] < 0]] = len(counts)
        first = known.setdefault(np.array(ports).tobytes(), len(tables))
        ways += [first, first + 1]
        tables += ports if first == len(tables) else []
        counts.append(2)
    links = np.array(tables, dtype=np.int32).reshape(-1, npus)
    if len(np.unique(links)) != links.size:
        raise NotAlikeError("lines of several dimensions share a link to or from a switch")
    return Orbits(links, way_of, np.array(ways, dtype=np.int64), offsets_of(counts))


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


def _ports(topology: Topology, index: _Index, dimension: int) -> list[NDArray[np.int32]] | None:
    """Each NPU's link to a switch of its line in a dimension, and the link back.

    All are as fast as those of NPU 0, which are the fastest it has to a switch of its line; None
    if it has none.
    """
    npus, size = topology.npus, topology.dimensions[dimension]
    stride = math.prod(topology.dimensions[:dimension])
    best = _fastest_ports(topology, index, np.arange(size) * stride)
    if best is None:
        return None
    like_up, like_down = (_like(topology, link) for link in best)
    npu = np.arange(npus)
    first = npu - npu // stride % size * stride  # of the line
    up, down = np.full((2, npus), -1)
    out = np.flatnonzero((topology.src < npus) & (topology.dst >= npus) & like_up)
    out = out[np.argsort(topology.src[out], kind="stable")]
    turn = np.arange(len(out)) - np.searchsorted(topology.src[out], topology.src[out])
    for number in range(int(turn.max(initial=-1)) + 1):
        # Lines that have no switch yet try the next one of their first NPU.
        choice = np.full(npus, -1, dtype=np.int64)
        choice[topology.src[out[turn == number]]] = topology.dst[out[turn == number]]
        at = np.flatnonzero((up < 0) & (choice[first] >= 0))
        there, back = index.between(at, choice[first[at]]), index.between(choice[first[at]], at)
        fits = (there >= 0) & (back >= 0) & like_up[there] & like_down[back]
        whole = np.bincount(first[at], fits, npus)[first[at]] == size
        up[at[whole]], down[at[whole]] = there[whole], back[whole]
    for missing in np.flatnonzero(up < 0)[:1].tolist():
        raise NotAlikeError(
            f"the line of NPU {missing} has no switch with links like those of NPU 0's, "
            f"{topology.link_name(best[0])} and {topology.link_name(best[1])}"
        )
    return [up.astype(np.int32), down.astype(np.int32)]


def _fastest_ports(topology: Topology, index: _Index, line: Numbers) -> tuple[int, int] | None:
    """NPU 0's links to and from the switch of all of its line that is reached fastest."""
    found = []
    mine = np.flatnonzero((topology.src == 0) & (topology.dst >= topology.npus))
    for switch in dict.fromkeys(topology.dst[mine].tolist()):
        at = np.full(len(line), switch)
        up, down = index.between(line, at), index.between(at, line)
        if (up >= 0).all() and (down >= 0).all():
            found.append((int(up[0]), int(down[0])))
    speeds = topology.bandwidth, -topology.latency
    slower = [[min(int(speed[link]) for link in pair) for speed in speeds] for pair in found]
    return found[slower.index(max(slower))] if found else None


def _like(topology: Topology, link: int) -> NDArray[np.bool_]:
    """Links as fast as one."""
    like: NDArray[np.bool_] = topology.bandwidth == topology.bandwidth[link]
    like &= topology.latency == topology.latency[link]
    return like


class _Index:
    """Finds links by their ends."""

    def __init__(self, topology: Topology) -> None:
        self._nodes = topology.nodes
        keys = topology.src * np.int64(topology.nodes) + topology.dst
        self._order = np.argsort(keys)
        self._keys = keys[self._order]

    def between(self, src: NDArray[Any], dst: NDArray[Any]) -> Numbers:
        """The link from each of `src` to each of `dst`; -1 where there is none, or several."""
        wanted = src * np.int64(self._nodes) + dst
        place = np.searchsorted(self._keys, wanted)
        several = np.searchsorted(self._keys, wanted, side="right") - place
        return np.where(several == 1, self._order[np.minimum(place, len(self._keys) - 1)], -1)
