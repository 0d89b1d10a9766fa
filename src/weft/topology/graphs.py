"""Graphs of networkx, to networks and back. See `Topology.from_networkx` and `to_networkx`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.errors import InputError, TopologyError
from weft.quoting import brief, quoted
from weft.topology.links import Quantity, quantities
from weft.topology.model import Topology
from weft.units import parse_buffer

if TYPE_CHECKING:
    import networkx

KINDS = ("npu", "switch")


def topology_of_graph(
    graph: networkx.Graph[Any],
    name: str | None,
    bandwidth: Quantity | None,
    latency: Quantity | None,
) -> Topology:
    """The network that a graph describes."""
    title = str(name or graph.graph.get("name") or "graph")
    npus, switches = _nodes(graph, title)
    number = {node: i for i, node in enumerate([*npus, *switches])}
    rows: list[tuple[int, int, int, int]] = []
    for tail, head, says in _edges(graph):
        where = f"{title}: edge {brief(tail)} to {brief(head)}"
        rate = _speed(where, says, "bandwidth", "50GB/s", bandwidth)
        delay = _speed(where, says, "latency", "0.5us", latency)
        ends = [(tail, head)] if graph.is_directed() else [(tail, head), (head, tail)]
        rows += [(number[a], number[b], rate, delay) for a, b in ends]
    src, dst, rates, delays = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    network = Topology.from_links(
        title,
        len(npus),
        src,
        dst,
        rates,
        delays,
        switches=len(switches),
        dimensions=graph.graph.get("dimensions", ()),
    )
    network = _with_nodes(network, [graph.nodes[node] for node in number])
    changes = tuple(graph.graph.get("changes", ()))
    return replace(network, changes=changes) if changes else network


def _nodes(graph: networkx.Graph[Any], title: str) -> tuple[list[Hashable], list[Hashable]]:
    """NPUs and switches in order of their numbers."""
    kinds: dict[str, list[Hashable]] = {kind: [] for kind in KINDS}
    for node, says in graph.nodes(data=True):
        kind = says.get("kind", "npu")
        if kind not in kinds:
            raise TopologyError(
                f"{title}: node {brief(node)} is of kind {quoted(kind)}; expected npu or switch"
            )
        kinds[kind].append(node)
    npus = kinds["npu"]
    if set(npus) == set(range(len(npus))):
        npus = list(range(len(npus)))
    return npus, kinds["switch"]


def _edges(graph: networkx.Graph[Any]) -> list[tuple[Hashable, Hashable, Mapping[str, Any]]]:
    """In the graph's order; in order of their keys where these number all edges."""
    if not graph.is_multigraph():
        return list(graph.edges(data=True))
    edges = list(graph.edges(keys=True, data=True))
    if {key for _, _, key, _ in edges} == set(range(len(edges))):
        edges.sort(key=lambda edge: edge[2])
    return [(tail, head, says) for tail, head, _, says in edges]


def _speed(
    where: str, says: Mapping[str, Any], what: str, example: str, default: Quantity | None
) -> int:
    value: Quantity | None = says.get(what, default)
    if value is None:
        raise TopologyError(f"{where} has no {what}; give it one such as {example}")
    return int(quantities(where, what, value))


def _with_nodes(network: Topology, nodes: list[Mapping[str, Any]]) -> Topology:
    """The network with what the attributes of its nodes, in order, say."""
    switches = range(network.npus, network.nodes)
    buffers = {}
    for switch in switches:
        try:
            if "buffer" in nodes[switch]:
                buffers[switch] = parse_buffer(nodes[switch]["buffer"])
        except InputError as error:
            raise TopologyError(f"{network.name}: {network.node_name(switch)}: {error}") from None
    copying, adding = (
        [switch for switch in switches if nodes[switch].get(what)]
        for what in ("multicast", "adding")
    )
    gone = [npu for npu in range(network.npus) if nodes[npu].get("removed")]
    if buffers or copying or adding:
        network = network.with_switches(buffers=buffers, copying=copying, adding=adding)
    return network.without(npus=gone) if gone else network


def graph_of_topology(topology: Topology) -> networkx.MultiDiGraph[Any]:
    """The graph that describes a network."""
    import networkx

    graph = networkx.MultiDiGraph(
        name=topology.name, dimensions=topology.dimensions, changes=topology.changes
    )
    names: list[int | str] = [*range(topology.npus)]
    names += [topology.node_name(switch) for switch in range(topology.npus, topology.nodes)]
    for node, name in enumerate(names):
        graph.add_node(name, kind=KINDS[node >= topology.npus])
    for npu in topology.removed:
        graph.nodes[npu]["removed"] = True
    for switch, size in topology.buffers.items():
        graph.nodes[names[switch]]["buffer"] = size
    for switch in topology.copying:
        graph.nodes[names[switch]]["multicast"] = True
    for switch in topology.adding:
        graph.nodes[names[switch]]["adding"] = True
    rows = zip(*(column.tolist() for column in topology.columns), strict=True)
    for link, (src, dst, rate, delay) in enumerate(rows):
        graph.add_edge(names[src], names[dst], key=link, bandwidth=rate, latency=delay)
    return graph
