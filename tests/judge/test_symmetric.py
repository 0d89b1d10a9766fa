"""Symmetric rows: right ones pass, broken ones are refused with the right words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.examples import examples
from tests.strategies import COSTS
from weft.algorithm import Algorithm, SymmetricRows, Timing
from weft.collective import Collective
from weft.cost import CostModel
from weft.judge import Verdict, verify
from weft.judge.kinds import symmetric
from weft.judge.orbits import NotAlikeError, find_orbits
from weft.judge.table import judge_table
from weft.planners import Problem
from weft.planners.methods.symmetric import plan_symmetric
from weft.planners.symmetry import is_symmetric
from weft.topology.builders import parse_topology
from weft.topology.model import Topology

from .handmade import BANDWIDTH, HOP, LATENCY, SHARE

BLOCKING = CostModel("blocking")
KINDS = ["all-gather", "reduce-scatter", "all-reduce", "all-to-all"]


def network(spec: str) -> Topology:
    return parse_topology(spec, bandwidth=[BANDWIDTH], latency=[LATENCY])


def rows_of(rows: list[tuple[int, int, int, bool, int]], npus: int) -> SymmetricRows:
    """Rows of (chunk, src, dst, reduce, slot)."""
    chunk, src, dst, reduce, slot = (np.array(column) for column in zip(*rows, strict=True))
    return SymmetricRows(
        chunk.astype(np.int32),
        src.astype(np.int32),
        dst.astype(np.int32),
        reduce.astype(np.bool_),
        slot.astype(np.int64) * HOP,
        npus,
    )


# On a ring of five, both ways round; an All-to-All whose long ways go over two links.
GATHER = [(0, 0, 1, False, 0), (0, 0, 4, False, 0), (0, 1, 2, False, 1), (0, 4, 3, False, 1)]
SCATTER = [(0, 2, 1, True, 0), (0, 3, 4, True, 0), (0, 1, 0, True, 1), (0, 4, 0, True, 1)]
REDUCE = [*SCATTER, *((c, s, d, r, slot + 2) for c, s, d, r, slot in GATHER)]
EXCHANGE = [
    *((2, 0, 1, False, 0), (3, 0, 4, False, 0), (2, 1, 2, False, 1), (3, 4, 3, False, 1)),
    *((1, 0, 1, False, 2), (4, 0, 4, False, 2)),
]
RINGS = dict(zip(KINDS, (GATHER, SCATTER, REDUCE, EXCHANGE), strict=True))


def on_ring(
    kind: str = "all-gather", rows: list[tuple[int, int, int, bool, int]] | None = None
) -> Algorithm:
    demand = Collective.of(kind, range(5), 5 * SHARE)
    return Algorithm(
        (demand,), rows_of(rows or RINGS[kind], 5), Timing(network("ring:5"), BLOCKING)
    )


def refused(algorithm: Algorithm, kind: str, *words: str) -> None:
    verdict = verify(algorithm)
    assert not verdict
    assert verdict.kind == kind, verdict
    for word in words:
        assert word in str(verdict.violation), verdict


@pytest.mark.parametrize("kind", KINDS)
def test_right_by_hand(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert verify(on_ring(kind)) == Verdict(True)
    monkeypatch.setattr(symmetric, "LISTED", 0)
    assert verify(on_ring(kind)) == Verdict(True)


def test_one_npu_has_nothing_to_do() -> None:
    none = SymmetricRows(*(np.zeros(0, dtype=d) for d in ("i4", "i4", "i4", "?", "i8")), 1)
    demand = Collective.of("all-gather", [0], SHARE)
    assert verify(Algorithm((demand,), none, Timing(network("ring:1"), BLOCKING)))


def changed(rows: list[tuple[int, int, int, bool, int]], row: int, **to: int) -> Algorithm:
    names = ("chunk", "src", "dst", "reduce", "slot")
    new = [dict(zip(names, one, strict=True)) for one in rows]
    new[row].update(to)
    return on_ring("all-gather", sorted((tuple(one.values()) for one in new), key=lambda r: r[4]))


def test_wrong_rows() -> None:
    refused(changed(GATHER, 2, src=0, dst=1, slot=0), "link", "of NPU 0's chunks", "0>1")
    early = on_ring("all-gather", [*GATHER[:2], (0, 4, 3, False, 1), (0, 3, 2, False, 1)])
    refused(early, "causality", "of NPU 0's chunks", "NPU 3")
    refused(changed(GATHER, 2, src=0), "route", "row 2", "no link does")
    refused(changed(GATHER, 2, src=2, dst=2), "route", "row 2")
    refused(on_ring("all-gather", GATHER[:3]), "postcondition", "NPU 3 never receives chunk 0")
    refused(changed(GATHER, 1, chunk=1), "structure", "row 1 has chunk 1")
    refused(changed(GATHER, 1, dst=5), "structure", "row 1 has dst 5; expected 0 to 4")
    refused(changed(GATHER, 1, slot=-1), "time", "before the beginning")
    refused(changed(GATHER, 0, reduce=True), "reduction", "not a reduction")
    refused(on_ring("reduce-scatter", SCATTER[1:]), "reduction")
    refused(on_ring("all-reduce", [*SCATTER, *REDUCE[5:]]), "reduction")
    refused(on_ring("all-to-all", EXCHANGE[:-1]), "postcondition", "chunk 4")


def test_each_direction_once_a_slot() -> None:
    """The rows alone are right, on other links; moved, they meet."""
    grid = network("torus:3x3")
    tree = [(0, 0, 1, False, 0), (0, 0, 2, False, 0), (0, 0, 3, False, 0), (0, 0, 6, False, 0)]
    tree += [(0, 1, 4, False, 1), (0, 2, 5, False, 2), (0, 1, 7, False, 1), (0, 6, 8, False, 1)]
    demand = Collective.of("all-gather", range(9), 9 * SHARE)
    tree.sort(key=lambda row: row[4])
    algorithm = Algorithm((demand,), rows_of(tree, 9), Timing(grid, BLOCKING))
    assert verify(algorithm)
    tree[7] = (0, 2, 5, False, 1)
    algorithm = replace(algorithm, rows=rows_of(tree, 9))
    refused(algorithm, "link", "moved to other NPUs", "1 > 4 and 2 > 5")


def test_columns() -> None:
    algorithm = on_ring()
    rows = algorithm.rows
    assert isinstance(rows, SymmetricRows)
    refused(replace(algorithm, rows=replace(rows, start=rows.start[1:])), "structure", "'start'")
    refused(
        replace(algorithm, rows=replace(rows, src=rows.src.astype(np.int64))), "structure", "int64"
    )
    refused(replace(algorithm, rows=replace(rows, npus=4)), "structure", "all NPUs")


def test_demands() -> None:
    algorithm = on_ring()
    for demand, words in (
        (Collective.of("broadcast", range(5), 5), "not this broadcast"),
        (Collective.of("all-gather", [1, 0, 2, 3, 4], 5 * SHARE), "ascending"),
        (Collective.of("all-gather", range(4), 5 * SHARE), "all NPUs"),
        (Collective.of("all-gather", range(5), 3), "not empty"),
    ):
        refused(replace(algorithm, demands=(demand,)), "structure", words)


def test_networks_that_do_not_look_alike() -> None:
    algorithm = on_ring()
    ring = network("ring:5")
    slow = ring.bandwidth.copy()
    slow[3] //= 2
    for topology, words in (
        (replace(ring, bandwidth=slow), "0 > 1 and 3 > 4 differ in speed"),
        (ring.without(links=[(2, 3)]), "no link like 0 > 1 at NPU 2"),
        (replace(network("line:5"), translates=True), "no link like"),
        (replace(ring, dimensions=()), "on no grid"),
    ):
        refused(algorithm.on(topology), "structure", "vertex-transitive", words)
    with pytest.raises(NotAlikeError, match="removed"):
        find_orbits(ring.without(npus=[1]))
    names = ("src", "dst", "bandwidth", "latency")
    double = {name: np.append(getattr(ring, name), getattr(ring, name)[3]) for name in names}
    with pytest.raises(NotAlikeError, match="two links 3 > 4"):
        find_orbits(replace(ring, **double))


def test_switches_that_do_not_look_alike() -> None:
    grid = network("switch:3*ring:2")
    assert len(find_orbits(grid).links) == 3
    # Switches 6 and 7 each have a line of three; let two NPUs change places. Then NPU 0 has no
    # switch of its line, and there is no way along it.
    swapped = grid.src.copy()
    swapped[[0, 6]] = swapped[[6, 0]]
    ways = find_orbits(replace(grid, src=swapped)).way_of
    assert ways.tolist() == [-1, -1, -1, 0, -1, -1]
    assert find_orbits(grid.without(links=[(0, 6)])).way_of[1] == -1
    with pytest.raises(NotAlikeError, match="the line of NPU 3 has no switch"):
        find_orbits(grid.without(links=[(4, 7)]))
    slow = grid.bandwidth.copy()
    slow[np.flatnonzero((grid.src == 7) & (grid.dst == 5))] //= 2
    with pytest.raises(NotAlikeError, match="the line of NPU 3 has no switch with links like"):
        find_orbits(replace(grid, bandwidth=slow))
    with pytest.raises(NotAlikeError, match="special"):
        find_orbits(grid.with_switches(buffers={6: 1000}))
    assert len(find_orbits(grid.with_switches(copying=[6], adding=[7])).links) == 3


def test_ways_along_lines_are_the_fastest_there_are() -> None:
    """A second switch for a line, faster than the first; a third that is not for all of it."""
    ends = [(0, 2), (1, 2), (0, 3), (1, 3), (0, 4)]
    ends += [(b, a) for a, b in ends]
    speed = [4 if 3 in pair else 9 if 4 in pair else 2 for pair in ends]
    topology = Topology.from_links(
        "twice", 2, *zip(*ends, strict=True), speed, 0, switches=3, dimensions=[2]
    )
    orbits = find_orbits(topology)
    assert orbits.way_of.tolist() == [-1, 0]
    assert orbits.links.tolist() == [[2, 3], [7, 8]]


def test_a_switch_for_two_dimensions() -> None:
    """What goes along either meets at the ports that they share."""
    square = replace(network("switch:4"), dimensions=(2, 2))
    orbits = find_orbits(square)
    assert orbits.links.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert orbits.way_of.tolist() == [-1, 0, 1, -1]
    assert orbits.ways.tolist() == [0, 1, 0, 1]

    def gather(*slots: int) -> Algorithm:
        ways = [(0, 1), (0, 2), (1, 3)]
        rows = [(0, src, dst, False, slot) for (src, dst), slot in zip(ways, slots, strict=True)]
        demand = Collective.of("all-gather", range(4), 4 * SHARE)
        return Algorithm((demand,), rows_of(rows, 4), Timing(square, BLOCKING))

    assert verify(gather(0, 3, 6)) == Verdict(True)
    refused(gather(0, 3, 3), "link", "moved to other NPUs, rows 1 and 2 meet")
    # Rows go by s0 and s1, columns too, but others: only NPUs 0 and 3 have one port for both.
    up = [(0, 4), (1, 4), (2, 4), (1, 5), (2, 5), (3, 5)]
    ends = [*up, *((switch, npu) for npu, switch in up)]
    crossed = Topology.from_links(
        "crossed", 4, *zip(*ends, strict=True), BANDWIDTH, LATENCY, switches=2, dimensions=[2, 2]
    )
    with pytest.raises(NotAlikeError, match="several dimensions share a link"):
        find_orbits(crossed)


def test_lines_end_at_the_switch_where_they_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """NPUs 2 and 3 send to s1 and receive from s2; NPU 0's own rows do not show it."""
    monkeypatch.setattr(symmetric, "LISTED", 0)
    up, down = [(0, 4), (1, 4), (2, 5), (3, 5)], [(4, 0), (4, 1), (6, 2), (6, 3)]
    ends = [*up, *down, (0, 2), (2, 0), (1, 3), (3, 1)]
    topology = Topology.from_links(
        "apart",
        4,
        *zip(*ends, strict=True),
        BANDWIDTH,
        LATENCY,
        switches=3,
        dimensions=[2, 2],
        translates=True,
    )
    rows = rows_of([(0, 0, 1, False, 0), (0, 0, 2, False, 0), (0, 1, 3, False, 3)], 4)
    demand = Collective.of("all-gather", range(4), 4 * SHARE)
    algorithm = Algorithm((demand,), rows, Timing(topology, BLOCKING))
    refused(algorithm, "structure", "the line of NPU 2 has no switch with links like those")


