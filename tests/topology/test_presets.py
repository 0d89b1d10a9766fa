"""The links of real machines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import weft
from tests.topology.helpers import neighbours, pairs
from weft.cli.topo import topo
from weft.errors import FormatError, InputError
from weft.topology import Topology, load_topology, parse_topology
from weft.topology.files import write_topology
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
        ("h200:2", 16, 11, 96),
        ("b200", 8, 1, 16),
        ("b300:3", 24, 3 + 8 + 1, 48 + 48 + 48),
        ("gb200:2", 144, 2 + 4 + 1, 288 + 288 + 288),
        ("gb300", 72, 1, 144),
        ("vr200:2", 144, 2 + 4 + 1, 288 + 288 + 288),
        ("mi300x", 8, 0, 56),
        ("mi325x:2", 16, 8 + 1, 112 + 32 + 32),
        ("mi355x:4", 32, 8 + 1, 224 + 64 + 64),
        ("tpuv5p:4x4x8", 128, 0, 768),
        ("tpuv5e:2x4", 8, 0, 20),
        ("tpuv6e:16x16", 256, 0, 1024),
        ("tpu7x:4x4x4", 64, 0, 384),
        ("trn2", 16, 0, 64),
        ("trn2:2", 32, 1, 128 + 64),
        ("trn2-ultra", 64, 0, 384),
        ("trn2-ultra:2", 128, 1, 768 + 256),
        ("gaudi3:2", 16, 1, 112 + 32),
        ("cloudmatrix384", 384, 48 + 1, 768 + 768),
        ("cloudmatrix384:1", 8, 1, 16),
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
        ("mi300x:2", (8, 2)),
        ("tpuv5e:4x8", (4, 8)),
        ("trn2:3", (4, 4, 3)),
        ("trn2-ultra:2", (4, 4, 4, 2)),
        ("cloudmatrix384", (8, 48)),
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


@pytest.mark.parametrize(
    ("spec", "into"),
    [
        ("h200", 450),
        ("b200", 900),
        ("b200:2", 900 + 50),
        ("b300:2", 900 + 100),
        ("gb300:2", 900 + 100),
        ("vr200", 3600 / 2),
        ("vr200:2", 1800 + 200),
        ("mi300x", 7 * 64),
        ("mi325x:2", 448 + 50),
        ("mi350x", 1075.2 / 2),
        ("tpuv4:4x4x4", 6 * 50),
        ("tpuv5p:4x4x4", 1200 / 2),
        ("tpuv6e:16x16", 800 / 2),
        ("tpu7x:4x4x8", 1200 / 2),
        ("trn2-ultra", 1280 / 2),
        ("trn2:2", 512 + 3200 / 8 / 16),
        ("gaudi3", 21 * 25),
        ("gaudi3:2", 24 * 25),
        ("cloudmatrix384", 392),
    ],
)
def test_each_npu_has_what_its_maker_says(spec: str, into: float) -> None:
    found = summarize(parse_topology(spec))
    assert found.ingress_min == found.ingress_max == round(into * GB_S)


@pytest.mark.parametrize(
    ("spec", "rates"),
    [
        ("dgx1", [20, 40]),
        ("ndv2:2", [12.075, 20, 40]),
        ("dgx2", [120]),
        ("a100", [240]),
        ("h100:2", [48.6, 370.8]),
        ("b200:2", [48.6, 721.8]),
        ("b300", [721.8]),
        ("nvl72", [721.8]),
        ("mi250", [36, 72, 144]),
        ("mi300x:2", [48, 48.6]),
        ("mi325x", [48]),
        ("tpuv4:4x4x8_twisted", [45]),
        ("tpuv5p:2x2x2", [90]),
        ("tpuv5e:4x4", [45]),
        ("h100,plain", [370.8]),
    ],
)
def test_reachable_rates(spec: str, rates: list[float]) -> None:
    reached = load_topology(spec, rates="reachable")
    assert set(reached.bandwidth) == {round(rate * GB_S) for rate in rates}
    nominal = load_topology(spec)
    assert (reached.bandwidth < nominal.bandwidth).all()
    for name in ("src", "dst", "latency"):
        assert np.array_equal(getattr(reached, name), getattr(nominal, name))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("a100:2", "what the 200 Gbit/s network card of a100 reaches was not published"),
        ("b300:2", "what the 800 Gbit/s network card of b300 reaches"),
        ("vr200", "what NVLink 6 of vr200 reaches"),
        ("mi250:2", "what the way out of a box of mi250 reaches"),
        ("mi355x", "what xGMI of mi355x reaches"),
        ("tpu7x:4x4x4", "what the inter-chip interconnect of tpu7x reaches"),
        ("trn2", "what NeuronLink 3 of trn2 reaches"),
        ("gaudi3", "what the 200 Gbit/s Ethernet inside a box of gaudi3 reaches"),
        ("cloudmatrix384", "what the unified bus of cloudmatrix384 reaches"),
        ("mesh:8x8", "mesh is no machine of which it was published what its links reach"),
        ("ring:4*fc:8", "ring is no machine"),
        ("twisted:4x4x8", "twisted is no machine"),
    ],
)
def test_what_was_not_published_is_refused(spec: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        load_topology(spec, rates="reachable")
    assert str(caught.value).startswith(f"topology '{spec}': ")
    assert words in str(caught.value)
    assert "leave out --rates reachable" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rates_of_other_things_are_refused(tmp_path: Path) -> None:
    write_topology(parse_topology("h100"), tmp_path / "net.json")
    with pytest.raises(FormatError, match="says itself what its links carry"):
        load_topology(tmp_path / "net.json", rates="reachable")
    with pytest.raises(InputError, match="rates are nominal or reachable, not 'real'"):
        load_topology("h100", rates="real")


def test_the_command_takes_rates() -> None:
    shown = CliRunner().invoke(topo, ["show", "h100", "--rates", "reachable", "--json"])
    assert json.loads(shown.output)["most_ingress_Bps"] == 370.8 * GB_S


@pytest.mark.parametrize("one", ["gb200", "h200", "mi355x", "tpuv4:4x4x8_twisted"])
def test_two_names_for_one_network(one: str) -> None:
    other = {"gb200": "nvl72", "h200": "h100", "mi355x": "mi350x"}.get(one, "twisted:4x4x8")
    a, b = parse_topology(one), parse_topology(other, latency=LATENCY.get(other))
    assert np.array_equal(a.columns, b.columns)
    assert (a.dimensions, a.copying, a.adding) == (b.dimensions, b.copying, b.adding)


LATENCY = {"twisted:4x4x8": [1_000_000]}


@pytest.mark.parametrize(
    ("spec", "around"),
    [
        ("tpuv4:4x4x4", "111"),
        ("tpuv4:4x8x12", "111"),
        ("tpuv5p:2x4x4", "000"),
        ("tpu7x:2x2x4", "000"),
        ("tpuv4:3x3x3", "000"),
        ("tpuv5e:8x16", "01"),
        ("tpuv6e:16x16", "11"),
        ("tpuv6e:16x4", "10"),
        ("tpuv5e:8x8", "00"),
    ],
)
def test_where_links_of_slices_go_round(spec: str, around: str) -> None:
    slice_ = parse_topology(spec)
    stride = 1
    for size, goes in zip(slice_.dimensions, around, strict=True):
        if size > 2:
            assert ((size - 1) * stride in neighbours(slice_, 0)) == (goes == "1")
        stride *= size
    alike = "*".join(
        f"{'ring' if goes == '1' else 'line'}:{size}"
        for size, goes in zip(slice_.dimensions, around, strict=True)
    )
    assert pairs(slice_) == pairs(parse_topology(alike))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("tpuv5p:4x4x6", "a slice is whole cubes of 4x4x4 chips, or lies in one"),
        ("tpuv4:16x16x20", "a pod has 4096 chips, not 5120"),
        ("tpuv5e:16x17", "a pod has 16x16 chips"),
        ("tpuv6e:4x4x4", "it needs two sizes from 1"),
        ("tpuv4:4x4x4_twisted", "only slices of n x n x 2n and n x 2n x 2n"),
        ("tpuv4:2x2x4_twisted", "n a multiple of 4, can be twisted"),
        ("tpuv4:4x4x8_turned", "it needs three sizes from 1"),
        ("tpuv4:4x4x8_twisted_twice", "can be twisted"),
        ("cloudmatrix384:49", "it has at most 48 boxes, not 49"),
        ("twisted:4x4x4", "only n x n x 2n and n x 2n x 2n, n from 2, can be twisted"),
        ("twisted:1x1x2", "can be twisted"),
        ("twisted:4x8", "has 2 sizes, not 3"),
        ("twisted:999x999x1998", "more than 4000000 NPUs"),
    ],
)
def test_slices_that_are_none(spec: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_topology(spec)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "collective"),
    [
        *((spec, "all-reduce") for spec in ("b300", "gb300", "mi300x", "trn2", "gaudi3")),
        *((spec, "all-reduce") for spec in ("tpuv4:2x2x2", "tpuv5e:2x4", "cloudmatrix384:2")),
        *((spec, "all-to-all") for spec in ("mi350x:2", "trn2:2", "gaudi3:2", "twisted:2x2x4")),
    ],
)
def test_they_are_planned_for(spec: str, collective: str) -> None:
    result = weft.synthesize(spec, collective, "16MiB")
    assert result.verified, result.verdict
    assert result.efficiency > 0.9
