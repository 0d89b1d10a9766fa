"""What a lab will be: cables, ways and routes, on random networks; nothing is made."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.strategies import irregular, networks
from weft.errors import InputError
from weft.lab import LabPlan, lab_plan, ways_of_algorithm
from weft.lab.environment import addresses
from weft.lab.ways import next_hops
from weft.lab.wires import host_address
from weft.topology import Topology, load_topology


def laid_out(topology: Topology) -> LabPlan:
    return lab_plan(topology.with_links(bandwidth=10**6), 1.0)


@given(networks().filter(lambda network: len(network.members) > 1))
@examples(40)
def test_each_link_has_one_direction_of_one_cable(network: Topology) -> None:
    plan = laid_out(network)
    found = []
    for wire in plan.wires:
        for node in wire.ends:
            link = wire.link_from(node)
            if link is not None:
                assert (network.src[link], network.dst[link]) == (node, wire.other(node))
                found.append(link)
    assert sorted(found) == list(range(network.links))
    ends = Counter(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    pairs = {(min(pair), max(pair)) for pair in ends}
    assert len(plan.wires) == sum(max(ends[a, b], ends[b, a]) for a, b in pairs)


@given(networks().filter(lambda network: len(network.members) > 1))
@examples(40)
def test_addresses_are_used_once_and_within_what_is_set_aside(network: Topology) -> None:
    plan = laid_out(network)
    wires = [wire.address(node) for wire in plan.wires for node in wire.ends]
    ways = {address for way in plan.ways for address in way.addresses} - set(wires)
    hosts = [host_address(npu) for npu in network.members.tolist()]
    every = [*wires, *ways, *hosts]
    assert len(set(every)) == len(every)
    assert all(address.startswith(("198.18.", "198.19.")) for address in every)


@given(networks().filter(lambda network: len(network.members) > 1))
@examples(40)
def test_ways_lead_along_links_and_a_link_between_npus_is_one(network: Topology) -> None:
    plan = laid_out(network)
    direct = Counter()
    for way in plan.ways:
        assert any(way.links)
        for (src, dst), steps in zip((way.ends, way.ends[::-1]), way.links, strict=True):
            if not steps:
                continue
            nodes = [int(network.src[steps[0]]), *network.dst[list(steps)].tolist()]
            assert (nodes[0], nodes[-1]) == (src, dst)
            assert nodes[:-1] == network.src[list(steps)].tolist()
            assert all(node >= network.npus for node in nodes[1:-1])
            direct.update(steps if len(steps) == 1 else ())
    npu_to_npu = np.flatnonzero(np.maximum(network.src, network.dst) < network.npus)
    assert sorted(direct.elements()) == npu_to_npu.tolist()


@given(networks().filter(lambda network: len(network.members) > 1))
@examples(40)
def test_hosts_are_reached_along_shortest_paths(network: Topology) -> None:
    graph = network.to_networkx().reverse()
    plan = laid_out(network)
    import networkx

    for npu in network.members.tolist():
        hops = next_hops(plan.wires, npu)
        distance = networkx.single_source_shortest_path_length(graph, npu)
        names = {node: network.node_name(node) for node in plan.nodes}
        for node, wire in hops.items():
            near = wire.other(node)
            assert wire.link_from(node) is not None
            there, nearer = (
                distance.get(node if node < network.npus else names[node], None),
                distance[near if near < network.npus else names[near]],
            )
            assert there == nearer + 1
        assert len(hops) == len(distance) - 1


@given(st.data())
@examples(15)
def test_what_is_planned_finds_its_ways(data: Any) -> None:
    """Routes of plans are among the ways, or are added to them."""
    network = data.draw(irregular(npus=5, switches=3)).plain.with_switches(buffers={})
    network = network.with_links(bandwidth=10**6, latency=1000)
    result = weft.synthesize(network, "all-gather", "8KiB", chunks=1)
    algorithm = result.algorithm
    taken = ways_of_algorithm(algorithm)
    ways = {steps for way in lab_plan(network, 1.0, taken).ways for steps in way.links}
    assert ways.issuperset(taken)
    if not network.switches:  # otherwise there may be more ways than are laid out unasked
        assert {steps for way in laid_out(network).ways for steps in way.links} == ways


def test_what_a_rank_is_told() -> None:
    plan = laid_out(load_topology("ring:4").without(npus=[1]))
    told = addresses(plan, 3)
    assert told["npu"] == 3
    assert told["hosts"] == ["198.19.0.1", "198.19.0.3", "198.19.0.4"]
    assert set(told["peers"]) == {"0", "1"}  # by rank: NPU 2 is rank 1
    (way,) = told["peers"]["1"]
    (mirror,) = addresses(plan, 2)["peers"]["2"]
    assert (way["local"], way["remote"]) == (mirror["remote"], mirror["local"])
    assert (way["links_there"], way["links_back"]) == (mirror["links_back"], mirror["links_there"])
    assert plan.topology.link_name(way["links_there"][0]) == "3 > 2"


def test_the_scale_is_that_which_the_machine_carries() -> None:
    network = load_topology("mesh:3x3")
    plan = lab_plan(network)
    assert plan.scale < 1
    assert not plan.doubts
    assert lab_plan(network, plan.scale * 10).doubts
    slow = network.with_links(bandwidth=10**6)
    assert lab_plan(slow).scale == 1
    assert lab_plan(network, 1e-3).rates.tolist() == [5e7] * network.links
    assert lab_plan(network, 1e-3).delays_us.tolist() == [500] * network.links


@pytest.mark.parametrize(
    ("spec", "scale", "words"),
    [
        ("ring:1", 1e-3, "nothing to emulate"),
        ("ring:4", 0.0, "--scale is 0"),
        ("ring:4", -1.0, "--scale is -1"),
        ("ring:4", float("nan"), "--scale is nan"),
        ("ring:4", float("inf"), "--scale is inf"),
        ("ring:4", 1e-9, "link 0 > 1 would carry"),
        ("ring:4", 1.0, "link 0 > 1 would carry"),
        ("torus:40x40", 1e-3, "a lab has at most 1024"),
    ],
)
def test_what_cannot_be_a_lab(spec: str, scale: float, words: str) -> None:
    with pytest.raises(InputError, match=words):
        lab_plan(load_topology(spec), scale)
