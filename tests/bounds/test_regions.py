"""Bounds from parts of a network: known values, and what would be wrong with less care."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import weft
from tests.strategies import GB_S
from weft.bounds import Bound, lower_bound, quick_bound
from weft.bounds.partitions import Partition, regions
from weft.collective import Chunks, Collective
from weft.collective.groups import layout_groups
from weft.cost import CostModel
from weft.topology import Topology, load_topology
from weft.units import NEVER

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

ALL_REDUCES = [
    ("h100:8", 256, 3.318),
    ("h100:8", 4 * KIB, 3.587),
    ("h100:8", 64 * KIB, 4.972),
    ("h100:8", MIB, 8.675),
    ("h100:8", 16 * MIB, 77.225),
    ("h100:8", GIB, 4701.445),
    ("h100:16", GIB, 5036.990),
    ("h100:32", GIB, 5204.762),
    ("h100:32", KIB, 3.617),
    ("h100:2", 4 * KIB, 3.341),
    ("h100:2", 64 * KIB, 3.955),
    ("h100:2", MIB, 6.446),
    ("a100:4", 64_000, 7.385),
    ("a100:4", 10**6, 14.717),
    ("a100:4", 10**9, 7506.425),
    ("ndv2:4", 64_000, 13.080),
    ("ndv2:4", 10**9, 120_005.4),
    ("mi250:2", 64_000, 5.046),
    ("mi250:2", 10**6, 9.259),
    ("dragonfly:4x5", 64 * KIB, 2.242),
    ("dragonfly:4x5", 64 * MIB, 638.034),
]


def of_all(network: Topology, kind: str, size: int, chunks: int = 1) -> Bound:
    root = 0 if kind in ("broadcast", "reduce") else None
    demand = Collective.of(kind, network.members, size, chunks, root)
    return lower_bound(network, demand.chunks, CostModel())


@pytest.mark.parametrize(("spec", "size", "us"), ALL_REDUCES)
def test_all_reduce_in_any_chunks(spec: str, size: int, us: float) -> None:
    assert of_all(load_topology(spec), "all-reduce", size).ideal_us == pytest.approx(us, abs=6e-4)


@pytest.mark.parametrize(
    ("spec", "size", "us"),
    [
        ("h100:8", 4 * KIB, 3.587),
        ("h100:8", 64 * KIB, 4.972),
        ("h100:8", MIB, 8.675),
        ("switch:64", 4 * KIB, 2.066),
    ],
)
@pytest.mark.parametrize("kind", ["broadcast", "reduce"])
def test_around_a_root_in_any_chunks(spec: str, size: int, us: float, kind: str) -> None:
    """What holds for copies from a root holds backwards for sums at it."""
    assert of_all(load_topology(spec), kind, size).ideal_us == pytest.approx(us, abs=6e-4)


@pytest.mark.parametrize("kind", ["broadcast", "reduce"])
def test_one_chunk_behind_ports(kind: str) -> None:
    """Holders of a chunk become more as fast as ports let them: six rounds for 63 others."""
    network = load_topology("switch:64")
    bound = of_all(network, kind, 4 * KIB)
    assert (bound.kind, bound.time_us) == ("postal", 2.8192)
    result = weft.synthesize(network, kind, 4 * KIB, chunks=1)
    assert result.time >= bound.time


@pytest.mark.parametrize(("share", "us"), [(0.5, 1187.457), (0, 1196.881)])
def test_a_slow_or_dead_card(share: float, us: float) -> None:
    network = load_topology("h100:8")
    network = network.scaled(["0-s8"], share) if share else network.without(links=["0-s8"])
    assert of_all(network, "all-reduce", 256 * MIB).ideal_us == pytest.approx(us, abs=1e-3)


def test_groups_that_share_the_network() -> None:
    """One partition for all of them, and what they need added up: their time, to the picosecond."""
    network = load_topology("h100:8")
    groups = layout_groups("tp=8,dp=8", "dp", network.members)
    demands = [Collective.of("all-reduce", group, 64 * MIB) for group in groups]
    chunks = Chunks.concatenate([demand.chunks for demand in demands])
    bound = lower_bound(network, chunks, CostModel())
    assert (bound.kind, round(bound.ideal_us, 2)) == ("regions", 2351.41)
    assert quick_bound(network, chunks, CostModel()) >= bound.ideal


def star(npus: int, rate: list[int]) -> Topology:
    """NPU 0 in the middle, the others around it."""
    around = list(range(1, npus))
    hub = [0] * len(around)
    return Topology.from_links("star", npus, around + hub, hub + around, rate, 1000)


def test_a_relay_is_a_part_too() -> None:
    """The sum is made outside the group: over the members' links alone it would take 1.5 s."""
    network = star(5, [GB_S] * 8)
    result = weft.synthesize(network, "all-reduce", 10**9, group=[1, 2, 3, 4])
    assert result.verified
    assert result.bound.time <= result.time < 1_100_000_000_000
    alone = lower_bound(
        network.without(npus=[0]).with_link(1, 2, bandwidth=GB_S, latency=0),
        Collective.of("all-reduce", [1, 2], 10**9).chunks,
        CostModel(),
    )
    assert alone.ideal == pytest.approx(10**12, rel=1e-6)


