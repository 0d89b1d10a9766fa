"""Symmetric plans: right on any product, at the bound where that is known to be met."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.strategies import COSTS
from weft.algorithm import Algorithm, SymmetricRows
from weft.bounds import lower_bound
from weft.collective import Collective
from weft.cost import CostModel, LatencyModel
from weft.errors import InputError
from weft.judge.table import judge_table
from weft.planners import Problem, produce
from weft.planners.methods.symmetric import plan_symmetric
from weft.planners.symmetry import is_symmetric, symmetric_floor
from weft.topology import Topology, load_topology
from weft.topology.builders import parse_topology

KINDS = ["all-gather", "reduce-scatter", "all-reduce", "all-to-all"]


@st.composite
def _products(draw: st.DrawFn) -> Topology:
    """A product that translates onto itself, with a speed per factor."""
    factor = st.one_of(
        st.builds("{}:{}".format, st.sampled_from(["ring", "fc", "switch"]), st.integers(1, 6)),
        st.sampled_from(["hypercube:2", "hypercube:3", "line:2"]),
    )
    factors = draw(st.lists(factor, min_size=1, max_size=3))
    rates = [draw(st.sampled_from([10**9, 2 * 10**9, 3 * 10**9, 7_777_777])) for _ in factors]
    alphas = [draw(st.sampled_from([0, 1, 700, 500_000])) for _ in factors]
    network = parse_topology("*".join(factors), bandwidth=rates, latency=alphas)
    assume(1 < network.npus <= 72)
    return network


@examples(120)
@given(
    _products(),
    st.sampled_from(KINDS),
    st.integers(1, 4),
    st.integers(1, 10**6),
    st.sampled_from([1, 5, 16]),
    COSTS,
    st.integers(0, 3),
    st.data(),
)
def test_right_on_any_product(
    network: Topology,
    kind: str,
    chunks: int,
    size: int,
    alignment: int,
    cost: CostModel,
    seed: int,
    data: st.DataObject,
) -> None:
    demand = Collective.of(kind, range(network.npus), size, chunks, None, alignment)
    assume(is_symmetric(network, [demand]))
    algorithm = plan_symmetric(Problem.of(network, demand, cost, seed=seed))
    verdict = judge_table(algorithm)
    assert verdict.ok, verdict.violation
    rows = algorithm.transfers
    assert len(rows) == len(algorithm)
    assert rows.end is not None
    assert algorithm.time == rows.end.max()
    floor = symmetric_floor(network, demand, cost)
    assert floor <= algorithm.time
    _check_of_npu(algorithm, data.draw(st.integers(0, network.npus - 1)))


def _check_of_npu(algorithm: Algorithm, npu: int) -> None:
    rows, own = algorithm.transfers, algorithm.of_npu(npu)
    mine = rows.selected(np.flatnonzero((rows.src == npu) | (rows.dst == npu)))
    assert own.columns().keys() == mine.columns().keys()
    for name, column in own.columns().items():
        assert column.dtype == mine.columns()[name].dtype
        assert np.array_equal(column, mine.columns()[name])


@examples(40)
@given(_products(), st.sampled_from(KINDS), st.integers(1, 3), COSTS)
def test_floors_are_no_higher_than_what_is_reached(
    network: Topology, kind: str, chunks: int, cost: CostModel
) -> None:
    """Beside any other method: a floor that is too high would end the search too early."""
    demand = Collective.of(kind, range(network.npus), 1000 * chunks * network.npus, chunks)
    other = produce(network, [demand], cost=cost, method="steiner", threads=1)
    assert symmetric_floor(network, demand, cost) <= other.time


def _one_speed(spec: str, kind: str, chunks: int) -> tuple[Topology, Collective]:
    """Chunks of 1 MiB."""
    network = load_topology(spec, "50GiB/s", "0.5us")
    size = chunks * network.npus << 20
    return network, Collective.of(kind, range(network.npus), size, chunks)


PUSH = 19_531_250  # ps of such a chunk
SLOT = PUSH + 500_000  # with blocking α

# Slots of an All-Gather: all chunks but one's own through as many links as there are.
MET = [
    ("ring:9", 1, 4),
    ("ring:8", 2, 7),
    ("torus:5x7", 1, 9),
    ("torus:8x8", 1, 16),
    ("torus:8x8", 3, 48),
    ("torus:16x16", 1, 64),
    ("torus:4x4x4", 1, 11),
    ("torus:8x8x8", 1, 86),
    ("torus:16x16x16", 1, 683),
    ("torus:32x32x32", 1, 5462),
    ("torus:40x3", 1, 30),
    ("hypercube:7", 1, 19),
    ("hypercube:10", 2, 205),
    ("fc:16", 1, 1),
    ("fc:16", 3, 3),
    ("ring:4*fc:4", 1, 3),
    ("fc:8*ring:8", 2, 14),
]


@pytest.mark.parametrize(("spec", "chunks", "slots"), MET)
def test_one_speed_meets_the_bound(spec: str, chunks: int, slots: int) -> None:
    network, demand = _one_speed(spec, "all-gather", chunks)
    cost = CostModel("blocking")
    for seed in range(3):
        algorithm = plan_symmetric(Problem.of(network, demand, cost, seed=seed))
        assert algorithm.time == slots * SLOT
        assert algorithm.time == symmetric_floor(network, demand, cost)


@pytest.mark.parametrize(("spec", "slots"), [("switch:16", 15), ("switch:8*switch:4", 16)])
def test_ports_of_switches_meet_the_bound(spec: str, slots: int) -> None:
    network, demand = _one_speed(spec, "all-gather", 1)
    cost = CostModel("pipelined")
    algorithm = plan_symmetric(Problem.of(network, demand, cost))
    assert lower_bound(network, demand.chunks, cost).time <= algorithm.time
    assert algorithm.time <= slots * PUSH + 2_000_000


@pytest.mark.parametrize(
    ("spec", "chunks", "slots"),
    [
        ("torus:4x4", 1, 8),
        ("torus:5x7", 1, 30),
        ("torus:8x8", 1, 64),
        ("torus:4x4x4", 2, 64),
        ("torus:8x8x8", 1, 512),
        ("ring:8", 2, 16),
        ("hypercube:5", 1, 16),
        ("fc:8", 3, 3),
        ("fc:4*fc:4", 1, 4),
    ],
)
def test_all_to_all_takes_as_long_as_its_busiest_link(spec: str, chunks: int, slots: int) -> None:
    network, demand = _one_speed(spec, "all-to-all", chunks)
    cost = CostModel("blocking")
    algorithm = plan_symmetric(Problem.of(network, demand, cost))
    assert algorithm.time == slots * SLOT == symmetric_floor(network, demand, cost)


@pytest.mark.parametrize(
    ("spec", "rates"),
    [
        ("torus:4x4x8", [50, 25, 12]),
        ("torus:8x8", [50, 25]),
        ("torus:16x8", [80, 35]),
        ("ring:2*fc:8*ring:8*switch:4", [250, 200, 100, 50]),
    ],
)
def test_speeds_by_dimension_meet_the_bound(spec: str, rates: list[int]) -> None:
    network = parse_topology(spec, bandwidth=[rate * 10**9 for rate in rates], latency=[500_000])
    demand = Collective.of("all-gather", range(network.npus), network.npus << 22, 4)
    cost = CostModel("blocking")
    algorithm = plan_symmetric(Problem.of(network, demand, cost))
    assert algorithm.time == symmetric_floor(network, demand, cost)


@pytest.mark.parametrize("latency_model", ["blocking", "pipelined"])
@pytest.mark.parametrize(
    ("spec", "rates"), [("torus:8x8", [500, 50]), ("torus:4x4x4", [500, 50, 5])]
)
def test_slow_dimensions_enter_new_parts_first(
    spec: str, rates: list[int], latency_model: LatencyModel
) -> None:
    network = parse_topology(spec, bandwidth=[rate * 10**8 for rate in rates], latency=[500_000])
    demand = Collective.of("all-gather", range(network.npus), network.npus << 20)
    cost = CostModel(latency_model)
    algorithm = plan_symmetric(Problem.of(network, demand, cost))
    assert algorithm.time == symmetric_floor(network, demand, cost)


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_rows(kind: str) -> None:
    network = load_topology("torus:4x5*switch:3")
    demand = Collective.of(kind, range(network.npus), 100_000, 2)
    made = [
        plan_symmetric(Problem.of(network, demand, seed=7, threads=threads)) for threads in (1, 4)
    ]
    one, same = (algorithm.rows for algorithm in made)
    assert isinstance(one, SymmetricRows)
    assert isinstance(same, SymmetricRows)
    for name in ("chunk", "src", "dst", "reduce", "start"):
        assert np.array_equal(getattr(one, name), getattr(same, name))


@pytest.mark.parametrize("kind", KINDS)
def test_chosen_where_nothing_is_better(kind: str) -> None:
    network, demand = _one_speed("torus:4x4", kind, 4)
    result = weft.synthesize(network, demand, chunks=4, latency_model="blocking")
    assert result.algorithm.provenance["method"] == "symmetric"
    assert result.verified
    assert result.algorithm.time == result.bound.time


def test_chunks_are_never_listed() -> None:
    """Sixteen million chunks are planned as those of one NPU."""
    network = load_topology("torus:16x16x16")
    demand = Collective.of("all-to-all", range(network.npus), network.npus << 10)
    algorithm = produce(network, [demand], cost=CostModel("blocking"))
    assert "chunks" not in vars(demand)
    assert algorithm.time == symmetric_floor(network, demand, CostModel("blocking"))
    own = algorithm.of_npu(77)
    assert len(own) == 2 * len(algorithm) // network.npus
    assert own.chunk.max() < demand.chunk_count


@pytest.mark.parametrize(
    ("spec", "kind", "options"),
    [
        ("mesh:3x3", "all-gather", {}),
        ("torus:3x3", "broadcast", {}),
        ("torus:3x3", "all-gather", {"group": [0, 1, 2]}),
        ("torus:3x3", "all-gather", {"group": [1, 0, *range(2, 9)]}),
        ("switch:4,buffer=1MiB", "all-gather", {}),
    ],
)
@pytest.mark.parametrize("chunks", [None, 2])
def test_a_sentence_where_it_does_not_apply(
    spec: str, kind: str, options: dict[str, list[int]], chunks: int | None
) -> None:
    with pytest.raises(InputError, match="method symmetric plans one collective"):
        weft.synthesize(spec, kind, "1MiB", method="symmetric", chunks=chunks, **options)
