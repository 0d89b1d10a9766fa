"""Logs of rounds: right ones pass, broken ones are refused with the right words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from weft import _core
from weft.algorithm import Algorithm, RoundLog, Timing
from weft.collective import Collective, all_reduce_of
from weft.cost import CostModel
from weft.judge import Verdict, verify
from weft.topology import load_topology
from weft.topology.model import Topology

from . import logs
from .handmade import BANDWIDTH, HOP, LATENCY, SHARE, ring

BLOCKING = CostModel("blocking")
KINDS = ("all-gather", "reduce-scatter", "all-reduce")


def made(
    kind: str = "all-gather", topology: Topology | None = None, cost: CostModel = BLOCKING
) -> tuple[Algorithm, list[logs.Entry]]:
    """A right log for a ring of four (or another network), and its entries."""
    topology = topology or ring(4)
    demand = Collective.of(kind, topology.members, len(topology.members) * SHARE)
    slot = logs.whole_slot(topology, demand, cost)
    entries = logs.gather(topology, demand, slot)
    return logs.logged(topology, demand, cost, slot, entries), entries


def with_entries(algorithm: Algorithm, entries: list[logs.Entry]) -> Algorithm:
    topology, cost, rows = algorithm.topology, algorithm.cost, algorithm.rows
    assert topology is not None
    assert cost is not None
    assert isinstance(rows, RoundLog)
    return logs.logged(topology, algorithm.demands[0], cost, rows.slot, entries)


def with_log(algorithm: Algorithm, **changes: object) -> Algorithm:
    assert isinstance(algorithm.rows, RoundLog)
    return replace(algorithm, rows=replace(algorithm.rows, **changes))


def refused(algorithm: Algorithm, kind: str, *words: str) -> None:
    verdict = verify(algorithm)
    assert not verdict
    assert verdict.kind == kind, verdict
    for word in words:
        assert word in str(verdict.violation), verdict


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cost", [CostModel(), BLOCKING])
@pytest.mark.parametrize("spec", ["ring:1", "ring:5", "mesh:3x4", "fc:5"])
def test_right_logs(kind: str, cost: CostModel, spec: str) -> None:
    algorithm, entries = made(kind, load_topology(spec), cost)
    assert verify(algorithm) == Verdict(True)
    assert verify(logs.expanded(algorithm, entries)) == Verdict(True)


def test_right_logs_of_many_chunks() -> None:
    # More than a word of bits: several threads share them.
    algorithm, entries = made("all-reduce", load_topology("torus:9x9"))
    assert verify(algorithm)
    refused(with_entries(algorithm, entries[:-1]), "reduction", "lacks")


def test_failures_and_latency_of_many_rounds() -> None:
    network = load_topology("mesh:4x4", latency=[10 * SHARE * 1000]).without(
        links=[(0, 1), (1, 0)], npus=[10]
    )
    for kind in KINDS:
        assert verify(made(kind, network, CostModel())[0])


def test_chunks_of_four_bytes() -> None:
    network = load_topology("ring:3")
    demand = Collective.of("all-gather", range(3), 3 * 22000, 22000, alignment=1)
    slot = logs.whole_slot(network, demand, BLOCKING)
    ways = {(s, d): i for i, (s, d) in enumerate(zip(network.src, network.dst, strict=True))}
    entries = [
        (22000 * step + i % 22000, ways[i // 22000, (i // 22000 + side) % 3], i)
        for i in range(66000)
        for step, side in ((0, 1), (0, 2))
    ]
    log = np.zeros(22000, dtype=[("bits", "<u8"), ("chunk", "<u4", 6)])
    for r, link, chunk in entries:
        log["chunk"][r, link] = chunk
    log["bits"] = 63
    data = log.view(np.uint8)
    rows = RoundLog(slot, len(entries), data, np.arange(22001, dtype=np.int64) * 32)
    algorithm = Algorithm((demand,), rows, Timing(network, BLOCKING))
    assert verify(algorithm)
    log["chunk"][7, 3] = 66000
    refused(algorithm, "structure", "round 7", "chunk 66000", "0 to 65999")


def test_progress_counts_bytes_and_cancels() -> None:
    algorithm, _ = made()
    progress = _core.Progress()
    assert verify(algorithm, progress=progress)
    assert progress.done == progress.total == len(algorithm.rows.log)
    progress.cancel()
    with pytest.raises(_core.Cancelled):
        verify(algorithm, progress=progress)


def test_chunk_before_it_arrived() -> None:
    algorithm, entries = made()
    assert entries[0] == (0, 0, 0)
    early = with_entries(algorithm, [(0, 0, 2), *entries[1:]])
    refused(early, "causality", "NPU 0 sends chunk 2 at 0ps (round 0) but receives it at")
    nobody = [(r, link, c) for r, link, c in entries if c != 2 or r == 0]
    refused(with_entries(algorithm, [*nobody, (9, 0, 2)]), "precondition", "never has it")
    slow = with_log(algorithm, slot=HOP - 1)
    refused(slow, "link", "round 1", "holds it until")


def test_latency_is_waited_for() -> None:
    algorithm, _ = made(topology=ring(4), cost=CostModel())
    assert verify(with_log(algorithm, slot=HOP))
    # The link is free after the push; the chunk is there only after the latency.
    entries = [(0, i, i) for i in range(4)] + [(1, i, (i - 1) % 4) for i in range(4)]
    refused(
        with_log(with_entries(algorithm, entries), slot=HOP - LATENCY),
        "causality",
        "but receives it at",
    )


def test_missing_and_wrong() -> None:
    algorithm, entries = made()
    refused(with_entries(algorithm, entries[:-1]), "postcondition", "never receives chunk")
    r, link, _ = entries[0]
    refused(with_entries(algorithm, [(r, link, 9), *entries[1:]]), "structure", "chunks are 0 to 3")


def test_damaged_logs() -> None:
    algorithm, _ = made()
    rows = algorithm.rows
    assert isinstance(rows, RoundLog)
    refused(with_log(algorithm, log=rows.log[:-8]), "structure", "'offsets'")
    refused(with_log(algorithm, log=rows.log[:-3]), "structure", "'offsets'")
    refused(with_log(algorithm, offsets=rows.offsets[:-1]), "structure", "'offsets'")
    refused(with_log(algorithm, offsets=rows.offsets[:0]), "structure", "'offsets'")
    refused(with_log(algorithm, offsets=rows.offsets + 8), "structure", "'offsets'")
    refused(with_log(algorithm, offsets=rows.offsets[::-1].copy()), "structure", "'offsets'")
    shifted = rows.offsets.copy()
    shifted[1] += 8
    refused(with_log(algorithm, offsets=shifted), "structure", "round 0", "B that its bitmap")
    beyond = rows.log.copy()
    beyond[0] &= 0xFE
    beyond[3] |= 1
    refused(with_log(algorithm, log=beyond), "structure", "links that are not there")
    refused(with_log(algorithm, count=rows.count + 1), "structure", "claims", "has")
    refused(with_log(algorithm, slot=0), "structure", "0ps")
    refused(with_log(algorithm, slot=1 << 61), "structure", "clock")
    refused(with_log(algorithm, log=rows.log.view(np.int8)), "structure", "'log'")


@given(st.data(), st.sampled_from(KINDS))
@examples(100)
def test_any_bytes_get_a_verdict(data: st.DataObject, kind: str) -> None:
    algorithm, _ = made(kind)
    rows = algorithm.rows
    assert isinstance(rows, RoundLog)
    log, offsets = rows.log.copy(), rows.offsets.copy()
    for _ in range(data.draw(st.integers(1, 3))):
        log[data.draw(st.integers(0, len(log) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(offsets) - 1))
        offsets[at] = data.draw(st.integers(-(2**63), 2**63 - 1))
    assert verify(with_log(algorithm, log=log, offsets=offsets)).ok in (True, False)


@pytest.mark.parametrize("kind", ["reduce-scatter", "all-reduce"])
def test_wrong_sums(kind: str) -> None:
    algorithm, entries = made(kind)
    network = algorithm.topology
    assert network is not None
    into = {(int(network.dst[link]), c): (r, link, c) for r, link, c in entries}
    free = 1 + max(r for r, _, _ in entries)
    # A partial again, over another link and in another round.
    npu, chunk = 2, 0
    other = next(
        i for i in range(network.links) if network.dst[i] == npu and i != into[npu, chunk][1]
    )
    refused(
        with_entries(algorithm, [*entries, (free, other, chunk)]), "reduction", "NPU 2", "twice"
    )
    home = next(i for i in range(network.links) if network.dst[i] == 0)
    refused(with_entries(algorithm, [*entries, (free, home, 0)]), "reduction", "belongs there")
    refused(with_entries(algorithm, entries[:-1]), "reduction", "lacks the contribution")
    alone = [(r, link, c) for r, link, c in entries if c != 0]
    # 3 > 2 > 1 > 0, but 2 adds what 3 sent only after it has sent itself.
    ends = zip(network.src.tolist(), network.dst.tolist(), strict=True)
    way = {(s, d): i for i, (s, d) in enumerate(ends)}
    line = [(free, way[0, 1], 0), (free + 1, way[1, 2], 0), (free + 1, way[2, 3], 0)]
    refused(with_entries(algorithm, [*alone, *line]), "reduction", "NPU 2", "brings it another")
    short = [(free, way[0, 1], 0), (free + 1, way[2, 3], 0)]
    refused(with_entries(algorithm, [*alone, *short]), "reduction", "never sends on")


def test_sums_need_twins() -> None:
    nodes = np.arange(3)
    one_way = Topology.from_links("tour", 3, nodes, (nodes + 1) % 3, BANDWIDTH, LATENCY)
    assert verify(made("all-gather", one_way)[0])
    refused(made("reduce-scatter", one_way)[0], "route", "leads back")
    slower = np.r_[[BANDWIDTH] * 4, [BANDWIDTH // 2] * 4]
    uneven = replace(ring(4), bandwidth=slower)
    refused(made("all-reduce", uneven)[0], "route", "leads back")


def test_logs_serve_whole_networks_without_switches() -> None:
    algorithm, _ = made()
    demand = Collective.of("all-gather", range(3), 4 * SHARE)
    refused(replace(algorithm, demands=(demand,)), "structure", "serves all NPUs")
    other = Collective.of("all-to-all", range(4), 4 * SHARE)
    refused(replace(algorithm, demands=(other,)), "structure", "not all-to-all")
    switched = load_topology("switch:4")
    refused(algorithm.on(switched), "structure", "without switches")
    assert isinstance(algorithm.rows, RoundLog)
    twice = replace(algorithm, rows=replace(algorithm.rows, phases=2))
    refused(twice, "structure", "all-gather is not run 2 times")


def test_removed_npus_do_not_relay() -> None:
    """A network from a file may keep the links of an NPU that it says is removed."""
    line = load_topology("line:3", bandwidth=[BANDWIDTH], latency=[LATENCY])
    network = replace(line, removed=frozenset([1]))
    link = {
        (int(src), int(dst)): number
        for number, (src, dst) in enumerate(zip(line.src, line.dst, strict=True))
    }
    entries = [(0, link[0, 1], 0), (0, link[2, 1], 1), (1, link[1, 2], 0), (1, link[1, 0], 1)]
    demand = Collective.of("all-gather", [0, 2], 2 * SHARE)
    algorithm = logs.logged(network, demand, BLOCKING, HOP, entries)
    refused(algorithm, "structure", "at an NPU that was removed")
    assert not verify(logs.expanded(algorithm, entries))


def test_logs_end_within_the_clock() -> None:
    algorithm, _ = made()
    assert isinstance(algorithm.rows, RoundLog)
    late = replace(algorithm.rows, slot=(1 << 61) // algorithm.rows.rounds)
    refused(replace(algorithm, rows=late), "structure", "within the clock")


def test_all_reduce_of_any_pieces() -> None:
    demand = all_reduce_of(range(4), 5 * SHARE, 5, alignment=1)
    entries = [(3 * c + i, (c + i) % 4, c) for c in range(5) for i in range(3)]
    algorithm = logs.logged(ring(4), demand, BLOCKING, HOP, entries)
    assert verify(algorithm) == verify(logs.expanded(algorithm, entries)) == Verdict(True)


@st.composite
def _networks(draw: st.DrawFn) -> Topology:
    spec = draw(st.sampled_from(["ring:2", "ring:4", "mesh:2x3", "torus:3x3", "fc:4"]))
    network = load_topology(spec, bandwidth=[BANDWIDTH], latency=[LATENCY])
    rate, delay = draw(st.sampled_from([(1, 0), (1, HOP), (2, 0), (3, 3 * HOP)]))
    # Both ways of some pairs of NPUs are slower.
    slow = (network.src + network.dst) % draw(st.integers(1, 3)) == 0
    return replace(
        network,
        bandwidth=np.where(slow, BANDWIDTH // rate, BANDWIDTH),
        latency=np.where(slow, LATENCY + delay, LATENCY),
    )


@st.composite
def _mutants(draw: st.DrawFn) -> tuple[Algorithm, list[logs.Entry]]:
    network, kind = draw(_networks()), draw(st.sampled_from(KINDS))
    cost = draw(st.sampled_from([CostModel(), BLOCKING]))
    size = draw(st.sampled_from([SHARE, SHARE - 7, 90])) * network.npus - draw(st.integers(0, 60))
    demand = Collective.of(kind, network.members, size, draw(st.integers(1, 2)), None, 32)
    slot = logs.whole_slot(network, demand, cost)
    slot = max(1, draw(st.sampled_from([slot, slot, slot + 1, slot - 1, slot // 2, slot // 3])))
    entries = logs.gather(network, demand, slot, draw(st.integers(0, 9)))
    used = {(r, link): c for r, link, c in entries}
    rounds, links = st.integers(0, 1 + entries[-1][0]), st.integers(0, network.links - 1)
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.sampled_from(sorted(used)))
        way = draw(st.sampled_from(["drop", "chunk", "add", "move", "swap"]))
        if way == "swap":
            other = draw(st.sampled_from(sorted(used)))
            used[at], used[other] = used[other], used[at]
            continue
        chunk = used[at] if way == "add" else used.pop(at)
        if way == "chunk":
            used[at] = draw(st.integers(0, len(demand.chunks) - 1))
        elif way != "drop":
            used[draw(rounds), draw(links) if way == "add" else at[1]] = chunk
        if not used:
            break
    changed = [(r, link, c) for (r, link), c in sorted(used.items())]
    return logs.logged(network, demand, cost, slot, changed), changed


@given(_mutants())
@examples(150)
def test_judges_agree(mutant: tuple[Algorithm, list[logs.Entry]]) -> None:
    algorithm, entries = mutant
    verdict, table = verify(algorithm), verify(logs.expanded(algorithm, entries))
    if table and not verdict:
        # What is added where it changes nothing any more; the log's judge wants trees.
        assert algorithm.demands[0].kind != "all-gather"
        assert verdict.kind == "reduction"
        assert "twice" in str(verdict.violation) or "brings" in str(verdict.violation)
        return
    assert verdict.ok == table.ok, (verdict, table)
