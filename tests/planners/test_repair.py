"""Symmetric plans repaired after failures: right, near the bound, and judged by their own judge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.strategies import COSTS
from weft.algorithm import Algorithm, RepairedRows
from weft.collective import Collective
from weft.cost import CostModel
from weft.judge import verify
from weft.judge.table import judge_table
from weft.planners import Problem
from weft.planners.methods.repaired import can_repair, plan_repaired
from weft.synthesis import bound_of
from weft.topology import Topology, load_topology

SPEEDS = (["1GB/s"], ["1GB/s", "1GB/s,3GB/s"])  # by how many factors a spec has
KINDS = ("all-gather", "reduce-scatter", "all-reduce")


def repaired(
    network: Topology, kind: str, cost: CostModel, size: int, pieces: int = 1
) -> Algorithm:
    demand = Collective.of(kind, network.members, size, pieces)
    assert can_repair(network, [demand])
    found = plan_repaired(Problem.of(network, demand, cost))
    assert found is not None
    return found


def rows_of(algorithm: Algorithm) -> RepairedRows:
    assert isinstance(algorithm.rows, RepairedRows)
    return algorithm.rows


@examples(40)
@given(st.data(), st.sampled_from(KINDS), COSTS, st.sampled_from([1, 2]))
def test_right_after_any_failures(
    data: st.DataObject, kind: str, cost: CostModel, chunks: int
) -> None:
    spec = data.draw(st.sampled_from(["torus:4x4", "torus:3x5", "hypercube:4", "fc:4*ring:4"]))
    whole = load_topology(spec, data.draw(st.sampled_from(SPEEDS[spec.count("*")])))
    links = data.draw(st.sets(st.integers(0, whole.links - 1), max_size=2))
    npus = data.draw(st.sets(st.integers(0, whole.npus - 1), max_size=1))
    pairs = {(int(whole.src[link]), int(whole.dst[link])) for link in links}
    network = whole.without(links=sorted(pairs | {(b, a) for a, b in pairs}))
    network = network.without(npus=sorted(npus))
    assume(network.links < whole.links)
    size = data.draw(st.sampled_from([4096, 5001])) * len(network.members)
    demand = Collective.of(kind, network.members, size, chunks)
    assume(can_repair(network, [demand]))
    found = plan_repaired(Problem.of(network, demand, cost))
    assume(found is not None)
    assert found is not None
    verdict = verify(found)
    assert verdict, verdict.violation
    assert judge_table(found), judge_table(found).violation
    assert len(found) == len(found.transfers)
    assert found.transfers.end is not None
    assert found.time == int(found.transfers.end.max())
    assert bound_of(found).time <= found.time


@pytest.mark.parametrize("kind", KINDS)
def test_one_npus_rows(kind: str) -> None:
    algorithm = repaired(
        load_topology("torus:4x4", without_links=["0-1"]), kind, CostModel(), 1 << 16
    )
    rows = algorithm.transfers
    for npu in (0, 1, 9):
        mine = algorithm.of_npu(npu)
        touching = rows.selected(np.flatnonzero((rows.src == npu) | (rows.dst == npu)))
        for name in ("chunk", "src", "dst", "start", "end"):
            assert sorted(getattr(mine, name)) == sorted(getattr(touching, name))


def test_a_failed_link_costs_its_share_of_the_ingress() -> None:
    """Both ends have five links in the place of six, and use all of them to the end."""
    network = load_topology("torus:4x4x4", without_links=["0-1"])
    algorithm = repaired(network, "all-gather", CostModel("blocking"), 64 << 20)
    assert bound_of(algorithm).time == algorithm.time


def test_the_better_of_both_is_kept() -> None:
    result = weft.synthesize(
        load_topology("torus:4x4", without_links=["0-1"]), "all-gather", "1MiB", chunks=1
    )
    assert result.verified
    only = weft.synthesize(
        load_topology("torus:4x4", without_links=["0-1"]),
        "all-gather",
        "1MiB",
        chunks=1,
        method="symmetric",
    )
    assert only.verified
    assert only.algorithm.provenance["method"] == "repaired"
    assert result.algorithm.time <= only.algorithm.time


def test_networks_that_cannot_be_mended() -> None:
    broken = load_topology("torus:4x4", without_links=["0-1"])
    some = Collective.of("all-gather", range(8), 4096)
    assert not can_repair(broken, [some])
    assert not can_repair(
        load_topology("torus:4x4"), [Collective.of("all-gather", range(16), 4096)]
    )
    assert not can_repair(load_topology("mesh:4x4", without_links=["0-1"]), [some])
    one_way = load_topology("torus:4x4", without_links=["0>1"])
    assert can_repair(one_way, [Collective.of("all-gather", range(16), 4096)])
    assert not can_repair(one_way, [Collective.of("reduce-scatter", range(16), 4096)])


def damaged_patch(algorithm: Algorithm, change: str) -> Algorithm:
    rows, network = rows_of(algorithm), algorithm.topology
    assert network is not None
    chunk, link, start = rows.chunk.copy(), rows.link.copy(), rows.start.copy()
    if change == "dropped":
        chunk, link, start = chunk[1:], link[1:], start[1:]
    elif change == "other chunk":
        chunk[0] = (chunk[0] + 1) % 16
    elif change == "other link":
        link[0] = np.flatnonzero(network.dst != network.dst[link[0]])[0]
    elif change == "too early":
        start[0] -= 1
    elif change == "two at once":
        start[link == np.bincount(link).argmax()] = start.max()
    elif change == "uncounted":
        return replace(algorithm, rows=replace(rows, count=rows.count - 1))
    return replace(algorithm, rows=replace(rows, chunk=chunk, link=link, start=start))


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("dropped", "postcondition"),
        ("other chunk", "postcondition"),
        ("other link", "postcondition"),
        ("too early", "link"),
        ("two at once", "link"),
        ("uncounted", "structure"),
    ],
)
def test_the_judge_refuses(change: str, kind: str) -> None:
    network = load_topology("torus:4x4", without_npus=[5])
    algorithm = repaired(network, "all-gather", CostModel(), 15 << 12)
    assert verify(algorithm)
    verdict = verify(damaged_patch(algorithm, change))
    assert (verdict.ok, verdict.kind) == (False, kind)


def test_the_judge_refuses_what_a_source_has_only_later() -> None:
    """All rows of the patch as if they were free to start at once, those of each link in turn."""
    network = load_topology("ring:8", without_links=["0-1"])
    algorithm = repaired(network, "all-gather", CostModel(), 8 << 12)
    rows = rows_of(algorithm)
    start, begin = rows.start.copy(), int(rows.start.min())
    for link in np.unique(rows.link):
        mine = np.flatnonzero(rows.link == link)
        start[mine] = begin + np.arange(len(mine))[::-1] * 10**9
    order = np.argsort(start, kind="stable")
    turned = replace(rows, chunk=rows.chunk[order], link=rows.link[order], start=start[order])
    assert verify(replace(algorithm, rows=turned)).kind == "causality"


def test_a_network_that_was_never_whole_is_refused() -> None:
    network = load_topology("torus:4x4", without_links=["0-1"])
    algorithm = repaired(network, "all-gather", CostModel(), 1 << 16)
    for other in (
        replace(network, whole=None),
        replace(network, whole=load_topology("torus:4x4", "1GB/s")),
        replace(network, whole=network),
        replace(network, removed=frozenset([3])),
    ):
        assert verify(algorithm.on(other)).kind == "structure"