@st.composite
def _planned(draw: st.DrawFn) -> Algorithm:
    factor = st.builds("{}:{}".format, st.sampled_from(["ring", "fc", "switch"]), st.integers(2, 4))
    factors = draw(st.lists(factor, min_size=1, max_size=2))
    rates = [draw(st.sampled_from([10**9, 3 * 10**9])) for _ in factors]
    topology = parse_topology("*".join(factors), bandwidth=rates, latency=[700])
    kind = draw(st.sampled_from(KINDS))
    size = draw(st.integers(1, 10**5))
    demand = Collective.of(kind, range(topology.npus), size, draw(st.integers(1, 2)), None, 16)
    assume(is_symmetric(topology, [demand]))
    return plan_symmetric(Problem.of(topology, demand, draw(COSTS)))


@given(_planned())
@examples(60)
def test_plans_are_right(algorithm: Algorithm) -> None:
    assert verify(algorithm) == Verdict(True)


@given(_planned(), st.data())
@examples(120)
def test_what_is_accepted_is_right(algorithm: Algorithm, data: st.DataObject) -> None:
    """No mutation passes by symmetry that the table's judge refuses."""
    rows = algorithm.rows
    assert isinstance(rows, SymmetricRows)
    row = data.draw(st.integers(0, len(rows.chunk) - 1))
    other = data.draw(st.integers(0, len(rows.chunk) - 1))
    name = data.draw(st.sampled_from(["chunk", "src", "dst", "start", "drop"]))
    if name == "drop":
        keep = np.arange(len(rows.chunk)) != row
        columns = {n: getattr(rows, n)[keep] for n in ("chunk", "src", "dst", "reduce", "start")}
        rows = replace(rows, **columns)
    else:
        column = getattr(rows, name).copy()
        column[row] = column[other] + (data.draw(st.integers(-1, 1)) if name == "start" else 0)
        rows = replace(rows, **{name: column})
    mutant = replace(algorithm, rows=rows)
    symmetric_only = _without_list(mutant)
    if symmetric_only.ok:
        assert judge_table(mutant).ok
    elif symmetric_only.kind in ("postcondition", "precondition") or (
        # Where chunks differ, rows are kept apart as if each were as long as any of its number.
        symmetric_only.kind == "link" and np.ptp(algorithm.demands[0].piece_bytes) == 0
    ):
        assert not judge_table(mutant).ok


