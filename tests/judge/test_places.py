"""Explicit places: what lies where, and when it is overwritten."""

from __future__ import annotations

from weft.algorithm import Buffer, place
from weft.collective import Collective
from weft.judge import verify

from .handmade import SHARE, over_star, placed, scratch_all_reduce
from .mutate import change, swap

BROADCAST = Collective.of("broadcast", range(2), 2 * SHARE, 2)
SUM = Collective("all-reduce", (0, 1), SHARE, alignment=SHARE)
SLOT = place(Buffer.SCRATCH, 0)
RESULT = [place(Buffer.OUTPUT, chunk) for chunk in range(2)]


def test_one_slot_serves_two_chunks() -> None:
    rows = [
        (0, 0, 1, False, 0, SLOT),
        (0, 1, 1, False, SLOT, RESULT[0]),
        (1, 0, 1, False, 1, SLOT),
        (1, 1, 1, False, SLOT, RESULT[1]),
    ]
    assert verify(placed(rows, BROADCAST))
    overwritten = verify(swap(placed(rows, BROADCAST), 1, 2))
    assert overwritten.kind == "precondition"
    assert overwritten.violation == (
        "row 2 sends chunk 0 from SCRATCH[0] on NPU 1, which holds chunk 1 then"
    )


def test_empty_slot() -> None:
    verdict = verify(change(scratch_all_reduce(), 4, src_place=SLOT))
    assert verdict.kind == "precondition"
    assert "from SCRATCH[0] (row 4) but never has it" in verdict.violation


def test_wrong_chunk_at_the_end() -> None:
    rows = [(0, 0, 1, False, 0, 1), (1, 0, 1, False, 1, 0)]
    verdict = verify(placed(rows, BROADCAST))
    assert verdict.kind == "postcondition"
    assert verdict.violation == "NPU 1 ends with chunk 1 where chunk 0 belongs"


def test_mixed_chunks() -> None:
    two = Collective.of("reduce", range(2), 2 * SHARE, 2)
    verdict = verify(placed([(0, 1, 0, True, 0, 1)], two))
    assert verdict.kind == "reduction"
    assert verdict.violation == "row 0 adds chunk 0 to chunk 1 on NPU 0"


def test_copy_over_a_sum_loses_it() -> None:
    verdict = verify(swap(scratch_all_reduce(), 2, 4))
    assert verdict.violation == "NPU 0 ends chunk 0 without the contribution of NPU 1"


def test_in_place_exchange_counts_twice() -> None:
    rows = [(0, 0, 1, True, 0, 0), (0, 1, 0, True, 0, 0)]
    verdict = verify(placed(rows, SUM))
    assert verdict.violation == "NPU 0 ends chunk 0 with the contribution of NPU 0 twice"


def test_input_and_home_are_distinct() -> None:
    given = place(Buffer.INPUT, 0)
    rows = [(0, 0, 1, True, 0, 0), (0, 1, 0, True, given, 0)]
    assert verify(placed(rows, SUM))


def test_output_counts_once_written() -> None:
    rows = [(0, 0, 1, True, 0, 0), (0, 1, 0, False, 0, 0), (0, 0, 0, False, 1 << 29, RESULT[0])]
    assert verify(placed(rows[:2], SUM))
    verdict = verify(placed(rows, SUM))
    assert verdict.violation == "NPU 0 ends chunk 0 without the contribution of NPU 1"


def test_what_was_overwritten_is_no_result() -> None:
    gather = Collective.of("all-gather", range(2), 2 * SHARE)
    for buffer in (Buffer.HOME, Buffer.INPUT):
        own = [place(buffer, chunk) for chunk in range(2)]
        rows = [(0, 0, 1, False, own[0], RESULT[0]), (1, 1, 0, False, own[1], RESULT[1])]
        assert verify(placed(rows, gather))
        lost = verify(placed([*rows, (1, 0, 0, False, RESULT[1], own[0])], gather))
        assert lost.violation == "NPU 0 ends with chunk 1 where chunk 0 belongs"


def test_local_rows_happen_when_they_say() -> None:
    algorithm = over_star(scratch_all_reduce())
    verdict = verify(change(algorithm, 4, shift=-1))
    assert verdict.kind == "causality"
    assert verdict.row == 4
