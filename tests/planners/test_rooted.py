"""Broadcast and Reduce by trees that share links: right anywhere, and as fast as is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.planners.test_producers import check
from tests.strategies import COSTS, irregular, networks, reachable
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import InputError, UnreachableError
from weft.planners import PLANNERS, Problem
from weft.topology import Topology, load_topology

# Microseconds that a Broadcast takes at most: by trees that no two share a link, as many as leave
# the root, or better.
KNOWN = [
    ("mesh:8x8", "1MiB", 18.55),
    ("hypercube:6", "1MiB", 7.50),
    ("dgx1", "1MiB", 10.19),
    ("torus:4x4x4", "1GiB", 3778.0),
    ("mi250:1", "1GiB", 3900.0),
    ("dgx1", "1GiB", 7300.0),
    ("a100:4", "16MiB", 100.0),
    ("switch:64", "1MiB", 24.5),
]


@pytest.mark.parametrize(("spec", "size", "most"), KNOWN)
def test_known_times(spec: str, size: str, most: float) -> None:
    result = weft.synthesize(spec, "broadcast", size, method="rooted")
    assert result.verified
    assert result.lower_bound_us <= result.time_us <= most


@pytest.mark.parametrize("spec", ["mesh:4x4", "dgx1", "mi250:1", "hypercube:4"])
@pytest.mark.parametrize("size", ["4KiB", "1MiB"])
def test_a_reduce_takes_as_long_as_a_broadcast(spec: str, size: str) -> None:
    spread, summed = (weft.synthesize(spec, kind, size) for kind in ("broadcast", "reduce"))
    check(summed)
    assert summed.algorithm.time == spread.algorithm.time


@pytest.mark.parametrize(("spec", "trees"), [("mesh:3x5", 2), ("torus:3x3", 4), ("fc:5", 4)])
def test_as_many_trees_as_the_root_has_links(spec: str, trees: int) -> None:
    """With no α, many chunks take hardly longer than the root's links need for them."""
    network = load_topology(spec, "1GB/s", "0us")
    result = weft.synthesize(network, "broadcast", 1 << 24, chunks=1024, method="rooted")
    check(result)
    assert result.time_us <= 1.02 * (1 << 24) / 1000 / trees


def test_a_group_uses_the_ways_of_others() -> None:
    """A row of a mesh alone is a line; with the NPUs beside it there are two ways or more."""
    network = load_topology("mesh:4x4", "1GB/s", "1us")
    alone, helped = (
        weft.synthesize(
            network, "broadcast", "16MiB", group=[4, 5, 6, 7], relay=relay, method="rooted"
        )
        for relay in (False, True)
    )
    check(alone)
    check(helped)
    assert helped.algorithm.time < 0.6 * alone.algorithm.time


@examples(60)
@given(st.data(), networks(), COSTS)
def test_right_on_any_network(data: st.DataObject, network: Topology, cost: CostModel) -> None:
    kind = data.draw(st.sampled_from(["broadcast", "reduce"]))
    size, chunks = data.draw(st.integers(1, 10**4)), data.draw(st.sampled_from([None, 1, 5, 24]))
    how = {"chunks": chunks, "latency_model": cost.latency_model, "switching": cost.switching}
    try:
        result = weft.synthesize(network, kind, size, method="rooted", threads=1, **how)
    except (InputError, UnreachableError) as error:
        assert "rooted" in str(error) or "buffer" in str(error)  # noqa: PT017
        return
    check(result)


@examples(30)
@given(irregular(), st.sampled_from(["broadcast", "reduce"]), st.integers(1, 1000))
def test_never_slower_than_the_others(network: Topology, kind: str, units: int) -> None:
    if not reachable(network) or network.npus < 3:
        return
    best = weft.synthesize(network, kind, units * 128, chunks=8, threads=1)
    check(best)
    for method, close in (("rooted", 1), ("matching", 1), ("trees", 1.02)):
        other = weft.synthesize(network, kind, units * 128, chunks=8, method=method, threads=1)
        assert best.algorithm.time <= close * other.algorithm.time


def test_no_plan_without_a_root_where_a_table_of_chunks_is_too_large() -> None:
    network = load_topology("mesh:32x64")
    problem = Problem.of(network, Collective.of("all-to-all", range(2048), 1 << 26))
    assert problem.task.is_too_large_for_tables
    assert PLANNERS["rooted"].search(problem, None) is None
