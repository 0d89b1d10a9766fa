"""Networks from networkx and back."""

from __future__ import annotations

from typing import Any

import networkx
import pytest
from hypothesis import given

from tests.topology.helpers import assert_same, pairs, topologies
from weft.errors import TopologyError
from weft.topology import Topology, load_topology


@given(topologies())
def test_round_trips(network: Topology) -> None:
    named = Topology.from_networkx(network.to_networkx(), name=network.name or None)
    assert_same(named, network if network.name else Topology.from_networkx(network.to_networkx()))
    assert named.changes == network.changes
    for column in ("src", "dst", "bandwidth", "latency"):
        assert getattr(named, column).tolist() == getattr(network, column).tolist()


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (networkx.Graph, [(0, 1), (1, 0), (1, 2), (2, 1)]),
        (networkx.DiGraph, [(0, 1), (1, 2)]),
        (networkx.MultiDiGraph, [(0, 1), (1, 2), (1, 2)]),
        (networkx.MultiGraph, [(0, 1), (1, 0), (1, 2), (2, 1), (1, 2), (2, 1)]),
    ],
)
def test_kinds_of_graphs(made: Any, expected: list[tuple[int, int]]) -> None:
    graph = made()
    graph.add_edge("a", "b", bandwidth="50GB/s", latency=7)
    graph.add_edge("b", "c", latency="1us")
    graph.add_edge("b", "c", latency="1us")
    network = Topology.from_networkx(graph, name="mine", bandwidth="25GB/s")
    assert pairs(network) == expected
    assert (network.name, network.npus, network.switches) == ("mine", 3, 0)
    assert set(network.bandwidth.tolist()) == {50 * 10**9, 25 * 10**9}
    assert set(network.latency.tolist()) == {7, 10**6}


def test_switches_come_after_npus_and_numbers_stay() -> None:
    graph = networkx.Graph(name="star")
    graph.add_node("hub", kind="switch", buffer="64KiB", multicast=True)
    graph.add_edges_from([(2, "hub"), (0, "hub"), (1, "hub")])
    network = Topology.from_networkx(graph, bandwidth="50GB/s", latency="0.5us")
    assert (network.name, network.npus, network.switches) == ("star", 3, 1)
    assert {pair for pair in pairs(network) if pair[0] < 3} == {(0, 3), (1, 3), (2, 3)}
    assert network.buffers == {3: 65536}
    assert network.copying == {3}
    graph.nodes["hub"]["buffer"] = "much"
    with pytest.raises(TopologyError, match="star: s0: buffer 'much'"):
        Topology.from_networkx(graph, bandwidth="50GB/s", latency="0.5us")


def test_failures_and_grids_are_kept() -> None:
    torn = load_topology("torus:3x3", without_links=["0-1"], without_npus=[4])
    again = Topology.from_networkx(torn.to_networkx())
    assert again.title == torn.title
    assert_same(again, torn)


def test_what_is_wrong_is_named() -> None:
    graph = networkx.path_graph(2)
    with pytest.raises(TopologyError, match="graph: edge 0 to 1 has no bandwidth; give it one"):
        Topology.from_networkx(graph)
    with pytest.raises(TopologyError, match="graph: edge 0 to 1: latency 'soon' is not a number"):
        Topology.from_networkx(graph, bandwidth=1, latency="soon")
    graph.nodes[1]["kind"] = "router"
    with pytest.raises(TopologyError, match="node 1 is of kind 'router'; expected npu or switch"):
        Topology.from_networkx(graph, bandwidth=1, latency=1)
    with pytest.raises(TopologyError, match="needs at least one NPU"):
        Topology.from_networkx(networkx.Graph())
