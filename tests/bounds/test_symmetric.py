"""All-to-All on vertex-transitive networks: bounds without a table of chunks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.examples import examples
from tests.strategies import ALPHAS, COSTS, GB_S, US, Case, shuffled
from weft.bounds import Bound, demand_bound, lower_bound
from weft.bounds.symmetric import applies, symmetric_bounds
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import UnreachableError
from weft.topology import Topology, load_topology
from weft.units import NEVER


def bound_of(network: Topology, demand: Collective, cost: CostModel) -> Bound:
    """The symmetric bound alone."""
    assert applies(network, demand)
    bound = Bound(0, "none", 0)
    for proof in symmetric_bounds(network, demand, cost, NEVER):
        bound = bound.stronger(proof)
    return bound


@st.composite
def products(draw: st.DrawFn, most: int = 16) -> Topology:
    """Rings, switches and full meshes multiplied, with a speed of its own for each."""
    wirings = draw(st.lists(st.sampled_from(["ring", "fc", "switch"]), min_size=1, max_size=3))
    sizes: list[int] = []
    for _ in wirings:
        sizes.append(draw(st.integers(1, max(1, min(5, most // math.prod(sizes))))))
    if math.prod(sizes) == 1:
        sizes[0] = 3
    spec = "*".join(f"{wiring}:{size}" for wiring, size in zip(wirings, sizes, strict=True))
    rates = [draw(st.sampled_from([GB_S, 2 * GB_S, 7_777_777])) for _ in wirings]
    return load_topology(spec, rates, [draw(ALPHAS) for _ in wirings])


@st.composite
def fabrics(draw: st.DrawFn) -> Topology:
    """Fabrics of switches, of which some links are slower than others; or their graph, shuffled."""
    spec, levels = draw(
        st.sampled_from(
            [
                *(("leaf-spine:3x2x2", 2), ("leaf-spine:2x3x1", 2), ("rails:3x2x1", 3)),
                *(("clos:2x2x2", 3), ("clos:2x2x2,oversubscription=2", 3), ("clos:1x2x3", 3)),
                *(("hyperx:2x3,p=1", 3), ("hyperx:3,p=2", 2), ("dragonfly:p=1,a=2,h=1", 3)),
            ]
        )
    )
    rates = [draw(st.sampled_from([GB_S, 2 * GB_S, 7_777_777])) for _ in range(levels)]
    network = load_topology(spec, rates, [draw(ALPHAS) for _ in range(levels)])
    return shuffled(network, draw(st.integers(0, 9)))[0] if draw(st.booleans()) else network


@examples(60)
@given(
    st.one_of(products(), fabrics()),
    st.sampled_from([1, 100, 4096, 5000]),
    st.sampled_from([1, 2]),
    COSTS,
)
def test_no_algorithm_is_faster(
    network: Topology, share: int, chunks: int, cost: CostModel
) -> None:
    demand = Collective.of("all-to-all", network.members, share * network.npus + 7, chunks)
    result = Case(network, demand, cost, 0).run()
    assert result.verified, result.verdict.violation
    assume(network.symmetry.transitive)
    bound = bound_of(network, demand, cost)
    assert 0 <= bound.ideal <= bound.time <= result.algorithm.time


@examples(40)
@given(st.data(), st.sampled_from([1, 100, 4097]), st.sampled_from([1, 2]), COSTS)
def test_no_algorithm_is_faster_after_failures(
    data: st.DataObject, share: int, chunks: int, cost: CostModel
) -> None:
    whole = data.draw(st.one_of(products(9), fabrics().filter(lambda one: one.translates)))
    links = data.draw(st.sets(st.integers(0, whole.links - 1), max_size=2))
    npus = data.draw(st.sets(st.integers(0, whole.npus - 1), max_size=min(2, whole.npus - 2)))
    pairs = {(int(whole.src[link]), int(whole.dst[link])) for link in links}
    network = whole.without(links=sorted(pairs)).without(npus=sorted(npus))
    demand = Collective.of("all-to-all", network.members, share * network.npus + 7, chunks)
    try:
        result = Case(network, demand, cost, 0).run()
    except UnreachableError:
        return
    bound = bound_of(network, demand, cost)
    assert 0 <= bound.ideal <= bound.time <= result.algorithm.time


@pytest.mark.parametrize(
    ("spec", "rates", "crossing", "ports"),
    [
        # Of 16 NPUs 12 are behind other leaves; 2 links lead up from the 4 NPUs of a leaf.
        ("clos:4x2x2,oversubscription=2", "1GB/s", 4 * 12, 2),
        # Of 16 NPUs 8 are in the other pod; 2 links lead up from the 8 NPUs of a pod.
        ("clos:4x2x2,oversubscription=2x2", "1GB/s", 8 * 8, 2),
        ("leaf-spine:4x3x2", "9GB/s,1GB/s", 4 * 8, 2),
        # A GPU has 24 in other boxes, and one network card.
        ("h100:4", "1GB/s", 24, 1),
        # 4 NPUs on a router send to 4 on each of 3 others, over a link each.
        ("hyperx:4,p=4", "9GB/s,1GB/s", 4 * 12, 3),
    ],
)
def test_links_that_are_shared(spec: str, rates: str, crossing: int, ports: int) -> None:
    network = load_topology(spec, rates, "0us")
    other = shuffled(network, 0)[0]
    for one in (network, other):
        demand = Collective.of("all-to-all", one.members, 1000 * one.npus, alignment=1)
        assert bound_of(one, demand, CostModel()).time == crossing * 1_000_000 // ports


def test_claims_are_not_believed() -> None:
    network = load_topology("leaf-spine:2x2x2")
    demand = Collective.of("all-to-all", range(4), 4000)
    assert applies(network, demand)
    slow = network.scaled([(4, 6)], 0.5)
    assert not applies(slow, demand)
    assert not applies(replace(slow, translates=True), demand)


def test_a_failed_npu_takes_its_pairs_and_its_links() -> None:
    """All steps that pairs need on the ring before, over the links that are left."""
    network = load_topology("ring:8", "1GB/s", "0us").without(npus=[3])
    demand = Collective.of("all-to-all", network.members, 7000, alignment=1)
    # 16 steps from each of 8 to all others, of which those from and to NPU 3 are none of ours.
    steps = 16 * 8 - 2 * 16
    assert bound_of(network, demand, CostModel()).time == steps // 12 * 1_000_000


def test_a_failed_npu_may_leave_all_others_alike() -> None:
    """A mesh without the NPU in its middle is a ring: 16 steps from each of 8, over 16 links."""
    network = load_topology("mesh:3x3", "1GB/s", "0us").without(npus=[4])
    demand = Collective.of("all-to-all", network.members, 8000, alignment=1)
    assert bound_of(network, demand, CostModel()).time == 16 * 8 // 16 * 1_000_000


@examples(30)
@given(products(), COSTS)
def test_as_strong_as_all_pairs(network: Topology, cost: CostModel) -> None:
    """Without α the best lengths are alike wherever translations take a link."""
    network = network.with_links(latency=0)
    demand = Collective.of("all-to-all", network.members, 4096 * network.npus)
    all_pairs = lower_bound(network, demand.chunks, cost)
    assert bound_of(network, demand, cost).ideal >= all_pairs.ideal * (1 - 1e-6)


@pytest.mark.parametrize(
    ("spec", "busiest"),
    [
        ("torus:8x8x8", 64 * 16 / 2),
        ("torus:4x6", 4 * 9 / 2),
        ("ring:7", 12 / 2),
        ("hypercube:5", 16),
        ("fc:5*fc:4", 5),
        ("switch:6*ring:3", 3 * 5),
        ("torus:32x32x32", 1024 * 256 / 2),
    ],
)
def test_the_busiest_dimension(spec: str, busiest: float) -> None:
    """Chunks a pair times the hops of a line, over the links of an NPU along it."""
    network = load_topology(spec, [GB_S], [US])
    demand = Collective.of("all-to-all", network.members, 1024 * network.npus)
    slot = 1024 * 1000 + US  # α blocks
    switched = US if "switch" in spec else 0  # the other link of the way
    found = bound_of(network, demand, CostModel("blocking"))
    assert (found.time, found.kind) == (math.ceil(busiest) * slot + switched, "flow")


def test_a_speed_for_each_dimension() -> None:
    network = load_topology("torus:4x4", [4 * GB_S, GB_S], [0, 0])
    demand = Collective.of("all-to-all", network.members, 1024 * 16)
    assert bound_of(network, demand, CostModel()).time == 8 * 1024 * 1000


def test_chunks_need_not_be_listed() -> None:
    network = load_topology("torus:32x32x32")
    demand = Collective.of("all-to-all", network.members, network.npus << 20)
    assert demand_bound(network, demand, CostModel()).kind == "flow"


def test_only_where_everybody_takes_part() -> None:
    network, cost = load_topology("torus:4x4"), CostModel()
    some = Collective.of("all-to-all", range(8), 4096)
    assert not applies(network, some)
    assert demand_bound(network, some, cost) == lower_bound(network, some.chunks, cost)
    assert not applies(network.without(npus=[3]), some)
    assert not applies(load_topology("mesh:4x4"), Collective.of("all-to-all", range(16), 4096))


def test_sums_of_distances_do_not_depend_on_ranks() -> None:
    network = load_topology("torus:3x5")
    order = np.random.default_rng(0).permutation(15)
    bounds = {
        bound_of(network, Collective.of("all-to-all", group, 1 << 20), CostModel())
        for group in (network.members, order)
    }
    assert len(bounds) == 1


def test_a_claim_that_is_not_true_proves_nothing() -> None:
    """From the end of a line it is farther to the others than from its middle."""
    network = load_topology("line:3*ring:4", "1GB/s,1000GB/s", "0us")
    demand = Collective.of("all-to-all", network.members, 12 << 14)
    honest = demand_bound(network, demand, CostModel())
    assert demand_bound(replace(network, translates=True), demand, CostModel()) == honest
