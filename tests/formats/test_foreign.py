"""Traces of others: what messages carry is found out, and the judge is content."""

from __future__ import annotations

import numpy as np
import pytest
import trace_algorithms as made
from trace_writer import TraceWriter

import weft
from weft import _core
from weft.errors import FormatError, InputError, UnclearError
from weft.formats import Hints, read

SAMPLES = "tests/data/astra"

ALGORITHMS = {
    "all-gather": [
        made.ring_gather(5),
        made.ring_gather(4, 4),
        made.ring_gather(6, 2, both_ways=True),
        made.half_rings_gather(7),
        made.doubling_gather(8),
        made.barrier_gather(8),
    ],
    "reduce-scatter": [
        made.ring_scatter(5),
        made.ring_scatter(4, comps=False),
        made.halving_scatter(8),
        made.halving_scatter(8, comps=False),
        made.direct_scatter(6),
        made.direct_scatter(6, comps=False),
    ],
    "all-reduce": [
        make(n, comps)
        for make, n in (
            (made.ring_reduce, 5),
            (made.doubling_reduce, 8),
            (made.one_shot_reduce, 5),
            (made.two_shot_reduce, 6),
            (made.halving_doubling_reduce, 8),
            (made.tree_reduce, 7),
        )
        for comps in (True, False)
    ],
    "broadcast": [made.tree_broadcast(7), made.tree_broadcast(4, 3), made.chained_broadcast(7)],
    "reduce": [made.tree_sum(7), made.tree_sum(6, comps=False)],
    "gather": [made.binomial_gather(n) for n in (4, 6, 7)],
    "scatter": [made.binomial_scatter(n) for n in (4, 6, 7)],
    "all-to-all": [
        made.direct_exchange(5),
        made.direct_exchange(4, 2),
        made.ring_exchange(5),
        made.grouped_exchange(2, 3),
        made.grouped_exchange(4, 2),
        made.bruck_exchange(8),
    ],
}


@pytest.mark.parametrize(
    ("kind", "number"), [(kind, i) for kind, some in ALGORITHMS.items() for i in range(len(some))]
)
def test_classical_algorithms_are_understood(kind, number, tmp_path):
    trace, size = ALGORITHMS[kind][number]
    found = read(trace.write(tmp_path / "traces"), Hints(kind))
    assert found.violation() is None
    assert found.algorithm.demands[0].size == size
    assert found.algorithm.demands[0].kind == kind


@pytest.mark.parametrize(
    ("name", "kind", "rows"),
    [
        ("ag_ring_8", "all-gather", 56),
        ("ar_ring_8", "all-reduce", 112),
        ("a2a_pairs_8", "all-to-all", 56),
    ],
)
def test_traces_that_astra_sim_ran(name, kind, rows):
    found = read(f"{SAMPLES}/{name}", Hints(kind))
    algorithm = found.verified()
    assert len(algorithm.transfers) == rows
    assert algorithm.demands[0].size == 1 << 20
    assert algorithm.demands[0].chunks_per_share == 1
    assert "deps" not in algorithm.transfers.columns()


def test_a_prefix_or_a_file_names_the_traces_too(tmp_path):
    made.ring_gather(4)[0].write(tmp_path, "one.")
    made.tree_broadcast(3)[0].write(tmp_path, "other-")
    for name in ("one", "one.", "one.2.et"):
        assert len(read(tmp_path / name, Hints("all-gather")).algorithm.transfers) == 12
    assert read(tmp_path / "other", Hints("broadcast")).violation() is None
    with pytest.raises(FormatError, match=r"several names \(one\.\*\.et, other-\*\.et\)"):
        read(tmp_path, Hints("all-gather"))


def test_a_row_knows_its_node(tmp_path):
    trace, _ = made.ring_gather(4)
    found = read(trace.write(tmp_path), Hints("all-gather"))
    assert found.origin(0) == "trace.0.et node 0"


def strip(folder) -> None:
    """Take away all that Weft adds."""
    for file in folder.iterdir():
        _, _, nodes = _core.read_chakra(file.read_bytes())
        file.write_bytes(_core.write_chakra("0.0.4", [], nodes))


KINDS = (
    "all-gather",
    "reduce-scatter",
    "all-reduce",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "all-to-all",
    "send-recv",
    "pipeline",
    "neighbor-exchange",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("spec", "chunks"), [("mesh:3x3", 2), ("ring:5", 1), ("dgx1", 3)])
