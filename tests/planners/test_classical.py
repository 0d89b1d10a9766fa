"""Classical algorithms beside the search: the answer is never worse than any of them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.strategies import COSTS, NAMED, SIZES, group_collectives, networks, roomy, same
from weft.classical import BASELINES, baseline
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import InputError, UnreachableError
from weft.judge import verify
from weft.planners import produce
from weft.topology import Topology


@examples(50)
@given(networks(), COSTS, st.data())
def test_never_worse_than_a_baseline(
    network: Topology, cost: CostModel, data: st.DataObject
) -> None:
    demands = data.draw(st.lists(group_collectives(network), min_size=1, max_size=2))
    network = roomy(network, demands, cost)
    best = produce(network, demands, cost=cost, threads=1)
    assert verify(best).ok
    for name in BASELINES:
        with suppress(InputError, UnreachableError):
            assert best.time <= baseline(name, network, demands, cost).time, name


@examples(25)
@given(networks(), COSTS, SIZES, st.sampled_from(NAMED), st.data())
def test_never_worse_with_chunks_of_its_own(
    network: Topology, cost: CostModel, size: int, kind: str, data: st.DataObject
) -> None:
    members = st.sampled_from(network.members.tolist())
    group = data.draw(st.lists(members, min_size=1, max_size=6, unique=True))
    demand = Collective.of(kind, group, size, relay=data.draw(st.booleans()))
    network = roomy(network, [demand], cost)
    with suppress(UnreachableError):
        best = produce(network, [demand], choose_chunks=[True], cost=cost, threads=1)
        assert verify(best).ok
        for name in BASELINES:
            with suppress(InputError, UnreachableError):
                made = produce(network, [demand], choose_chunks=[True], cost=cost, method=name)
                assert verify(made).ok
                assert best.time <= made.time, name


@pytest.mark.parametrize(
    ("spec", "most"),
    [("torus:4x4", 1.02), ("dragonfly:4x5", 1.03), ("mesh:4x4", 1.02), ("dgx1", 1.05)],
)
def test_small_all_reduces_are_near_the_bound(spec: str, most: float) -> None:
    """Sums of the whole buffer in as few rounds as the network is wide."""
    result = weft.synthesize(spec, "all-reduce", "1KiB")
    assert result.verified
    assert result.algorithm.time <= result.bound.ideal * most


def test_small_groups_at_once_are_near_the_bound() -> None:
    rows = [Collective.of("all-reduce", range(4 * i, 4 * i + 4), 512) for i in range(4)]
    result = weft.synthesize("torus:4x4", rows)
    assert result.verified
    assert result.algorithm.time <= result.bound.ideal * 1.05


def test_same_on_any_number_of_threads() -> None:
    made = [weft.synthesize("dragonfly:4x5", "all-reduce", "32KiB", threads=n) for n in (1, 3)]
    assert same(made[0].algorithm, made[1].algorithm)
