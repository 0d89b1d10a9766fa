"""Steiner trees for any mix of demands: right by both judges, within reach, as good as known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.judge.reference import is_right
from tests.strategies import COSTS, GB_S, US, irregular, networks, roomy
from weft import _core
from weft.algorithm import Algorithm
from weft.bounds import lower_bound
from weft.collective import Chunks, Collective, Move, all_to_allv, custom
from weft.cost import CostModel
from weft.errors import UnreachableError
from weft.judge import verify
from weft.planners import Problem
from weft.planners.methods.steiner import plan_steiner
from weft.planners.schedule import transfers_of
from weft.topology import Topology, load_topology

MIB = 1 << 20


def run(
    network: Topology,
    demands: Sequence[Collective],
    cost: CostModel | None = None,
    seed: int = 0,
    threads: int = 1,
) -> Algorithm:
    cost = cost or CostModel()
    network = roomy(network, demands, cost)
    chunks = Chunks.concatenate([demand.chunks for demand in demands])
    schedule = plan_steiner(Problem.of(network, demands, cost, seed=seed, threads=threads))
    transfers, routes = transfers_of([schedule], network, cost, chunks.bytes)
    return Algorithm(tuple(demands), transfers, network, routes, cost)


def check(algorithm: Algorithm) -> None:
    verdict = verify(algorithm)
    assert verdict.ok, verdict.violation
    if len(algorithm.transfers) < 300:
        assert is_right(algorithm)
    assert algorithm.topology is not None
    assert algorithm.cost is not None
    bound = lower_bound(algorithm.topology, algorithm.chunks, algorithm.cost)
    assert bound.time <= algorithm.time


def over_bound(algorithm: Algorithm) -> float:
    check(algorithm)
    assert algorithm.topology is not None
    assert algorithm.cost is not None
    bound = lower_bound(algorithm.topology, algorithm.chunks, algorithm.cost)
    return algorithm.time / bound.time


@st.composite
def mixes(draw: st.DrawFn, network: Topology) -> list[Collective]:
    """Overlapping groups, each with copies and sums of many sizes from any NPUs to any."""
    members = network.members.tolist()
    demands = []
    for _ in range(draw(st.integers(1, 3))):
        group = draw(st.lists(st.sampled_from(members), min_size=1, unique=True))
        some = st.lists(st.integers(0, len(group) - 1), min_size=1, unique=True).map(tuple)
        sizes = st.one_of(st.sampled_from([1, 1000, 1001, MIB]), st.integers(1, 1 << 30))
        moves = draw(
            st.lists(st.builds(Move, sizes, some, some, st.booleans()), min_size=1, max_size=6)
        )
        demands.append(custom(group, moves, chunks_per_share=draw(st.integers(1, 3))))
    return demands


@examples(200)
@given(networks(), COSTS, st.integers(0, 99), st.data())
def test_any_mix(network: Topology, cost: CostModel, seed: int, data: st.DataObject) -> None:
    check(run(network, data.draw(mixes(network)), cost, seed))


@examples(30)
@given(irregular(), st.integers(0, 99), st.data())
def test_threads_never_change_the_result(network: Topology, seed: int, data: st.DataObject) -> None:
    demands = data.draw(mixes(network))
    one, four = (run(network, demands, seed=seed, threads=threads) for threads in (1, 4))
    for name, column in one.transfers.columns().items():
        assert np.array_equal(column, four.transfers.columns()[name])


@examples(100)
@given(networks(), st.sampled_from(["all-gather", "reduce-scatter", "all-reduce"]), st.data())
def test_each_within_its_reach(network: Topology, kind: str, data: st.DataObject) -> None:
    """Groups that may not be relayed by others keep to themselves, or there is no way at all."""
    members = network.members.tolist()
    groups = [
        data.draw(st.lists(st.sampled_from(members), min_size=1, unique=True)) for _ in range(2)
    ]
    demands = [Collective.of(kind, group, 9999, relay=i > 0) for i, group in enumerate(groups)]
    try:
        algorithm = run(network, demands)
    except UnreachableError:
        with pytest.raises(UnreachableError, match="relaying outside is forbidden"):
            run(network, demands[:1])
        return
    check(algorithm)
    rows = algorithm.transfers.chunk < len(demands[0].chunks)
    assert np.isin(algorithm.transfers.dst[rows], groups[0]).all()


def test_no_way() -> None:
    network = Topology.from_links("one way", 3, [0, 1], [1, 2], GB_S, US)
    for move in (Move(9, (2,), (0,)), Move(9, (0, 2), (1,), True), Move(9, (0, 1), (0, 2), True)):
        with pytest.raises(UnreachableError, match=r"cannot get from NPU \d to NPU \d"):
            run(network, [custom([0, 1, 2], [move])])


def test_nothing_to_do() -> None:
    network = load_topology("ring:4")
    stay = [Move(9, (1,), (1,)), Move(9, (0, 1, 2), (0, 2)), Move(9, (3,), (3,), True)]
    assert len(run(network, [custom([0, 1, 2, 3], stay)]).transfers) == 0


def test_a_sum_is_copied_from_where_it_is_complete() -> None:
    """Two contributors meet half way; beyond that the sum is complete, and rows are copies."""
    network = Topology.from_links("fork", 5, [0, 1, 2, 3], [2, 2, 3, 4], GB_S, US)
    for takers in ((4,), (3, 4), (2, 3, 4)):
        algorithm = run(network, [custom(range(5), [Move(1000, (0, 1), takers, True)])])
        check(algorithm)
        rows = zip(algorithm.transfers.src, algorithm.transfers.reduce, strict=True)
        assert sorted((int(src), bool(added)) for src, added in rows) == [
            *((0, True), (1, True), (2, False)),
            (3, False),
        ]


def test_the_nearest_holder_sends() -> None:
    network = load_topology("line:6")
    algorithm = run(network, [custom(range(6), [Move(1000, (0, 5), (1, 4))])])
    check(algorithm)
    assert len(algorithm.transfers) == 2


def test_cancelled() -> None:
    network, demand = load_topology("ring:4"), Collective.of("all-reduce", range(4), 99)
    progress = _core.Progress()
    progress.cancel()
    with pytest.raises(_core.Cancelled):
        plan_steiner(Problem.of(network, demand, progress=progress))


def rows_of(side: int) -> list[range]:
    return [range(side * i, side * i + side) for i in range(side)]


@pytest.mark.parametrize(
    ("kind", "sixths"), [("all-gather", 5), ("reduce-scatter", 5), ("all-to-all", 9)]
)
def test_rows_of_a_mesh_at_once(kind: str, sixths: int) -> None:
    """All rows do the same, so others are no help: a link carries what it would in a line alone."""
    network = load_topology("mesh:6x6")
    joint = run(network, [Collective.of(kind, row, 60 * MIB, 4) for row in rows_of(6)])
    check(joint)
    busiest = sixths * 10 * MIB / float(network.bandwidth[0])
    assert joint.time <= 1.02 * busiest * 1e12


def test_different_demands_at_once() -> None:
    """An All-to-Allv in one row beside an All-Gather in another, with sizes that do not divide."""
    sizes = [[0, 5 * MIB, 7 * MIB], [MIB, 0, 3 * MIB + 1], [6 * MIB, 2 * MIB, 0]]
    demands = [
        all_to_allv([0, 1, 2], sizes, chunks_per_share=8),
        Collective.of("all-gather", [6, 7, 8], 24 * MIB, 8),
    ]
    assert over_bound(run(load_topology("mesh:3x3"), demands)) < 1.25


def test_rails_and_boxes_at_once() -> None:
    rails = [Collective.of("all-reduce", (i, 8 + i), 64 * MIB, 8) for i in range(8)]
    boxes = [Collective.of("all-reduce", range(8 * i, 8 * i + 8), 128 * MIB, 4) for i in range(2)]
    algorithm = run(load_topology("h100:2"), [*rails, *boxes])
    check(algorithm)
    rail_time = 64 * MIB / 50e9  # each NPU sends what it has over its own NIC
    assert algorithm.time < 1.1 * rail_time * 1e12


@pytest.mark.parametrize(("spec", "ratio"), [("mesh:8x8", 1.1), ("torus:8x8", 1.15)])
def test_scattered_group(spec: str, ratio: float) -> None:
    group = [3, 12, 17, 30, 41, 44, 54, 63]
    assert (
        over_bound(run(load_topology(spec), [Collective.of("all-gather", group, MIB << 7, 8)]))
        < ratio
    )
