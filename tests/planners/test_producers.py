"""Every producer: right by the judge and by its slow double, bounded, the same on any threads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.judge.reference import is_right
from tests.strategies import (
    GB_S,
    NAMED,
    US,
    Case,
    cases,
    damaged,
    irregular,
    networks,
    reachable,
    same,
)
from weft import memory
from weft.collective import PATTERNS, Collective
from weft.cost import CostModel
from weft.errors import InputError, TopologyError, UnreachableError
from weft.judge import verify
from weft.planners import portfolio
from weft.planners.methods.matching import Matching
from weft.topology import Topology, load_topology

MODELS = [("pipelined", "cut-through"), ("blocking", "store-and-forward")]


def check(result: weft.Result) -> None:
    assert verify(result.algorithm).ok, result.verdict.violation
    assert result.verified
    if len(result.transfers) < 400:
        assert is_right(result.algorithm)


@examples(200)
@given(cases())
def test_random_cases(case: Case) -> None:
    result = case.run()
    check(result)
    assert result.bound.time >= result.bound.ideal
    assert result.collective == case.collective


@examples(60)
@given(cases())
def test_threads_never_change_the_result(case: Case) -> None:
    one = case.run(trials=3, threads=1)
    for threads in (2, 4):
        assert same(one.algorithm, case.run(trials=3, threads=threads).algorithm)


@examples(60)
@given(cases(irregular()), st.integers(2, 6))
def test_trials_count_up_from_the_seed(case: Case, trials: int) -> None:
    """The result of several trials is that of one of their seeds."""
    many = case.run(trials=trials)
    check(many)
    seeds = range(case.seed, case.seed + trials)
    singles = [Case(case.network, case.collective, case.cost, seed).run() for seed in seeds]
    assert many.algorithm.time == min(single.algorithm.time for single in singles)


def trial_times(case: Case) -> list[int]:
    return [case.run(trials=trials).algorithm.time for trials in (1, 2, 3, 5, 8)]


@examples(60)
@given(cases(irregular(npus=8)))
def test_more_trials_are_never_worse(case: Case) -> None:
    times = trial_times(case)
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize(
    ("kind", "alternate"), [("all-gather", 1), ("all-reduce", 1), ("reduce", 2)]
)
def test_more_trials_are_never_worse_on_switches(kind: str, alternate: int) -> None:
    network = load_topology("switch:4" if alternate > 1 else "ring:3*switch:2")
    bandwidth = network.bandwidth.copy()
    bandwidth[::2] *= alternate
    network = replace(network, bandwidth=bandwidth)
    demand = Collective.of(kind, network.members, 1 << 30, alternate if alternate > 1 else 3)
    model, seed = ("pipelined", 1) if alternate > 1 else ("blocking", 0)
    times = trial_times(Case(network, demand, CostModel(model), seed))
    assert times == sorted(times, reverse=True)


@examples(60)
@given(damaged(), st.sampled_from(NAMED), st.integers(0, 99))
def test_failures(network: Topology, kind: str, seed: int) -> None:
    """After failures: an algorithm for what is left, or a sentence on what cannot be reached."""
    if reachable(network):
        check(weft.synthesize(network, kind, 1000, seed=seed, threads=1))
    elif kind in ("all-gather", "reduce-scatter", "all-reduce"):
        with pytest.raises(UnreachableError, match=r"chunk \d+ cannot get from NPU \d+ to NPU \d+"):
            weft.synthesize(network, kind, 1000, seed=seed, threads=1)


@pytest.mark.parametrize("kind", NAMED)
@pytest.mark.parametrize("apart", ["two islands", "one way"])
def test_unreachable(kind: str, apart: str) -> None:
    ends = {"two islands": ([0, 1, 2, 3], [1, 0, 3, 2]), "one way": ([0, 1, 2], [1, 2, 3])}[apart]
    network = Topology.from_links(apart, 4, *ends, GB_S, US)
    if kind == "pipeline":
        network = network.reversed()
    root = 3 if kind in ("broadcast", "scatter") else 0 if PATTERNS[kind].rooted else None
    with pytest.raises(UnreachableError, match=r"chunk \d+ cannot get from NPU \d+ to NPU \d+"):
        weft.synthesize(network, kind, 1000, root=root)


def test_routes_that_happen_to_be_the_first_links() -> None:
    """Behind a switch, a plan of one route over link 0 was taken for a plan by numbers of links."""
    ends = [1, 0, 2, 0, 2, 1], [0, 2, 1, 1, 0, 2]
    network = Topology.from_links("two and a switch", 2, *ends, GB_S, US, switches=1)
    check(weft.synthesize(network, "all-reduce", 3, chunks=2))


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-reduce", "broadcast"])
def test_a_million_npus_without_links_are_refused_at_once(kind: str, monkeypatch) -> None:
    """Not after planning for them, which takes memory for every NPU and chunk."""
    monkeypatch.setattr(portfolio, "_run", None)
    network = Topology.from_links("few links", 1_000_000, [0, 1], [1, 0], GB_S, US)
    with pytest.raises(UnreachableError, match=r"chunk 0 cannot get from NPU \d+ to NPU \d+"):
        weft.synthesize(network, kind, "1GiB")


def test_more_transfers_than_memory_has_room_for_are_refused_first(monkeypatch) -> None:
    monkeypatch.setattr(Matching, "schedules", None)
    monkeypatch.setattr(memory, "available", lambda: 1 << 20)
    with pytest.raises(InputError, match=r"a table of 160,000 transfers needs about \S+MiB of"):
        weft.synthesize("line:400", "all-gather", "1GiB", chunks=1, method="matching")


@pytest.mark.parametrize("kind", ["reduce", "gather", "reduce-scatter"])
def test_unreachable_names_the_way_that_is_missing(kind: str) -> None:
    network = Topology.from_links("one way", 3, [0, 1], [1, 2], GB_S, US)
    with pytest.raises(UnreachableError, match="cannot get from NPU 1 to NPU 0"):
        weft.synthesize(network, kind, 1000)


@pytest.mark.parametrize("kind", NAMED)
@pytest.mark.parametrize(("latency_model", "switching"), MODELS)
@pytest.mark.parametrize("spec", ["ring:1", "ring:2", "switch:2", "line:2", "switch:3"])
@pytest.mark.parametrize("size", [1, 2, 17, 4097])
def test_tiny(spec: str, kind: str, size: int, latency_model: str, switching: str) -> None:
    result = weft.synthesize(
        spec, kind, size, latency_model=latency_model, switching=switching, threads=1
    )
    check(result)
    assert result.algorithm.time >= result.bound.time
    if spec == "ring:1":
        assert (len(result.transfers), result.algorithm.time, result.bound.kind) == (0, 0, "none")
        assert result.efficiency == 1


@pytest.mark.parametrize("kind", NAMED)
@pytest.mark.parametrize(("latency_model", "switching"), MODELS)
@pytest.mark.parametrize(
    ("bandwidth", "latency"),
    [(GB_S, 0), (10**18, 0), (10**18, US), (10**9, 10**13), (10**6, 1), (12_345_678_901, 700)],
)
def test_extreme_links(
    kind: str, bandwidth: int, latency: int, latency_model: str, switching: str
) -> None:
    for spec in ("mesh:3x2", "switch:4", "ring:3*switch:2"):
        network = load_topology(spec, bandwidth=[bandwidth], latency=[latency])
        for size in (1, 1000, 1 << 20):
            result = weft.synthesize(
                network, kind, size, latency_model=latency_model, switching=switching, threads=1
            )
            check(result)
            assert result.algorithm.time >= result.bound.time >= result.bound.ideal


@pytest.mark.parametrize(
    ("spec", "size", "rate"), [("ring:4", "1GiB", 1), ("line:8", "1PiB", 1000)]
)
def test_times_past_the_clock_are_refused(spec: str, size: str, rate: int) -> None:
    with pytest.raises(InputError):
        weft.synthesize(load_topology(spec, bandwidth=[rate]), "all-gather", size)


@examples(60)
@given(networks(), st.data())
def test_groups(network: Topology, data: st.DataObject) -> None:
    """Part of the NPUs in any order of rank; all others may relay."""
    members = network.members.tolist()
    group = data.draw(st.lists(st.sampled_from(members), min_size=1, unique=True))
    kind = data.draw(st.sampled_from(NAMED))
    root = data.draw(st.sampled_from(group)) if PATTERNS[kind].rooted else None
    result = weft.synthesize(network, kind, 999, group=group, root=root, threads=1)
    check(result)
    assert result.collective.group == tuple(group)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"collective": "all-gahter"}, InputError, "did you mean 'all-gather'"),
        ({"topology": "msh:4"}, InputError, "did you mean 'mesh'"),
        ({"size": 0}, InputError, "out of range"),
        ({"size": -5}, InputError, "out of range"),
        ({"size": "many"}, InputError, "is not a number"),
        ({"chunks": 0}, InputError, "0 chunks"),
        ({"chunks": -1}, InputError, "-1 chunks"),
        ({"chunks": 1 << 40}, InputError, "chunks per share"),
        ({"root": 0}, InputError, "has no root"),
        ({"collective": "broadcast", "root": 9}, InputError, "root 9"),
        ({"group": []}, InputError, "empty"),
        ({"group": [0, 0]}, InputError, "distinct"),
        ({"group": [0, 99]}, TopologyError, "no NPU 99"),
        ({"group": [0, -1]}, InputError, "distinct NPU numbers"),
        ({"seed": -1}, InputError, "seed -1"),
        ({"seed": 1 << 63}, InputError, "seed"),
        ({"trials": 0}, InputError, "trials 0 is out of range"),
        ({"threads": 0}, InputError, "threads 0 is out of range"),
        ({"threads": 1 << 31}, InputError, "out of range"),
        ({"trials": 1 << 31}, InputError, "out of range"),
        ({"alignment": 0}, InputError, "alignment 0"),
        ({"latency_model": "piplined"}, InputError, "did you mean 'pipelined'"),
        ({"switching": "cut"}, InputError, "unknown switching"),
    ],
)
def test_wrong_arguments(arguments: dict, error: type[Exception], message: str) -> None:
    usual = {"topology": "ring:4", "collective": "all-gather", "size": 1000}
    with pytest.raises(error) as caught:
        weft.synthesize(**(usual | arguments))
    assert message in str(caught.value)


def test_removed_npus_take_no_part() -> None:
    network = load_topology("mesh:3x3", without_npus=[4])
    result = weft.synthesize(network, "all-reduce", 9999)
    check(result)
    assert 4 not in result.transfers.src
    assert 4 not in result.transfers.dst
    with pytest.raises(TopologyError, match="no NPU 4"):
        weft.synthesize(network, "all-reduce", 9999, group=[3, 4])