def test_synthesized_algorithms_are_understood_without_weft(kind, spec, chunks, tmp_path):
    size = 100_003
    result = weft.synthesize(spec, kind, size, chunks=chunks)
    result.save(tmp_path / "traces")
    strip(tmp_path / "traces")
    found = read(tmp_path / "traces", Hints(kind, size=size)).verified()
    assert found.demands[0].chunks == result.algorithm.demands[0].chunks
    assert len(found.transfers) == len(result.transfers)


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-reduce", "all-to-all"])
def test_others_may_relay_for_a_group(kind, tmp_path):
    group = (8, 0, 2)
    result = weft.synthesize("mesh:3x3", weft.Collective.of(kind, group, 9000), chunks=1)
    result.save(tmp_path / "traces")
    strip(tmp_path / "traces")
    found = read(tmp_path / "traces", Hints(kind, group=group)).verified()
    assert found.demands[0].group == group
    assert found.demands[0].size == 9000


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("all-to-allv", {"matrix": [[0, 5, 70], [9, 0, 0], [1, 1, 0]]}),
        ("permutation", {"to": [2, 0, 1]}),
    ],
)
def test_patterns_are_told_by_their_messages(kind, options, tmp_path):
    request = {
        "all-to-allv": lambda: weft.all_to_allv((0, 1, 2), options["matrix"]),
        "permutation": lambda: weft.permutation((0, 1, 2), 640, options["to"]),
    }[kind]()
    weft.synthesize("ring:3", request, chunks=1).save(tmp_path / "traces")
    strip(tmp_path / "traces")
    assert read(tmp_path / "traces", Hints(kind)).verified().demands[0] == request


def test_moves_of_a_custom_pattern(tmp_path):
    moves = [weft.Move(64, (0,), (1, 2)), weft.Move(32, (3,), (0,)), weft.Move(64, (1,), (0, 3))]
    demand = weft.custom(range(4), moves)
    weft.synthesize("ring:4", demand, chunks=1).save(tmp_path / "traces")
    strip(tmp_path / "traces")
    assert read(tmp_path / "traces", Hints("custom", moves=moves)).verified().demands[0] == demand
    sums = [weft.Move(64, (0, 1, 2), (3,), reduce=True)]
    weft.synthesize("ring:4", weft.custom(range(4), sums), chunks=1).save(tmp_path / "sums")
    strip(tmp_path / "sums")
    assert read(tmp_path / "sums", Hints("custom", moves=sums)).violation() is None
    with pytest.raises(FormatError, match="sums and copies does not follow from messages"):
        read(tmp_path / "sums", Hints("custom", moves=[*sums, *moves]))


def test_messages_may_say_which_chunks_they_carry(tmp_path):
    """An order of chunks that no dependency tells: each NPU sends two shares of others' at once."""
    trace = TraceWriter(4)
    got = {(r, to): trace.message(r, to, 64, chunks=(r, 1, 4)) for r in range(4) for to in (r ^ 1,)}
    for r in range(4):
        # Waits only for order: nothing but the numbers says that both shares go together.
        first = min(r, r ^ 1)
        trace.message(r, r ^ 2, 128, order=[got[r ^ 1, r]], chunks=(first, 2, 4))
    algorithm = read(trace.write(tmp_path), Hints("all-gather")).verified()
    assert algorithm.demands[0].size == 256
    assert sorted(algorithm.transfers.chunk.tolist()) == sorted([0, 1, 2, 3] * 3)


def test_chunk_numbers_out_of_range_are_named(tmp_path):
    trace = TraceWriter(2)
    trace.message(0, 1, 64, chunks=(0, 1, 2))
    trace.message(1, 0, 64, chunks=(2, 1, 2))
    found = read(trace.write(tmp_path), Hints("all-gather"))  # flow says it all the same
    assert found.violation() is None
    trace.message(1, 0, 64, chunks=(1, 5, 2))
    with pytest.raises(FormatError, match=r"trace\.1\.et: node 1 carries 1 chunks from 2 on, of 2"):
        read(trace.write(tmp_path), Hints("all-gather", size=1 << 20))


def gathered(folder, first, second, size=None):
    """Two NPUs that send each other a chunk, with these numbers."""
    trace = TraceWriter(2)
    trace.message(0, 1, 64, chunks=first)
    trace.message(1, 0, 64, chunks=second)
    return read(trace.write(folder), Hints("all-gather", size=size))


def test_chunk_numbers_are_believed(tmp_path):
    """Sizes and waits alone would make a right All-Gather of each."""
    assert gathered(tmp_path, (0, 1, 2), (1, 1, 2)).violation() is None
    assert gathered(tmp_path, (0, 1, 2), (0, 1, 2)).violation() == "NPU 0 never receives chunk 1"
    swapped = gathered(tmp_path, (1, 1, 2), (0, 1, 2)).violation()
    assert swapped == "trace.0.et node 0: NPU 0 sends chunk 1 (row 0) but never has it"
    trace = TraceWriter(2)
    for _ in range(2):
        trace.message(0, 1, 64, chunks=(0, 1, 2))
    found = read(trace.write(tmp_path), Hints("broadcast", size=128))
    assert found.violation() == "NPU 1 never receives chunk 1"


def test_both_ends_of_a_message_name_the_same_chunks(tmp_path):
    trace = TraceWriter(2)
    trace.message(0, 1, 64, chunks=(0, 1, 2), received=(1, 1, 2))
    trace.message(1, 0, 64, chunks=(1, 1, 2))
    with pytest.raises(
        UnclearError,
        match=r"trace\.0\.et: node 0 sends 1 of 2 chunks from 0 on, but trace\.1\.et node 0 "
        "receives 1 of 2 chunks from 1 on",
    ):
        read(trace.write(tmp_path), Hints("all-gather"))


