"""The concurrent-flow bound: known values, and no false ones whatever the lengths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.strategies import COSTS, GB_S, US, cases, group_collectives, irregular, roomy
from weft import _core
from weft.bounds import lower_bound, quick_bound
from weft.bounds.classes import ChunkClasses
from weft.bounds.flows import Flows
from weft.bounds.sweeps import best_sweep
from weft.collective import Chunks, Collective
from weft.cost import CostModel
from weft.topology import Topology, load_topology

MB = 10**6
RATE = 50 * GB_S


def pairwise(network: Topology, each: int = MB, chunks: int = 1) -> Collective:
    """All-to-All with so many bytes per pair."""
    members = network.members
    return Collective.of("all-to-all", members, each * len(members), chunks)


def network_of(spec: str) -> Topology:
    return load_topology(spec, bandwidth=[RATE], latency=[0])


def flows_of(network: Topology, demand: Collective, cost: CostModel) -> Flows:
    return Flows.of(network, ChunkClasses.of(demand.chunks), cost)


@pytest.mark.parametrize(
    ("spec", "microseconds"),
    [
        *(("mesh:3x3", 120), ("mesh:4x4", 320), ("mesh:5x5", 600), ("mesh:6x6", 1080)),
        *(("mesh:8x8", 2560), ("torus:4x4", 160), ("torus:8x8", 1280)),
        *(("hypercube:3", 80), ("hypercube:4", 160), ("hypercube:5", 320)),
        *(("mesh:4x4x4", 1280), ("torus:4x4x4", 640)),
    ],
)
def test_all_to_all_of_known_networks(spec: str, microseconds: int) -> None:
    """The optimum of the linear program, for 1 MB a pair at 50 GB/s."""
    network = network_of(spec)
    chunks = pairwise(network).chunks
    bound = lower_bound(network, chunks, CostModel())
    assert bound.time == microseconds * US
    assert bound.ideal == pytest.approx(microseconds * US, abs=2)
    assert quick_bound(network, chunks, CostModel(), MB) == microseconds * US


def test_all_to_all_of_a_dgx1() -> None:
    """106.67 µs in any chunks; whole chunks of 1 MB cannot share out the links so well."""
    network = load_topology("dgx1", latency=[0])
    bound = lower_bound(network, pairwise(network).chunks, CostModel())
    assert bound.kind == "flow"
    assert bound.ideal == pytest.approx(320 / 3 * US, rel=1e-7)
    assert bound.time == 120 * US


@pytest.mark.parametrize("model", ["pipelined", "blocking"])
def test_latency_counts(model: str) -> None:
    """Each of 8 chunks per link holds it for α too where that blocks; else α is paid once."""
    network = load_topology("torus:4x4", bandwidth=[RATE], latency=[1000])
    bound = lower_bound(network, pairwise(network).chunks, CostModel(model))
    alphas = 8 if model == "blocking" else 1
    assert bound.time == 160 * US + alphas * 1000
    assert bound.ideal == pytest.approx(160 * US + 1000, abs=2)


@pytest.mark.parametrize(("seed", "optimum"), [(1, 2160), (2, 2288)])
def test_links_missing_from_a_mesh(seed: int, optimum: int) -> None:
    """Close to the optimum of the linear program, and below any flow's busiest link."""
    network = network_of("mesh:6x8")
    random = np.random.default_rng(seed)
    cables = np.flatnonzero(network.src < network.dst)
    gone = random.choice(cables, 8, replace=False)
    ends = [(int(network.src[link]), int(network.dst[link])) for link in gone]
    network = network.without(links=[*ends, *((b, a) for a, b in ends)])
    flows = flows_of(network, pairwise(network), CostModel())
    lengths, loads = _core.balance(flows.network, flows.capacity, flows.bytes, 1e9, 30_000_000, 1)
    proven = flows.seconds(flows.polished(lengths, loads, 1e9, 300))
    assert 0.94 * loads.max() < proven < loads.max() * (1 + 1e-9)
    bound = lower_bound(network, pairwise(network).chunks, CostModel())
    assert 0.99 * optimum * US < bound.ideal <= optimum * US


def test_threads_do_not_matter() -> None:
    network = network_of("mesh:6x6").without(links=[(0, 1), (14, 20)])
    flows = flows_of(network, pairwise(network), CostModel())
    found = [
        _core.balance(flows.network, flows.capacity, flows.bytes, 1e9, 10**6, threads)
        for threads in (1, 2, 5)
    ]
    for lengths, loads in found[1:]:
        assert (lengths == found[0][0]).all()
        assert (loads == found[0][1]).all()


