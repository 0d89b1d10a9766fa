"""Bundles for ASTRA-sim: run by a model of it, from their files alone."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from astra_data import run_with_data
from astra_model import COMP, RECV, SEND, attributes, read_trace, run_bundle
from chakra_samples import ring, table
from chakra_schema import GlobalMetadata, Node, frame, frames
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.strategies import COSTS, Case, cases, irregular, roomy

import weft
from weft.algorithm import Algorithm, Buffer, Transfers, place
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import InputError
from weft.export.astra_sim import Bundle, export
from weft.topology import Topology, load_topology

SLOW = examples(25)


def made(spec, kind, size="1MiB", **more) -> Algorithm:
    network = load_topology(spec, "50GiB/s", "0.5us") if isinstance(spec, str) else spec
    result = weft.synthesize(network, kind, size, **more)
    assert result.verified
    return result.algorithm


def tolerance(algorithm: Algorithm) -> float:
    """Nanoseconds: four for each hop or wait that can come one after the other."""
    bandwidth = algorithm.topology.bandwidth.max()
    push = algorithm.chunks.bytes.min() * 1e9 / bandwidth
    return 4 * (2 + algorithm.time / 1000 / push)


@pytest.mark.parametrize(
    ("spec", "kind", "network", "more"),
    [
        ("ring:8", "all-gather", "Ring of 8", {}),
        ("ring:8", "all-reduce", "Ring of 8", {}),
        ("ring:2", "all-gather", "FullyConnected of 2", {}),
        ("fc:8", "all-to-all", "FullyConnected of 8", {}),
        ("switch:8", "all-gather", "Switch of 8", {"switching": "store-and-forward"}),
        ("mesh:3x3", "all-gather", "FullyConnected of 9", {}),
        ("mesh:4x4", "all-reduce", "FullyConnected of 16", {}),
        ("torus:3x3", "reduce-scatter", "FullyConnected of 9", {}),
        ("mesh:3x3", "broadcast", "FullyConnected of 9", {}),
        ("hypercube:3", "scatter", "FullyConnected of 8", {}),
        (
            "leaf-spine:2x2x2",
            "all-gather",
            "FullyConnected of 8",
            {"switching": "store-and-forward", "method": "matching"},
        ),
    ],
)
@pytest.mark.parametrize("seed", [None, 3])
def test_uniform_networks_take_the_planned_time(spec, kind, network, more, seed, tmp_path):
    algorithm = made(spec, kind, chunks=3, **more)
    bundle = export(algorithm, tmp_path / "out")
    assert bundle.network == network
    time = run_with_data(algorithm, tmp_path / "out", seed=seed)
    assert abs(time - algorithm.time / 1000) <= tolerance(algorithm)


def test_a_ring_takes_exactly_the_sum_of_its_floors(tmp_path):
    algorithm = made("ring:4", "all-gather", "4MiB", chunks=1, method="matching")
    export(algorithm, tmp_path / "out")
    hop = int(500 + (1 << 20) / 53.6870912)
    assert run_with_data(algorithm, tmp_path / "out") in (2 * hop, 2 * hop + 1)


@SLOW
@given(cases())
def test_random_networks(case: Case):
    check_any(case.run().algorithm)


@SLOW
@given(st.data())
def test_random_groups_at_once(data):
    network = data.draw(irregular(npus=9))
    members = data.draw(st.permutations(network.members.tolist()))
    cut = data.draw(st.integers(1, len(members)))
    kinds = st.sampled_from(["all-reduce", "all-gather", "broadcast", "all-to-all"])
    demands = [
        Collective.of(data.draw(kinds), group, data.draw(st.integers(1, 5000)), 2)
        for group in (members[:cut], members[cut:])
        if group
    ]
    cost = data.draw(COSTS)
    network = roomy(network, demands, cost)
    models = {"latency_model": cost.latency_model, "switching": cost.switching}
    chunks = [demand.chunks_per_share for demand in demands]
    check_any(weft.synthesize(network, demands, chunks=chunks, threads=1, **models).algorithm)


def check_any(algorithm: Algorithm) -> None:
    """It runs in any order in which ranks start nodes, data is right, and time is near."""
    if algorithm.topology.nodes < 2 or not algorithm.topology.links:
        with pytest.raises(InputError, match=r"needs at least two|has no links"):
            export(algorithm, "never")
        return
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        bundle = export(algorithm, out)
        times = {run_with_data(algorithm, out, seed=seed) for seed in (None, 1)}
        if "Switch" not in bundle.network:  # whose ports serve what comes at once in any order
            assert len(times) == 1
        check_traces(out)
        uniform = len(set(algorithm.topology.latency.tolist())) == 1
        no_copies = not any("parallel" in note for note in bundle.notes)
        pushes = algorithm.chunks.bytes.min() * 1e9 / algorithm.topology.bandwidth.max()
        plain = algorithm.cost == CostModel() and not algorithm.topology.switches
        if plain and uniform and no_copies and pushes > 10:
            assert abs(times.pop() - algorithm.time / 1000) <= tolerance(algorithm)
        if bundle.unaware:
            which = "npus-" if (out / "npus-system.json").exists() else ""
            run_with_data(algorithm, out, network="unaware.yml", which=which)


def check_traces(folder: Path) -> None:
    """What ASTRA-sim demands of nodes, and that the bytes are those of the protobuf runtime."""
    tags: dict[tuple[int, int], list[tuple[int, int]]] = {(SEND, 0): [], (RECV, 0): []}
    for path in sorted(folder.glob("algorithm.*.et")):
        first, *rest = frames(path.read_bytes())
        again = [frame(GlobalMetadata.FromString(first).SerializeToString())]
        again += [frame(Node.FromString(message).SerializeToString()) for message in rest]
        assert b"".join(again) == path.read_bytes()
        nodes = read_trace(path)
        sends = {number for number, node in nodes.items() if node.type == SEND}
        for node in nodes.values():
            assert not sends & {*node.data_deps}
            assert node.type != SEND or not sends & {*node.ctrl_deps}
            if node.type != COMP:
                found = attributes(node)
                tags[node.type, 0].append((found["comm_tag"], found["comm_size"]))
    assert len({tag for tag, _ in tags[SEND, 0]}) == len(tags[SEND, 0])
    assert sorted(tags[SEND, 0]) == sorted(tags[RECV, 0])


def message_size(run_size: int, kind: int, ranks: int, node: Node) -> int:
    """Bytes of a message where ASTRA-sim scales algorithms to the workload's size."""
    found = attributes(node)
    total, count = found["total_chunk_cnt"], found["msg_chunk_cnt"]
    if total == -1:
        return found["comm_size"]
    assert total % ranks == 0
    assert run_size % total == 0
    assert 0 <= found["msg_chunk_idx"] < total
    piece = run_size // (total // ranks) if kind == 2 else run_size // total
    return piece * count


