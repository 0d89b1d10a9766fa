"""Algorithms that go dimension by dimension: BlueConnect, Themis, Hierarchical."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.strategies import COSTS, GB_S, networks, roomy
from weft import Algorithm, Collective, CostModel, Topology, load_topology
from weft.classical import baseline
from weft.classical.paths import direct_dimensions, load_of
from weft.judge import verify
from weft.topology.grid import grid_of

KINDS = ("all-reduce", "reduce-scatter", "all-gather")
NS = 1000  # picoseconds: a byte at 1 GB/s takes one


def made(name: str, spec: str, kind: str, share: int, chunks: int = 1) -> Algorithm:
    """A collective of so many bytes per share among all NPUs, over links of 1 GB/s without α."""
    network = load_topology(spec, bandwidth=[GB_S], latency=[0])
    demand = Collective.of(kind, network.members, share * network.npus, chunks, None, 1)
    algorithm = baseline(name, network, [demand])
    verdict = verify(algorithm)
    assert verdict.ok, verdict
    return algorithm


def sent(algorithm: Algorithm) -> np.ndarray:
    """Bytes that each NPU sends."""
    rows = algorithm.transfers
    return np.bincount(rows.src, algorithm.chunks.bytes[rows.chunk]).astype(np.int64)


@examples(100)
@given(
    networks(),
    COSTS,
    st.sampled_from(["blueconnect", "themis", "hierarchical"]),
    st.sampled_from(KINDS),
    st.data(),
)
def test_any_network(
    network: Topology, cost: CostModel, name: str, kind: str, data: st.DataObject
) -> None:
    members = network.members.tolist()
    group = data.draw(st.one_of(
        st.permutations(members),
        st.lists(st.sampled_from(members), min_size=1, unique=True),
    ))  # fmt: skip
    size, chunks = data.draw(st.integers(1, 10**5)), data.draw(st.integers(1, 3))
    demand = Collective.of(kind, group, size, chunks, None, data.draw(st.integers(1, 16)))
    algorithm = baseline(name, roomy(network, [demand], cost), [demand], cost)
    verdict = verify(algorithm)
    assert verdict.ok, verdict


@pytest.mark.parametrize(
    ("spec", "direct"),
    [
        ("ring:5", [False]),
        ("ring:3", [True]),
        ("mesh:2x4", [True, False]),
        ("fc:4*ring:4*switch:3", [True, False, True]),
        ("h100:2", [True, True]),
        ("dgx1", [False]),
        ("leaf-spine:4x3x2", [True, True]),
    ],
)
def test_dimensions_in_which_all_meet(spec: str, direct: list[bool]) -> None:
    network = load_topology(spec)
    demand = Collective.of("all-gather", network.members, 1 << 20)
    assert direct_dimensions(network, demand, grid_of(network, demand.group)) == direct


def test_one_line_without_a_link_makes_rings() -> None:
    network = load_topology("fc:4*fc:2").without(links=[(5, 7)])
    demand = Collective.of("all-gather", network.members, 1 << 20)
    assert direct_dimensions(network, demand, grid_of(network, demand.group)) == [False, True]


def test_loads_are_those_of_the_busiest_link() -> None:
    network = load_topology("ring:5*switch:4*line:2", bandwidth=[GB_S, 2 * GB_S, GB_S])
    demand = Collective.of("all-gather", network.members, 1 << 20)
    grid = grid_of(network, demand.group)
    found = [
        load_of(network, demand, grid, d, direct=kind) * GB_S // 10**18
        for d, kind in enumerate([False, True, True])
    ]
    # Two bytes for each NPU of the line; at twice the rate behind the switch.
    assert found == [4, 2 * 3 // 2, 2]


@pytest.mark.parametrize("spec", ["torus:3x4", "torus:4x4", "hypercube:3", "fc:3*ring:5"])
@pytest.mark.parametrize("name", ["blueconnect", "themis"])
@pytest.mark.parametrize(("kind", "times"), [("all-reduce", 2), ("all-gather", 1)])
def test_every_npu_sends_all_shares_but_its_own(
    spec: str, name: str, kind: str, times: int
) -> None:
    algorithm = made(name, spec, kind, 1200, 4)
    n = algorithm.topology.npus
    assert sent(algorithm).tolist() == [times * (n - 1) * 1200] * n


@pytest.mark.parametrize(
    ("name", "spec", "kind", "chunks", "time"),
    [
        # A share goes round the ring, or half of it each way.
        ("blueconnect", "ring:5", "all-gather", 1, 4 * 1200),
        ("blueconnect", "ring:5", "all-gather", 2, 4 * 600),
        ("blueconnect", "ring:5", "reduce-scatter", 2, 4 * 600),
        ("blueconnect", "fc:5", "all-reduce", 1, 2 * 1200),
        ("blueconnect", "switch:4", "all-gather", 1, 3 * 1200),
        # Three shares go round the first dimension, one of them at once.
        ("blueconnect", "ring:4*fc:3", "all-gather", 1, 3 * 3 * 1200),
        # Three shares, one behind the other, through two links and back.
        ("hierarchical", "fc:3", "all-reduce", 1, (3 + 1 + 2) * 1200),
        ("hierarchical", "ring:1", "all-reduce", 1, 0),
    ],
)
def test_known_times(name: str, spec: str, kind: str, chunks: int, time: int) -> None:
    assert made(name, spec, kind, 1200, chunks).time == time * NS


def bytes_along(algorithm: Algorithm, width: int) -> list[int]:
    """Bytes sent along the two dimensions of a grid."""
    rows = algorithm.transfers
    size = algorithm.chunks.bytes[rows.chunk]
    across = rows.src // width != rows.dst // width
    return [int(size[~across].sum()), int(size[across].sum())]


def test_themis_balances_what_blueconnect_does_not() -> None:
    plain = made("blueconnect", "torus:4x4", "all-reduce", 1200, 4)
    balanced = made("themis", "torus:4x4", "all-reduce", 1200, 4)
    share = 2 * 16 * 1200
    assert bytes_along(plain, 4) == [share * 12, share * 3]
    assert bytes_along(balanced, 4) == [share * 15 // 2] * 2
    assert balanced.time < plain.time


def test_themis_spares_slow_dimensions() -> None:
    network = load_topology("ring:4*ring:4", bandwidth=[GB_S, GB_S // 16])
    demand = Collective.of("reduce-scatter", network.members, 1 << 20, 4)
    slow = bytes_along(baseline("themis", network, [demand]), 4)
    assert slow == bytes_along(baseline("blueconnect", network, [demand]), 4)
    network = load_topology("ring:4*ring:4", bandwidth=[GB_S // 16, GB_S])
    turned = bytes_along(baseline("themis", network, [demand]), 4)
    assert turned[0] < turned[1]


def test_only_leaders_leave_their_box() -> None:
    algorithm = made("hierarchical", "h100:3", "reduce-scatter", 1200, 2)
    rows = algorithm.transfers
    across = rows.src // 8 != rows.dst // 8
    assert across.any()
    assert (rows.src[across] % 8 == 0).all()
    assert (rows.dst[across] % 8 == 0).all()
    size = algorithm.chunks.bytes[rows.chunk]
    # A ring of three boxes: two thirds of the buffer into each.
    assert np.bincount(rows.dst[across] // 8, size[across]).tolist() == [16 * 1200] * 3
