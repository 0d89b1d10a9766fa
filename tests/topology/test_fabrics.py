"""Fat trees, Clos networks, dragonflies with routers and HyperX: golden facts."""

from __future__ import annotations

import numpy as np
import pytest

from tests.topology.helpers import neighbours, pairs
from weft.errors import InputError, TopologyError
from weft.topology import Topology, parse_topology
from weft.topology.summary import summarize


@pytest.mark.parametrize(
    ("spec", "grid", "switches", "links", "diameter"),
    [
        ("fat-tree:2", (1, 1, 2), 2 + 2 + 1, 12, 6),
        ("fat-tree:4", (2, 2, 4), 8 + 8 + 4, 96, 6),
        ("fat-tree:8", (4, 4, 8), 32 + 32 + 16, 768, 6),
        ("clos:1x1x1", (1, 1, 1), 3, 6, 0),
        ("clos:3x1x1", (3, 1, 1), 1 + 3 + 3, 6 + 6 + 6, 2),
        ("clos:4x3x2", (4, 3, 2), 6 + 8 + 12, 48 + 48 + 48, 6),
        ("clos:4x3x1", (4, 3, 1), 3 + 4 + 12, 24 + 24 + 24, 4),
        ("clos:4x3x2,up=2x5", (4, 3, 2), 6 + 4 + 10, 48 + 24 + 40, 6),
        ("Clos:4x3x2 , UP=2x5, multicast", (4, 3, 2), 6 + 4 + 10, 48 + 24 + 40, 6),
        ("clos:4x2x2,oversubscription=2", (4, 2, 2), 4 + 4 + 4, 32 + 16 + 16, 6),
        ("clos:4x2x2,oversubscription=4x2", (4, 2, 2), 4 + 2 + 1, 32 + 8 + 4, 6),
        ("dragonfly:p=2,a=4,h=2", (2, 4, 9), 36, 144 + 108 + 72, 5),
        ("dragonfly:p=2,a=4,h=2,g=4", (2, 4, 4), 16, 64 + 48 + 24, 5),
        ("dragonfly:p=2,a=4,h=2,g=1", (2, 4, 1), 4, 16 + 12, 3),
        ("dragonfly:h=1,p=1,a=1", (1, 1, 2), 2, 4 + 2, 3),
        ("hyperx:3x4,p=2", (2, 3, 4), 12, 48 + 24 + 36, 4),
        ("hyperx:5,p=1", (1, 5), 5, 10 + 20, 3),
        ("hyperx:1,p=1", (1, 1), 1, 2, 0),
        ("hyperx:2x2x2,p=3", (3, 2, 2, 2), 8, 48 + 24, 5),
    ],
)
def test_counts(spec: str, grid: tuple[int, ...], switches: int, links: int, diameter: int) -> None:
    topology = parse_topology(spec)
    assert topology.dimensions == grid
    assert (topology.npus, topology.switches, topology.links) == (np.prod(grid), switches, links)
    assert sorted(pairs(topology)) == sorted((b, a) for a, b in pairs(topology))
    assert summarize(topology).diameter == diameter
    assert topology.name == spec


def test_tiers_of_a_clos() -> None:
    topology = parse_topology("clos:2x3x2,up=2x2", bandwidth=[1, 2, 3], latency=[4, 5, 6])
    leaf, spine, core = 12, 18, 22
    assert neighbours(topology, 7) == {leaf + 3}
    assert neighbours(topology, leaf + 3) == {6, 7, spine + 2, spine + 3}
    assert neighbours(topology, spine + 2) == {leaf + 3, leaf + 4, leaf + 5, core, core + 1}
    assert neighbours(topology, core + 2) == {spine + 1, spine + 3}
    ends = np.maximum(topology.src, topology.dst)
    tier = np.searchsorted([leaf, spine, core], ends, side="right") - 1
    assert np.array_equal(topology.bandwidth, tier + 1)
    assert np.array_equal(topology.latency, tier + 4)


def test_a_fat_tree_is_a_clos_network() -> None:
    tree, clos = parse_topology("fat-tree:6"), parse_topology("clos:3x3x6")
    assert pairs(tree) == pairs(clos)
    ports = np.bincount(tree.src, minlength=tree.nodes)[tree.npus :]
    assert set(ports) == {6}


def test_a_clos_of_one_pod_has_the_leaves_and_spines_of_leaf_spine() -> None:
    clos, fabric = parse_topology("clos:4x3x1,up=2x1"), parse_topology("leaf-spine:4x3x2")
    assert pairs(fabric) == pairs(clos)[: fabric.links]


