"""Traces on Weft's networks: known times, a slow model, and what must hold on any network."""

from __future__ import annotations

import heapq
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.formats.astra_model import COMP, Simulator, attributes
from tests.formats.trace_writer import TraceWriter
from tests.replay.random_traces import SIZES, node, random_ranks, recv, send
from tests.strategies import COSTS, irregular
from tests.workload.traces import COLL, make, random_workload, write
from weft.cost import CostModel
from weft.engine import simulate
from weft.errors import FormatError, InputError
from weft.replay import TraceRun, is_workload, simulate_traces
from weft.topology import Topology, load_topology
from weft.workload import Transformer, save_transformer

SLOW = examples(50)
US = 10**6
MB = 10**6  # a millisecond at 1 GB/s


def network_of(spec: str) -> Topology:
    return load_topology(spec, "1GB/s", "1us")


def run_ranks(folder: Path, ranks, spec: str, *models) -> TraceRun:
    return simulate_traces(write(folder / "t", ranks), network_of(spec), CostModel(*models))


def ring_all_gather(ranks: int, size: int) -> TraceWriter:
    """What a rank received is passed on to the next."""
    traces = TraceWriter(ranks)
    have: list[tuple[int, ...]] = [() for _ in range(ranks)]
    for _ in range(ranks - 1):
        got = [traces.message(r, (r + 1) % ranks, size, after=have[r]) for r in range(ranks)]
        have = [(got[r - 1],) for r in range(ranks)]
    return traces


def test_a_ring_takes_its_hops(tmp_path):
    run = simulate_traces(ring_all_gather(4, MB).write(tmp_path / "t"), network_of("ring:4"))
    assert run.finished
    assert run.time == 3 * 1001 * US
    assert run.finish.tolist() == [run.time] * 4
    assert [step.kind for step in run.critical_path] == ["send", "receive"] * 2 + ["send"]
    assert sorted(set(run.links.busy.tolist())) == [0, 3000 * US]
    assert run.to_dict()["critical_path"]["transfer_us"] == 3003
    assert run.to_dict()["busiest_links"][0] == {"src": "0", "dst": "1", "busy_us": 3000}


def test_a_run_says_its_cost_model_and_names_switches(tmp_path):
    where = ring_all_gather(3, MB).write(tmp_path / "t")
    figures = simulate_traces(where, network_of("switch:3"), CostModel("blocking")).to_dict()
    assert (figures["latency_model"], figures["switching"]) == ("blocking", "cut-through")
    ends = {(link["src"], link["dst"]) for link in figures["busiest_links"]}
    assert ends == {(str(npu), "s0") for npu in range(3)} | {("s0", str(npu)) for npu in range(3)}


@pytest.mark.parametrize(
    ("spec", "models", "last", "both"),
    [
        ("ring:3", ("pipelined",), 1001, 2001),
        ("ring:3", ("blocking",), 1001, 2002),
        ("line:3", ("pipelined",), 2002, 3002),  # NPU 1 passes it on
        ("switch:3", ("pipelined", "cut-through"), 1002, 2002),
        ("switch:3", ("pipelined", "store-and-forward"), 2002, 3002),
    ],
)
def test_messages_take_what_the_cost_model_says(spec, models, last, both, tmp_path):
    ranks = [[send(0, 2, MB)], [], [recv(0, 0, MB)]]
    assert run_ranks(tmp_path, ranks, spec, *models).time == last * US
    ranks = [[send(0, 2, MB), send(1, 2, MB, 1)], [], [recv(0, 0, MB), recv(1, 0, MB, 1)]]
    run = run_ranks(tmp_path, ranks, spec, *models)
    assert run.end.tolist() == [last * US, both * US] * 2
    assert run.critical_path[-1].waited == (both - last) * US
    assert run.finish.tolist() == [both * US, 0, both * US]


def test_computing_overlaps_with_messages(tmp_path):
    """COMPs take turns on the NPU, by readiness, then id; none at all if they take no time."""
    first = [node(0, COMP, micros=700), node(1, COMP, [2], 300), node(2, COMP)]
    rest = [node(3, COMP, [4], 100), recv(4, 1, MB), node(5, COMP, micros=500, cpu=True)]
    run = run_ranks(tmp_path, [first + rest, [send(0, 0, MB)]], "ring:2")
    assert run.start.tolist()[:6] == [t * US for t in (0, 700, 0, 1001, 0, 0)]
    assert run.end.tolist() == [t * US for t in (700, 1000, 0, 1101, 1001, 500, 1001)]
    assert [(s.rank, s.node) for s in run.critical_path] == [(1, 0), (0, 4), (0, 3)]
    assert run.to_dict()["critical_path"]["compute_us"] == 100


