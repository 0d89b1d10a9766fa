"""Ways out of boxes: the links that leave them, the NPUs nearest to each, and ways between them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.collective import Chunks
from weft.cost import CostModel
from weft.topology.changes import COLUMNS
from weft.topology.levels import nodes_of_parts
from weft.topology.model import Topology

Numbers = NDArray[np.int64]
Links = tuple[int, ...]
_MOST_WAYS = 64  # between two switches


@dataclass(frozen=True, eq=False)
class Exits:
    """The links that leave boxes for switches that are no box's, each with the link back.

    Attributes
    ----------
    box, rate, port
        Of each exit, box by box: its box, B/s, and the switch outside.
    npus
        The NPUs of the box that are nearest to it.
    out
        By exit and one of these NPUs: the links from there to the port.
    inside
        The box of every node, -1 for those in none.
    """

    topology: Topology
    inside: Numbers
    box: Numbers
    rate: NDArray[np.float64]
    port: Numbers
    npus: tuple[Numbers, ...]
    out: dict[tuple[int, int], Links]
    _ways: dict[tuple[int, int], NDArray[np.int64]] = field(default_factory=dict)

    @classmethod
    def of(cls, topology: Topology, part: NDArray[np.integer]) -> Exits | None:
        """Of boxes, a number for every NPU; None if some box has no exit, or some link no way back.

        Boxes that are joined by links of their own have none.
        """
        back = topology.reverse_links
        if back is None:
            return None
        inside = nodes_of_parts(topology, part)
        src, dst = topology.src.astype(np.int64), topology.dst.astype(np.int64)
        leaving = np.flatnonzero((inside[src] >= 0) & (inside[src] != inside[dst]))
        leaving = leaving[np.argsort(inside[src[leaving]], kind="stable")]
        if (inside[dst[leaving]] >= 0).any():
            return None
        box = inside[src[leaving]]
        npus: list[Numbers] = []
        out: dict[tuple[int, int], Links] = {}
        if len(np.unique(box)) <= int(part.max()):
            return None
        into: dict[int, list[int]] = defaultdict(list)
        for link in np.flatnonzero((inside[src] >= 0) & (inside[src] == inside[dst])).tolist():
            into[int(dst[link])].append(link)
        for number, link in enumerate(leaving.tolist()):
            ways = _nearest(topology, into, int(src[link]))
            npus.append(np.array(sorted(ways), dtype=np.int64))
            out |= {(number, npu): (*way, link) for npu, way in ways.items()}
        rate = np.minimum(topology.bandwidth[leaving], topology.bandwidth[back[leaving]])
        return cls(topology, inside, box, rate.astype(np.float64), dst[leaving], tuple(npus), out)

    def __len__(self) -> int:
        return len(self.box)

    @property
    def shared(self) -> bool:
        """Whether some begin at a switch, such as that of PCIe, rather than at an NPU."""
        return any(len(way) > 1 for way in self.out.values())

    def back(self, links: Links) -> Links:
        """The same way the other way round."""
        reverse = self.topology.reverse_links
        assert reverse is not None
        return tuple(int(reverse[link]) for link in reversed(links))

    def ways(self, a: int, b: int) -> NDArray[np.int64]:
        """The shortest ways from one port to another, a row of links each."""
        if (a, b) not in self._ways:
            found: list[Links] = []
            near = self._distances(a)
            waiting: list[tuple[int, Links]] = [(b, ())] if b in near else []
            while waiting and len(found) < _MOST_WAYS:
                node, links = waiting.pop()
                if node == a:
                    found.append(links)
                    continue
                for link in self._between[1][node]:
                    before = int(self.topology.src[link])
                    if near.get(before, -1) == near[node] - 1:
                        waiting.append((before, (link, *links)))
            self._ways[a, b] = np.array(found, dtype=np.int64).reshape(len(found), -1)
        return self._ways[a, b]

    def joined(self) -> bool:
        """Whether there is a way between any two ports."""
        ports = np.unique(self.port).tolist()
        return all(port in self._distances(ports[0]) for port in ports)

    @cached_property
    def _near(self) -> dict[int, dict[int, int]]:
        return {}

    def _distances(self, port: int) -> dict[int, int]:
        """How many links each switch that is no box's is away from a port."""
        if port not in self._near:
            near, frontier = {port: 0}, [port]
            while frontier:
                links = (link for node in frontier for link in self._between[0][node])
                ends = dict.fromkeys(int(self.topology.dst[link]) for link in links)
                away = near[frontier[0]] + 1
                frontier = [node for node in ends if node not in near]
                near |= dict.fromkeys(frontier, away)
            self._near[port] = near
        return self._near[port]

    @cached_property
    def _between(self) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """Links between switches that are no box's, by where they begin and where they end."""
        begin: dict[int, list[int]] = defaultdict(list)
        end: dict[int, list[int]] = defaultdict(list)
        src, dst = self.topology.src, self.topology.dst
        for link in np.flatnonzero((self.inside[src] < 0) & (self.inside[dst] < 0)).tolist():
            begin[int(src[link])].append(link)
            end[int(dst[link])].append(link)
        return begin, end