@pytest.mark.parametrize(
    ("p", "a", "h", "g"), [(2, 4, 2, 9), (1, 3, 3, 10), (2, 4, 2, 5), (1, 4, 2, 4)]
)
def test_global_links_of_routers(p: int, a: int, h: int, g: int) -> None:
    topology = parse_topology(f"dragonfly:p={p},a={a},h={h},g={g}", bandwidth=[1, 2, 3])
    npus, router = topology.npus, topology.npus
    far = topology.bandwidth == 3
    src, dst = topology.src[far] - router, topology.dst[far] - router
    between = np.zeros((g, g), dtype=int)
    np.add.at(between, (src // a, dst // a), 1)
    rounds = a * h // (g - 1)
    assert np.array_equal(between, rounds * (1 - np.eye(g, dtype=int)))
    each = np.bincount(src, minlength=a * g)
    assert each.max() <= h
    assert each.max() - each.min() <= 1
    local = topology.bandwidth == 2
    assert set(np.bincount(topology.src[local] - router)) == {a - 1}
    assert neighbours(topology, 0) == {npus}
    assert neighbours(topology, npus - 1) == {npus + a * g - 1}


def test_hyperx() -> None:
    topology = parse_topology("hyperx:3x2,p=2", bandwidth=[9, 7, 5])
    assert neighbours(topology, 5) == {12 + 2}
    assert neighbours(topology, 12 + 2) == {4, 5, 12, 13, 17}
    rates = dict(zip(pairs(topology), topology.bandwidth.tolist(), strict=True))
    assert (rates[5, 14], rates[14, 12], rates[17, 14]) == (9, 7, 5)


def test_a_hyperx_of_routers_is_a_product_of_full_meshes() -> None:
    routers, mesh = parse_topology("hyperx:3x4,p=1"), parse_topology("fc:3*fc:4")
    between = [(a - 12, b - 12) for a, b in pairs(routers) if min(a, b) >= 12]
    assert between == pairs(mesh)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("fat-tree:3", "half lead up and half down, but 3 is odd; write it like fat-tree:8"),
        ("fat-tree:0", "size '0' is not a whole number from 1; write it like fat-tree:8"),
        ("fat-tree:4x4", "has 2 sizes, not 1"),
        ("fat-tree:400", "more than 4000000 NPUs"),
        ("clos:4x4", "has 2 sizes, not 3; write it like clos:8x4x4"),
        ("clos:4x4x4,up=2", "up is written like up=4x4, not '2'"),
        ("clos:4x4x4,up=0x2", "size '0x2' is not a whole number from 1; write it like up=4x4"),
        ("clos:4x4x4,up=2x2,oversubscription=2", "give up or oversubscription, not both"),
        ("clos:4x4x4,up=2x2,up=2x2", "'up=2x2' does not belong there"),
        ("clos:5x4x4,oversubscription=2", "5 links down from a leaf are no multiple"),
        ("clos:4x5x4,oversubscription=2x2", "5 links down from a spine are no multiple"),
        (
            "clos:4x4x4,ups=2x2",
            "write multicast, adding, plain or buffer=64KiB, or what the network takes: up=",
        ),
        ("clos:9999x9999x9999", "more than 4000000 NPUs"),
        ("clos:4x4x4,up=9999999999x1", "links; Weft builds at most 64000000"),
        ("clos:4x4x4,up=2x2*ring:4", "size '2x2*ring:4' is not a whole number"),
        ("clos:2x2x2*ring:4", "clos cannot be multiplied"),
        ("dragonfly:p=4,a=8", "h is not given; write it like dragonfly:p=4,a=8,h=4"),
        ("dragonfly:4x9,p=4", "give two sizes, or p, a, h and perhaps g, not both"),
        ("dragonfly:p=4,a=8,h=4,g=34", "32 other groups; g is at most 33"),
        ("dragonfly:p=4,a=8,h=4x4", "h is written like h=4, not '4x4'"),
        ("dragonfly:p=99,a=999,h=999", "more than 4000000 NPUs"),
        ("hyperx:4x4", "p is not given; write it like hyperx:4x4,p=4"),
        ("hyperx:p=4", "size '' is not a whole number from 1; write it like hyperx:4x4,p=4"),
        ("hyperx:99999,p=1", "links; Weft builds at most 64000000"),
        ("hyperx:4x4,p=99999999999999", "more than 4000000 NPUs"),
        ("hyperx:" + "x".join("1" * 64) + ",p=1", "65 dimensions; expected 64 at most"),
        ("nvl72:x", "'x' is not a number of boxes"),
    ],
)
def test_wrong_specs(spec: str, message: str) -> None:
    with pytest.raises((InputError, TopologyError)) as caught:
        parse_topology(spec)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "levels"),
    [("fat-tree:4", 3), ("clos:2x2x2", 3), ("dragonfly:p=1,a=2,h=1", 3), ("hyperx:2x2x2,p=1", 4)],
)
def test_each_level_has_its_speed(spec: str, levels: int) -> None:
    topology = parse_topology(spec, bandwidth=list(range(1, levels + 1)))
    assert set(topology.bandwidth) == set(range(1, levels + 1))
    with pytest.raises(InputError, match=f"has {levels} dimensions but {levels + 1} bandwidth"):
        parse_topology(spec, bandwidth=list(range(1, levels + 2)))


def test_a_million_npus() -> None:
    topology: Topology = parse_topology("clos:64x128x128,oversubscription=2")
    assert (topology.npus, topology.switches) == (1 << 20, 128 * (128 + 32) + 32 * 128)
    assert topology.links == 2 * ((1 << 20) + 128 * 32 * (128 + 128))
