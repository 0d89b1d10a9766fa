"""Symmetric All-to-Alls repaired after failures: right, near the bound, by their own judge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.strategies import COSTS
from weft.algorithm import Algorithm, RepairedExchange
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import InputError, UnreachableError
from weft.judge import verify
from weft.judge.table import judge_table
from weft.planners import Problem
from weft.planners.methods.repaired import can_repair, plan_repaired
from weft.synthesis import bound_of
from weft.topology import Topology, load_topology


def repaired(network: Topology, share: int, chunks: int = 1) -> Algorithm:
    demand = Collective.of("all-to-all", network.members, share * len(network.members), chunks)
    assert can_repair(network, [demand])
    found = plan_repaired(Problem.of(network, demand))
    assert found is not None
    return found


def rows_of(algorithm: Algorithm) -> RepairedExchange:
    assert isinstance(algorithm.rows, RepairedExchange)
    return algorithm.rows


@examples(40)
@given(st.data(), COSTS, st.sampled_from([1, 2]), st.sampled_from([4096, 5001]))
def test_right_after_any_failures(
    data: st.DataObject, cost: CostModel, chunks: int, share: int
) -> None:
    spec = data.draw(st.sampled_from(["torus:4x4", "torus:3x5", "hypercube:4", "fc:4*ring:4"]))
    whole = load_topology(spec, "1GB/s,3GB/s" if "*" in spec else "1GB/s")
    links = data.draw(st.sets(st.integers(0, whole.links - 1), max_size=3))
    npus = data.draw(st.sets(st.integers(0, whole.npus - 1), max_size=1))
    pairs = {(int(whole.src[link]), int(whole.dst[link])) for link in links}
    network = whole.without(links=sorted(pairs)).without(npus=sorted(npus))
    demand = Collective.of("all-to-all", network.members, share * len(network.members), chunks)
    assume(can_repair(network, [demand]))
    try:
        found = plan_repaired(Problem.of(network, demand, cost))
    except UnreachableError:
        return
    assert found is not None
    assert verify(found), verify(found).violation
    assert judge_table(found), judge_table(found).violation
    assert len(found) == len(found.transfers)
    assert found.transfers.end is not None
    assert found.time == int(found.transfers.end.max())
    assert bound_of(found).time <= found.time


@pytest.mark.parametrize("removed", [[], [5]])
def test_one_npus_rows(removed: list[int]) -> None:
    network = load_topology("torus:4x4", without_links=["0-1"]).without(npus=removed)
    algorithm = repaired(network, 1 << 12, 2)
    rows = algorithm.transfers
    for npu in (0, 1, 9):
        mine = algorithm.of_npu(npu)
        touching = rows.selected(np.flatnonzero((rows.src == npu) | (rows.dst == npu)))
        for name in ("chunk", "src", "dst", "start", "end"):
            assert sorted(getattr(mine, name)) == sorted(getattr(touching, name))


def test_numbers_beyond_those_of_rows() -> None:
    """65,535 NPUs have more pairs than int32 counts; the patch still names its own."""
    network = load_topology("torus:256x256", without_npus=[5])
    some = repaired(load_topology("torus:4x4", without_npus=[5]), 1 << 12)
    demand = Collective.of("all-to-all", network.members, 65535 << 12)
    with pytest.raises(InputError, match="rows name at most"):
        replace(some, demands=(demand,)).on(network).of_npu(3)


def test_a_failed_link_costs_little() -> None:
    """The busiest direction is as busy as before, and what is lost takes many ways round."""
    network = load_topology("torus:6x6x6", without_links=["0-1"])
    algorithm = repaired(network, 1 << 20)
    assert algorithm.time <= 1.09 * bound_of(algorithm).time


def test_the_better_of_both_is_kept() -> None:
    network = load_topology("torus:4x4", without_links=["0-1"])
    both = weft.synthesize(network, "all-to-all", "1MiB", chunks=1)
    only = weft.synthesize(network, "all-to-all", "1MiB", chunks=1, method="symmetric")
    assert both.verified
    assert only.verified
    assert only.algorithm.provenance["method"] == "repaired"
    assert both.algorithm.time <= only.algorithm.time


def test_an_npu_that_is_cut_off_is_named() -> None:
    network = load_topology("torus:4x4").without(links=[(1, 0), (3, 0), (4, 0), (12, 0)])
    with pytest.raises(UnreachableError):
        weft.synthesize(network, "all-to-all", "1MiB", chunks=1)


def damaged(algorithm: Algorithm, change: str) -> Algorithm:
    rows = rows_of(algorithm)
    chunk, link, start = rows.chunk.copy(), rows.link.copy(), rows.start.copy()
    if change == "dropped":
        shorter = replace(rows, chunk=chunk[:-1], link=link[:-1], start=start[:-1])
        return replace(algorithm, rows=replace(shorter, count=rows.count - 1))
    if change == "not lost":
        chunk[0] = 0
    elif change == "out of range":
        chunk[0] = 15 * 15
    elif change == "too early":
        start -= 1
    elif change == "before it is there":
        last = np.flatnonzero(chunk == chunk[-1])
        start[last] = start[0]
        link[last] = link[last][::-1]
    elif change == "two at once":
        start[:] = start[0]
    elif change == "uncounted":
        return replace(algorithm, rows=replace(rows, count=rows.count - 1))
    elif change == "another base":
        base = replace(rows.base, start=rows.base.start * 0)
        return replace(algorithm, rows=replace(rows, base=base))
    elif change == "narrow":
        return replace(algorithm, rows=replace(rows, chunk=chunk.astype(np.int32)))  # type: ignore[arg-type]
    return replace(algorithm, rows=replace(rows, chunk=chunk, link=link, start=start))


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        ("dropped", {"postcondition"}),
        ("not lost", {"postcondition"}),
        ("out of range", {"structure"}),
        ("too early", {"link"}),
        ("before it is there", {"causality", "precondition", "link"}),
        ("two at once", {"causality", "link"}),
        ("uncounted", {"structure"}),
        ("another base", {"causality", "link"}),
        ("narrow", {"structure"}),
    ],
)
def test_the_judge_refuses(change: str, kinds: set[str]) -> None:
    algorithm = repaired(load_topology("torus:4x4", without_npus=[5]), 1 << 12)
    assert verify(algorithm)
    verdict = verify(damaged(algorithm, change))
    assert not verdict.ok
    assert verdict.kind in kinds


def test_a_network_that_was_never_whole_is_refused() -> None:
    network = load_topology("torus:4x4", without_links=["0-1"])
    algorithm = repaired(network, 1 << 12)
    for other in (
        replace(network, whole=None),
        replace(network, whole=load_topology("torus:4x4", "1GB/s")),
        replace(network, whole=load_topology("torus:2x8")),
        replace(network, whole=network),
    ):
        assert verify(algorithm.on(other)).kind == "structure"
