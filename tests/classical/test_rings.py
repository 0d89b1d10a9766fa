"""Rings: known times, links loaded alike, and rings on hops of their own."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given

from tests.examples import examples
from tests.strategies import GB_S, US, networks
from weft.classical import baseline
from weft.classical.cycles import join_cycles
from weft.classical.rings import find_rings
from weft.collective import Collective
from weft.topology import Topology, load_topology

KB_PUSH = US  # of a kilobyte over a link of 1 GB/s


def net(spec: str) -> Topology:
    """Links of 1 GB/s and 3 µs."""
    return load_topology(spec, bandwidth=[GB_S], latency=[3 * US])


@pytest.mark.parametrize(
    ("name", "kind", "ranks", "chunks", "hops"),
    [
        ("ring", "all-gather", 5, 1, 4),
        ("ring", "reduce-scatter", 5, 1, 4),
        ("ring", "all-reduce", 8, 1, 14),
        ("multi-ring", "all-reduce", 8, 1, 14),
        # One chunk goes both ways, half round each.
        ("bidirectional-ring", "all-gather", 7, 1, 3),
        ("bidirectional-ring", "reduce-scatter", 7, 1, 3),
        ("bidirectional-ring", "all-reduce", 7, 1, 6),
        # Two go all the way round, one each way.
        ("bidirectional-ring", "all-gather", 7, 2, 6),
        ("bidirectional-ring", "all-reduce", 6, 2, 10),
    ],
)
def test_times_on_rings(name: str, kind: str, ranks: int, chunks: int, hops: int) -> None:
    """Every hop takes α and the time of one chunk, and none waits for a link."""
    demand = Collective.of(kind, range(ranks), 1000 * ranks * chunks, chunks, None, 1)
    assert baseline(name, net(f"ring:{ranks}"), [demand]).time == hops * (3 * US + KB_PUSH)


def test_chain() -> None:
    """The last of four chunks leaves the root after three, and crosses four links."""
    demand = Collective.of("broadcast", [3, 4, 0, 1, 2], 4000, 4, 1, 1)
    algorithm = baseline("ring", net("ring:5"), [demand])
    assert algorithm.time == 3 * KB_PUSH + 4 * (3 * US + KB_PUSH)
    first = algorithm.transfers.chunk == 0
    assert algorithm.transfers.dst[first].tolist() == [2, 3, 4, 0]


@pytest.mark.parametrize(
    ("name", "loads"),
    [("ring", {(0, 1): 28, (1, 0): 0}), ("bidirectional-ring", {(0, 1): 14, (1, 0): 14})],
)
def test_volume_of_all_reduce(name: str, loads: dict[tuple[int, int], int]) -> None:
    """2 (n - 1) / n of the buffer a link, all one way, or half each way."""
    demand = Collective.of("all-reduce", range(8), 16_000, 2, None, 1)
    rows = baseline(name, net("ring:8"), [demand]).transfers
    found = Counter(zip(rows.src.tolist(), rows.dst.tolist(), strict=True))
    for (src, dst), load in loads.items():
        assert {found[(src + r) % 8, (dst + r) % 8] for r in range(8)} == {load}


@pytest.mark.parametrize(
    ("spec", "rings"),
    [
        ("ring:2", 1),
        ("ring:8", 2),
        ("mesh:4x4", 2),
        ("mesh:8x8", 2),
        ("torus:3x4", 4),
        ("torus:8x8", 4),
        ("torus:4x4x4", 6),
        ("hypercube:3", 2),
        ("hypercube:4", 4),
        ("dgx1", 6),
        ("fc:5", 4),
        ("switch:8", 4),
        ("mesh:3x3", 1),
        ("line:5", 1),
        ("h100:2", 8),
        ("ndv2:2", 1),
    ],
)
def test_rings_found(spec: str, rings: int) -> None:
    network = load_topology(spec)
    assert len(find_rings(network, tuple(network.members.tolist()))) == rings


def test_a_torus_is_used_in_full() -> None:
    """Four rings, on all links of all directions."""
    network = net("torus:4x4")
    demand = Collective.of("all-gather", range(16), 64_000, 4, None, 1)
    algorithm = baseline("multi-ring", network, [demand])
    assert algorithm.time == 15 * (3 * US + KB_PUSH)
    links = np.bincount(algorithm.transfers.route, minlength=network.links)
    assert set(links.tolist()) == {15}


def test_boxes_are_crossed_one_after_the_other() -> None:
    """Every GPU of a box sends to the other box in one ring, and receives in one."""
    network = load_topology("h100:2")
    crossing = [
        (int(src), int(dst))
        for order in find_rings(network, range(16))
        for src, dst in zip(order, np.roll(order, -1), strict=True)
        if src // 8 != dst // 8
    ]
    assert all(src % 8 == dst % 8 for src, dst in crossing)
    assert sorted(src for src, _ in crossing) == list(range(16))


@examples(100)
@given(networks())
def test_rings_visit_all(network: Topology) -> None:
    group = tuple(network.members.tolist())
    for order in find_rings(network, group):
        assert sorted(order.tolist()) == list(range(len(group)))


@pytest.mark.parametrize("spec", ["torus:5x5", "torus:4x4x4", "mesh:4x6", "hypercube:5", "dgx1"])
def test_cycles_share_no_edge(spec: str) -> None:
    network = load_topology(spec)
    edges = np.zeros((network.npus, network.npus), dtype=np.int64)
    np.add.at(edges, (network.src, network.dst), 1)
    found = join_cycles(edges)
    assert found
    for order in found:
        for one, other in zip(order.tolist(), np.roll(order, -1).tolist(), strict=True):
            edges[one, other] -= 1
            edges[other, one] -= 1
    assert (edges >= 0).all()