def test_what_leaves_a_part_may_be_for_many() -> None:
    """A switch copies: over the slow links up to it the sums alone have to go, 0.75 s."""
    nodes, hub = list(range(4)), [4] * 4
    network = Topology.from_links(
        "copying", 4, nodes + hub, hub + nodes, [GB_S] * 4 + [8 * GB_S] * 4, 1000, switches=1
    ).with_switches(copying=[4])
    result = weft.synthesize(network, "all-reduce", 10**9)
    assert result.verified
    assert result.bound.time <= result.time < 1_300_000_000_000


@pytest.mark.parametrize("kind", ["all-reduce", "broadcast", "reduce", "all-gather"])
def test_islands(kind: str) -> None:
    """Without a way between parts there is no time at all."""
    network = load_topology("mesh:2x2*fc:2").without(links=[f"{npu}-{npu + 4}" for npu in range(4)])
    assert of_all(network, kind, MIB).time == NEVER
    demand = Collective.of(kind, network.members, MIB)
    assert quick_bound(network, demand.chunks, CostModel()) == NEVER


def found(spec: str) -> list[Partition]:
    return list(regions(load_topology(spec)))


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("h100:4", [range(box, box + 8) for box in range(0, 32, 8)]),
        ("ndv2:2", [range(8), range(8, 16)]),
        ("mi250:2", [range(16), range(16, 32)]),
        ("leaf-spine:4x3x2", [range(4), range(4, 8), range(8, 12)]),
        ("dragonfly:4x5", [range(group, group + 4) for group in range(0, 20, 4)]),
    ],
)
def test_boxes_leaves_and_groups_are_found(spec: str, parts: list[range]) -> None:
    label = np.concatenate([np.full(len(part), number) for number, part in enumerate(parts)])
    assert any(np.array_equal(each.label[: len(label)], label) for each in found(spec))


def test_boxes_are_found_by_what_joins_them() -> None:
    """Rings of four with a link of the same speed between them, of which nothing says so."""
    boxes = range(0, 12, 4)
    ends = [(box + i, box + (i + 1) % 4) for box in boxes for i in range(4)]
    ends += [(0, 4), (4, 8), (8, 0)]
    src, dst = np.array([*ends, *((b, a) for a, b in ends)]).T
    network = Topology.from_links("rings", 12, src, dst, GB_S, 1000)
    assert any(np.array_equal(each.label, np.repeat([0, 1, 2], 4)) for each in regions(network))


def test_a_certificate_names_the_parts_and_all_links_into_them() -> None:
    network = load_topology("h100:8")
    bound = of_all(network, "all-reduce", GIB, 16)
    assert bound.kind == "regions"
    parts = [set(part) for part in bound.certificate.parts]
    assert set.union(*parts) >= set(range(64))
    assert sum(map(len, parts)) == len(set.union(*parts))
    ends = list(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    into = [i for i, (a, b) in enumerate(ends) for part in parts if b in part and a not in part]
    assert bound.certificate.links == tuple(sorted(into))
    assert pickle.loads(pickle.dumps(bound)) == bound
    assert bound.certificate.to_dict()["node_sets"][0].startswith("0-7")


@pytest.mark.parametrize(
    ("spec", "kind", "size", "by", "parts"),
    [
        ("h100:8", "all-reduce", MIB, "cone", 1),
        ("line:4", "all-reduce", 1, "path", 2),
        ("mesh:2x3", "scatter", GIB, "egress", 1),
        ("mesh:2x3", "gather", GIB, "ingress", 1),
        ("torus:4x4", "all-reduce", GIB, "gossip", 0),
    ],
)
def test_each_kind_has_its_certificate(
    spec: str, kind: str, size: int, by: str, parts: int
) -> None:
    bound = of_all(load_topology(spec), kind, size, 16 if size == GIB else 1)
    assert (bound.kind, len(bound.certificate.parts)) == (by, parts)
    assert Bound(1, "none", 1).certificate.parts == ()
