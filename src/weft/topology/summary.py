"""The facts about a network that tell what to expect of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.topology.cuts import bisection
from weft.topology.model import Topology
from weft.units import PS_PER_US

SEARCH_BUDGET = 400_000_000
"""Links to look at for the diameter before settling for a lower bound: about two seconds."""

_NAMES = {
    "name": "topology",
    "bisection": "bisection_Bps",
    "ingress_min": "least_ingress_Bps",
    "ingress_max": "most_ingress_Bps",
}
"""What figures are called in JSON, where they are not called what they are here."""


@dataclass(frozen=True)
class Speed:
    """A bandwidth (B/s) and a latency (ps), and how many links have both."""

    bandwidth: int
    latency: int
    links: int


@dataclass(frozen=True)
class TopologySummary:
    """What `summarize` finds.

    Attributes
    ----------
    changes
        What was changed in it, in words: see `Topology.changes`.
    npus, switches, links
        How many there are; NPUs that were removed do not count.
    removed
        NPUs that were removed, ascending.
    diameter
        Links on the longest shortest path between two NPUs, through other NPUs and switches;
        None if some NPU cannot reach another.
    diameter_exact
        False if only some NPUs were tried as sources: then `diameter` is a lower bound.
    unreachable
        Two NPUs (from, to) without a path, if any.
    bisection
        B/s across the thinnest cut found between two halves of the NPUs, one direction; None
        for a single NPU. See `weft.topology.cuts`.
    bisection_exact
        False if not every split was tried: then `bisection` is an upper bound.
    ingress_min, ingress_max
        B/s of all links into one NPU: the least and the most over the NPUs.
    speeds
        The distinct speeds of links, fastest first.
    buffers
        The distinct limits of switches' buffers (bytes), largest first, with how many switches
        have each.
    copying
        How many switches copy (multicast).
    adding
        How many switches add.
    """

    name: str
    changes: tuple[str, ...]
    npus: int
    switches: int
    links: int
    removed: tuple[int, ...]
    diameter: int | None
    diameter_exact: bool
    unreachable: tuple[int, int] | None
    bisection: int | None
    bisection_exact: bool
    ingress_min: int
    ingress_max: int
    speeds: tuple[Speed, ...]
    buffers: tuple[tuple[int, int], ...]
    copying: int
    adding: int

    def to_dict(self) -> dict[str, Any]:
        """The facts, for machines: what ``weft topo show --json`` prints."""
        named = {_NAMES.get(name, name): value for name, value in vars(self).items()}
        named["speeds"] = [
            {
                "bandwidth_Bps": speed.bandwidth,
                "latency_us": speed.latency / PS_PER_US,
                "links": speed.links,
            }
            for speed in self.speeds
        ]
        named["buffers"] = [{"buffer_bytes": size, "switches": n} for size, n in self.buffers]
        return {k: list(v) if isinstance(v, tuple) else v for k, v in named.items()}


def summarize(topology: Topology) -> TopologySummary:
    """Count, measure and cut a network."""
    lost = _unreachable(topology)
    diameter, searched_all = (None, True) if lost else _diameter(topology)
    cut = bisection(topology)
    ingress = np.bincount(topology.dst, topology.bandwidth, topology.nodes)[topology.members]
    return TopologySummary(
        name=topology.name,
        changes=topology.changes,
        npus=len(topology.members),
        switches=topology.switches,
        links=topology.links,
        removed=tuple(sorted(topology.removed)),
        diameter=diameter,
        diameter_exact=searched_all,
        unreachable=lost,
        bisection=cut.bandwidth if cut else None,
        bisection_exact=cut.exact if cut else True,
        ingress_min=int(ingress.min()),
        ingress_max=int(ingress.max()),
        speeds=_speeds(topology),
        buffers=tuple(sorted(Counter(topology.buffers.values()).items(), reverse=True)),
        copying=len(topology.copying),
        adding=len(topology.adding),
    )


def _unreachable(topology: Topology) -> tuple[int, int] | None:
    """Two NPUs without a path. One NPU that reaches all and is reached by all proves none."""
    members = topology.members
    hub = int(members[0])
    for reverse in (False, True):
        hops = _core.distances(topology.core, hub, reverse)[members]
        for npu in members[hops < 0][:1].tolist():
            return (npu, hub) if reverse else (hub, npu)
    return None


def _diameter(topology: Topology) -> tuple[int, bool]:
    """The longest shortest path, and whether every NPU was tried as its start."""
    members = topology.members
    farthest, tried = _core.longest_path(topology.core, _spread(members), members, SEARCH_BUDGET)
    return farthest, tried == len(members)


def _spread(members: NDArray[np.int32]) -> NDArray[np.int32]:
    """The NPUs in an order whose every prefix is spread evenly, both ends first."""
    golden = (np.arange(len(members)) * 0.6180339887498949) % 1.0
    golden[-1] = -1.0
    return np.ascontiguousarray(members[np.argsort(golden)])


def _speeds(topology: Topology) -> tuple[Speed, ...]:
    pairs = np.stack([-topology.bandwidth, topology.latency], axis=1)
    # Links of one speed come in long runs: compare the runs, not the links.
    starts = np.flatnonzero(np.any(np.diff(pairs, axis=0, prepend=-1) != 0, axis=1))
    lengths = np.diff(starts, append=topology.links)
    found, which = np.unique(pairs[starts], axis=0, return_inverse=True)
    counts = np.bincount(which.reshape(-1), lengths, len(found))
    return tuple(
        Speed(-int(bandwidth), int(latency), int(links))
        for (bandwidth, latency), links in zip(found, counts, strict=True)
    )
