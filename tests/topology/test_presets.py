"""The links of real machines."""

from __future__ import annotations

import pytest

from tests.topology.helpers import neighbours, pairs
from weft.topology import Topology, parse_topology
from weft.topology.summary import summarize

GB_S = 10**9


def rate(topology: Topology, src: int, dst: int) -> list[int]:
    hit = (topology.src == src) & (topology.dst == dst)
    return [int(value) // 10**8 for value in topology.bandwidth[hit]]


@pytest.mark.parametrize(
    ("spec", "npus", "switches", "links"),
    [
        ("dgx1", 8, 0, 32),
        ("ndv2", 8, 0, 32),
        ("ndv2:2", 16, 0, 66),
        ("ndv2:3", 24, 1, 102),
        ("dgx2", 16, 1, 32),
        ("dgx2:2", 32, 2, 80),
        ("dgx2:3", 48, 4, 144),
        ("a100", 8, 1, 16),
        ("a100:2", 16, 2 + 16 + 2, 96),
        ("h100:1", 8, 1, 16),
        ("h100:4", 32, 4 + 8 + 1, 64 + 64 + 64),
        ("nvl72", 72, 1, 144),
        ("nvl72:3", 216, 3 + 4 + 1, 432 + 432 + 432),
        ("mi250", 16, 0, 56),
        ("mi250:2", 32, 1, 176),
        ("tpuv4:4x4x4", 64, 0, 384),
    ],
)
def test_sizes(spec: str, npus: int, switches: int, links: int) -> None:
    topology = parse_topology(spec)
    assert (topology.npus, topology.switches, topology.links) == (npus, switches, links)
    assert summarize(topology).unreachable is None


@pytest.mark.parametrize(
    ("spec", "dimensions"),
    [
        ("dgx1", (8,)),
        ("ndv2:2", (8, 2)),
        ("dgx2:3", (16, 3)),
        ("a100:2", (8, 2)),
        ("h100", (8,)),
        ("h100:4", (8, 4)),
        ("nvl72:2", (72, 2)),
        ("mi250:2", (16, 2)),
        ("tpuv4:4x2x3", (4, 2, 3)),
    ],
)
def test_dimensions(spec: str, dimensions: tuple[int, ...]) -> None:
    assert parse_topology(spec).dimensions == dimensions


def test_dgx1() -> None:
    topology = parse_topology("dgx1")
    assert neighbours(topology, 0) == {1, 2, 3, 4}
    assert neighbours(topology, 5) == {1, 4, 6, 7}
    assert rate(topology, 0, 1) == rate(topology, 1, 0) == [500]
    assert rate(topology, 0, 2) == [250]
    assert set(topology.latency) == {700_000}
    assert summarize(topology).ingress_min == summarize(topology).ingress_max == 150 * GB_S


def test_ndv2_sends_from_gpu_0_and_receives_at_gpu_1() -> None:
    two = parse_topology("ndv2:2")
    assert [p for p in pairs(two) if p[0] // 8 != p[1] // 8] == [(0, 9), (8, 1)]
    assert rate(two, 0, 9) == [125]
    three = parse_topology("ndv2:3")
    assert [p for p in pairs(three) if 24 in p] == [
        *[(0, 24), (8, 24), (16, 24)],
        *[(24, 1), (24, 9), (24, 17)],
    ]


def test_dgx2_sends_from_odd_gpus() -> None:
    two = parse_topology("dgx2:2")
    across = {p for p in pairs(two) if max(p) < 32}
    assert across == {(2 * i + 1, 16 + 2 * i) for i in range(8)} | {
        (16 + 2 * i + 1, 2 * i) for i in range(8)
    }
    assert neighbours(two, 16) == {33}
    three = parse_topology("dgx2:3")
    assert neighbours(three, 3) == {48, 51}
    assert neighbours(three, 51) == set(range(0, 48, 2))


def test_a100_nics_and_fabric() -> None:
    topology = parse_topology("a100:2")
    assert neighbours(topology, 9) == {17, 18 + 9}
    assert neighbours(topology, 18 + 9) == {9, 35}
    assert len(neighbours(topology, 34)) == 8
    assert rate(topology, 9, 17) == [3000]
    assert rate(topology, 27, 35) == [250]


def test_h100_rails_and_spine() -> None:
    topology = parse_topology("h100:4")
    assert neighbours(topology, 11) == {33, 36 + 3}
    assert neighbours(topology, 36 + 3) == {3, 11, 19, 27, 44}
    assert rate(topology, 39, 44) == rate(topology, 44, 39) == [500] * 4
    assert rate(topology, 11, 33) == [4500]


def test_mi250() -> None:
    topology = parse_topology("mi250:2")
    assert rate(topology, 0, 1) == [2000]
    assert rate(topology, 16, 20) == [1000]
    assert neighbours(topology, 25) == {24, 17, 18, 29, 32}
    assert rate(topology, 25, 32) == [160]


def test_one_speed_overrides_all_links() -> None:
    topology = parse_topology("h100:2", bandwidth=[5], latency=[0])
    assert set(topology.bandwidth) == {5}
    assert set(topology.latency) == {0}


def test_nvl72_has_four_rails() -> None:
    two = parse_topology("nvl72:2")
    assert neighbours(two, 5) == {144, 144 + 2 + 1}
    assert neighbours(two, 72 + 5) == {145, 144 + 2 + 1}
    assert rate(two, 5, 144) == [9000]
    assert rate(two, 147, 5) == [500]
    assert rate(two, 147, 150) == [500] * 36
