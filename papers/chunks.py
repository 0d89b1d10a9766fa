"""How well the number of chunks is chosen: against a sweep over all of them, and in what time."""

from __future__ import annotations

import time
from dataclasses import replace

from papers.networks import irregular_mesh, torn_mesh
from papers.report import Extent, Row, Setup, one_table
from weft.algorithm import Algorithm
from weft.collective import Collective
from weft.collective.groups import parse_group
from weft.planners import produce
from weft.topology import Topology, load_topology
from weft.units import format_size, parse_size

_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_SIZES = ("1KiB", "64KiB", "1MiB", "32MiB", "1GiB")
# A count is swept up to so many transfers, relays included.
_MOST_ROWS = 1 << 20

_NETWORKS = {
    "irregular": lambda: irregular_mesh(6, 6, 1),
    "torn": lambda: torn_mesh(6, 6, 1),
}

# Network, collective, which of the sizes, group.
_Case = tuple[str, str, tuple[int, ...], str]
_SHORT: tuple[_Case, ...] = (
    ("mesh:4x4", "all-gather", (0, 2, 4), ""),
    ("mesh:4x4", "all-reduce", (0, 2, 4), ""),
    ("torus:4x4", "all-reduce", (0, 1, 3), ""),
    ("torus:4x4", "all-to-all", (0, 2, 4), ""),
    ("ring:8", "reduce-scatter", (0, 2, 4), ""),
    ("ring:8", "broadcast", (0, 2, 3), ""),
    ("switch:8", "all-reduce", (0, 2, 4), ""),
    ("switch:8", "all-to-all", (1, 3), ""),
    ("dgx1", "all-gather", (0, 2, 4), ""),
    ("dgx1", "reduce", (1, 2, 4), ""),
    ("irregular", "all-reduce", (1, 3), ""),
    ("mesh:6x6", "all-gather", (2, 3), "0-30:6"),
    ("ndv2:2", "all-reduce", (0, 3), ""),
    ("h100:2,plain", "all-reduce", (0, 3), ""),
)
_USUAL: tuple[_Case, ...] = (
    ("mesh:8x8", "all-reduce", (0, 2, 4), ""),
    ("torus:4x4x4", "all-gather", (1, 3), ""),
    ("torus:4x4x4", "reduce-scatter", (1, 3), ""),
    ("irregular", "broadcast", (0, 2, 4), ""),
    ("torn", "all-to-all", (1, 3), ""),
    ("ndv2:2", "all-to-all", (1, 3), ""),
    ("ndv2:2", "all-gather", (0, 2, 4), ""),
    ("h100:2,plain", "broadcast", (0, 3), ""),
    ("h100:2,plain", "reduce-scatter", (1, 4), ""),
    ("h100:4,plain", "all-to-all", (1, 3), ""),
    ("dragonfly:4x5", "all-reduce", (0, 2, 3), ""),
    ("dragonfly:8x9", "all-reduce", (0, 3), ""),
    ("leaf-spine:4x4x2", "all-gather", (0, 3), ""),
    ("torus:8x8", "all-to-all", (1, 3), ""),
)


def chosen(extent: Extent) -> Setup:
    """The chosen number beside the best of a sweep."""
    title = "Time with the chosen number over the best of a sweep; CPU seconds, and over one run's"
    columns = ("network", "collective", "size", "chosen", "us", "best", "best us", "ratio")
    cases = [
        (name, kind, _SIZES[number], group)
        for name, kind, sizes, group in _SHORT + (_USUAL if extent >= Extent.USUAL else ())
        for number in sizes
    ]
    return one_table("chunks", title, (*columns, "CPU s", "runs"), cases, _row)


def _row(case: tuple[str, str, str, str]) -> Row:
    network, kind, size, group = case
    topology = _NETWORKS[network]() if network in _NETWORKS else load_topology(network)
    members = parse_group(group, topology.npus) if group else topology.members.tolist()
    demand = Collective.of(kind, members, parse_size(size))
    auto, seconds = _timed(topology, demand, None)
    swept = {count: _timed(topology, demand, count) for count in _counts(topology, demand)}
    best = min(swept, key=lambda count: swept[count][0].time)
    chunks = auto.demands[0].chunks_per_share
    single = swept[chunks][1] if chunks in swept else _timed(topology, demand, chunks)[1]
    name = f"{demand.kind} ({demand.ranks})" if demand.ranks < topology.npus else demand.kind
    return (
        topology.name,
        name,
        format_size(demand.size),
        f"{chunks} {auto.provenance['method']}",
        auto.time / 1e6,
        f"{best} {swept[best][0].provenance['method']}",
        swept[best][0].time / 1e6,
        auto.time / swept[best][0].time,
        seconds,
        seconds / max(single, 1e-3),
    )


def _counts(topology: Topology, demand: Collective) -> list[int]:
    """The numbers of chunks to sweep: chunks of some bytes, and not too many."""
    parts = demand.part_count
    by_bytes = demand.size // (demand.pattern.shares(demand.ranks) * demand.alignment)
    relays = 4 if demand.pattern.own_buffers else topology.npus
    most = max(1, min(by_bytes, _MOST_ROWS // (parts * relays)))
    return [count for count in _COUNTS if count <= most]


def _timed(topology: Topology, demand: Collective, count: int | None) -> tuple[Algorithm, float]:
    began = time.process_time()
    cut = replace(demand, chunks_per_share=count or 1)
    made = produce(topology, [cut], choose_chunks=[count is None])
    return made, time.process_time() - began


TABLES = {"chunks": chosen}
