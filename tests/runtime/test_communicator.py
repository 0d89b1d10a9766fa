"""Communicators on real ranks: random networks, groups, lengths, orders of sums, wrong calls."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.runtime.work import counts, of_groups, refused, run_jobs, summed, traced
from tests.strategies import group_collectives, irregular
from weft.errors import InputError
from weft.runtime import Communicator, Programs, Ranks, local
from weft.runtime.bench import Job
from weft.runtime.buffers import OPS, TYPES
from weft.runtime.cutting import Cut
from weft.runtime.program import What


@pytest.fixture(scope="module")
def twelve() -> Iterator[Ranks]:
    with local(12, timeout_s=60) as ranks:
        yield ranks


@examples(4)
@given(st.data())
def test_random_networks_and_groups(twelve: Ranks, data: st.DataObject) -> None:
    jobs = []
    for _ in range(4):
        network = data.draw(irregular())
        demands = data.draw(st.lists(group_collectives(network), min_size=1, max_size=2))
        algorithm = weft.synthesize(network, demands, chunks=1).algorithm
        lengths = [data.draw(st.integers(0, 500)) for _ in demands]
        dtype, op = data.draw(st.sampled_from(sorted(TYPES))), data.draw(st.sampled_from(OPS))
        options = {"reproducible": data.draw(st.booleans()), "in_place": data.draw(st.booleans())}
        jobs.append(Job(algorithm, tuple(lengths), dtype, op, 1, 0, **options))
    found = twelve.run(run_jobs, jobs, f"weft-test-{uuid.uuid4().hex}")
    assert not np.array(found).any(), jobs


@pytest.fixture(scope="module")
def four() -> Iterator[Ranks]:
    with local(4, timeout_s=60) as ranks:
        yield ranks


def test_groups_that_overlap(four: Ranks) -> None:
    demands = [weft.Collective.of("all-reduce", group, 64) for group in ([0, 1], [1, 2])]
    algorithm = weft.synthesize("ring:4", demands).algorithm
    found = four.run(of_groups, algorithm)
    assert found == [
        [[3.0] * 6, []],
        [[3.0] * 6, [5.0] * 6],
        [[], [5.0] * 6],
        [[], []],
    ]


def test_lengths_are_told_from_arrays(four: Ranks) -> None:
    gather = weft.synthesize("ring:4", "all-gather", "64B").algorithm
    scatter = weft.synthesize("ring:4", "scatter", "64B").algorithm
    found = four.run(counts, gather, scatter)
    whole = np.repeat(np.arange(4), 3).tolist()
    parts = [[0, 1], [2, 3, 4], [5, 6], [7, 8, 9]]
    assert found == [[whole, part] for part in parts]


def test_sums_in_the_plans_order_are_the_same_every_time(four: Ranks) -> None:
    algorithm = weft.synthesize("fc:4", "all-reduce", "64KiB", method="direct").algorithm
    found = four.run(summed, algorithm, 5)
    assert len({one for rank in found for one in rank}) == 1


@pytest.mark.parametrize("count", [3, 5000])
def test_every_row_has_its_times(four: Ranks, count: int) -> None:
    """Empty chunks too, which nobody waits for; else no receive ends before its send began."""
    algorithm = weft.synthesize("ring:4", "all-reduce", "64KiB", chunks=1).algorithm
    programs = Programs(algorithm)
    sent, came = {}, {}
    for rank, times in enumerate(four.run(traced, algorithm, count)):
        program = programs.of(rank)
        assert len(times) == len(program)
        assert all(0 < begin <= end for begin, end in times)
        for row, (begin, end) in enumerate(times):
            if program.what[row] == What.SEND:
                sent[int(program.number[row])] = begin
            elif program.what[row] == What.RECEIVE:
                came[int(program.number[row])] = end
    assert sent.keys() == came.keys()
    moved = Cut(algorithm, [count]).lengths[algorithm.transfers.chunk] > 0
    assert all(sent[number] <= came[number] for number in sent if moved[number])


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("op", "unknown op 'mean'"),
        ("dtype", "elements are complex64"),
        ("types", "several types: float32, float64"),
        ("list", "recv is a list; give an array"),
        ("strided", "send is not contiguous"),
        ("readonly", "send is read-only"),
        ("lengths", "has buffers of 8 and 9 elements"),
        ("plan", "a str is no algorithm"),
    ],
)
def test_wrong_calls(case: str, message: str) -> None:
    algorithm = weft.synthesize("ring:1", "all-reduce", "64B").algorithm
    with Communicator.tcp(0, 1, "unix:@none") as alone:
        assert message in refused(alone, case, algorithm)


def test_one_rank_alone() -> None:
    algorithm = weft.synthesize("ring:1", "all-to-all", "64B").algorithm
    array, out = np.arange(5, dtype=np.int16), np.zeros(5, dtype=np.int16)
    with Communicator.shared_memory(0, 1, "unix:@none") as alone:
        alone.run(algorithm, array, out)
        assert out.tolist() == array.tolist()
        alone.barrier()
        with pytest.raises(InputError, match="for 2 NPUs, but there are 1 ranks"):
            alone.run(weft.synthesize("ring:2", "all-gather", "64B"), array)
        assert not alone.usable
    with pytest.raises(InputError, match="rank is 2; expected 0 to 1"):
        Communicator.tcp(2, 2, "localhost:1")


def test_a_plan_without_pieces_for_all_keeps_them_empty() -> None:
    """Three bytes among eight NPUs leave shares without any; so do a thousand elements."""
    algorithm = weft.synthesize("ring:8", "all-gather", 3, chunks=1).algorithm
    cut = Cut(algorithm, [1000])
    assert cut.lengths.sum() == 1000
    assert len(cut.lengths) == len(algorithm.chunks)
    even = weft.synthesize("ring:8", "all-gather", 800, chunks=2).algorithm
    assert Cut(even, [1000]).sides(3).inputs == (125,)
    listed = weft.all_to_allv([0, 1], np.array([[0, 48], [16, 32]]))
    whole = weft.synthesize("ring:2", listed, chunks=1).algorithm
    assert Cut(whole, [80]).lengths.tolist() == whole.chunks.bytes.tolist() == [48, 16, 32]
