"""Direct: right by the judge, along shortest paths, each link first come first served."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.judge.reference import is_right
from tests.strategies import COSTS, GB_S, NAMED, SIZES, US, irregular, networks, roomy, same
from weft import _core
from weft.classical import baseline
from weft.collective import PATTERNS, Collective, Move, all_to_allv, custom
from weft.cost import CostModel
from weft.errors import InputError, TopologyError, UnreachableError
from weft.formats import write
from weft.judge import verify
from weft.topology import Topology, load_topology

MB = 10**6
SERVED = sorted(NAMED)


def check(algorithm: weft.Algorithm) -> None:
    verdict = verify(algorithm)
    assert verdict.ok, verdict.violation
    if len(algorithm.transfers) < 400:
        assert is_right(algorithm)
    bound = weft.lower_bound(algorithm.topology, algorithm.chunks, algorithm.cost)
    assert algorithm.time >= bound.time
    assert (np.diff(algorithm.transfers.start) >= 0).all()


@st.composite
def demand_among(draw: st.DrawFn, network: Topology) -> Collective:
    members = st.sampled_from(network.members.tolist())
    group = draw(st.lists(members, min_size=1, max_size=6, unique=True))
    kind = draw(st.sampled_from([*SERVED, "custom"]))
    if kind == "custom":
        return custom(group, draw(st.lists(moves(len(group)), min_size=1, max_size=5)))
    root = draw(st.sampled_from(group)) if PATTERNS[kind].rooted else None
    return Collective.of(kind, group, draw(SIZES), draw(st.integers(1, 3)), root)


def moves(ranks: int) -> st.SearchStrategy[Move]:
    """Copies and sums, from several to several."""
    some = st.sets(st.integers(0, ranks - 1), min_size=1).map(tuple)
    return st.builds(Move, st.integers(1, 999), some, some, st.booleans())


@examples(200)
@given(networks(), COSTS, st.data())
def test_random_demands(network: Topology, cost: CostModel, data: st.DataObject) -> None:
    demands = data.draw(st.lists(demand_among(network), min_size=1, max_size=3))
    algorithm = baseline("direct", roomy(network, demands, cost), demands, cost)
    check(algorithm)
    assert algorithm.provenance["method"] == "direct"


def arrivals(algorithm: weft.Algorithm) -> np.ndarray:
    """When each row's chunk came to its source, if every chunk has one taker."""
    rows = algorithm.transfers
    order = np.lexsort((rows.start, rows.chunk))
    goes_on = rows.chunk[order][1:] == rows.chunk[order][:-1]
    ready = np.zeros(len(rows), dtype=np.int64)
    ready[order[1:][goes_on]] = rows.end[order[:-1][goes_on]]
    return ready


@examples(60)
@given(irregular(switches=0), COSTS, st.data())
def test_links_serve_first_come_first(
    network: Topology, cost: CostModel, data: st.DataObject
) -> None:
    n = network.npus
    sizes = data.draw(st.lists(st.integers(1, 10**6), min_size=n * n, max_size=n * n))
    demand = all_to_allv(range(n), np.array(sizes).reshape(n, n))
    algorithm = baseline("direct", network, [demand], cost)
    rows, ready = algorithm.transfers, arrivals(algorithm)
    for link in range(network.links):
        mine = np.flatnonzero(rows.route == link)  # in order of start
        assert (np.diff(ready[mine]) >= 0).all()
        held = rows.end[mine] - rows.start[mine]
        if cost.latency_model == "pipelined":
            held -= network.latency[link]
        free = np.concatenate([[0], (rows.start[mine] + held)[:-1]])
        assert (rows.start[mine] == np.maximum(ready[mine], free)).all()


@examples(60)
@given(irregular(switches=0), st.sampled_from(["all-gather", "all-to-all", "reduce-scatter"]))
def test_every_pair_takes_a_shortest_path(network: Topology, kind: str) -> None:
    members = network.members.tolist()
    algorithm = baseline("direct", network, [Collective.of(kind, members, 64 * len(members))])
    hops = sum(int(_core.distances(network.core, npu, False)[members].sum()) for npu in members)
    assert len(algorithm.transfers) == hops


