"""ASTRA-sim's networks: what it printed itself, and a slow model of it on random traces."""

from __future__ import annotations

import csv
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.formats.astra_model import COMP, RECV, Network, Simulator, attributes, run_bundle
from tests.replay.random_traces import node, random_ranks, recv, send
from tests.workload.traces import COLL, SEND, make, write
from weft import _core
from weft.errors import FormatError, InputError
from weft.export.astra_sim import export
from weft.replay import simulate_astra_sim
from weft.topology import load_topology

DATA = Path(__file__).parent.parent / "data" / "astra"
EXPECTED = list(csv.DictReader((DATA / "expected.csv").read_text().splitlines()))
ORDER = list(csv.DictReader((DATA / "order" / "expected.csv").read_text().splitlines()))
SLOW = examples(60)


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: "-".join(row.values()))
def test_expected_times(row):
    network = DATA / "net" / f"{row['network']}.yml"
    run = simulate_astra_sim(DATA / row["algorithm"], network, aware=row["backend"] == "aware")
    assert run.finished
    assert run.to_dict()["time_ns"] == int(row["finish_ns"])
    path = run.critical_path
    assert path[-1].end == run.time
    assert path[0].start == 0


@pytest.mark.skipif(not _core.orders_as_astra_sim, reason="needs libstdc++")
@pytest.mark.parametrize("row", ORDER, ids=lambda row: row["folder"])
def test_expected_times_with_ties(row):
    folder = DATA / "order" / row["folder"]
    (network,) = folder.glob("*.yml")
    finish = simulate_astra_sim(folder / row["prefix"], network).finish_ns
    if row["makespan_ns"]:
        assert max(finish) == int(row["makespan_ns"])
    expected = dict(map(int, one.split(":")) for one in row["finish_ns"].split(";"))
    assert {rank: finish[rank] for rank in expected} == expected


class AbortedError(Exception):
    """ASTRA-sim dies."""


class PlainSimulator(Simulator):
    """The model as a workload: one COMP, one on the CPU and one COMM_SEND of a rank at a time."""

    def __init__(self, *args, **how):
        super().__init__(*args, **how)
        self.waiting = defaultdict(set)
        self.taken = defaultdict(set)

    def unit(self, rank, number):
        found = self.ranks[rank].nodes[number]
        if found.type == RECV:
            return None
        return found.type, found.type == COMP and attributes(found).get("is_cpu_op", False)

    def issue(self, rank, ready):
        self.waiting[rank] |= set(ready)
        for number in sorted(self.waiting[rank]):
            unit = self.unit(rank, number)
            if unit not in self.taken[rank]:
                self.taken[rank] |= {unit} - {None}
                self.waiting[rank].remove(number)
                self.start(rank, number, self.ranks[rank].nodes[number])

    def complete(self, rank, number):
        self.taken[rank].discard(self.unit(rank, number))
        super().complete(rank, number)
        state = self.ranks[rank]
        if state.done == len(state.nodes) and state.nodes[number].type != COMP:
            units = {self.unit(rank, one) for one in state.nodes}
            if (COMP, True) in units:
                raise AbortedError


@st.composite
def networks(draw):
    """The text of a network file, and how many dimensions it has."""
    kinds = {"Ring": 3, "FullyConnected": 2, "Switch": 2}
    count = draw(st.integers(1, 3))
    names = draw(st.lists(st.sampled_from(list(kinds)), min_size=count, max_size=count))
    most = 6 if count == 1 else 4
    sizes = [draw(st.integers(kinds[name], most)) for name in names]
    speeds = [draw(st.sampled_from([50, 12.5, 7.7])) for _ in names]
    delays = [draw(st.sampled_from([0, 500, 33.3, 0.7])) for _ in names]
    text = f"topology: [{', '.join(names)}]\nnpus_count: {sizes}\n"
    return text + f"bandwidth: {speeds}\nlatency: {delays}\n", count