@pytest.mark.parametrize("kind", ["all-gather", "all-reduce", "reduce-scatter", "all-to-all"])
@pytest.mark.parametrize(
    ("spec", "size", "counted"),
    [("mesh:2x2", 1 << 20, True), ("mesh:3x3", 81 << 14, True), ("mesh:3x3", 1000003, False)],
)
def test_both_forms_of_size_agree(kind, spec, size, counted, tmp_path):
    algorithm = made(spec, kind, size, chunks=1)
    export(algorithm, tmp_path / "out")
    run = run_bundle(tmp_path / "out")
    npus = algorithm.topology.npus
    assert run.comm_size == (-(-size // npus) if kind == "all-gather" else size)
    totals = set()
    for path in (tmp_path / "out").glob("algorithm.*.et"):
        for node in read_trace(path).values():
            if node.type != COMP:
                size_now = attributes(node)["comm_size"]
                assert message_size(run.comm_size, run.comm_type, npus, node) == size_now
                totals.add(attributes(node)["total_chunk_cnt"])
    assert (totals != {-1}) == counted


def test_the_order_of_the_table_does_not_matter(tmp_path):
    algorithm = made("mesh:3x3", "all-gather", "9MiB", chunks=4)
    rows = algorithm.transfers
    order = np.argsort(rows.chunk, kind="stable")
    moved = Transfers(**{name: column[order] for name, column in rows.columns().items()})
    times = []
    for number, table_ in enumerate((rows, moved)):
        export(replace(algorithm, rows=table_), tmp_path / str(number))
        times.append(run_bundle(tmp_path / str(number), seed=5).time)
    assert times[0] == times[1]


def test_a_group_with_relays(tmp_path):
    algorithm = made("mesh:3x3", "all-gather", "3MiB", group=[8, 0, 4])
    bundle = export(algorithm, tmp_path / "out")
    assert bundle.group is None or {0, 4, 8} < set(bundle.group)
    run_with_data(algorithm, tmp_path / "out")
    alone = made("mesh:3x3", "all-gather", "3MiB", group=[1, 0], relay=False)
    bundle = export(alone, tmp_path / "alone")
    assert bundle.group == (0, 1)
    assert len(list((tmp_path / "alone").glob("algorithm.*.et"))) == 2
    assert len(list((tmp_path / "alone").glob("workload.*.et"))) == 9
    run_with_data(alone, tmp_path / "alone")


def test_several_collectives_run_as_one(tmp_path):
    demands = [Collective.of("all-reduce", g, 1 << 20) for g in (range(0, 8, 2), range(1, 8, 2))]
    result = weft.synthesize(load_topology("switch:4*ring:2"), demands, chunks=2)
    bundle = export(result.algorithm, tmp_path / "out")
    assert "the 2 collectives run as one, called all-reduce" in bundle.notes
    run_with_data(result.algorithm, tmp_path / "out")


def test_switches_become_ranks(tmp_path):
    algorithm = made("ring:4*switch:2", "all-reduce")
    bundle = export(algorithm, tmp_path / "out")
    assert bundle.ranks == 12
    assert bundle.unaware
    assert any(note.startswith("the 4 switches are ranks") for note in bundle.notes)
    run_with_data(algorithm, tmp_path / "out")
    run_with_data(algorithm, tmp_path / "out", network="unaware.yml", which="npus-")


def test_multicast_crosses_shared_links_once(tmp_path):
    algorithm = made("switch:4,multicast", "broadcast", chunks=1)
    bundle = export(algorithm, tmp_path / "out")
    assert bundle.messages == 4 * bundle.parts
    assert run_with_data(algorithm, tmp_path / "out") == pytest.approx(bundle.planned_ns, rel=0.02)


def test_bandwidths_are_scaled_and_latencies_delayed(tmp_path):
    network = Topology.from_links(
        "two speeds", 3, [0, 1], [1, 2], [100 << 30, 25 << 30], [500_000, 2_500_000]
    )
    algorithm = made(network, "broadcast", "1MiB", chunks=1)
    bundle = export(algorithm, tmp_path / "out")
    sizes = [
        attributes(n)["comm_size"]
        for n in read_trace(tmp_path / "out/algorithm.1.et").values()
        if n.type in (SEND, RECV)
    ]
    assert sorted(sizes) == [1 << 20, 4 << 20]
    assert any("at most 0" in note for note in bundle.notes)
    time = run_with_data(algorithm, tmp_path / "out")
    assert abs(time - algorithm.time / 1000) <= 3


def test_what_latencies_leave_is_said(tmp_path):
    network = Topology.from_links("odd", 3, [0, 1], [1, 2], 50 << 30, [500_000, 1_200_000])
    bundle = export(made(network, "broadcast", chunks=1), tmp_path / "out")
    assert any("at most 300ns off a hop" in note for note in bundle.notes)


def test_parallel_links_are_one(tmp_path):
    network = Topology.from_links("double", 2, [0, 0, 1], [1, 1, 0], 50 << 30, 500_000)
    algorithm = made(network, "broadcast", "2MiB", chunks=2)
    bundle = export(algorithm, tmp_path / "out")
    assert any(note.startswith("1 pairs of nodes") for note in bundle.notes)
    time = run_with_data(algorithm, tmp_path / "out")
    assert abs(time - algorithm.time / 1000) <= 3


def test_small_messages_do_not_start_at_zero(tmp_path):
    algorithm = made("ring:4", "all-gather", 64, alignment=1)
    export(algorithm, tmp_path / "out")  # the model refuses what would abort
    run_with_data(algorithm, tmp_path / "out")


def test_an_untimed_algorithm_needs_a_network(tmp_path):
    algorithm = ring(4, reduce=True, timed=False)
    with pytest.raises(InputError, match="made for no network"):
        export(algorithm, tmp_path / "out")
    for spec in ("ring:4", "line:4", "switch:4", "mesh:2x2"):
        network = load_topology(spec, "50GiB/s", "0.5us")
        bundle = export(algorithm, tmp_path / spec, topology=network)
        assert bundle.planned_ns is None
        assert any("NPUs on the shortest way" in n for n in bundle.notes) == (
            spec in ("line:4", "mesh:2x2")
        )
        run_with_data(algorithm, tmp_path / spec, topology=network)
    with pytest.raises(InputError, match="leave out the other network"):
        export(ring(4), tmp_path / "out", topology=network)
    with pytest.raises(InputError, match="NPU 3, but ring:3 has NPUs 0 to 2"):
        export(algorithm, tmp_path / "out", topology=load_topology("ring:3"))
    apart = Topology.from_links("apart", 4, [0, 2], [1, 3], 1, 1)
    with pytest.raises(InputError, match="NPU 1 cannot reach NPU 2"):
        export(algorithm, tmp_path / "out", topology=apart)
    assert not (tmp_path / "out").exists()


def test_places_and_explicit_dependencies(tmp_path):
    """A chunk goes by way of scratch, and a row waits for one that brings it nothing."""
    scratch, home = place(Buffer.SCRATCH, 0), 0
    rows = table(
        [(0, 0, 1, False), (0, 1, 1, False), (0, 1, 2, False), (0, 0, 3, False)],
        src_place=np.array([home, scratch, home, home], np.int32),
        dst_place=np.array([scratch, home, home, home], np.int32),
        dep_offsets=np.array([0, 0, 0, 0, 1], np.int64),
        deps=np.array([2], np.int64),
    )
    demand = Collective.of("broadcast", range(4), 1 << 20)
    algorithm = Algorithm((demand,), rows)
    network = load_topology("switch:4", "50GiB/s", "0.5us")
    network = network.with_switches(copying=[4])  # link by link
    bundle = export(algorithm, tmp_path / "out", topology=network)
    assert bundle.ranks == 5
    assert run_bundle(tmp_path / "out").time == 4 * 20031 + 1


def test_files_are_writable_and_replaceable(tmp_path):
    out = tmp_path / "out"
    algorithm = made("mesh:2x3", "all-reduce")
    export(algorithm, out)
    assert all(os.access(path, os.W_OK) for path in out.iterdir())
    again = export(algorithm, out)
    assert isinstance(again, Bundle)
    assert (out / "ns3-topology.txt").read_text().splitlines()[:3] == [
        "6 0 7",
        "",
        "0 1 429496729600bps 500ns 0",
    ]
    (out / "mine.txt").write_text("")
    with pytest.raises(InputError, match=r"holds mine\.txt"):
        export(algorithm, out)


def test_a_removed_npu_is_idle(tmp_path):
    network = load_topology("mesh:3x3", "50GiB/s", "0.5us").without(npus=[4])
    algorithm = made(network, "all-gather")
    bundle = export(algorithm, tmp_path / "out")
    assert not bundle.ns3
    assert "there are no files for ns-3: NPU 4 has no link" in bundle.notes
    assert 4 not in bundle.group
    run_with_data(algorithm, tmp_path / "out")