def late_sum(size: int) -> Algorithm:
    """NPU 1 sends its sum of NPU 0's chunk while NPU 0's part comes to it; shares up to 1000 B."""
    demand = Collective.of("all-reduce", range(3), size, alignment=1000)
    topology = parse_topology("ring:3", bandwidth=[10**9], latency=[0])
    rows = rows_of([(0, 2, 1, True, 0), (0, 1, 0, True, 2), (0, 0, 1, True, 1)], 3)
    spread = rows_of([(0, 0, 1, False, 4), (0, 1, 2, False, 6)], 3)
    columns = {
        name: np.concatenate([getattr(rows, name), getattr(spread, name)])
        for name in ("chunk", "src", "dst", "reduce", "start")
    }
    columns["start"] = columns["start"] // HOP * 500_000  # half as long as 1000 B take
    return Algorithm((demand,), SymmetricRows(**columns, npus=3), Timing(topology, BLOCKING))


def test_a_shorter_chunk_may_not_come_before_what_it_comes_after() -> None:
    even = late_sum(3000)
    assert _without_list(even).ok
    assert judge_table(even).ok
    uneven = late_sum(2100)
    assert "contribution of NPU 2 twice" in str(judge_table(uneven).violation)
    verdict = _without_list(uneven)
    assert verdict.kind == "order"
    assert "row 1 sends chunk 0 at NPU 1 while another row brings it" in str(verdict.violation)


def _without_list(algorithm: Algorithm) -> Verdict:
    before, symmetric.LISTED = symmetric.LISTED, -1
    try:
        return verify(algorithm)
    finally:
        symmetric.LISTED = before


def test_no_rows_at_all() -> None:
    algorithm = on_ring()
    assert isinstance(algorithm.rows, SymmetricRows)
    names = ("chunk", "src", "dst", "reduce", "start")
    none = {name: getattr(algorithm.rows, name)[:0] for name in names}
    empty = replace(algorithm, rows=replace(algorithm.rows, **none))
    assert (len(empty.transfers), len(empty.of_npu(3)), empty.time) == (0, 0, 0)
    assert verify(empty).kind == "postcondition"