@pytest.mark.parametrize("size", [8, 9, 33, 111, 1 << 20])
def test_chunk_numbers_need_no_alignment(size, tmp_path):
    trace = TraceWriter(2)
    for chunk in range(8):
        trace.message(0, 1, max(1, size // 8), chunks=(chunk, 1, 8))
    assert read(trace.write(tmp_path), Hints("broadcast", size=size)).violation() is None
    with pytest.raises(InputError, match="7 B cannot be cut in 8 chunks, of which messages are"):
        read(trace.write(tmp_path), Hints("broadcast", size=7))


def test_a_size_that_messages_do_not_tell_is_asked_for(tmp_path):
    """Rank 1 should pass on what it gets, but waits for nothing: its share seems twice as large."""
    trace = TraceWriter(3)
    for npu in range(3):
        trace.message(npu, (npu + 1) % 3, 1 << 20)
    trace.message(1, 2, 1 << 20)
    with pytest.raises(FormatError, match="do not tell the size of the all-gather; give it with"):
        read(trace.write(tmp_path), Hints("all-gather"))


def test_waits_beyond_the_data_become_dependencies(tmp_path):
    trace = TraceWriter(3)
    first = trace.message(0, 1, 64)
    trace.message(1, 2, 64, order=[first])
    trace.comp(0, after=[trace.message(2, 0, 64)])
    table = read(trace.write(tmp_path), Hints("send-recv")).verified().transfers
    rows = list(zip(table.src.tolist(), np.diff(table.dep_offsets).tolist(), strict=True))
    assert dict(rows) == {0: 0, 1: 1, 2: 0}
    assert table.src[table.deps[0]] == 0


def test_an_exchange_in_place_goes_through_scratch(tmp_path):
    trace, _ = made.doubling_reduce(4)
    table = read(trace.write(tmp_path), Hints("all-reduce")).verified().transfers
    local = table.src == table.dst
    assert local.any()
    assert table.reduce[local].all()


def test_equal_tags_go_by_the_order_of_the_file(tmp_path):
    trace = TraceWriter(3)
    for _ in range(2):
        middle = trace.message(0, 1, 64, tag=5)
        trace.message(1, 2, 64, after=[middle], tag=5)
    assert read(trace.write(tmp_path), Hints("broadcast")).violation() is None


def test_equal_tags_are_blamed_if_nothing_fits(tmp_path):
    trace = TraceWriter(3)
    for _ in range(2):
        trace.message(0, 1, 64, tag=5)
    with pytest.raises(
        FormatError, match=r"trace\.0\.et: node 1 has the tag, size and ends of anot"
    ):
        read(trace.write(tmp_path), Hints("broadcast"))


def test_a_wrong_algorithm_is_a_verdict_with_its_place(tmp_path):
    trace = TraceWriter(4)
    for r in range(4):
        for to in range(4):
            if to != r and (r, to) != (2, 1):
                trace.message(r, to, 64)
    found = read(trace.write(tmp_path / "one"), Hints("all-gather"))
    assert found.violation() == "NPU 1 never receives chunk 2"
    with pytest.raises(FormatError, match="one: NPU 1 never receives chunk 2"):
        found.verified()


def test_a_sum_that_counts_twice_is_named(tmp_path):
    trace = TraceWriter(3)
    first = trace.message(0, 1, 64)
    second = trace.message(1, 2, 64, after=[first])
    third = trace.message(0, 2, 64)
    trace.comp(2, after=[second])
    trace.comp(2, after=[third])
    found = read(trace.write(tmp_path), Hints("reduce", root=2, size=64))
    assert "with the contribution of NPU 0 twice" in found.violation()


def test_the_collective_must_be_named_and_known(tmp_path):
    folder = made.ring_gather(3)[0].write(tmp_path)
    with pytest.raises(FormatError, match="does not say of which collective; name it with --coll"):
        read(folder)
    with pytest.raises(InputError, match="did you mean 'all-gather'"):
        read(folder, Hints("all-gathre"))
    with pytest.raises(FormatError, match="the group names NPU 7, but there are 3 traces"):
        read(folder, Hints("all-gather", group=(0, 7)))
    with pytest.raises(FormatError, match="but no chunk of the broadcast does"):
        read(folder, Hints("broadcast"))
    with pytest.raises(FormatError, match=r"are no chunk of the all-gather of 1MiB"):
        read(folder, Hints("all-gather", size=1 << 20))
    with pytest.raises(FormatError, match=r"sum .* of the all-reduce, but --size says 1MiB"):
        read(made.ring_reduce(3)[0].write(tmp_path / "r"), Hints("all-reduce", size=1 << 20))
    with pytest.raises(FormatError, match="but --chunks says 2 a share"):
        read(tmp_path / "r", Hints("all-reduce", chunks=2))
