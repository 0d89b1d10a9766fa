"""All-Reduce through switches that add and copy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.strategies import COSTS
from weft.cost import CostModel
from weft.errors import InputError
from weft.topology import Topology, load_topology

GIB = 1 << 30
RATE, LATENCY = 450e9, 0.7e-6  # of NVLink, and of a hop through an NVSwitch


def seconds(result: weft.Result) -> float:
    assert result.verified, result.verdict.violation
    assert result.bound.time <= result.algorithm.time
    return result.algorithm.time / 1e12


def test_one_box() -> None:
    """No port carries more than the buffer: what each GPU owns takes turns with what others do."""
    result = weft.synthesize("h100:1", "all-reduce", GIB)
    assert result.algorithm.provenance["method"] == "in-switch"
    assert seconds(result) < 1.01 * (LATENCY + GIB / RATE)
    assert seconds(result) < 1.03 * 9 / 8 * GIB / RATE  # where an owner's part passes the switch
    assert result.bound.kind == "ingress"
    assert result.bound.time == pytest.approx((LATENCY + GIB / RATE) * 1e12, rel=1e-5)
    plain = weft.synthesize("h100:1,plain", "all-reduce", GIB)
    assert seconds(plain) > 1.7 * seconds(result)


@pytest.mark.parametrize("kind", ["broadcast", "reduce"])
def test_one_root(kind: str) -> None:
    """One transmission to all, and one from all."""
    for size in (1 << 12, 1 << 26):
        assert seconds(weft.synthesize("h100:1", kind, size)) == pytest.approx(
            LATENCY + size / RATE, rel=1e-5
        )


def test_boxes_and_levels() -> None:
    """NVLink is in the way of two boxes no more; eight that add between them need no rounds."""
    two, plain = (weft.synthesize(spec, "all-reduce", GIB) for spec in ("h100:2", "h100:2,plain"))
    assert seconds(two) < 1.01 * two.bound.time / 1e12
    assert seconds(plain) > 1.4 * seconds(two)
    sharp = weft.synthesize("h100:4,multicast,adding", "all-reduce", GIB)
    assert seconds(sharp) < 0.75 * seconds(weft.synthesize("h100:4", "all-reduce", GIB))


def test_trees_of_switches() -> None:
    result = weft.synthesize("leaf-spine:4x4x2,multicast,adding", "all-reduce", GIB)
    assert result.algorithm.provenance["method"] == "in-switch"
    assert result.efficiency > 0.965
    # Half of a tree does not add: each part goes on alone from there.
    network = load_topology("leaf-spine:4x4x2,multicast,adding")
    leaves = network.with_switches(adding=range(16, 20))
    assert seconds(weft.synthesize(leaves, "all-reduce", GIB)) > 1.3 * seconds(result)


def test_groups_inside_boxes() -> None:
    groups = [weft.Collective.of("all-reduce", range(b, b + 8), 1 << 26) for b in (0, 8)]
    result = weft.synthesize("h100:2", groups)
    assert seconds(result) < 1.03 * (LATENCY + (1 << 26) / RATE)


def test_what_it_cannot_plan() -> None:
    for spec, kind, reason in (
        ("h100:1,plain", "all-reduce", "switches that add and copy"),
        ("h100:1", "all-gather", "all-reduce of 3 NPUs or more"),
        ("switch:4,adding", "all-reduce", "switches that add and copy"),
        ("switch:2,adding,multicast", "all-reduce", "all-reduce of 3 NPUs or more"),
        ("switch:4,adding,multicast,buffer=1MiB", "all-reduce", "hold any chunk"),
    ):
        with pytest.raises(InputError, match=reason):
            weft.synthesize(spec, kind, "1MiB", method="in-switch")


@st.composite
def able(draw: st.DrawFn) -> Topology:
    """Switches of which all, or some, copy and add."""
    spec = draw(
        st.sampled_from(
            ["switch:5", "leaf-spine:2x3x2", "rails:2x3x1", "switch:3*switch:2", "h100:2"]
        )
    )
    network = load_topology(spec)
    some = st.sets(st.integers(network.npus, network.nodes - 1))
    every = frozenset(range(network.npus, network.nodes))
    return network.with_switches(
        copying=draw(st.one_of(st.just(every), some)), adding=draw(st.one_of(st.just(every), some))
    )


@examples(40)
@given(
    able(),
    st.sampled_from(["all-reduce", "all-reduce", "reduce", "reduce-scatter", "all-gather"]),
    COSTS,
    st.integers(1, 10**6),
    st.sampled_from([1, 2, 5, None]),
    st.booleans(),
)
def test_never_worse_than_plain(
    network: Topology, kind: str, cost: CostModel, size: int, chunks: int | None, some: bool
) -> None:
    group = range(0, network.npus, 2) if some else range(network.npus)
    how = {"latency_model": cost.latency_model, "switching": cost.switching, "threads": 1}
    demand = weft.Collective.of(kind, group, size, root=0 if kind == "reduce" else None)
    result, plain = (
        weft.synthesize(each, demand, chunks=chunks, **how) for each in (network, network.plain)
    )
    assert seconds(result) <= seconds(plain)