def test_a_sweep_finds_the_middle_of_a_mesh() -> None:
    network = network_of("mesh:4x10")
    flows = flows_of(network, pairwise(network), CostModel())
    inside = best_sweep(network, flows.capacity, flows.src, flows.dst, flows.amount, 6)
    assert inside.sum() == 20
    assert (inside[network.src] & ~inside[network.dst]).sum() == 4


def test_groups_are_bounded_together() -> None:
    """Two All-to-Alls share the links that one alone would have for itself."""
    network = network_of("line:4")
    one = Collective.of("all-to-all", [0, 3], 2 * MB)
    two = Collective.of("all-to-all", [1, 2], 2 * MB)
    alone = lower_bound(network, one.chunks, CostModel()).ideal
    chunks = type(one.chunks).concatenate([one.chunks, two.chunks])
    together = lower_bound(network, chunks, CostModel())
    assert alone == pytest.approx(20 * US, abs=2)
    assert together.ideal == pytest.approx(40 * US, abs=2)


def test_nobody_else_may_relay() -> None:
    """A row of a mesh has no way round through other rows."""
    network = network_of("mesh:4x4")
    bounds = [
        lower_bound(
            network,
            Collective.of("all-to-all", range(4), 4 * MB, relay=relay).chunks,
            CostModel(),
        )
        for relay in (True, False)
    ]
    assert bounds[1].ideal == pytest.approx(80 * US, abs=2)
    assert bounds[0].ideal < 0.8 * bounds[1].ideal


@examples(100)
@given(st.data(), irregular(npus=8), COSTS, st.integers(0, 9))
def test_several_at_once(
    data: st.DataObject, network: Topology, cost: CostModel, seed: int
) -> None:
    demands = data.draw(st.lists(group_collectives(network), min_size=1, max_size=3))
    network = roomy(network, demands, cost)
    result = weft.synthesize(
        network,
        demands,
        chunks=[demand.chunks_per_share for demand in demands],
        seed=seed,
        threads=1,
        latency_model=cost.latency_model,
        switching=cost.switching,
    )
    assert result.verified, result.verdict.violation
    full = lower_bound(network, result.algorithm.chunks, cost)
    for bound in (result.bound, full):
        assert 0 <= bound.ideal <= bound.time <= result.algorithm.time


@examples(100)
@given(cases(irregular(npus=8)), st.data())
def test_no_lengths_prove_too_much(case, data: st.DataObject) -> None:
    length = st.one_of(st.sampled_from([0, 1]), st.integers(0, 2**40))
    links = case.network.links
    lengths = np.array(data.draw(st.lists(length, min_size=links, max_size=links)), dtype=np.int64)
    result = case.run()
    assert result.verified, result.verdict.violation
    flows = flows_of(case.network, case.collective, case.cost)
    time, ideal = flows.prove(lengths, flows.total(lengths))
    assert 0 <= ideal <= time <= result.algorithm.time


def test_where_there_is_no_way() -> None:
    """What cannot go anywhere is for others to say; the rest still counts."""
    for ends in ([], [(0, 1), (1, 0)]):
        network = Topology.from_links(
            "parts", 3, [a for a, _ in ends], [b for _, b in ends], [GB_S] * len(ends), 0
        )
        chunks = pairwise(network).chunks
        assert quick_bound(network, chunks, CostModel(), MB) >= MB * 1000 * bool(ends)
        with pytest.raises(weft.UnreachableError):
            weft.synthesize(network, "all-to-all", 3 * MB)


def test_all_rows_gather_at_once() -> None:
    """All groups cross the same planes: 7 of 8 shares over each link between the last columns."""
    rows = [Collective.of("all-gather", range(r, r + 8), 1 << 20, 4) for r in range(0, 64, 8)]
    chunks = Chunks.concatenate([row.chunks for row in rows])
    network = load_topology("mesh:8x8").with_links(bandwidth=50 * GB_S, latency=0)
    bound = lower_bound(network, chunks, CostModel())
    assert bound.kind == "cut"
    assert bound.ideal_us == pytest.approx(7 / 8 * (1 << 20) / 50e9 * 1e6)
