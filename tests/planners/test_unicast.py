"""The planner for chunks with one taker: any pairs and sizes, and how close to the best it gets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

import weft
from tests.examples import examples
from tests.judge.reference import is_right
from tests.strategies import COSTS, SIZES, damaged, networks, roomy
from weft import _core
from weft.collective import Move, Sets, custom
from weft.cost import CostModel
from weft.judge import verify
from weft.topology import Topology, load_topology
from weft.units import NEVER


def plan(
    network: Topology,
    src: list[int],
    dst: list[int],
    sizes: list[int],
    cost: CostModel,
    *,
    reach: list[int] | None = None,
    seed: int = 0,
    bound: int = 1,
    threads: int = 1,
) -> _core.Schedule:
    """Straight from the core; `reach` is one set for all chunks."""
    members = sorted(reach or [])
    sets = Sets.of([members, *([npu] for npu in range(network.npus))])
    chunks = _core.Chunks(
        bytes=np.array(sizes, dtype=np.int64),
        pre=np.array(src, dtype=np.int32) + np.int32(1),
        post=np.array(dst, dtype=np.int32) + np.int32(1),
        reduce=np.zeros(len(src), dtype=np.bool_),
        reach=np.full(len(src), -1 if reach is None else 0, dtype=np.int32),
        set_offsets=sets.offsets,
        set_members=sets.members,
    )
    search = _core.Search(seed=seed, goal=bound, threads=threads, progress=_core.Progress())
    return _core.unicast(network.core, cost.core, chunks, search)


def pairs_of(network: Topology, times: int) -> tuple[list[int], list[int]]:
    ends = [(a, b) for a in network.members.tolist() for b in network.members.tolist() if a != b]
    return [a for a, _ in ends] * times, [b for _, b in ends] * times


@st.composite
def moves(draw: st.DrawFn, network: Topology) -> list[tuple[int, int, int]]:
    npu = st.sampled_from(network.members.tolist())
    return draw(st.lists(st.tuples(npu, npu, SIZES), min_size=1, max_size=30))


@examples(50)
@given(st.data(), networks(), COSTS, st.integers(0, 9))
def test_any_pairs_of_any_size(
    data: st.DataObject, network: Topology, cost: CostModel, seed: int
) -> None:
    rank = {npu: i for i, npu in enumerate(network.members.tolist())}
    jobs = [
        Move(size, (rank[a],), (rank[b],)) for a, b, size in data.draw(moves(network)) if a != b
    ]
    assume(jobs)
    demand = custom(network.members.tolist(), jobs)
    result = weft.synthesize(
        roomy(network, [demand], cost),
        [demand],
        seed=seed,
        threads=1,
        latency_model=cost.latency_model,
        switching=cost.switching,
    )
    assert result.verified, result.verdict.violation
    assert is_right(result.algorithm)
    assert result.bound.time <= result.algorithm.time


@examples(60)
@given(st.data(), networks(), COSTS, st.integers(0, 9))
def test_threads_never_change_the_plan(
    data: st.DataObject, network: Topology, cost: CostModel, seed: int
) -> None:
    src, dst, sizes = (list(column) for column in zip(*data.draw(moves(network)), strict=True))
    one, two = (
        plan(network, src, dst, sizes, cost, seed=seed, threads=threads) for threads in (1, 2)
    )
    columns = ("chunk", "src", "dst", "reduce", "route", "start", "end")
    columns = (*columns, "route_offsets", "route_links", "time")
    assert all(np.array_equal(getattr(one, name), getattr(two, name)) for name in columns)


@examples(100)
@given(st.data(), damaged(), COSTS)
def test_no_way(data: st.DataObject, network: Topology, cost: CostModel) -> None:
    """Time is never if, and only if, some chunk has no way among the NPUs it may visit."""
    members = network.members.tolist()
    npu = st.sampled_from(members)
    src, dst = data.draw(npu), data.draw(npu)
    reach = sorted({src, dst, *data.draw(st.sets(npu))})
    left = network.without(npus=set(members) - set(reach))
    there = _core.distances(left.core, src, False)[dst] >= 0
    planned = plan(network, [src], [dst], [1000], cost, reach=reach)
    assert (planned.time != NEVER) == there
    assert set(planned.dst.tolist()) <= set(reach)


def loads(network: Topology, planned: _core.Schedule) -> NDArray[np.int64]:
    return np.bincount(planned.route, minlength=network.links)


@pytest.mark.parametrize("model", ["pipelined", "blocking"])
@pytest.mark.parametrize(
    ("spec", "busiest"), [("torus:4x4x4", 32), ("mesh:8x8", 128), ("mesh:4x8", 64)]
)
def test_regular_networks(spec: str, busiest: int, model: str) -> None:
    """The busiest link carries what it must (a cut, or all distances), and never waits long."""
    network = load_topology(spec, "50GiB/s", "0.5us")
    cost = CostModel(model)
    src, dst = pairs_of(network, 1)
    planned = plan(network, src, dst, [1 << 20] * len(src), cost)
    assert loads(network, planned).max() <= 1.04 * busiest
    slot = 19_531_250 + (500_000 if model == "blocking" else 0)
    assert planned.time <= 1.06 * busiest * slot


@pytest.mark.parametrize(("chunks", "us"), [(1, 120), (3, 106.67), (6, 106.67), (12, 106.67)])
@pytest.mark.parametrize("seed", range(3))
def test_dgx1_meets_its_bound(chunks: int, us: float, seed: int) -> None:
    """Links of two speeds, and detours: 106.67 us is what the linear program allows."""
    network = load_topology("dgx1", latency="0")
    src, dst = pairs_of(network, chunks)
    sizes = [-(-1_000_000 // chunks)] * len(src)
    planned = plan(network, src, dst, sizes, CostModel(), seed=seed)
    assert planned.time / 1e6 == pytest.approx(us, rel=0.01)


@pytest.mark.parametrize(
    ("spec", "size", "chunks", "most"),
    [
        *(("ndv2:2", "1GB", 2, 1.005), ("h100:4", "32MB", 4, 1.05), ("a100:2", "16MB", 4, 1.06)),
        *(("dgx2:2", "32MB", 2, 1.01), ("switch:8", "8MB", 1, 1.01)),
    ],
)
def test_machines(spec: str, size: str, chunks: int, most: float) -> None:
    result = weft.synthesize(spec, "all-to-all", size, chunks=chunks)
    assert result.verified
    assert result.algorithm.time <= most * result.bound.time


def test_a_row_uses_the_links_around_it() -> None:
    """Eight NPUs in a row of a mesh: most of their chunks go over the other rows."""
    network = load_topology("mesh:8x8", "50GiB/s", "0.5us")
    alone = load_topology("line:8", "50GiB/s", "0.5us")
    both = [
        weft.synthesize(net, "all-to-all", "64MiB", group=range(8), chunks=8)
        for net in (network, alone)
    ]
    assert all(verify(result.algorithm).ok for result in both)
    assert both[0].algorithm.time < 0.5 * both[1].algorithm.time


def asked(result: weft.Result) -> list[str]:
    """The planners that had a turn."""
    return [attempt.method for attempt in result.tried if attempt.seconds > 0]


@pytest.mark.parametrize(
    ("spec", "method"),
    [("h100:4", "symmetric"), ("leaf-spine:8x8x4", "exchange"), ("dgx2:2", "exchange")],
)
def test_an_exchange_at_its_bound_ends_the_search(spec: str, method: str) -> None:
    result = weft.synthesize(spec, "all-to-all", "64MiB")
    assert result.verified
    assert asked(result) == [method]
    assert result.time <= 1.005 * result.bound.time


def test_on_rails_small_messages_go_to_the_right_rail_first() -> None:
    result = weft.synthesize("h100:2", "all-to-all", "4KiB")
    straight = weft.synthesize("h100:2", "all-to-all", "4KiB", method="direct")
    assert result.verified
    assert result.time < 0.7 * straight.time


@pytest.mark.parametrize("spec", ["mesh:5x5", "torus:3x3x3"])
def test_a_plan_at_its_bound_ends_the_search(spec: str) -> None:
    result = weft.synthesize(spec, "all-gather", "1GiB", chunks=1)
    assert result.verified
    assert set(asked(result)) <= {"symmetric", "rounds", "matching"}
    assert result.time <= result.bound.time * (1 + 1e-6)
