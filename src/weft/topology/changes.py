"""Networks after failures, with slower links or with more: see the methods of `Topology`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.errors import TopologyError
from weft.topology.checks import check_network
from weft.topology.links import (
    LOST,
    Links,
    Pair,
    connection_names,
    find_links,
    node_name,
    node_number,
    switch_number,
)
from weft.units import MAX_BANDWIDTH, format_bandwidth, format_share, format_time

if TYPE_CHECKING:
    from weft.topology.model import Topology

COLUMNS = ("src", "dst", "bandwidth", "latency")


def without_parts(
    topology: Topology, links: Links, npus: Iterable[int], switches: Iterable[int | str]
) -> Topology:
    """See `Topology.without`."""
    pairs, failed = find_links(topology, links, "remove")
    gone = frozenset(int(npu) for npu in npus)
    for npu in sorted(gone):
        if not 0 <= npu < topology.npus:
            raise TopologyError(
                f"{topology.name} has no NPU {npu} to remove; NPUs are 0 to {topology.npus - 1}"
            )
    broken = sorted({switch_number(topology, switch) for switch in switches})
    lost = np.zeros(topology.nodes, dtype=bool)
    lost[[*gone, *broken]] = True
    keep = ~(failed | lost[topology.src] | lost[topology.dst])
    if len(gone | topology.removed) == topology.npus:
        raise TopologyError(f"{topology.name}: no NPU is left")
    names = (
        *connection_names(pairs, topology.npus),
        *(f"NPU {npu}" for npu in sorted(gone)),
        *(f"switch {node_name(node, topology.npus)}" for node in broken),
    )
    return replace(
        topology,
        **{name: getattr(topology, name)[keep] for name in COLUMNS},
        removed=topology.removed | gone,
        translates=topology.translates and bool(keep.all()) and not gone,
        whole=topology if topology.translates else topology.whole,
        changes=(*topology.changes, *(f"{LOST}{name}" for name in names)),
    )


def with_scaled(topology: Topology, links: Links, share: Fraction) -> Topology:
    """See `Topology.scaled`."""
    pairs, hit = find_links(topology, links, "scale")
    rates = topology.bandwidth.copy()
    for rate in np.unique(rates[hit]).tolist():
        scaled = round(rate * share)
        if not 1 <= scaled <= MAX_BANDWIDTH:
            what = f"{format_share(share)} of {format_bandwidth(rate)}"
            raise TopologyError(f"{topology.name}: {what} is out of range")
        rates[hit & (topology.bandwidth == rate)] = scaled
    return _changed(topology, pairs, format_share(share), bandwidth=rates)


def with_joined(
    topology: Topology, src: int | str, dst: int | str, speed: Mapping[str, int], *, both: bool
) -> Topology:
    """See `Topology.with_link`."""
    tail, head = (node_number(topology, end, "the link") for end in (src, dst))
    for npu in sorted(topology.removed & {tail, head}):
        raise TopologyError(f"{topology.name}: NPU {npu} was removed; no link can join it")
    pairs = [(tail, head), (head, tail)] if both else [(tail, head)]
    hit = [(topology.src == a) & (topology.dst == b) for a, b in pairs]
    new = [pair for pair, links in zip(pairs, hit, strict=True) if not links.any()]
    if new and len(speed) < 2:
        names = ", ".join(connection_names(new, topology.npus))
        raise TopologyError(
            f"{topology.name} has no link {names} yet; give it a bandwidth and a latency"
        )
    ends = {"src": [a for a, _ in new], "dst": [b for _, b in new]}
    columns = {}
    for what in COLUMNS:
        column = getattr(topology, what).copy()
        if what in speed:
            column[np.any(hit, axis=0)] = speed[what]
        more = ends.get(what, [speed.get(what)] * len(new))
        columns[what] = np.append(column, np.array(more, dtype=column.dtype))
    shown = {"bandwidth": format_bandwidth, "latency": format_time}
    words = " and ".join(shown[what](value) for what, value in speed.items())
    return _changed(topology, pairs, words, **columns)


def _changed(topology: Topology, pairs: Collection[Pair], speed: str, **columns: Any) -> Topology:
    """The network with other columns: no longer, or no part of, one that translates."""
    if all(np.array_equal(getattr(topology, name), column) for name, column in columns.items()):
        return topology
    words = (f"{name} at {speed}" for name in connection_names(pairs, topology.npus))
    changes = (*topology.changes, *words)
    network = replace(topology, **columns, translates=False, whole=None, changes=changes)
    check_network(network)
    return network
