"""No verified algorithm is faster than the bound: the promise a bound makes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.strategies import (
    COSTS,
    GB_S,
    NAMED,
    US,
    Case,
    cases,
    damaged,
    group_collectives,
    irregular,
    reachable,
)
from weft import _core
from weft.algorithm import Algorithm, Routes, Timing, Transfers
from weft.bounds import lower_bound, quick_bound
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import UnreachableError
from weft.judge import verify
from weft.topology import Topology, load_topology

BOXES = st.sampled_from(
    ["h100:2", "ndv2:2", "dgx2:2,multicast", "leaf-spine:3x3x1", "dragonfly:3x3", "rails:3x2"]
)


def check(case: Case, trials: int) -> None:
    """Neither the bound searched up to the algorithm's time nor the full one is above it."""
    result = case.run(trials=trials)
    assert result.verified, result.verdict.violation
    full = lower_bound(case.network, result.algorithm.chunks, case.cost)
    for bound in (result.bound, full):
        assert 0 <= bound.ideal <= bound.time <= result.algorithm.time


@examples(250)
@given(cases(irregular(switches=0)), st.sampled_from([1, 4, 8]))
def test_without_switches(case: Case, trials: int) -> None:
    check(case, trials)


@examples(100)
@given(cases(damaged().filter(reachable)), st.sampled_from([1, 4]))
def test_after_failures(case: Case, trials: int) -> None:
    check(case, trials)


@examples(200)
@given(cases(irregular()), st.sampled_from([1, 4, 8]))
def test_with_switches(case: Case, trials: int) -> None:
    check(case, trials)


@st.composite
def shared(draw: st.DrawFn) -> tuple[Topology, list[Collective], CostModel]:
    """Several groups at once, each with sums or copies for many; others relay or may not."""
    network = draw(st.one_of(irregular(), BOXES.map(load_topology)))
    kinds = ("all-reduce", "all-reduce", "reduce", "broadcast", "all-gather", "reduce-scatter")
    groups = st.booleans().flatmap(
        lambda relay: group_collectives(network, relay=relay, kinds=kinds)
    )
    return network, draw(st.lists(groups, min_size=1, max_size=3)), draw(COSTS)


@examples(100)
@given(shared())
def test_groups_at_once(case: tuple[Topology, list[Collective], CostModel]) -> None:
    """One bound for all of them, also as planners see it, and one for each alone."""
    network, demands, cost = case
    try:
        result = weft.synthesize(
            network,
            demands,
            chunks=[demand.chunks_per_share for demand in demands],
            latency_model=cost.latency_model,
            switching=cost.switching,
        )
    except UnreachableError:  # nobody else may relay, and there is no other way
        return
    assert result.verified, result.verdict.violation
    chunks = result.algorithm.chunks
    full = lower_bound(network, chunks, cost)
    assert full.ideal <= full.time <= result.time
    assert quick_bound(network, chunks, cost) <= result.time
    for demand, time in zip(demands, result.algorithm.times, strict=True):
        assert lower_bound(network, demand.chunks, cost).time <= time


@pytest.mark.parametrize("kind", NAMED)
@pytest.mark.parametrize(
    "spec", ["switch:5", "switch:2*switch:3", "ring:3*switch:2", "a100:2", "h100:2", "dgx2:2"]
)
@examples(3)
@given(st.sampled_from([1, 999, 1 << 20]), COSTS, st.integers(0, 9))
def test_switches_of_equal_ports(
    spec: str, kind: str, size: int, cost: CostModel, seed: int
) -> None:
    network = load_topology(spec)
    check(Case(network, Collective.of(kind, network.members, size), cost, seed), 1)


def star(up: list[int], down: list[int], alpha: int) -> Topology:
    """One switch, with a speed of its own for every port and direction."""
    count = len(up)
    nodes, hub = list(range(count)), [count] * count
    return Topology.from_links(
        "star", count, nodes + hub, hub + nodes, up + down, alpha, switches=1
    )