@SLOW
@given(networks(), st.integers(0, 10**6), st.booleans(), st.booleans(), st.booleans())
def test_random_traces_against_the_model(network, seed, fresh_tags, plain, aware):
    text, dimensions = network
    aware = aware and dimensions == 1
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "network.yml"
        file.write_text(text)
        model = Network.read(file)
        ranks = random_ranks(seed, model.ranks, fresh_tags=fresh_tags)
        folder = write(Path(name) / "traces", ranks)
        traces = {rank: {one.id: one for one in nodes} for rank, nodes in enumerate(ranks)}
        simulator = (PlainSimulator if plain else Simulator)(model, traces, aware=aware)
        try:
            expected = simulator.run()
        except AbortedError:
            with pytest.raises(InputError, match=r"is_cpu_op.*ASTRA-sim aborts"):
                simulate_astra_sim(folder, file, aware=aware, plain=plain)
            return
        run = simulate_astra_sim(folder, file, aware=aware, plain=plain)
    assert dict(enumerate(run.finish_ns)) == {
        rank: expected.get(rank) for rank in range(model.ranks)
    }
    hanging = {rank for rank in range(model.ranks) if rank not in expected}
    assert {stuck.rank for stuck in run.stuck} == hanging
    assert run.finished == (not hanging)


@pytest.mark.parametrize(
    ("spec", "kind", "more"),
    [
        ("ring:5", "all-reduce", {}),
        ("switch:4", "all-gather", {"switching": "store-and-forward"}),
        ("mesh:3x3", "all-to-all", {}),
        ("ring:4*switch:2", "all-reduce", {}),
        ("mesh:3x3", "all-gather", {"group": [8, 0, 4]}),
        ("mesh:3x3", "all-gather", {"group": [0, 1], "relay": False}),
    ],
)
def test_exported_bundles_against_the_model(spec, kind, more, tmp_path):
    network = load_topology(spec, "50GiB/s", "0.5us")
    algorithm = weft.synthesize(network, kind, "1MiB", chunks=2, **more).algorithm
    bundle = export(algorithm, tmp_path / "out")
    expected = run_bundle(tmp_path / "out").finish
    members = bundle.group or range(bundle.ranks)
    run = simulate_astra_sim(
        tmp_path / "out" / "algorithm", tmp_path / "out" / "network.yml", group=bundle.group
    )
    assert run.finish_ns == [expected[rank] for rank in members]


FC2 = "topology: [FullyConnected]\nnpus_count: [2]\nbandwidth: [50]\nlatency: [500]\n"
MIB = 1 << 20
HOP, PUSH = 20031, 19531  # ns for 1 MiB


def run_on(tmp_path, ranks, text=FC2, **how):
    (tmp_path / "net.yml").write_text(text)
    return simulate_astra_sim(write(tmp_path / "t", ranks), tmp_path / "net.yml", **how)


def test_links_serve_one_message_after_the_other(tmp_path):
    ranks = [[send(0, 1, MIB), send(1, 1, MIB, 1)], [recv(0, 0, MIB), recv(1, 0, MIB, 1)]]
    run = run_on(tmp_path, ranks)
    assert run.end.tolist() == [t * 1000 for t in (HOP, PUSH + HOP) * 2]
    assert [step.waited for step in run.critical_path if step.kind == "send"] == [PUSH * 1000]
    assert run.links.busy.tolist() == [2 * PUSH * 1000]
    assert run_on(tmp_path, ranks, aware=False).finish_ns == [HOP, HOP]


def test_plain_mode_sends_one_message_at_a_time(tmp_path):
    """The lowest id first, and the next when the last byte has arrived."""
    ranks = [[send(5, 1, MIB, 1), send(2, 1, MIB)], [recv(0, 0, MIB), recv(1, 0, MIB, 1)]]
    run = run_on(tmp_path, ranks, plain=True)
    assert run.id.tolist() == [2, 5, 0, 1]
    assert run.end.tolist() == [t * 1000 for t in (HOP, 2 * HOP, HOP, 2 * HOP)]
    assert [(step.rank, step.node) for step in run.critical_path] == [(0, 2), (0, 5)]