def test_meshes_are_crossed_in_dimension_order() -> None:
    network = load_topology("mesh:4x4")
    demand = custom(range(16), [Move(100, (5,), (15,)), Move(100, (15,), (5,))])
    rows = baseline("direct", network, [demand]).transfers
    paths = [rows.dst[rows.chunk == chunk].tolist() for chunk in (0, 1)]
    assert paths == [[6, 7, 11, 15], [14, 13, 9, 5]]


@pytest.mark.parametrize(
    ("spec", "kind", "time"),
    [
        # 0>1 carries what is for 1, then what is for 2, which then crosses 1>2.
        ("line:3", "all-gather", 3 * MB),
        ("line:3", "all-to-all", 3 * MB),
        ("line:3", "reduce-scatter", 3 * MB),
        ("line:3", "scatter", 3 * MB),
        # Everybody begins with its next, so no port waits for another.
        ("switch:8", "all-to-all", 7 * MB),
        ("fc:5", "all-gather", MB),
        ("ring:1", "all-gather", 0),
    ],
)
def test_known_times(spec: str, kind: str, time: int) -> None:
    """One kilobyte a share over links of 1 GB/s, in picoseconds."""
    network = load_topology(spec, bandwidth=[GB_S], latency=[0])
    algorithm = baseline(
        "direct", network, [Collective.of(kind, network.members, 1000 * network.npus, 1, None, 1)]
    )
    check(algorithm)
    assert algorithm.time == time


def test_no_copy_serves_two_takers() -> None:
    network = load_topology("line:4")
    rows = baseline("direct", network, [Collective.of("broadcast", range(4), 1000)]).transfers
    assert len(rows) == 1 + 2 + 3


def test_nearest_holder() -> None:
    network = load_topology("line:8")
    rows = baseline("direct", network, [custom(range(8), [Move(100, (0, 6), (4,))])]).transfers
    assert rows.src.tolist() == [6, 5]


def test_stays_within_its_group() -> None:
    network = load_topology("ring:6")
    demand = Collective.of("all-to-all", [0, 1, 2, 3], 4000, relay=False)
    algorithm = baseline("direct", network, [demand])
    check(algorithm)
    assert set(algorithm.transfers.dst.tolist()) <= {0, 1, 2, 3}
    apart = Collective.of("all-to-all", [0, 2], 4000, relay=False)
    with pytest.raises(UnreachableError, match=r"from NPU 0 to NPU 2: no path"):
        baseline("direct", network, [apart])


def test_relayed_parts_of_sums_come_back_from_disk(tmp_path: Path) -> None:
    algorithm = baseline(
        "direct", load_topology("mesh:3x2"), [Collective.of("reduce", range(6), 1000, 2)]
    )
    assert algorithm.transfers.src_place is not None
    write(algorithm, tmp_path / "traces")
    back = weft.load(tmp_path / "traces")
    assert verify(back).ok
    assert same(algorithm, back)


@pytest.mark.parametrize(
    ("kind", "group", "error", "message"),
    [
        ("all-gather", [0, 9], TopologyError, "no NPU 9"),
        ("broadcast", [2, 0], UnreachableError, "chunk 0 cannot get from NPU 2 to NPU 0"),
    ],
)
def test_refusals(kind: str, group: list[int], error: type[Exception], message: str) -> None:
    network = Topology.from_links("one way", 3, [0, 1], [1, 2], GB_S, US)
    with pytest.raises(error, match=message):
        baseline("direct", network, [Collective.of(kind, group, 3000)])


def test_nothing_to_serve() -> None:
    with pytest.raises(InputError, match="no collective"):
        baseline("direct", load_topology("ring:4"), [])


def test_times_past_the_clock_are_refused() -> None:
    network = load_topology("ring:4", bandwidth=[1])
    with pytest.raises(InputError, match="clock"):
        baseline("direct", network, [Collective.of("all-gather", range(4), 1 << 30)])
