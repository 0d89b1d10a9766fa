"""Traces of others that make no sense: one sentence with file and node, in bounded time."""

from __future__ import annotations

import re
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import trace_algorithms as made
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from trace_writer import COMP, RECV, SEND, TraceWriter, trace

from weft import _core
from weft.errors import FormatError, WeftError
from weft.formats import Hints, read


def attempt(writer, folder, kind="all-gather", **hints) -> str:
    """The sentence with which traces are refused."""
    with pytest.raises(FormatError) as caught:
        read(writer.write(folder), Hints(kind, **hints))
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def ring():
    return made.ring_gather(3)[0]


def _set(rank, at, **known):
    def change(writer):
        writer.nodes[rank][at][3].update(known)

    return change


def _drop(rank, at, name):
    return lambda writer: writer.nodes[rank][at][3].pop(name)


def _wait(rank, at, *after):
    return lambda writer: writer.nodes[rank][at][1].extend(after)


CASES = {
    "size differs": (_set(0, 0, comm_size=9), "node 0 sends 9 B .* which nobody receives"),
    "tag differs": (_set(1, 1, comm_tag=7), r"trace\.2\.et: node 0 receives .* which nobody sends"),
    "no size": (_drop(0, 0, "comm_size"), r"trace\.0\.et: node 0 lacks one of"),
    "no tag": (_drop(1, 1, "comm_tag"), r"trace\.1\.et: node 1 lacks one of"),
    "stranger": (_set(0, 0, comm_dst=7), "node 0 names NPU 7, but ranks are 0 to 2"),
    "negative": (_set(0, 0, comm_dst=-1), "node 0 names NPU -1, but ranks are 0 to 2"),
    "itself": (_set(0, 0, comm_dst=0), "node 0 moves data from its NPU to itself"),
    "everything": (_set(0, 0, comm_size=1 << 62), r"node 0 moves \d+ B; expected \d+ B at most"),
    "nothing": (_set(0, 0, comm_size=0), "node 0 moves 0 B; expected 1 B or more"),
    "huge": (_set(0, 0, comm_size=1 << 62), "node 0 moves 4611686018427387904 B"),
    "tag below": (_set(0, 0, comm_tag=-5), "node 0 has tag -5; expected 0 to 2147483647"),
    "dangling": (_wait(0, 0, 99), "node 0 waits for node 99, which is not there"),
    "waits for itself": (_wait(0, 0, 0), "node 0 can never run: dependencies form a cycle"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_named_with_its_place(case, tmp_path):
    change, message = CASES[case]
    writer = ring()
    change(writer)
    sentence = attempt(writer, tmp_path)
    assert "trace." in sentence
    assert re.search(message, sentence), sentence


def test_nodes_of_other_types_are_refused(tmp_path):
    writer = ring()
    writer.add(1, 7)
    assert "node 4 is a whole collective" in attempt(writer, tmp_path)
    assert "node 4 is a whole collective" in attempt(writer, tmp_path, kind=None)
    writer = ring()
    writer.add(1, 3)
    assert "node 4 is of type 3; an algorithm has only" in attempt(writer, tmp_path)
    writer = ring()
    writer.add(1, 1)  # metadata means nothing here
    assert read(writer.write(tmp_path), Hints("all-gather")).violation() is None


def test_a_missing_rank_is_named(tmp_path):
    ring().write(tmp_path)
    (tmp_path / "trace.1.et").unlink()
    with pytest.raises(FormatError, match=r"trace\.1\.et is missing: there are 2 NPUs"):
        read(tmp_path, Hints("all-gather"))
    (tmp_path / "trace.0.et").unlink()
    with pytest.raises(FormatError, match=r"trace\.0\.et is missing"):
        read(tmp_path, Hints("all-gather"))


def test_ranks_that_wait_for_each_other_are_named(tmp_path):
    writer = TraceWriter(2)
    there = writer.message(0, 1, 64)
    back = writer.message(1, 0, 64, after=[there])
    writer.nodes[0][0][1].append(back)
    sentence = attempt(writer, tmp_path, "send-recv")
    assert "can never run: dependencies and messages form a cycle" in sentence


def test_a_choice_that_nothing_decides_is_named(tmp_path):
    writer = TraceWriter(4)
    got = [writer.message(r, 2, 64) for r in (0, 1)]
    writer.message(2, 3, 64, after=got)
    assert "trace.2.et: node 2 sends 64 B and waits for 128 B, and nothing says" in attempt(
        writer, tmp_path
    )


def test_sizes_that_do_not_add_up_are_named(tmp_path):
    writer = TraceWriter(3)
    got = writer.message(0, 1, 64)
    for _ in range(2):
        writer.message(1, 2, 48, after=[got])
    assert "receives 64 B of which 96 B are passed on" in attempt(writer, tmp_path, "scatter")


def test_sums_of_sizes_do_not_overflow(tmp_path):
    writer = TraceWriter(3)
    got = [writer.message(0, 1, 1 << 60) for _ in range(40)]
    writer.message(1, 2, 1 << 59, after=got)
    assert "sends 576460752303423488 B and waits for" in attempt(writer, tmp_path)
    writer = TraceWriter(3)
    for _ in range(40):
        for r in range(3):
            writer.message(r, (r + 1) % 3, 1 << 60)
    assert "out of range" in attempt(writer, tmp_path, "send-recv")
    assert "the sizes must be" not in attempt(writer, tmp_path, "all-to-allv")


def test_a_million_nodes_in_a_circle(tmp_path):
    count, none = 1_000_000, np.zeros(1_000_000, np.uint64)
    before = np.arange(count, dtype=np.uint64) - 1  # a chain, but for the first
    before[0] = 3
    nodes = _core.ChakraNodes(
        id=np.arange(count, dtype=np.uint64),
        type=np.full(count, COMP, np.int32),
        ctrl_offsets=np.zeros(count + 1, np.int64),
        ctrl=none[:0],
        data_offsets=np.arange(count + 1, dtype=np.int64),
        data=before,
        start=none,
        duration=none,
        present=none.astype(np.uint16),
    )
    (tmp_path / "trace.0.et").write_bytes(_core.write_chakra("0.0.4", [], nodes))
    with pytest.raises(FormatError, match=r"trace\.0\.et: node [0-3] can never run"):
        read(tmp_path, Hints("all-gather"))


def test_pieces_that_pile_up_are_bounded(tmp_path):
    """Every message adds a byte of its own to all before it: a square number of pieces."""
    count = 20_000
    ranks = [[], []]
    for i in range(count):
        here, there = i % 2, 1 - i % 2
        known = {"comm_size": i + 1, "comm_tag": i}
        after = [len(ranks[here]) - 1] if i else []
        ranks[here].append((SEND, after, (), {"comm_dst": there, **known}))
        ranks[there].append((RECV, (), (), {"comm_src": here, **known}))
    for rank, nodes in enumerate(ranks):
        (tmp_path / f"trace.{rank}.et").write_bytes(trace(nodes))
    with pytest.raises(FormatError, match=r"trace\.[01]\.et: node \d+ "):
        read(tmp_path, Hints("all-gather"))


KINDS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all", "broadcast", "scatter")
SAMPLES = {
    "all-gather": made.doubling_gather(4),
    "reduce-scatter": made.halving_scatter(4),
    "all-reduce": made.halving_doubling_reduce(4),
    "all-to-all": made.ring_exchange(3),
    "broadcast": made.tree_broadcast(3),
    "scatter": made.binomial_scatter(4),
}


@examples(80)
@given(seed=st.integers(0, 2**32), kind=st.sampled_from(KINDS), other=st.sampled_from(KINDS))
def test_any_changed_bytes_are_read_or_refused(seed, kind, other):
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = SAMPLES[kind][0].write(Path(name))
        files = sorted(folder.iterdir())
        path = files[rng.integers(len(files))]
        content = bytearray(path.read_bytes())
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(content)))
            match rng.integers(3):
                case 0:
                    content[at] = int(rng.integers(256))
                case 1:
                    content[at] ^= 1 << int(rng.integers(8))
                case _:
                    content[at : at + int(rng.integers(3))] = rng.bytes(int(rng.integers(3)))
        path.write_bytes(bytes(content))
        with suppress(WeftError):
            read(folder, Hints(rng.choice([kind, other]))).violation()


@examples(80)
@given(st.data())
def test_any_graph_of_messages_is_read_or_refused(data):
    ranks = data.draw(st.integers(1, 4))
    writer = TraceWriter(ranks)
    kind = data.draw(st.sampled_from([*KINDS, "gather", "reduce", "all-to-allv", "permutation"]))
    for _ in range(data.draw(st.integers(0, 12))):
        src = data.draw(st.integers(0, ranks - 1))
        before = len(writer.nodes[src])
        after = data.draw(st.lists(st.integers(0, max(before - 1, 0)), max_size=3 if before else 0))
        dst = data.draw(st.integers(0, ranks - 1))
        if dst == src:
            writer.comp(src, after)
        else:
            size = data.draw(st.sampled_from([64, 64, 64, 128, 192, 1 << 60]))
            tag = data.draw(st.sampled_from([None, None, 3]))
            writer.message(src, dst, size, after, tag=tag)
    size = data.draw(st.sampled_from([None, 64, 256, 1 << 59]))
    with tempfile.TemporaryDirectory() as name, suppress(WeftError):
        read(writer.write(Path(name)), Hints(kind, size=size)).violation()
