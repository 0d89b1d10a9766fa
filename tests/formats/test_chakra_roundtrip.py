"""What is saved comes back equal in every column, and reads as the rules of the format say."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path

import numpy as np
import pytest
from astra_model import attributes
from chakra_samples import assert_same, random_algorithm, ring, star, table, told, with_places
from chakra_schema import Node, frames
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.algorithm import Algorithm
from weft.collective import Collective
from weft.errors import FormatError, InputError
from weft.formats import chakra, write

COMP, SEND, RECV = 4, 5, 6


def nodes_of(folder: Path, npu: int) -> list[Node]:
    return [Node.FromString(m) for m in frames((folder / f"weft.{npu}.et").read_bytes())[1:]]


@pytest.mark.parametrize(
    "algorithm",
    [
        ring(2),
        ring(8),
        ring(5, timed=False),
        ring(4, reduce=True),
        ring(6, reduce=True, timed=False),
        star(2),
        star(7),
        with_places(),
        told(),
        Algorithm((Collective.of("all-gather", [0], 10),), table([])),
        Algorithm((Collective.of("all-gather", [2, 5], 10),), table([])),
    ],
)
def test_round_trip(algorithm, tmp_path):
    write(algorithm, tmp_path / "out")
    assert_same(chakra.load(tmp_path / "out"), algorithm)


@given(st.integers(0, 2**32))
def test_round_trip_of_random_rows(seed):
    algorithm = random_algorithm(seed)
    with tempfile.TemporaryDirectory() as folder:
        chakra.save(algorithm, Path(folder))
        assert_same(chakra.load(Path(folder)), algorithm)


def test_bytes_depend_on_nothing_but_the_algorithm(tmp_path):
    for name in "ab":
        chakra.save(with_places(), tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_a_forwarded_chunk_waits_for_its_receive(tmp_path):
    chakra.save(ring(3), tmp_path / "out")
    for npu in range(3):
        nodes = nodes_of(tmp_path / "out", npu)
        assert sorted(n.type for n in nodes) == [SEND, SEND, RECV, RECV]
        sends = [n for n in nodes if n.type == SEND]
        assert not sends[0].data_deps
        (dep,) = sends[1].data_deps
        assert nodes[dep].type == RECV
        assert [a.name for a in sends[0].attr] == ["comm_dst", "comm_size", "comm_tag"]


def test_a_sum_waits_for_its_receive_and_the_sum_before(tmp_path):
    demand = Collective.of("reduce", [0, 1, 2], 64)
    rows = [(0, 1, 0, True), (0, 2, 0, True), (0, 0, 1, False)]
    chakra.save(Algorithm((demand,), table(rows)), tmp_path / "out")
    nodes = nodes_of(tmp_path / "out", 0)
    assert [n.type for n in nodes] == [RECV, COMP, RECV, COMP, SEND]
    assert [list(n.data_deps) for n in nodes] == [[], [0], [], [2, 1], [3]]


def test_only_what_overwrites_a_place_waits_for_a_send(tmp_path):
    algorithm = with_places()
    chakra.save(algorithm, tmp_path / "out")
    rows, waits = algorithm.transfers, 0
    for npu in range(4):
        nodes = nodes_of(tmp_path / "out", npu)
        tags = [attributes(node).get("comm_tag") for node in nodes]
        for at, node in enumerate(nodes):
            waits += len(node.ctrl_deps)
            assert node.type != SEND or node.attr[0].int32_val != npu
            assert all(nodes[d].type in (RECV, COMP) for d in node.data_deps)
            for send in (d for d in node.ctrl_deps if nodes[d].type == SEND):
                assert node.type != SEND
                row = tags[at] if tags[at] is not None else tags[node.data_deps[0]]
                assert rows.dst[row] == npu
                assert rows.dst_place[row] == rows.src_place[tags[send]]
    assert waits > 0


@pytest.mark.parametrize("kind", ["recursive-doubling", "one-shot"])
def test_sums_wait_until_what_they_overwrite_is_sent(tmp_path, kind):
    """Each NPU sends what it has and then adds what it got to it: not the other way round."""
    weft.synthesize("ring:3", "all-reduce", "3KiB", chunks=1, method=kind).save(tmp_path / "out")
    rows = chakra.load(tmp_path / "out").transfers
    for npu in range(3):
        nodes = nodes_of(tmp_path / "out", npu)
        tag_of = [attributes(node).get("comm_tag") for node in nodes]
        node_of = {tag: at for at, tag in enumerate(tag_of) if tag is not None}
        last: dict[int, list[int]] = {}  # sends of what lies at each place now
        for row in range(len(rows)):
            if rows.src[row] == npu and rows.dst[row] != npu:
                last.setdefault(int(rows.src_place[row]), []).append(node_of[row])
            elif rows.dst[row] == npu:
                sends = last.pop(int(rows.dst_place[row]), [])
                held = {
                    d for node in nodes[node_of[row] : node_of[row] + 2] for d in node.ctrl_deps
                }
                assert held.issuperset(sends)


def test_chunks_that_are_only_passed_on_wait_for_no_send(tmp_path):
    weft.synthesize("ring:4", "all-reduce", "4KiB", method="ring").save(tmp_path / "out")
    assert not any(node.ctrl_deps for npu in range(4) for node in nodes_of(tmp_path / "out", npu))


def test_an_idle_npu_has_one_node(tmp_path):
    demand = Collective.of("broadcast", [0, 2], 64)
    chakra.save(Algorithm((demand,), table([(0, 0, 2, False)])), tmp_path / "out")
    (node,) = nodes_of(tmp_path / "out", 1)
    assert node.type == COMP


def test_files_are_writable(tmp_path):
    chakra.save(ring(2), tmp_path / "out")
    for path in (tmp_path / "out").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600


def test_an_older_result_is_replaced_whole(tmp_path):
    chakra.save(ring(8), tmp_path / "out")
    chakra.save(ring(3), tmp_path / "out")
    assert len(list((tmp_path / "out").iterdir())) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "out").mkdir()
    chakra.save(ring(3), tmp_path / "out")
    assert_same(chakra.load(tmp_path / "out"), ring(3))


def test_other_files_are_never_replaced(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FormatError, match=r"holds notes\.txt"):
        chakra.save(ring(3), tmp_path)
    with pytest.raises(FormatError, match="it is a file"):
        chakra.save(ring(3), tmp_path / "notes.txt")
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_a_parent_must_be_there(tmp_path):
    with pytest.raises(FormatError, match="there is no folder"):
        chakra.save(ring(3), tmp_path / "no" / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("existing", [False, True])
def test_nothing_is_left_after_a_failure(error, existing, tmp_path, monkeypatch):
    if existing:
        chakra.save(ring(5), tmp_path / "out")
    write = chakra._core.write_chakra

    def fail_at_third(version, attributes, nodes):
        if attributes[1][2] == 2:
            raise error(28, "No space left on device")
        return write(version, attributes, nodes)

    monkeypatch.setattr(chakra._core, "write_chakra", fail_at_third)
    with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else FormatError):
        chakra.save(ring(4), tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == (["out"] if existing else [])
    if existing:
        assert_same(chakra.load(tmp_path / "out"), ring(5))


@pytest.mark.parametrize(
    ("rows", "more", "message"),
    [
        ([(9, 0, 1, False)], {}, "chunk 9 is out of range"),
        ([(0, -1, 1, False)], {}, "source NPU -1 is out of range"),
        ([(0, 0, 1, False)], {"src_place": np.zeros(2, np.int32)}, "'src_place' has 2 entries"),
        (
            [(0, 0, 1, False)],
            {"dep_offsets": np.array([0, 1]), "deps": np.array([0])},
            "row 0 depends on a row that is not before it",
        ),
    ],
)
def test_rows_without_sense_are_refused(rows, more, message, tmp_path):
    demand = Collective.of("all-gather", [0, 1], 64)
    with pytest.raises(InputError, match=message):
        chakra.save(Algorithm((demand,), table(rows, **more)), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_chunks_that_nobody_moves_are_refused(tmp_path):
    demand = Collective.of("broadcast", [0], 1 << 30, 1 << 21)
    with pytest.raises(InputError, match="fewer chunks"):
        chakra.save(Algorithm((demand,), table([])), tmp_path / "out")
    assert not list(tmp_path.iterdir())
