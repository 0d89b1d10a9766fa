"""Golden facts of named networks, and what is said of names that are wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.topology.helpers import assert_same, neighbours, pairs
from weft.errors import InputError, TopologyError
from weft.topology import DEFAULT_BANDWIDTH, DEFAULT_LATENCY, Topology, parse_topology


@pytest.mark.parametrize(
    ("spec", "npus", "switches", "links"),
    [
        ("ring:1", 1, 0, 0),
        ("ring:2", 2, 0, 2),
        ("ring:8", 8, 0, 16),
        ("line:8", 8, 0, 14),
        ("mesh:8x8", 64, 0, 224),
        ("mesh:3x4x5", 60, 0, 266),
        ("torus:4x4x8", 128, 0, 768),
        ("torus:2x3", 6, 0, 18),
        ("hypercube:7", 128, 0, 896),
        ("fc:8", 8, 0, 56),
        ("fc:1", 1, 0, 0),
        ("switch:16", 16, 1, 32),
        ("switch:1", 1, 0, 0),
        ("dragonfly:4x9", 36, 0, 180),
        ("dragonfly:3x1", 3, 0, 6),
        ("leaf-spine:8x4x2", 32, 6, 64 + 16),
        ("leaf-spine:1x1x1", 1, 2, 4),
        ("rails:8x4", 32, 12, 128),
        ("Rails:8x4x2 , multicast", 32, 14, 128 + 32),
        ("dgx2:2,multicast,buffer=1MiB", 32, 2, 80),
        ("ring:4*fc:8*switch:4", 128, 32, 256 + 896 + 256),
        (" Ring:4 * FC:2 ", 8, 0, 24),
    ],
)
def test_sizes(spec: str, npus: int, switches: int, links: int) -> None:
    topology = parse_topology(spec)
    assert (topology.npus, topology.switches, topology.links) == (npus, switches, links)
    assert topology.name == spec.strip()


@pytest.mark.parametrize(
    ("spec", "dimensions"),
    [
        ("ring:8", (8,)),
        ("line:3", (3,)),
        ("mesh:8x4", (8, 4)),
        ("torus:4x1x8", (4, 1, 8)),
        ("hypercube:3", (2, 2, 2)),
        ("ring:4*fc:8*switch:2", (4, 8, 2)),
        ("dragonfly:4x9", (4, 9)),
        ("leaf-spine:8x4x2", (8, 4)),
        ("rails:8x4", (8, 4)),
        ("rails:8x4x2,multicast", (8, 4)),
    ],
)
def test_dimensions(spec: str, dimensions: tuple[int, ...]) -> None:
    topology = parse_topology(spec)
    assert topology.dimensions == dimensions
    assert topology.reversed().dimensions == dimensions
    assert topology.with_links(latency=0).dimensions == dimensions
    assert topology.without(npus=[1]).dimensions == dimensions


def test_dimensions_that_do_not_fit() -> None:
    def of(*sizes: int) -> Topology:
        return Topology.from_links("net", 6, [], [], 1, 1, dimensions=sizes)

    assert of().dimensions == ()
    assert of(2, 3).dimensions == (2, 3)
    with pytest.raises(TopologyError, match=r"net: dimensions \[2, 2\] do not fit 6 NPUs"):
        of(2, 2)
    with pytest.raises(TopologyError, match=r"expected sizes from 1"):
        of(-2, -3)
    with pytest.raises(TopologyError, match="net: 65 dimensions; expected 64 at most"):
        of(6, *[1] * 64)


def test_neighbours() -> None:
    assert neighbours(parse_topology("mesh:4x3"), 5) == {1, 4, 6, 9}
    assert neighbours(parse_topology("mesh:4x3"), 0) == {1, 4}
    assert neighbours(parse_topology("torus:4x3"), 0) == {1, 3, 4, 8}
    assert neighbours(parse_topology("hypercube:4"), 5) == {4, 7, 1, 13}
    assert neighbours(parse_topology("fc:3*switch:2"), 4) == {3, 5, 7}


def test_order_of_links() -> None:
    assert pairs(parse_topology("ring:3")) == [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)]
    assert pairs(parse_topology("line:2*switch:2")) == [
        *[(0, 1), (1, 0), (2, 3), (3, 2)],
        *[(0, 4), (2, 4), (4, 0), (4, 2)],
        *[(1, 5), (3, 5), (5, 1), (5, 3)],
    ]


def test_a_dragonfly_spreads_its_global_links() -> None:
    topology = parse_topology("dragonfly:4x9", bandwidth=[100, 7], latency=[1, 2])
    far = topology.src // 4 != topology.dst // 4
    assert set(np.bincount(topology.src[far])) == {2}
    groups = list(zip((topology.src // 4)[far], (topology.dst // 4)[far], strict=True))
    assert len(set(groups)) == len(groups) == 9 * 8
    assert set(pairs(topology)) == {(b, a) for a, b in pairs(topology)}
    assert set(topology.bandwidth[far]) == {7}
    assert set(topology.bandwidth[~far]) == {100}
    assert set(topology.latency[far]) == {2}


def test_leaves_and_spines() -> None:
    topology = parse_topology("leaf-spine:2x3x2", bandwidth=[7, 9], latency=[1, 2])
    assert [sorted(neighbours(topology, npu)) for npu in range(6)] == [[6]] * 2 + [[7]] * 2 + (
        [[8]] * 2
    )
    assert neighbours(topology, 7) == {2, 3, 9, 10}
    assert neighbours(topology, 10) == {6, 7, 8}
    assert set(pairs(topology)) == {(b, a) for a, b in pairs(topology)}
    between = (topology.src >= 6) & (topology.dst >= 6)
    assert set(topology.bandwidth[between]) == {9}
    assert set(topology.bandwidth[~between]) == {7}
    assert set(topology.latency[between]) == {2}


def test_rails() -> None:
    topology = parse_topology("rails:2x3x1", bandwidth=[450, 50, 100])
    assert neighbours(topology, 3) == {7, 10}  # place 1 of box 1
    assert neighbours(topology, 10) == {1, 3, 5, 11}
    rates = dict(zip(pairs(topology), topology.bandwidth.tolist(), strict=True))
    assert (rates[3, 7], rates[10, 3], rates[11, 10]) == (450, 50, 100)


def test_rails_without_spines_are_a_product_of_switches() -> None:
    rails, switches = parse_topology("rails:8x4"), parse_topology("switch:8*switch:4")
    assert sorted(pairs(rails)) == sorted(pairs(switches))


def test_what_switches_can_do() -> None:
    topology = parse_topology("leaf-spine:2x2x1,multicast,buffer=64KiB")
    assert topology.buffers == {4: 65536, 5: 65536, 6: 65536}
    assert topology.copying == {4, 5, 6}
    assert parse_topology("switch:2,buffer=0").buffers == {2: 0}
    plain = parse_topology("leaf-spine:2x2x1")
    assert not plain.buffers
    assert not plain.copying


def test_speeds_by_dimension() -> None:
    topology = parse_topology("mesh:2x2*hypercube:2", bandwidth=[1, 2, 3], latency=[9])
    step = np.abs(topology.src - topology.dst)
    assert dict(zip(step.tolist(), topology.bandwidth.tolist(), strict=True)) == {
        1: 1,
        2: 2,
        4: 3,
        8: 3,
    }
    assert set(topology.latency) == {9}
    plain = parse_topology("ring:4")
    assert set(plain.bandwidth) == {DEFAULT_BANDWIDTH}
    assert set(plain.latency) == {DEFAULT_LATENCY}


sizes = st.lists(st.integers(1, 5), min_size=1, max_size=3)


@given(sizes)
def test_products_are_their_factors(dims: list[int]) -> None:
    for kind, wiring in (("mesh", "line"), ("torus", "ring")):
        whole = parse_topology(f"{kind}:{'x'.join(map(str, dims))}")
        parts = parse_topology("*".join(f"{wiring}:{d}" for d in dims))
        assert pairs(whole) == pairs(parts)
        assert len(set(pairs(whole))) == whole.links
        assert set(pairs(whole)) == {(b, a) for a, b in pairs(whole)}


@given(sizes, st.integers(0, 2))
def test_a_link_changes_one_coordinate(dims: list[int], which: int) -> None:
    kind = ("line", "ring", "fc")[which]
    topology = parse_topology("*".join(f"{kind}:{d}" for d in dims))
    assert topology.npus == math.prod(dims)
    ends = [np.array(np.unravel_index(e, dims, order="F")) for e in (topology.src, topology.dst)]
    assert ((ends[0] != ends[1]).sum(axis=0) == 1).all()


def test_a_hypercube_is_rings_of_two() -> None:
    cube = parse_topology("hypercube:3")
    rings = parse_topology("ring:2*ring:2*ring:2")
    assert pairs(cube) == pairs(rings)
    again = parse_topology("hypercube:3", bandwidth=[DEFAULT_BANDWIDTH])
    assert_same(cube, again)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "the topology is empty; write it like mesh:8x8"),
        ("mesh:0x4", "size '0x4' is not a whole number from 1; write it like mesh:8x8"),
        ("ring:-3", "size '-3' is not a whole number from 1; write it like ring:8"),
        ("mesh:axb", "size 'axb' is not a whole number from 1"),
        ("ring:", "size '' is not a whole number from 1"),
        ("ring", "size '' is not a whole number from 1"),
        ("ring:4x4", "has 2 sizes, not 1; write it like ring:8"),
        ("dragonfly:4", "has 1 size, not 2; write it like dragonfly:4x9"),
        ("leaf-spine:4x4", "has 2 sizes, not 3; write it like leaf-spine:8x4x2"),
        ("rails:4", "has 1 size, not 2 or 3; write it like rails:8x4"),
        ("rails:4x2*ring:2", "rails cannot be multiplied"),
        ("leaf-spine:1x1x99999999", "links; Weft builds at most"),
        ("ring:4,multicast", "has no switches for 'multicast'"),
        ("switch:4,", "'' is nothing a switch can do; write multicast, adding, plain or buffer="),
        ("switch:4,adding=all", "'adding=all' is nothing a switch can do"),
        ("switch:4,buffer", "'buffer' is nothing a switch can do"),
        ("switch:4,multicast=yes", "'multicast=yes' is nothing a switch can do"),
        ("switch:4,buffer=much", "buffer 'much' is not a number with a unit"),
        ("msh:4x4", "unknown topology 'msh'; did you mean 'mesh'?"),
        ("h10:4", "unknown topology 'h10'; did you mean 'h100'?"),
        ("ring:4*", "has a part without a kind"),
        ("ring:4*h100:2", "h100 cannot be multiplied"),
        ("mesh:3000x3000", "more than 4000000 NPUs"),
        ("hypercube:99999999999", "more than 4000000 NPUs"),
        ("mesh:" + "9" * 5000, "more than 4000000 NPUs"),
        ("fc:9000", "80991000 links; Weft builds at most 64000000"),
        ("dragonfly:1x9000", "80991000 links"),
        ("h100:0", "'0' is not a number of boxes"),
        ("h100:x", "'x' is not a number of boxes"),
        ("h100:999999999", "more than 4000000 NPUs"),
        ("dgx1:2", "dgx1 is one box"),
        ("tpuv4", "needs three sizes from 1"),
        ("tpuv4:4x4", "needs three sizes from 1"),
    ],
)
def test_bad_specs(spec: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_topology(spec)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "bandwidth", "latency", "message"),
    [
        ("mesh:4x4", [1, 2, 3], None, "has 2 dimensions but 3 bandwidth values"),
        ("hypercube:3", None, [1, 2], "has 1 dimension but 2 latency values"),
        ("mesh:4x4", [], None, "0 bandwidth values"),
        ("h100:2", [1, 2], None, "give one bandwidth for all of them or none, not 2"),
        ("ring:4", [0], None, "bandwidth 0 B/s is out of range"),
        ("ring:4", [10**19], None, "is out of range"),
        ("ring:4", None, [-1], "latency -1 ps is out of range"),
    ],
)
def test_bad_speeds(
    spec: str, bandwidth: list[int] | None, latency: list[int] | None, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        parse_topology(spec, bandwidth=bandwidth, latency=latency)
    assert message in str(caught.value)


def test_large_meshes() -> None:
    assert parse_topology("mesh:200x200").links == 159_200