def _nearest(topology: Topology, into: dict[int, list[int]], node: int) -> dict[int, Links]:
    """The NPUs of a box that are fewest links from one of its nodes, with the way of each."""
    ways: dict[int, Links] = {node: ()}
    frontier = [node]
    while frontier:
        there = {one: ways[one] for one in frontier if one < topology.npus}
        if there:
            return there
        fresh: dict[int, Links] = {}
        for one in frontier:
            for link in into[one]:
                before = int(topology.src[link])
                if before not in ways:
                    fresh.setdefault(before, (link, *ways[one]))
        ways |= fresh
        frontier = list(fresh)
    return {}


def ways_inside(
    exits: Exits, chunks: Chunks, part: NDArray[np.integer], *, apart: bool = True
) -> dict[tuple[int, int], Links] | None:
    """The way from every NPU of a box to every other; None if some is not one hop away.

    With `apart` they keep off the links of ways out, where there are others.
    """
    topology = exits.topology
    kept = np.ones(topology.links, dtype=np.bool_)
    if apart:
        for way in exits.out.values():
            kept[[*way, *exits.back(way)]] = False
        found = _ways_over(topology, kept, chunks, part)
        if found is not None:
            return found
    return _ways_over(topology, np.ones_like(kept), chunks, part)


def _ways_over(
    topology: Topology, kept: NDArray[np.bool_], chunks: Chunks, part: NDArray[np.integer]
) -> dict[tuple[int, int], Links] | None:
    """The same over some of the links."""
    columns = {name: getattr(topology, name)[kept] for name in COLUMNS}
    network = replace(topology, **columns, translates=False, whole=None)
    members = [np.flatnonzero(part == box) for box in range(int(part.max()) + 1)]
    pairs = np.concatenate([_pairs(npus) for npus in members])
    src, dst = (np.ascontiguousarray(ends, dtype=np.int32) for ends in pairs.T)
    reach = np.full(len(pairs), chunks.reach[0], dtype=np.int32)
    found = _core.forward(network.core, CostModel().core, chunks.core, src, dst, reach)
    if found.lost >= 0 or len(found.src) > len(pairs):
        return None
    begins, links = found.route_offsets.tolist(), np.flatnonzero(kept)[found.route_links].tolist()
    return {
        (a, b): tuple(links[begins[route] : begins[route + 1]])
        for (a, b), route in zip(pairs.tolist(), found.route.tolist(), strict=True)
    }


def _pairs(npus: Numbers) -> Numbers:
    a, b = np.meshgrid(npus, npus, indexing="ij")
    return np.stack([a[a != b], b[a != b]], axis=1)
