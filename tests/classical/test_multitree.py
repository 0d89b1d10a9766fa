"""MultiTree: trees over free links."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.strategies import COSTS, GB_S, US, irregular, networks, roomy
from weft import Collective, CostModel, Topology, load_topology
from weft.classical import baseline
from weft.classical.multitree import multitree
from weft.errors import UnreachableError
from weft.judge import verify

KINDS = ("all-reduce", "reduce-scatter", "all-gather")


def check(network: Topology, demand: Collective, cost: CostModel | None = None) -> None:
    verdict = verify(baseline("multitree", network, [demand], cost))
    assert verdict.ok, verdict


@examples(100)
@given(networks(), COSTS, st.sampled_from(KINDS), st.booleans(), st.data())
def test_any_network(
    network: Topology, cost: CostModel, kind: str, some: bool, data: st.DataObject
) -> None:
    members = network.members.tolist()
    least = 1 if some else len(members)
    group = data.draw(st.lists(st.sampled_from(members), min_size=least, unique=True))
    size, chunks = data.draw(st.integers(1, 10**5)), data.draw(st.integers(1, 3))
    demand = Collective.of(kind, group, size, chunks, None, data.draw(st.integers(1, 16)))
    check(roomy(network, [demand], cost), demand, cost)


@examples(60)
@given(irregular(switches=0))
def test_trees_ask_for_a_link_once_a_slot(network: Topology) -> None:
    sends = multitree(network, Collective.of("all-gather", network.members, 1 << 20))
    asked = list(zip(sends.step.tolist(), sends.src.tolist(), sends.dst.tolist(), strict=True))
    links = Counter(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    assert all(times <= links[src, dst] for (_, src, dst), times in Counter(asked).items())
    # Every NPU but the root gets every share once, from one that had it in an earlier slot.
    had = {(npu, npu): -1 for npu in range(network.npus)}
    for step, chunk, src, dst in zip(
        sends.step.tolist(), sends.chunk.tolist(), sends.src, sends.dst, strict=True
    ):
        assert had[int(src), chunk] < step
        assert (int(dst), chunk) not in had
        had[int(dst), chunk] = step
    assert len(had) == network.npus**2


@pytest.mark.parametrize(
    ("spec", "slots"),
    [
        ("fc:6", 1),
        ("ring:5", 2),
        ("ring:6", 3),
        ("switch:5", 4),
        ("line:4", 3),
        ("mesh:4x4", 10),
        ("torus:4x4", 5),
        ("hypercube:3", 3),
    ],
)
def test_slots(spec: str, slots: int) -> None:
    """What the NPU with the fewest links needs to receive all; up to two more on grids."""
    network = load_topology(spec)
    sends = multitree(network, Collective.of("all-gather", network.members, 1 << 20))
    assert int(sends.step.max()) + 1 == slots


def test_sums_are_copies_backwards() -> None:
    network = load_topology("torus:3x3")
    gather = multitree(network, Collective.of("all-gather", range(9), 9000))
    both = multitree(network, Collective.of("all-reduce", range(9), 9000))
    assert len(both) == 2 * len(gather) == 2 * 9 * 8
    assert int(both.step.max()) + 1 == 2 * (int(gather.step.max()) + 1)


def test_relays_add_what_comes_second() -> None:
    """A star whose middle is not in the group."""
    network = Topology.from_links("star", 4, [3, 3, 3, 0, 1, 2], [0, 1, 2, 3, 3, 3], GB_S, US)
    demand = Collective.of("reduce-scatter", [0, 1, 2], 3000)
    sends = multitree(network, demand)
    assert np.bincount(sends.dst, minlength=4).tolist() == [1, 1, 1, 6]
    assert sends.reduce[sends.dst == 3].sum() == 3
    for kind in KINDS:
        check(network, Collective.of(kind, [0, 1, 2], 3000, 2))


def test_branches_to_relays_are_cut_off() -> None:
    sends = multitree(load_topology("line:6"), Collective.of("all-gather", [2, 4], 2000))
    assert sorted(zip(sends.src.tolist(), sends.dst.tolist(), strict=True)) == [
        *[(2, 3), (3, 2), (3, 4), (4, 3)]
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_unreachable(kind: str) -> None:
    network = Topology.from_links("one way", 3, [0, 1], [1, 2], GB_S, US)
    with pytest.raises(UnreachableError, match=r"one way: chunk \d cannot get from NPU"):
        baseline("multitree", network, [Collective.of(kind, range(3), 3000)])
    ring = load_topology("ring:6")
    with pytest.raises(UnreachableError, match="relaying outside is forbidden"):
        baseline("multitree", ring, [Collective.of(kind, [0, 2], 3000, relay=False)])
