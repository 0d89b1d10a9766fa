"""One-shot: right by the judge, in as few rounds as the network is wide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.strategies import COSTS, SIZES, networks, roomy
from weft.classical import baseline
from weft.collective import Collective, all_reduce_of
from weft.cost import CostModel
from weft.errors import UnreachableError
from weft.judge import verify
from weft.topology import Topology, load_topology


@examples(60)
@given(networks(), COSTS, SIZES, st.integers(1, 3), st.data())
def test_random_groups(
    network: Topology, cost: CostModel, size: int, chunks: int, data: st.DataObject
) -> None:
    members = st.sampled_from(network.members.tolist())
    groups = data.draw(
        st.lists(st.lists(members, min_size=1, max_size=6, unique=True), min_size=1, max_size=2)
    )
    demands = [Collective.of("all-reduce", group, size, chunks) for group in groups]
    made = baseline("one-shot", roomy(network, demands, cost), demands, cost)
    verdict = verify(made)
    assert verdict.ok, verdict.violation
    assert made.time >= weft.lower_bound(made.topology, made.chunks, cost).time


@pytest.mark.parametrize(
    ("spec", "rounds", "messages"),
    [
        ("line:5", 4, 8),  # each passes on the sum of all behind it, both ways
        ("fc:4", 1, 12),
        ("hypercube:3", 3, 24),  # one for every hop
        ("torus:4x4", 4, 16 * 6),
    ],
)
def test_messages_and_rounds(spec: str, rounds: int, messages: int) -> None:
    network = load_topology(spec, "50GB/s", "1us")
    made = baseline("one-shot", network, [all_reduce_of(network.members.tolist(), 50, 1)])
    assert verify(made).ok
    assert (made.transfers.src != made.transfers.dst).sum() == messages
    assert made.time // 10**6 == rounds  # microseconds; 50 B take a nanosecond


def test_without_relays() -> None:
    network = load_topology("line:3")
    group = Collective.of("all-reduce", [0, 2], 100)
    assert verify(baseline("one-shot", network, [group])).ok
    with pytest.raises(UnreachableError):
        baseline("one-shot", network, [Collective.of("all-reduce", [0, 2], 100, relay=False)])