def test_a_faster_and_a_slower_source() -> None:
    """Only the slow source's hop ends as it lets go of the port; the fast one's ends later."""
    network = star([11 * GB_S // 10, 9 * GB_S // 10, GB_S], [GB_S] * 3, US // 2)
    check(Case(network, Collective.of("gather", range(3), 4800, root=2), CostModel(), 0), 1)


def test_a_faster_and_a_slower_source_where_latency_blocks() -> None:
    network = star([GB_S, GB_S, 2 * GB_S, 2 * GB_S], [2 * GB_S, GB_S, GB_S, GB_S], US // 2)
    demand = Collective.of("gather", range(4), 1000, 4, root=3)
    for seed in range(50, 60):
        check(Case(network, demand, CostModel("blocking"), seed), 8)


def test_random_stars() -> None:
    random = np.random.default_rng(0)
    speeds = [9 * GB_S // 10, GB_S, 11 * GB_S // 10, 2 * GB_S]
    for seed in range(150):
        count = int(random.integers(2, 6))
        up, down = (random.choice(speeds, count).tolist() for _ in range(2))
        network = star(up, down, int(random.choice([0, 1000, US])))
        kind = NAMED[seed % len(NAMED)]
        model = ["pipelined", "blocking"][seed % 2]
        demand = Collective.of(kind, range(count), 4800, int(random.integers(1, 5)))
        check(Case(network, demand, CostModel(model), seed), 4)


def one_hop(network: Topology, demand: Collective, links: list[int], end: int) -> Algorithm:
    """The chunk goes from NPU 0 to NPU 1 over these links, at once."""
    column = lambda value, dtype: np.array([value], dtype=dtype)  # noqa: E731
    transfers = Transfers(
        column(0, np.int32),
        column(0, np.int32),
        column(1, np.int32),
        column(False, np.bool_),
        column(0, np.int32),
        column(0, np.int64),
        column(end, np.int64),
    )
    routes = Routes(np.array([0, len(links)]), np.array(links, dtype=np.int32))
    return Algorithm((demand,), transfers, Timing(network, CostModel(), routes))


def test_a_longer_way_through_faster_switches() -> None:
    """Two slow links by one switch, three fast ones by two others."""
    slow, fast = 10**6, GB_S
    network = Topology.from_links(
        "detour",
        2,
        [0, 2, 0, 3, 4, 1],
        [2, 1, 3, 4, 1, 0],
        [slow, slow, fast, fast, fast, fast],
        0,
        switches=3,
    )
    demand = Collective.of("broadcast", range(2), 16_000, root=0)
    by_hand = one_hop(network, demand, [2, 3, 4], 16_000 * 1000)
    assert verify(by_hand)
    assert lower_bound(network, demand.chunks, CostModel()).time <= by_hand.time


def test_more_equal_ways_than_are_listed() -> None:
    """Ten switches side by side; the last one is the fast one."""
    count = 10
    hubs = list(range(2, 2 + count))
    rates = [10**6] * (count - 1) + [GB_S]
    network = Topology.from_links(
        "side by side",
        2,
        [0] * count + hubs + [1],
        hubs + [1] * count + [0],
        [*rates, *rates, GB_S],
        0,
        switches=count,
    )
    demand = Collective.of("broadcast", range(2), 16_000, root=0)
    by_hand = one_hop(network, demand, [count - 1, 2 * count - 1], 16_000 * 1000)
    assert verify(by_hand)
    assert lower_bound(network, demand.chunks, CostModel()).time <= by_hand.time


@pytest.mark.parametrize("model", ["pipelined", "blocking"])
def test_a_trunk_to_a_slow_and_to_fast_ports(model: str) -> None:
    """A hop to the slow port holds the trunk from its start, hops to the fast ones to their end."""
    push, alpha = 10**6, US // 2
    network = Topology.from_links(
        "trunk",
        6,
        [0] * 5 + [6] + [7] * 5 + [1],
        [6] * 5 + [7] + [1, 2, 3, 4, 5] + [0],
        [GB_S] * 6 + [GB_S // 2] + [GB_S] * 5,
        alpha,
        switches=2,
    )
    demand = Collective.of("scatter", range(6), 6000, root=0, alignment=1000)
    held, hop = push + (alpha if model == "blocking" else 0), push + 3 * alpha
    first = max(0, 2 * held - hop)  # when the trunk is free again, less what comes before it
    starts = [0, *(first + k * held for k in range(4))]
    ends = [2 * push + 3 * alpha, *(start + hop for start in starts[1:])]
    npus = np.arange(1, 6, dtype=np.int32)
    order = np.argsort(starts, kind="stable")
    transfers = Transfers(
        npus[order],
        np.zeros(5, dtype=np.int32),
        npus[order],
        np.zeros(5, dtype=bool),
        (npus - 1)[order],
        np.array(starts)[order],
        np.array(ends)[order],
    )
    routes = Routes(
        np.arange(0, 16, 3), np.array([[k, 5, 6 + k] for k in range(5)], np.int32).ravel()
    )
    by_hand = Algorithm((demand,), transfers, Timing(network, CostModel(model), routes))
    assert verify(by_hand)
    assert lower_bound(network, demand.chunks, CostModel(model)).time <= by_hand.time


def two_cliques(members: int, rate: int, bridge: int, alpha: int) -> Topology:
    """Two cliques, joined by one slow link each way between their first NPUs."""
    inside = [
        (clique * members + a, clique * members + b)
        for clique in range(2)
        for a in range(members)
        for b in range(members)
        if a != b
    ]
    ends = [*inside, (0, members), (members, 0)]
    return Topology.from_links(
        "two cliques",
        2 * members,
        [src for src, _ in ends],
        [dst for _, dst in ends],
        [rate] * len(inside) + [bridge] * 2,
        alpha,
    )


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
@pytest.mark.parametrize("model", ["pipelined", "blocking"])
def test_the_cut_between_two_cliques(kind: str, model: str) -> None:
    """Four chunks of 1000 B cross the bridge one after the other, or 4000 B in any chunks.

    The last has one more hop to go then, or in a sum the first has one to go before.
    """
    network = two_cliques(4, 100 * GB_S, GB_S, 1000)
    demand = Collective.of(kind, range(8), 8000, alignment=1000)
    bound = lower_bound(network, demand.chunks, CostModel(model))
    alphas = 4 if model == "blocking" else 1
    assert bound.kind == "cut"
    assert bound.time == 4 * 10**6 + alphas * 1000 + 10**4 + 1000
    assert bound.ideal == pytest.approx(4 * 10**6 + 2 * 1000, abs=2)


def test_the_cut_of_an_all_reduce() -> None:
    """The whole buffer crosses the bridge once each way."""
    network = two_cliques(4, 100 * GB_S, GB_S, 0)
    demand = Collective.of("all-reduce", range(8), 8000)
    bound = lower_bound(network, demand.chunks, CostModel())
    assert bound.kind == "regions"
    assert bound.ideal == pytest.approx(8 * 10**6, abs=2)
    assert bound.certificate.parts == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_gossip_bounds_an_all_reduce() -> None:
    """2(n-1) sends of the buffer over all 48 links of 1 GB/s, not the sum of two halves."""
    network = load_topology("mesh:4x4", bandwidth=[GB_S], latency=[0])
    demand = Collective.of("all-reduce", range(16), 16_000_000, 64)
    bound = lower_bound(network, demand.chunks, CostModel())
    assert bound.kind == "gossip"
    assert bound.ideal == pytest.approx(30 * 16e6 / 48 * 1e3, rel=1e-6)


@pytest.mark.parametrize(
    ("rate", "largest", "time"),
    [(18_380_000_000, 1009, 327_644), (70_820_000_000, 1023, 71_339)],
)
def test_sums_over_a_million_links_are_rounded_down(rate: int, largest: int, time: int) -> None:
    """By `time`, all links together let through just what is asked for."""
    links, smallest = 10**6, 1000
    gap = -(-smallest * 10**12 // rate)
    count = time // gap
    room = Fraction((time - gap) * rate, 10**12) + largest
    each = max(min(room, count * largest), (count - 1) * largest)
    gaps = np.full(links, gap)
    capacity = _core.Capacity(
        opens=gaps,
        first=gaps,
        bandwidth=np.full(links, rate),
        gap=gaps,
        overhead=np.full(links, 0),
    )
    total = links * each
    assert total.denominator == 1
    assert capacity.time_for_chunks(links * count, float(total), largest) <= time


def test_a_bound_is_the_same_each_time() -> None:
    network = load_topology("hypercube:4")
    for kind in NAMED:
        demand = Collective.of(kind, range(16), 10**6)
        found = {lower_bound(network, demand.chunks, CostModel()) for _ in range(10)}
        assert len(found) == 1


@pytest.mark.parametrize("kind", NAMED)
def test_nothing_need_move(kind: str) -> None:
    result = weft.synthesize("mesh:3x3", kind, 100, group=[4])
    assert (result.bound.time, result.bound.kind, result.bound.ideal) == (0, "none", 0)