def test_plain_mode_computes_one_node_at_a_time(tmp_path):
    """One on the NPU and one on the CPU; a message goes meanwhile."""
    busy = [node(0, COMP, micros=3), node(1, COMP, micros=2), node(2, COMP), send(3, 1, MIB)]
    host = [node(4, COMP, micros=4, cpu=True), node(5, COMP, micros=5, cpu=True)]
    last = node(6, COMP, [3], cpu=True)
    ranks = [[*busy, *host, last], [recv(0, 0, MIB)]]
    plain = run_on(tmp_path, ranks, plain=True)
    ends = [3000, 5000, 5001, HOP, 4000, 9000, HOP + 1]
    assert plain.end[:7].tolist() == [t * 1000 for t in ends]
    custom = run_on(tmp_path, ranks)
    ends = [3000, 2000, 1, HOP, 4000, 5000, HOP + 1]
    assert custom.end[:7].tolist() == [t * 1000 for t in ends]


def test_plain_mode_has_no_statistics_of_the_cpu(tmp_path):
    """They throw; only what comes after a COMP is caught."""
    host, message = node(4, COMP, micros=4, cpu=True), send(5, 1, MIB)
    ranks = [[host, message], [recv(0, 0, MIB)]]
    with pytest.raises(InputError, match=r"rank 0: node 4 is a COMP with is_cpu_op.* aborts"):
        run_on(tmp_path, ranks, plain=True)
    assert run_on(tmp_path, ranks).finish_ns == [HOP, HOP]
    host.duration_micros = 30
    assert run_on(tmp_path, ranks, plain=True).finish_ns == [30_000, HOP]
    ranks[1].append(recv(1, 0, MIB))  # never finishes, so there are no statistics
    ranks[1].append(node(2, COMP, cpu=True))
    assert run_on(tmp_path, ranks, plain=True).finish_ns == [30_000, None]


def test_hangs_are_reported(tmp_path):
    ranks = [
        [recv(0, 1, 64, 7), send(1, 1, 64, 8, [0])],
        [recv(0, 0, 64, 8), send(1, 0, 65, 7), send(2, 0, 64, 7, [0])],
    ]
    run = run_on(tmp_path, ranks)
    assert run.finish_ns == [None, None]
    first, second = map(str, run.stuck)
    assert first == (
        "rank 0: node 0 waits for 64 B with tag 7 from rank 1, whose node 2 never starts to send"
    )
    assert second.endswith("64 B with tag 8 from rank 0, whose node 1 never starts to send")
    assert run.unfinished == 4
    ranks[1].pop()
    assert str(run_on(tmp_path, ranks).stuck[0]).endswith("from rank 1, which nobody sends")
    assert run.to_dict()["finished"] is False


IDLE = [node(0, COMP)]


def tagged(tag):
    return make(4, SEND, comm_dst=0, comm_size=99, comm_tag=tag)


