"""Messages on networks where several ways are equally good: all of them are used alike."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from weft import Algorithm, Collective, Topology, load_topology
from weft.classical import baseline


def loads(algorithm: Algorithm) -> Counter[int]:
    """How many rows cross each link."""
    routes, found = algorithm.routes, Counter[int]()
    for route, times in Counter(algorithm.transfers.route.tolist()).items():
        for link in routes.links[routes.offsets[route] : routes.offsets[route + 1]].tolist():
            found[link] += times
    return found


def run(name: str, network: Topology, kind: str, group: list[int] | None = None) -> Algorithm:
    members = group or network.members.tolist()
    return baseline(name, network, [Collective.of(kind, members, 4096 * len(members))])


def used_between(network: Topology, found: Counter[int], src: int, dst: int) -> list[int]:
    return [
        found[int(link)] for link in np.flatnonzero((network.src == src) & (network.dst == dst))
    ]


def test_a_ring_has_all_parallel_links_of_a_leaf() -> None:
    """The eight hops from box to box are 64 / 8 pairs apart, but take a link each."""
    network = load_topology("h100:8")
    found = loads(run("ring", network, "all-reduce"))
    first_leaf, spine = 64 + 8, 64 + 16
    assert used_between(network, found, first_leaf + 7, spine) == [126] * 8
    assert used_between(network, found, spine, first_leaf) == [126] * 8


@pytest.mark.parametrize("name", ["ring", "double-binary-tree"])
@pytest.mark.parametrize("spec", ["h100:8", "rails:8x8x8"])
def test_no_link_inside_a_fabric_without_bottleneck_is_one(spec: str, name: str) -> None:
    """Links between switches are never busier than the busiest link at an NPU."""
    network = load_topology(spec)
    found = loads(run(name, network, "all-reduce"))
    inner = (network.src >= network.npus) & (network.dst >= network.npus)
    busiest = max(times for link, times in found.items() if not inner[link])
    assert max(found[link] for link in np.flatnonzero(inner).tolist()) <= busiest


def test_spines_are_shared_by_every_second_npu() -> None:
    network = load_topology("leaf-spine:8x4x2")
    found = loads(run("direct", network, "all-to-all", list(range(0, 32, 2))))
    for leaf in range(32, 36):
        up = [used_between(network, found, leaf, spine)[0] for spine in (36, 37)]
        assert up[0] == up[1]


def test_relays_are_used_alike() -> None:
    """NPU 0 of a DGX-2 sends to other boxes through all eight NPUs that can."""
    network = load_topology("dgx2:4")
    found = loads(run("direct", network, "scatter"))
    fabric = 64 + 4
    out = [used_between(network, found, npu, fabric)[0] for npu in range(1, 16, 2)]
    assert out == [6] * 8


def test_slow_ways_are_none() -> None:
    """Within a box nothing goes out to the fabric, though that is as many links away."""
    network = load_topology("dgx2:4")
    found = loads(run("direct", network, "all-to-all", list(range(16))))
    assert not any(network.src[link] == 68 or network.dst[link] == 68 for link in found)


@pytest.mark.parametrize("name", ["ring", "multitree"])
def test_parallel_links_between_npus_serve_in_turn(name: str) -> None:
    src, dst = [0, 0, 1, 1, 2, 2], [1, 1, 2, 2, 0, 0]
    network = Topology.from_links("double ring", 3, src, dst, 10**9, 0)
    demand = Collective.of("all-gather", range(3), 3000, 2)
    found = loads(baseline(name, network, [demand]))
    assert set(found.values()) == {2}
    assert len(found) == 6


def test_a_tree_does_not_crowd_one_spine() -> None:
    """Takers behind different leaves may all be the first of theirs: they share the spines too."""
    network = load_topology("leaf-spine:8x4x2")
    found = loads(run("double-binary-tree", network, "all-reduce"))
    for leaf in range(32, 36):
        up = [used_between(network, found, leaf, spine)[0] for spine in (36, 37)]
        assert max(up) <= 2 * min(up)