class WeftSimulator(Simulator):
    """The model with Weft's rules, on networks whose links all join NPUs, at most one per pair."""

    def __init__(self, topology: Topology, cost: CostModel, traces) -> None:
        super().__init__(None, traces, members=list(range(topology.npus)))
        self.topology, self.cost = topology, cost
        self.free_at = defaultdict(int)
        self.queue, self.unit = defaultdict(list), {}
        self.next = [self.ways_to(npu) for npu in range(topology.npus)]

    def ways_to(self, npu: int) -> dict[int, int]:
        """The link to take from each NPU: nearer, and the lowest of those."""
        ends = list(zip(self.topology.src.tolist(), self.topology.dst.tolist(), strict=True))
        away, edge = {npu: 0}, {npu}
        while edge:
            edge = {src for src, dst in ends if dst in edge} - away.keys()
            away |= dict.fromkeys(edge, max(away.values()) + 1)
        links = {}
        for link in reversed(range(len(ends))):
            src, dst = ends[link]
            if away[dst] == away[src] - 1:
                links[src] = link
        return links

    def place(self, rank: int, number: int):
        found = self.ranks[rank].nodes[number]
        if found.type != COMP or not found.duration_micros:
            return None
        return rank, attributes(found).get("is_cpu_op", False)

    def issue(self, rank: int, ready: list[int]) -> None:
        now = [number for number in ready if self.place(rank, number) is None]
        for number in set(ready) - set(now):
            heapq.heappush(self.queue[self.place(rank, number)], (self.now, number))
        for unit in ((rank, False), (rank, True)):
            if unit not in self.unit and self.queue[unit]:
                self.unit[unit] = heapq.heappop(self.queue[unit])[1]
                now.append(self.unit[unit])
        for number in sorted(now):
            found = self.ranks[rank].nodes[number]
            if found.type == COMP:
                end = self.now + found.duration_micros * US
                self.at(end, lambda done=number: self.complete(rank, done))
            else:
                self.start(rank, number, found)

    def complete(self, rank: int, number: int) -> None:
        self.unit.pop(self.place(rank, number), None)
        super().complete(rank, number)

    def send(self, key, rank: int, number: int, at: int | None = None) -> None:
        _, src, dst, size = key
        link = self.next[dst][src if at is None else at]
        push = -(-size * 10**12 // int(self.topology.bandwidth[link]))
        latency = int(self.topology.latency[link])
        start = max(self.now, self.free_at[link])
        self.free_at[link] = start + push + latency * (self.cost.latency_model == "blocking")

        def arrive() -> None:
            there = int(self.topology.dst[link])
            if there == dst:
                self.deliver(key, rank, number)
            else:
                self.send(key, rank, number, there)

        self.at(start + push + latency, arrive)


@SLOW
@given(
    st.sampled_from(["line:4", "ring:5", "fc:3", "mesh:3x2", "torus:3x3", "hypercube:3"]),
    st.sampled_from(["1GB/s", "33MB/s"]),
    st.sampled_from(["0", "1us", "77ns"]),
    st.sampled_from(["pipelined", "blocking"]),
    st.integers(0, 10**6),
    st.booleans(),
)
def test_random_traces_against_the_model(spec, bandwidth, latency, model, seed, fresh_tags):
    topology, cost = load_topology(spec, bandwidth, latency), CostModel(model)
    ranks = random_ranks(seed, topology.npus, fresh_tags=fresh_tags)
    with tempfile.TemporaryDirectory() as folder:
        run = simulate_traces(write(Path(folder) / "t", ranks), topology, cost)
    traces = {rank: {one.id: one for one in nodes} for rank, nodes in enumerate(ranks)}
    expected = WeftSimulator(topology, cost, traces).run()
    assert run.finish.tolist() == [expected.get(rank, -1) for rank in range(topology.npus)]


@SLOW
@given(irregular(npus=6), COSTS, st.integers(0, 10**6))
def test_what_holds_on_any_network(network, cost, seed):
    if cost.switching == "store-and-forward":
        rooms = {switch: max(SIZES) for switch in network.buffers}
        network = network.with_switches(buffers=rooms)
    ranks = random_ranks(seed, network.npus, fresh_tags=True)
    with tempfile.TemporaryDirectory() as folder:
        run = simulate_traces(write(Path(folder) / "t", ranks), network, cost)
    place = {
        (rank, number): i for i, (rank, number) in enumerate(zip(run.rank, run.id, strict=True))
    }
    for rank, nodes in enumerate(ranks):
        for one in nodes:
            at = place[rank, one.id]
            if run.start[at] >= 0:
                waits = [place[rank, dep] for dep in (*one.data_deps, *one.ctrl_deps)]
                assert all(0 <= run.end[dep] <= run.start[at] for dep in waits)
    assert run.finished == (not run.stuck)
    if len(run.links):
        assert run.links.busy.max() <= run.time
    check_path(run)


def check_path(run: TraceRun) -> None:
    """Steps follow each other without a gap from the start of the run to its end."""
    now = 0
    for step in run.critical_path:
        assert step.waited >= 0
        if step.kind == "receive":
            assert step.start <= now <= step.end
        else:
            assert step.start == now
        now = step.end
    assert now == run.time


@pytest.mark.parametrize("spec", ["ring:4", "mesh:2x3", "switch:4"])
def test_an_algorithm_takes_no_longer_as_traces(spec, tmp_path):
    """Alone on its links, the algorithm's rows run as planned."""
    algorithm = weft.synthesize(network_of(spec), "all-gather", "6MB", chunks=1).algorithm
    weft.formats.write(algorithm, tmp_path / "out")
    assert not is_workload(tmp_path / "out")
    run = simulate_traces(tmp_path / "out", algorithm.topology)
    assert run.time == simulate(algorithm, order="fifo").time


@pytest.mark.parametrize("spec", ["ring:6", "mesh:2x3", "switch:6", "fc:3*switch:2"])
@pytest.mark.parametrize("seed", [6, 17, 19])
def test_workloads_are_lowered_and_run_to_the_end(spec, seed, tmp_path):
    sample = random_workload(seed)
    run = simulate_traces(sample.save(tmp_path / "w"), network_of(spec), threads=1)
    assert is_workload(tmp_path / "w")
    assert run.finished
    assert (run.lowered is not None) == bool(sample.collectives)
    check_path(run)


def test_a_training_step(tmp_path):
    model = Transformer(tp=2, dp=2, pp=2, batch=8, microbatches=4, layers=2, hidden=64, seq=64)
    save_transformer(model, tmp_path / "step")
    times = {}
    for spec in ("ring:8", "mesh:2x4", "switch:8"):
        run = simulate_traces(tmp_path / "step", network_of(spec), method="direct")
        assert run.finished
        assert run.to_dict()["lowering"]["kept"] == {}
        computes = run.kind == 0
        busy = np.bincount(run.rank[computes], (run.end - run.start)[computes])
        assert run.time > busy.max()
        times[spec] = run.time
        check_path(run)
    assert times["switch:8"] < times["ring:8"]


def test_ranks_are_npus_that_are_there(tmp_path):
    network = network_of("line:4").without(npus=[0])
    run = simulate_traces(write(tmp_path / "t", [[send(0, 1, MB)], [recv(0, 0, MB)]]), network)
    assert run.time == 1001 * US
    used = run.links.busy > 0
    assert (run.links.src[used].tolist(), run.links.dst[used].tolist()) == ([1], [2])


def test_a_prefix_names_traces(tmp_path):
    write(tmp_path / "t", [[node(0, COMP, micros=2)]], "a")
    write(tmp_path / "t", [[node(0, COMP, micros=3)], [make(0, 1)]], "b")
    assert simulate_traces(tmp_path / "t" / "b", network_of("ring:2")).time == 3 * US
    assert is_workload(tmp_path / "t" / "b")
    assert not is_workload(tmp_path / "t" / "c")


@pytest.mark.parametrize(
    ("ranks", "spec", "message"),
    [
        ([[], [make(7, 2)]], "ring:2", r"w\.1\.et: node 7 is of type 2"),
        ([[], [recv(7, 3, 8)]], "ring:2", r"w\.1\.et: node 7 names rank 3, but ranks are 0 to 1"),
        ([[], [send(7, 0, 8)]], "ring:2,1>0", "NPU 1 cannot reach NPU 0"),
        ([[], [], []], "ring:2", "has 3 ranks, but ring:2 only 2 NPUs"),
        ([[make(0, COLL, comm_type=9, comm_size=8)]], "ring:2", "1 collectives cannot be run"),
        (
            [[node(i, COMP, micros=1 << 42) for i in range(2)]],
            "ring:2",
            "longer than the clock does",
        ),
    ],
)
def test_bad_input(ranks, spec, message, tmp_path):
    spec, *gone = spec.split(",")
    network = network_of(spec)
    for link in gone:
        network = network.without(links=[tuple(map(int, link.split(">")))])
    with pytest.raises(InputError, match=message):
        simulate_traces(write(tmp_path / "t", ranks), network)


def test_damaged_and_missing_files(tmp_path):
    folder = write(tmp_path / "t", [[send(0, 1, 8)], [recv(0, 0, 8)]])
    (folder / "w.1.et").write_bytes((folder / "w.1.et").read_bytes()[:-1])
    assert is_workload(folder)
    with pytest.raises(FormatError, match=r"w\.1\.et: byte"):
        simulate_traces(folder, "ring:2")
    (folder / "w.0.et").write_bytes((whole := (folder / "w.0.et").read_bytes())[:-1])
    with pytest.raises(FormatError, match=r"w\.0\.et: byte"):
        is_workload(folder)
    (folder / "w.0.et").write_bytes(whole)
    (folder / "w.1.et").unlink()
    (folder / "w.2.et").write_bytes((folder / "w.0.et").read_bytes())
    with pytest.raises(FormatError, match=r"w\.1\.et is missing"):
        simulate_traces(folder, "ring:2")
    with pytest.raises(FormatError, match="No such file"):
        simulate_traces(tmp_path / "nothing", "ring:2")


def test_kinds_are_those_of_the_nodes(tmp_path):
    run = run_ranks(tmp_path, [[send(3, 1, 8)], [recv(4, 0, 8), node(6, COMP, cpu=True)]], "ring:2")
    assert run.kind.tolist() == [1, 2, 3]
    assert run.rank.tolist() == [0, 1, 1]
    assert run.id.tolist() == [3, 4, 6]