@pytest.mark.parametrize(
    ("ranks", "text", "how", "message"),
    [
        ([IDLE, []], FC2, {}, r"w\.1\.et: has no node"),
        ([IDLE, [make(4, COLL)]], FC2, {}, r"w\.1\.et: node 4 is a whole collective.*weft lower"),
        ([IDLE, [make(4, 1)]], FC2, {}, r"w\.1\.et: node 4 is of type 1; expected COMP"),
        ([IDLE, [make(4, SEND, comm_dst=0, comm_size=1)]], FC2, {}, "node 4 has no comm_tag"),
        ([IDLE, [send(4, 1, 9)]], FC2, {}, "node 4 is a message from its rank to itself"),
        ([IDLE, [send(4, 2, 9)]], FC2, {}, "node 4 names rank 2, but ranks are 0 to 1"),
        ([IDLE, [send(4, 0, 0)]], FC2, {}, "node 4 moves 0 B; expected 1 to"),
        ([IDLE, [send(4, 0, 9, deps=[5])]], FC2, {}, "node 4 waits for node 5, which is not"),
        ([IDLE, [node(4, COMP, [4])]], FC2, {}, "node 4 can never run"),
        ([IDLE, [node(4, COMP, micros=1 << 43)]], FC2, {}, "node 4 takes 8796093022208 us"),
        ([IDLE, [send(4, 0, 9), send(4, 0, 9)]], FC2, {}, "node 4 is there twice"),
        ([IDLE, [send(4, 0, 53)]], FC2, {}, "rank 1: node 4 sends 53 B at time 0"),
        (
            [IDLE, [send(4, 0, 53)]],
            FC2.replace("[500]", "[0]"),
            {"aware": False},
            "rank 1: node 4 sends 53 B at time 0",
        ),
        ([IDLE], FC2, {}, r"w\.1\.et is missing"),
        ([IDLE] * 3, FC2, {}, r"w\.2\.et is of no NPU"),
        ([IDLE] * 2, FC2, {"group": [1, 0]}, "ascending order"),
        ([IDLE] * 2, FC2.replace("[2]", "[1]"), {}, "npus_count is 1"),
        ([IDLE] * 2, FC2.replace("FullyConnected", "Ring"), {}, "aborts on a Ring of 2"),
        ([IDLE] * 2, FC2.replace("FullyConnected", "Rong"), {}, "line 1: unknown topology"),
        ([IDLE] * 2, FC2.replace("FullyConnected", "ring"), {}, "did you mean 'Ring'"),
        ([IDLE] * 2, FC2.replace("[50]", "[.nan]"), {}, "bandwidth of dimension 0 is nan"),
        ([IDLE] * 2, FC2.replace("[50]", "[1e12]"), {}, r"expected 9.31e-10 to 9.31e\+08"),
        (
            [IDLE] * 2,
            FC2.replace("[50]", "[0x10]"),
            {},
            "line 3: bandwidth is wrong: expected float, got str",
        ),
        ([IDLE] * 2, FC2.replace("[2]", "[2.0]"), {}, "line 2: npus_count is wrong: expected int"),
        ([IDLE, [tagged(-3)]], FC2, {}, "node 4 has tag -3, .*; ASTRA-sim aborts"),
        ([IDLE, [tagged(-3)]], FC2, {"aware": False}, "node 4 has tag -3, .*; ASTRA-sim aborts"),
        ([IDLE, [tagged(-3)]], FC2, {"plain": True}, "node 4 has tag -3, .*; ASTRA-sim aborts"),
        ([IDLE] * 2, "weft: topology\n", {}, "is not a network file of ASTRA-sim"),
        (
            [IDLE, [make(4, SEND, comm_src=0, comm_dst=0, comm_size=9, comm_tag=0)]],
            FC2,
            {"plain": True},
            "node 4 has comm_src 0 in the trace of rank 1; ASTRA-sim aborts",
        ),
        (
            [IDLE, [send(4, 0, 1 << 60)]],
            FC2.replace("[50]", "[1e-9]"),
            {},
            "longer than the clock does",
        ),
    ],
)
def test_bad_input(ranks, text, how, message, tmp_path):
    with pytest.raises(InputError, match=message):
        run_on(tmp_path, ranks, text, **how)


def test_the_aware_network_has_one_dimension(tmp_path):
    with pytest.raises(InputError, match="2 dimensions"):
        simulate_astra_sim(DATA / "ag_ring_8", DATA / "net" / "ring4_ring2.yml")
    for name in ("a", "b"):
        write(tmp_path / "t", [IDLE], name)
    with pytest.raises(FormatError, match="several names"):
        simulate_astra_sim(tmp_path / "t", DATA / "net" / "fc_8.yml")
