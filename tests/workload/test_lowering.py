"""Lowered workloads run, deliver what each collective must, and keep all else byte for byte."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.formats.chakra_schema import frames
from tests.workload.executor import check_collective, run
from tests.workload.traces import (
    COLL,
    COMP,
    KINDS,
    RECV,
    SEND,
    make,
    random_workload,
    read,
    value,
    write,
)
from weft.classical import BASELINES
from weft.errors import InputError
from weft.workload import lower, lowering

NETWORKS = ("ring:6", "line:7", "mesh:3x2", "fc:6", "switch:6", "torus:3x3", "ring:3*switch:2")


def lowered(folder: Path, network: str = "ring:6", **options) -> tuple[lowering.Lowering, Path]:
    out = folder.parent / f"{folder.name}.lowered"
    result = lower(folder, network, threads=1, **options)
    result.save(out)
    return result, out


def traces(folder: Path) -> list[list]:
    paths = list(folder.glob("*.et"))
    prefix = paths[0].name.split(".")[0]
    return [read(folder / f"{prefix}.{rank}.et") for rank in range(len(paths))]


def check(before: Path, after: Path, collectives, seed: int = 0) -> None:
    """All that a lowered workload must be."""
    old, new = traces(before), traces(after)
    result = run(new, seed)
    nodes = {(rank, node.id): node for rank, mine in enumerate(new) for node in mine}
    assert result.finished == set(nodes), "a rank hangs"
    was = {(rank, node.id): node for rank, mine in enumerate(old) for node in mine}
    for (rank, number), what in collectives.items():
        join = nodes[rank, number]
        assert (join.type, join.name) == (COMP, was[rank, number].name)
        check_collective(join, rank, result, *what)
        start = nodes[rank, join.data_deps[0]]
        assert start.name == "start"
        assert start.data_deps == was[rank, number].data_deps
        assert start.ctrl_deps == was[rank, number].ctrl_deps
    place = {key: i for i, key in enumerate(result.order)}
    for rank, mine in enumerate(old):
        for node in mine:  # what waited for something, waits for it still
            for dep in (*node.data_deps, *node.ctrl_deps):
                assert place[rank, dep] < place[rank, node.id]
    check_untouched(before, after, collectives)


def check_untouched(before: Path, after: Path, collectives) -> None:
    """Frames of all other nodes are there as they were, in the same order."""
    for path in before.glob("*.et"):
        rank = int(path.suffixes[-2][1:])
        first, *old = frames(path.read_bytes())
        replaced = {number for at, number in collectives if at == rank}
        kept = [m for m in old if weft_node(m).id not in replaced]
        same, *new = frames((after / path.name).read_bytes())
        assert same == first
        known = {weft_node(m).id for m in kept}
        assert [m for m in new if weft_node(m).id in known] == kept


def weft_node(message: bytes):
    from tests.formats.chakra_schema import Node

    return Node.FromString(message)


@given(
    st.integers(0, 10**6),
    st.sampled_from(NETWORKS),
    st.booleans(),
    st.sampled_from([None, 1, 3]),
)
@examples(25)
@example(3, "line:7", True, None)
def test_random_workloads_deliver(seed: int, network: str, together: bool, chunks: int | None):
    with tempfile.TemporaryDirectory() as folder:
        sample = random_workload(seed)
        before = sample.save(Path(folder) / "w")
        _, after = lowered(before, network, together=together, chunks=chunks)
        check(before, after, sample.collectives, seed)


@pytest.mark.parametrize(
    ("method", "kind"),
    [(name, kind) for name, known in BASELINES.items() for kind in KINDS if kind in known.kinds],
)
def test_classical_algorithms_deliver(method: str, kind: str, tmp_path: Path):
    """Also those that keep what they pass on or add apart from their own."""
    members = [4, 0, 5, 2, 3]
    nodes = [make(1, COMP), make(2, COLL, [1], comm_type=KINDS[kind], comm_size=4160, pg_name="1")]
    ranks = [nodes if rank in members else nodes[:1] for rank in range(6)]
    write(tmp_path / "w", ranks)
    (tmp_path / "w" / "comm_group.json").write_text(json.dumps({"1": members}))
    for network in ("mesh:3x2", "switch:6"):
        try:
            _, after = lowered(tmp_path / "w", network, method=method, chunks=2)
        except InputError:  # made for networks of another kind
            continue
        check(tmp_path / "w", after, {(rank, 2): (kind, 4160, members) for rank in members})


def test_relays_outside_the_workload_get_traces(tmp_path: Path):
    """Ranks 0 and 2 of a line can only talk through 1; the last NPU has nothing to do."""
    ends = [make(5, COMP), make(6, COLL, [5], comm_type=0, comm_size=64, pg_name="1")]
    idle = [make(0, COMP)]
    write(tmp_path / "w", [ends, idle, ends])
    (tmp_path / "w" / "comm_group.json").write_text('{"1": [0, 2]}')
    result, after = lowered(tmp_path / "w", "line:4")
    assert result.ranks == 3
    mine = traces(after)
    assert {node.type for node in mine[1]} == {COMP, SEND, RECV}
    assert all(not node.data_deps for node in mine[1] if node.type == RECV)
    what = {(rank, 6): ("all-reduce", 64, [0, 2]) for rank in (0, 2)}
    check(tmp_path / "w", after, what)


def test_npus_without_a_trace_relay(tmp_path: Path):
    node = make(0, COLL, comm_type=2, comm_size=32)
    write(tmp_path / "w", [[node], [node]])
    way = [1, 3, 4, 2, 1]  # NPU 0 has failed, 1 and 2 are the ranks
    network = weft.Topology.from_links("odd", 5, way[:-1], way[1:], 10**9, 0).without(npus=[0])
    out = tmp_path / "out"
    result = lower(tmp_path / "w", network)
    result.save(out)
    assert result.ranks == 4  # NPUs 1 to 4 are ranks 0 to 3
    what = {(rank, 0): ("all-gather", 32, [0, 1]) for rank in (0, 1)}
    check(tmp_path / "w", out, what)
    assert {node.name for node in traces(out)[2]} >= {"recv", "send"}


def test_the_same_is_synthesized_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    calls = []
    real = lowering.synthesize

    def counted(topology, collectives, **options):
        calls.append([(c.kind, c.group, c.size) for c in collectives])
        return real(topology, collectives, **options)

    monkeypatch.setattr(lowering, "synthesize", counted)

    def rank(group: str) -> list:
        kinds = [(0, 4096), (0, 4096), (7, 64), (0, 4096)]
        return [
            make(i, COLL, [i - 1] if i else [], comm_type=k, comm_size=s, pg_name=group)
            for i, (k, s) in enumerate(kinds)
        ]

    write(tmp_path / "w", [rank("1"), rank("1"), rank("2"), rank("2")])
    (tmp_path / "w" / "comm_group.json").write_text('{"1": [0, 1], "2": [2, 3]}')
    result, after = lowered(tmp_path / "w", "ring:4")
    assert calls == [
        [("all-reduce", (0, 1), 4096), ("all-reduce", (2, 3), 4096)],
        [("reduce-scatter", (0, 1), 64), ("reduce-scatter", (2, 3), 64)],
    ]
    assert [a["uses"] for a in result.to_dict()["algorithms"]] == [3, 1]
    assert result.to_dict()["lowered_count"] == 8
    calls.clear()
    lowered(tmp_path / "w", "ring:4", together=False)
    assert len(calls) == 4
    what = {
        (r, i): (("reduce-scatter", 64) if i == 2 else ("all-reduce", 4096))
        + ([r // 2 * 2, r // 2 * 2 + 1],)
        for r in range(4)
        for i in range(4)
    }
    check(tmp_path / "w", after, what)


def test_groups_that_do_other_things_are_apart(tmp_path: Path):
    def rank(group: str, size: int) -> list:
        return [make(0, COLL, comm_type=0, comm_size=size, pg_name=group)]

    write(tmp_path / "w", [rank("1", 64), rank("1", 64), rank("2", 128), rank("2", 128)])
    (tmp_path / "w" / "comm_group.json").write_text('{"1": [0, 1], "2": [2, 3]}')
    result, _ = lowered(tmp_path / "w", "ring:4")
    groups = [a["groups"] for a in result.to_dict()["algorithms"]]
    assert [[group["members"] for group in of] for of in groups] == [[[0, 1]], [[2, 3]]]


def test_what_cannot_be_lowered_stays(tmp_path: Path):
    kinds = [
        {"comm_type": 9},
        {"comm_type": 5, "comm_size": 8},
        {"comm_type": 0, "comm_size": 0},
        {"comm_type": 0, "comm_size": -3},
        {"comm_type": 44, "comm_size": 8},
        {"comm_size": 8},
        {"comm_type": 2, "comm_size": 1 << 60},
        {"comm_type": 6, "comm_size": 64},
        {"comm_type": 0, "comm_size": 15},
        {"comm_type": 0, "comm_size": 16},
    ]
    nodes = [make(i, COLL, **what) for i, what in enumerate(kinds)]
    write(tmp_path / "w", [nodes, nodes])
    result, after = lowered(tmp_path / "w", "ring:2", only=["all-reduce"], min_size=16)
    figures = result.to_dict()
    assert (figures["lowered_count"], figures["collective_count"]) == (1, 10)
    assert figures["kept"] == {
        "barrier: moves no data": 1,
        "broadcast: traces do not say the root": 1,
        "all-reduce: no size": 2,
        "comm_type 44 is unknown": 1,
        "no comm_type": 1,
        "all-gather: more than 1152921504606846976 bytes": 1,
        "all-to-all: not in --only": 1,
        "all-reduce: smaller than --min-size": 1,
    }
    check_untouched(tmp_path / "w", after, {(0, 9): (), (1, 9): ()})
    assert sum(node.type == COLL for node in traces(after)[0]) == 9


def test_tags_avoid_the_workload_s_own(tmp_path: Path):
    """Own tags at the ends and in the middle, one of them taken modulo the number of tags."""

    def rank(me: int) -> list:
        other = 1 - me
        tags = [0, 1, 5, 499_999_999, 500_000_002]
        return [
            *(make(i, SEND, comm_dst=other, comm_size=8, comm_tag=t) for i, t in enumerate(tags)),
            *(
                make(9 + i, RECV, comm_src=other, comm_size=8, comm_tag=t)
                for i, t in enumerate(tags)
            ),
            *(make(20 + i, COLL, comm_type=6, comm_size=64) for i in range(4)),
        ]

    write(tmp_path / "w", [rank(0), rank(1)])
    _, after = lowered(tmp_path / "w", "ring:2", chunks=1)
    new = [node for node in traces(after)[0] if node.id > 23 and node.type == SEND]
    assert sorted(value(node, "comm_tag") for node in new) == [6, 7, 8, 9]


def test_no_room_for_tags_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lowering, "TAGS", 3)
    node = make(0, COLL, comm_type=6, comm_size=4096)
    write(tmp_path / "w", [[node], [node]])
    with pytest.raises(weft.InputError, match="need 4 tags in a row, but tags end at 3"):
        lower(tmp_path / "w", "ring:2", chunks=4)


def test_ids_at_the_end_of_their_range(tmp_path: Path):
    node = make(2**64 - 3, COLL, comm_type=6, comm_size=64)
    write(tmp_path / "w", [[node], [node]])
    result = lower(tmp_path / "w", "ring:2", chunks=1)
    with pytest.raises(weft.FormatError, match=r"w\.0\.et: node 18446744073709551613 leaves too"):
        result.save(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_tags_are_unique_among_the_messages_of_a_pair(tmp_path: Path):
    sample = random_workload(11, collectives=9)
    before = sample.save(tmp_path / "w")
    _, after = lowered(before, "mesh:3x2")
    seen: Counter = Counter()
    for rank, nodes in enumerate(traces(after)):
        for node in nodes:
            if node.type == SEND and node.name == "send":
                seen[rank, value(node, "comm_dst"), value(node, "comm_tag")] += 1
    assert seen
    assert set(seen.values()) == {1}


def test_attributes_have_the_kinds_that_old_readers_want(tmp_path: Path):
    node = make(3, COLL, comm_type=0, comm_size=4096)
    write(tmp_path / "w", [[node]] * 3)
    _, after = lowered(tmp_path / "w", "ring:3")
    kinds = {
        (node.type, a.name): a.WhichOneof("value")
        for mine in traces(after)
        for node in mine
        for a in node.attr
    }
    assert kinds == {
        (SEND, "comm_dst"): "int32_val",
        (SEND, "comm_size"): "int64_val",
        (SEND, "comm_tag"): "int32_val",
        (RECV, "comm_src"): "int32_val",
        (RECV, "comm_size"): "int64_val",
        (RECV, "comm_tag"): "int32_val",
        (COMP, "is_cpu_op"): "bool_val",
    }
    # ASTRA-sim's statistics throw at COMPs on the CPU.
    assert not any(value(n, "is_cpu_op") for mine in traces(after) for n in mine)
    for path in after.glob("*.et"):  # every frame as the runtime itself would write it
        for message in frames(path.read_bytes())[1:]:
            assert weft_node(message).SerializeToString() == message


def test_messages_are_the_rows_of_the_algorithm(tmp_path: Path):
    """Chunk by chunk: what each message holds is what the verified algorithm says it holds."""
    node = make(0, COLL, comm_type=0, comm_size=40_000)
    write(tmp_path / "w", [[node]] * 6)
    _, after = lowered(tmp_path / "w", "mesh:3x2", chunks=2)
    algorithm = weft.synthesize("mesh:3x2", "all-reduce", 40_000, chunks=2, threads=1).algorithm
    rows = algorithm.transfers
    places: Counter = Counter()
    chunk_of = {}
    for chunk, src, dst in zip(
        *(c.tolist() for c in (rows.chunk, rows.src, rows.dst)), strict=True
    ):
        chunk_of[src, dst, places[src, dst]] = chunk
        places[src, dst] += 1
    new = traces(after)
    first = min(value(n, "comm_tag") for mine in new for n in mine if n.type == SEND)
    for rank, mine in enumerate(new):
        nodes = {n.id: n for n in mine}

        def chunks(n, rank=rank, nodes=nodes) -> set[int]:
            """The chunks a node has to do with, by the messages it follows from."""
            if n.type == RECV:
                key = value(n, "comm_src"), rank, value(n, "comm_tag") - first
                return {chunk_of[key]}
            found = set()
            for dep in n.data_deps:
                if nodes[dep].name in ("recv", "sum"):
                    found |= chunks(nodes[dep])
            return found

        for n in mine:
            if n.type == SEND:
                key = rank, value(n, "comm_dst"), value(n, "comm_tag") - first
                assert chunks(n) <= {chunk_of[key]}
                assert value(n, "comm_size") == algorithm.chunks.bytes[chunk_of[key]]
            elif n.name == "sum":
                assert len(chunks(n)) == 1


def test_same_seed_same_bytes(tmp_path: Path):
    sample = random_workload(5)
    before = sample.save(tmp_path / "w")
    contents = []
    for threads in (1, 2):
        out = tmp_path / f"out{threads}"
        lower(before, "mesh:3x2", seed=3, threads=threads).save(out)
        contents.append({path.name: path.read_bytes() for path in out.iterdir()})
    assert contents[0] == contents[1]


def test_lowering_twice_changes_nothing(tmp_path: Path):
    sample = random_workload(5)
    _, once = lowered(sample.save(tmp_path / "w"), "mesh:3x2")
    result, twice = lowered(once, "mesh:3x2")
    assert result.lowered == 0
    for path in once.iterdir():
        assert path.read_bytes() == (twice / path.name).read_bytes()


def test_a_failed_npu_moves_ranks_up(tmp_path: Path):
    node = make(0, COLL, comm_type=2, comm_size=1000)
    write(tmp_path / "w", [[node]] * 5)
    network = weft.load_topology("mesh:3x2", without_npus=[2])
    out = tmp_path / "out"
    lower(tmp_path / "w", network).save(out)
    check(tmp_path / "w", out, {(r, 0): ("all-gather", 1000, list(range(5))) for r in range(5)})


def test_a_prefix_names_one_of_several_workloads(tmp_path: Path):
    node = make(0, COLL, comm_type=0, comm_size=64)
    write(tmp_path / "w", [[node]] * 2, "a")
    write(tmp_path / "w", [[node]] * 3, "b")
    assert lower(tmp_path / "w" / "a", "ring:3").workload.ranks == 2
    with pytest.raises(weft.FormatError, match=r"several workloads; choose one: .*/a or .*/b"):
        lower(tmp_path / "w", "ring:3")


def test_the_algorithm_must_be_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from dataclasses import replace

    real = lowering.synthesize

    def wrong(*args, **options):
        result = real(*args, **options)
        return replace(result, verdict=weft.Verdict(False, "chunk 0 is nowhere"))

    monkeypatch.setattr(lowering, "synthesize", wrong)
    node = make(0, COLL, comm_type=0, comm_size=64)
    write(tmp_path / "w", [[node]] * 2)
    with pytest.raises(weft.WeftError, match="nothing is lowered: chunk 0 is nowhere"):
        lower(tmp_path / "w", "ring:2")


def test_many_collectives_share_one_algorithm(tmp_path: Path):
    """Time and memory grow with what is written, not with the product of anything."""
    count = 100
    chain = [make(i, COLL, [i - 1] if i else [], comm_type=0, comm_size=4096) for i in range(count)]
    write(tmp_path / "w", [chain] * 4)
    result, after = lowered(tmp_path / "w", "ring:4")
    assert len(result.algorithms) == 1
    new = traces(after)
    assert run(new).finished == {(r, n.id) for r, mine in enumerate(new) for n in mine}


def test_json_of_figures(tmp_path: Path):
    node = make(0, COLL, comm_type=7, comm_size=4096)
    write(tmp_path / "w", [[node]] * 2)
    result, _ = lowered(tmp_path / "w", "ring:2")
    figures = json.loads(json.dumps(result.to_dict()))
    (algorithm,) = figures["algorithms"]
    assert algorithm["verified"] is True
    assert algorithm["time_us"] >= algorithm["lower_bound_us"] > 0
    assert np.isclose(algorithm["efficiency"], algorithm["lower_bound_us"] / algorithm["time_us"])
