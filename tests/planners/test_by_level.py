"""Collectives composed by level: right on any fabric, near the bound on those people have."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.planners.test_producers import check
from tests.strategies import COSTS, same, shuffled
from weft.collective import Collective
from weft.cost import CostModel
from weft.planners import PLANNERS, Problem
from weft.planners.cutting import Cutting
from weft.planners.layouts import scene_of
from weft.planners.level_search import LevelSearch
from weft.planners.terraces import terraced
from weft.topology import load_topology

FABRICS = st.sampled_from(
    [
        *("h100:2", "h100:3", "a100:2", "rails:3x4", "rails:2x3x2", "leaf-spine:4x3x2"),
        *("leaf-spine:3x3x1", "switch:7", "switch:2*switch:3", "fc:3*switch:4", "fc:5*fc:2"),
        *("ring:6*switch:2", "torus:4x3", "torus:4x4", "hypercube:4", "torus:5x6", "ring:9"),
    ]
)
KINDS = ("all-reduce", "all-gather", "reduce-scatter")


@examples(80)
@given(
    FABRICS,
    st.sampled_from(KINDS),
    st.integers(1, 10**5),
    st.sampled_from([None, 1, 2, 5]),
    COSTS,
    st.data(),
)
def test_right_on_any_fabric(
    spec: str, kind: str, size: int, chunks: int | None, cost: CostModel, data: st.DataObject
) -> None:
    network = load_topology(spec)
    group = data.draw(st.sampled_from([None, range(0, network.npus, 2), range(network.npus // 2)]))
    if group is not None and len(group) < 2:
        return
    how = {"latency_model": cost.latency_model, "switching": cost.switching}
    result = weft.synthesize(network, kind, size, chunks=chunks, group=group, **how)
    check(result)
    assert result.bound.ideal <= result.time


@examples(60)
@given(FABRICS, st.sampled_from(KINDS), st.integers(1, 10**5), st.sampled_from([None, 1, 3]))
def test_the_method_alone(spec: str, kind: str, size: int, chunks: int | None) -> None:
    """Every fabric has levels; whoever else is not asked, this one is right."""
    result = weft.synthesize(spec, kind, size, chunks=chunks, method="by-level")
    check(result)
    assert result.algorithm.provenance["method"] == "by-level"
    if chunks is not None:
        assert result.collective.chunks_per_share == chunks


# Microseconds: of algorithms written by hand, or 5 % above the bound for any chunks.
@pytest.mark.parametrize(
    ("spec", "size", "most"),
    [
        ("h100:8", "256", 3.320),
        ("h100:8", "4KiB", 3.600),
        ("h100:8", "64KiB", 5.200),
        ("h100:8", "1MiB", 9.200),
        ("h100:8", "1GiB", 4761),
        ("h100:2", "64KiB", 4.100),
        ("h100:2", "1GiB", 4040),
        ("a100:4", "64KB", 7.773),
        ("torus:4x4x4", "64KiB", 3.300),
        ("hypercube:6", "64KiB", 3.300),
        ("leaf-spine:8x8x4", "4KiB", 3.700),
        ("leaf-spine:8x8x4", "1MiB", 45.512),
    ],
)
def test_known_times(spec: str, size: str, most: float) -> None:
    result = weft.synthesize(spec, "all-reduce", size)
    assert result.verified
    assert result.bound.ideal <= result.time <= most * 1e6


@pytest.mark.parametrize("kind", KINDS)
def test_products_and_their_names_are_alike(kind: str) -> None:
    """A torus of rings of four is a hypercube."""
    for size in ("4KiB", "1MiB"):
        one, other = (
            weft.synthesize(name, kind, size).time for name in ("torus:4x4", "hypercube:4")
        )
        assert max(one, other) <= 1.01 * min(one, other)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spec", ["h100:2", "rails:4x3", "torus:4x4"])
def test_moves_say_what_all_rows_take(spec: str, kind: str) -> None:
    """Where all NPUs do the same, the times of moves are those of rows, or a little longer."""
    network = load_topology(spec)
    demand = Collective.of(kind, range(network.npus), 1 << 20)
    problem = replace(Problem.of(network, demand), free=(True,))
    scene = scene_of(network, [demand], CostModel())
    assert scene is not None
    search = LevelSearch(problem, scene)
    for lane in search._lanes(scene.frames[0]):
        cutting = Cutting.of(demand, (lane,), 5000)
        _, _, time = search._composed(cutting, 1)
        made = search._made(cutting, 1)
        assert weft.verify(made).ok
        assert made.time <= time * 1.0001 + 10


def test_groups_that_are_alike_run_at_once() -> None:
    groups = [Collective.of("all-reduce", range(i, 16, 4), 4096) for i in range(4)]
    result = weft.synthesize("h100:2", groups)
    check(result)
    assert result.time <= 1.05 * result.bound.ideal


def test_boxes_are_found_without_a_name() -> None:
    """The same network with its NPUs in another order, and without dimensions."""
    whole = load_topology("h100:4")
    mixed, _ = shuffled(whole, 1)
    for size in ("4KiB", "1MiB"):
        asked = (weft.synthesize(one, "all-reduce", size) for one in (whole, mixed))
        one, other = (result.time for result in asked)
        assert other <= 1.001 * one


def test_same_on_any_number_of_threads() -> None:
    one, two = (
        weft.synthesize("h100:2", "all-reduce", "64KiB", threads=threads) for threads in (1, 2)
    )
    assert same(one.algorithm, two.algorithm)


def test_what_was_tried_is_told() -> None:
    result = weft.synthesize("h100:4", "all-reduce", "1MiB")
    by_level = next(attempt for attempt in result.tried if attempt.method == "by-level")
    assert by_level.time == result.time
    assert by_level.chunks == len(result.algorithm.chunks)
    assert by_level.seconds > 0
    others = [attempt for attempt in result.tried if attempt.method == "matching"]
    assert [attempt.note for attempt in others] == ["seldom better than by-level here"]
    assert {attempt.method for attempt in result.tried} >= set(PLANNERS) - {"by-level"}
    assert result.to_dict()["tried"][0]["method"] == result.tried[0].method


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "reduce-scatter"])
def test_groups_in_boxes_use_nics_beside_nvlink(kind: str) -> None:
    """450 and 50 GB/s an NPU: a tenth goes out by a NIC and comes back by another."""
    boxes = [range(8 * box, 8 * box + 8) for box in range(3)]
    groups = [Collective.of(kind, box, 64 << 20) for box in boxes]
    result = weft.synthesize("h100:3,plain", groups, chunks=[None] * 3)
    assert result.verified
    assert result.time <= 1.02 * result.bound.ideal


@pytest.mark.parametrize(("ratio", "most"), [("2", 1.05), ("2x2", 1.12)])
def test_links_with_several_users_are_full(ratio: str, most: float) -> None:
    """Those who share a link of a leaf share those above it: so they wait for each other once."""
    network = f"clos:8x4x5,oversubscription={ratio}"
    result = weft.synthesize(network, "all-to-all", "16MiB", method="by-level")
    check(result)
    assert result.time <= most * result.bound.ideal


def test_a_box_that_lost_an_npu_is_no_level() -> None:
    """159 NPUs are three lines of 53: they are not taken for alike."""
    network = load_topology("h100:20,plain").without(npus=[3])
    demand = Collective.of("all-reduce", network.members.tolist(), 1 << 28)
    assert terraced(Problem.of(network, demand)) is None
    whole = Collective.of("all-reduce", range(160), 1 << 28)
    assert terraced(Problem.of(load_topology("h100:20,plain"), whole)) is not None
