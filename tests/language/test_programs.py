"""Programs become algorithms: as few rows and dependencies as they need, in a good order."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.algorithm import Buffer, place
from weft.collective import all_reduce_of
from weft.formats import write
from weft.judge import verify
from weft.language import Program, program, programs


def ring(ranks: int, **options: object) -> Program:
    with program("all-reduce", "1MiB", ranks=ranks, **options) as p:
        for c in range(ranks):
            at = p.chunk(c, "input", c)
            for step in range(1, ranks):
                at = p.chunk((c + step) % ranks, "input", c).reduce(at)
            for step in range(ranks, 2 * ranks - 1):
                at = at.copy((c + step) % ranks)
    return p


def test_a_ring_runs_all_chunks_at_once() -> None:
    moved = ring(5, in_place=True).algorithm().transfers
    assert moved.deps is None
    assert moved.src_place is None
    steps = moved.chunk.reshape(8, 5)
    assert (steps == np.arange(5)).all()  # every chunk in every step
    assert (np.sort(moved.src.reshape(8, 5)) == np.arange(5)).all()  # every rank sends one
    assert moved.reduce.tolist() == [True] * 20 + [False] * 20


def test_out_of_place_keeps_the_buffers_apart() -> None:
    moved = ring(3).algorithm().transfers
    assert set((moved.dst_place >> 29).tolist()) == {Buffer.INPUT}


def test_groups_are_by_rank() -> None:
    with program("broadcast", "1KiB", group="6,2,4", root=2, in_place=True) as p:
        at = p.chunk(1)
        for rank in (0, 2):
            at = at.copy(rank)
    moved = p.algorithm().transfers
    assert (moved.src.tolist(), moved.dst.tolist()) == ([2, 6], [6, 4])
    assert p.algorithm().demands == (p.collective,)


def test_runs_and_offsets() -> None:
    with program("gather", "4KiB", ranks=2, chunks=3) as p:
        run = p.chunk(1, "input", 0, count=3).copy(0, "scratch", 5)
        assert (run.rank, run.buffer, run.index, run.count) == (0, "scratch", 5, 3)
        assert repr(run) == "scratch[5:8] of rank 0"
        run.copy(0, "output", 3)
        p.chunk(0, count=3).copy(0, "output", 0)
    moved = p.algorithm().transfers
    assert moved.chunk.tolist() == [3, 4, 5, 0, 1, 2, 3, 4, 5]
    assert moved.dst_place[:3].tolist() == [place(Buffer.SCRATCH, slot) for slot in (5, 6, 7)]
    assert moved.deps is None


def test_reuse_of_a_slot_waits_for_its_reader() -> None:
    with program("scatter", "4KiB", ranks=3, chunks=2) as p:
        for c in (0, 1):
            p.chunk(0, index=c).copy(0, "output", c)
        for rank in (1, 2):
            for c in (0, 1):
                run = p.chunk(0, "input", 2 * rank + c).copy(3 - rank, "scratch", 0)
                run.copy(rank, "output", c)
    moved = p.algorithm().transfers
    waits = np.flatnonzero(np.diff(moved.dep_offsets))
    assert moved.chunk[waits].tolist() == [3, 5]
    assert moved.chunk[moved.deps].tolist() == [2, 4]


def test_after_is_a_dependency_unless_data_says_it() -> None:
    with program("all-gather", "4KiB", ranks=3, in_place=True) as p:
        first = p.chunk(0, "output", 0).copy(1)
        second = p.chunk(1, "output", 1).copy(2, after=first)
        first.copy(2, after=[first, second])
        p.chunk(1, "output", 1).copy(0, after=p.chunk(1, "output", 1))  # there from the start
        run = p.chunk(2, "output", 2)
        run.copy(0)
        run.copy(1)
    moved = p.algorithm().transfers
    rows = {
        (int(c), int(d)): row for row, (c, d) in enumerate(zip(moved.chunk, moved.dst, strict=True))
    }
    waits = [
        (int(dep), row)
        for row in range(len(moved))
        for dep in moved.deps[moved.dep_offsets[row] : moved.dep_offsets[row + 1]]
    ]
    assert sorted(waits) == sorted([(rows[0, 1], rows[1, 2]), (rows[1, 2], rows[0, 2])])


def test_any_collective() -> None:
    moves = [weft.Move(64, (0, 2), (1,), reduce=True), weft.Move(32, (1,), (0, 2))]
    with program(weft.custom([0, 1, 2], moves)) as p:
        total = p.chunk(0).reduce(p.chunk(2))
        total.copy(1, "output")
        for rank in (0, 2):
            p.chunk(1).copy(rank, "output")
    assert len(p.algorithm().transfers) == 4

    with program(all_reduce_of(range(4), 1024, 1), in_place=True) as p:
        for step in (1, 2):
            got = [p.chunk(rank).copy(rank ^ step, "scratch") for rank in range(4)]
            for chunk in got:
                p.chunk(chunk.rank).reduce(chunk)
    assert len(p.algorithm().transfers) == 16


def test_exchange_in_place_by_way_of_scratch() -> None:
    with program("all-to-all", "1KiB", ranks=3, in_place=True) as p:
        parked = [
            p.chunk(r, "input", s).copy(s, "scratch", r)
            for r in range(3)
            for s in range(3)
            if r != s
        ]
        for chunk in parked:
            chunk.copy(chunk.rank, "output")
    assert len(p.algorithm().transfers) == 12


def test_nothing_to_do() -> None:
    assert len(program("all-reduce", "1KiB", ranks=1).algorithm().transfers) == 0


def test_saved_and_loaded(tmp_path: Path) -> None:
    with program("all-gather", "1KiB", ranks=4) as p:
        last = p.chunk(0).copy(0, "output", 0)
        for r in range(4):
            for s in range(4):
                if (r, s) != (0, 0):
                    last = p.chunk(r).copy(s, "output", r, after=last)
    algorithm = p.algorithm()
    write(algorithm, tmp_path / "traces")
    loaded = weft.load(tmp_path / "traces")
    assert loaded.provenance == {"method": "program"}
    assert verify(loaded)
    for name, column in algorithm.transfers.columns().items():
        assert np.array_equal(loaded.transfers.columns()[name], column), name


def test_a_program_of_many_operations() -> None:
    algorithm = ring(64, in_place=True).algorithm()
    assert len(algorithm.transfers) == 64 * 126
    assert algorithm.transfers.deps is None


def test_docstrings() -> None:
    found = doctest.testmod(programs)
    assert (found.failed, found.attempted > 5) == (0, True)


@pytest.mark.parametrize("name", weft.language.__all__)
def test_public_names(name: str) -> None:
    assert getattr(weft.language, name).__doc__
