"""All-Reduce by trees that carry one chunk after the other, and the judge of such rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.strategies import ALPHAS, SPEEDS, irregular
from weft.algorithm import Algorithm, PeriodicRows
from weft.bounds import quick_bound
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import InputError, UnreachableError
from weft.judge import periodic, verify
from weft.judge.periodic import judge_periodic
from weft.judge.table import judge_table
from weft.planners import produce
from weft.planners.methods.periodic import is_fair, why_not
from weft.topology import Topology, load_topology

MODELS = st.sampled_from(["pipelined", "blocking"])


def made(
    topology: Topology, size: int, chunks: int = 1, model: str = "blocking", threads: int = 2
) -> Algorithm:
    demand = Collective.of("all-reduce", topology.members, size, chunks)
    return produce(topology, [demand], cost=CostModel(model), threads=threads, method="periodic")


def listed(algorithm: Algorithm) -> Algorithm:
    """The same as a table."""
    return replace(algorithm, rows=algorithm.transfers, route_table=algorithm.routes)


@examples(60)
@given(
    irregular(npus=9, switches=0),
    st.tuples(SPEEDS, ALPHAS),
    st.integers(1, 5000),
    st.integers(1, 3),
    MODELS,
)
def test_every_row_is_right(
    network: Topology, speed: tuple[int, int], size: int, chunks: int, model: str
) -> None:
    network = network.with_links(bandwidth=speed[0], latency=speed[1])
    algorithm = made(network, size, chunks, model)
    assert verify(algorithm)
    table = judge_table(listed(algorithm))
    assert table, table.violation
    assert algorithm.time == int(algorithm.transfers.end.max())
    assert len(algorithm) == len(algorithm.transfers)
    npu = int(network.members[-1])
    mine = algorithm.of_npu(npu)
    rows = algorithm.transfers
    expected = rows.selected(np.flatnonzero((rows.src == npu) | (rows.dst == npu)))
    for name, column in expected.columns().items():
        assert np.array_equal(getattr(mine, name), column), name


@pytest.mark.parametrize(("spec", "worst"), [("mesh:32x32", 1.25), ("mesh:10x10x10", 1.3)])
@pytest.mark.parametrize("model", ["blocking", "pipelined"])
def test_is_near_the_bound_of_large_meshes(spec: str, worst: float, model: str) -> None:
    network = load_topology(spec, "50GiB/s", "0.5us")
    algorithm = made(network, network.npus << 20, model=model)
    assert algorithm.time < worst * quick_bound(network, algorithm.chunks, algorithm.cost)
    assert judge_periodic(algorithm, algorithm.rows)


def test_threads_do_not_matter() -> None:
    network = load_topology("mesh:9x8")
    one, two = (made(network, 1 << 20, threads=threads).rows for threads in (1, 3))
    for name in ("first", "offsets", "link", "reduce", "start"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert one.period == two.period


def test_survives_failures() -> None:
    network = load_topology("mesh:6x6").without(npus=[14], links=[(0, 1), (7, 8), (8, 7)])
    assert judge_table(listed(made(network, 1 << 20)))


def test_hops_of_very_many_slots() -> None:
    """A byte is sent in a picosecond and is a millisecond on its way."""
    algorithm = made(load_topology("line:4", "1PB/s", "1ms"), 1, model="pipelined")
    assert verify(algorithm)
    assert algorithm.time < 10 * 10**9


def test_dense_networks_are_left_to_others() -> None:
    for spec, fair in (("mesh:200x200", True), ("mesh:32x32x32", True), ("line:3*fc:500", False)):
        topology = load_topology(spec)
        demand = Collective.of("all-reduce", topology.members, topology.npus << 10)
        assert why_not(topology, [demand]) is None
        assert is_fair(topology) == fair


def test_what_it_cannot_plan_is_refused() -> None:
    for spec, kind, reason in (
        ("switch:4", "all-reduce", "without switches"),
        ("mesh:3x3", "all-gather", "plans all-reduce"),
        ("mesh:1x1", "all-reduce", "two NPUs or more"),
    ):
        topology = load_topology(spec)
        demand = Collective.of(kind, topology.members, 4096)
        with pytest.raises(InputError, match=reason):
            produce(topology, [demand], threads=1, method="periodic")
    with pytest.raises(InputError, match="all alike"):
        made(load_topology("mesh:3x3", "50GB/s,25GB/s"), 4096)
    with pytest.raises(UnreachableError):
        made(load_topology("line:3").without(links=[(1, 2), (2, 1)]), 4096)


MESH = made(load_topology("mesh:4x5", "50GiB/s", "0.5us"), 20 << 20)


def changed(**columns: object) -> Algorithm:
    assert isinstance(MESH.rows, PeriodicRows)
    return replace(MESH, rows=replace(MESH.rows, **columns))


def broken() -> dict[str, Algorithm]:
    """One change of each kind that must be found out."""
    rows = MESH.rows
    assert isinstance(rows, PeriodicRows)
    start, reduce, link = rows.start.copy(), rows.reduce.copy(), rows.link.copy()
    last = int(rows.offsets[1]) - 1
    start[last] = 0  # a copy that is sent before the sum is there
    reduce[last] = True
    link[last] = link[last - 1]
    shorter = rows.first.copy()
    shorter[-1] -= 1
    return {
        "causality": changed(start=start),
        "reduction": changed(reduce=reduce),
        "another link": changed(link=link),
        "period": changed(period=rows.period // 2),
        "chunks": changed(first=shorter),
        "links that are not there": changed(link=rows.link + MESH.topology.links),
        "lengths": changed(start=rows.start[:-1]),
        "negative": changed(start=rows.start - 1_000_000_000),
        "rows": changed(offsets=rows.offsets[:-1]),
    }


@pytest.mark.parametrize("change", broken())
def test_the_judge_finds_what_is_wrong(change: str) -> None:
    algorithm = broken()[change]
    assert judge_periodic(MESH, MESH.rows)
    assert isinstance(algorithm.rows, PeriodicRows)
    verdict = judge_periodic(algorithm, algorithm.rows)
    assert not verdict
    assert verdict.violation


def test_the_judge_keeps_others_from_relaying(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic, "LISTED", 0)
    line = load_topology("line:3", "1GB/s", "0us")
    link = {
        (int(src), int(dst)): number
        for number, (src, dst) in enumerate(zip(line.src, line.dst, strict=True))
    }
    rows = PeriodicRows(
        10**9,
        np.array([0, 2]),
        np.array([0, 4]),
        np.array([link[0, 1], link[1, 2], link[2, 1], link[1, 0]], dtype=np.int32),
        np.array([True, True, False, False]),
        np.arange(4) * 10**8,
    )
    demand = Collective.of("all-reduce", [0, 2], 2 << 10)
    algorithm = Algorithm((demand,), rows, line, cost=CostModel())
    assert judge_periodic(algorithm, rows)
    alone = replace(algorithm, demands=(replace(demand, relay=False),))
    assert "must not relay" in str(judge_periodic(alone, rows).violation)
