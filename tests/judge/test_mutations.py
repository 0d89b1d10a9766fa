"""What is broken must be caught, for the right reason, and named."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.algorithm import Algorithm
from weft.judge import Verdict, verify

from . import handmade
from .handmade import HOP, LATENCY, SHARE
from .mutate import change, drop, pick, repeat_at_end, swap, with_columns, with_dep
from .reference import is_right

N = 4
ROWS = N * (N - 1)
GATHER = handmade.ring_all_gather(N)
SCATTER = handmade.ring_reduce_scatter(N)
REDUCE = handmade.ring_all_reduce(N)
TIMED = [GATHER, SCATTER, REDUCE, handmade.line_scatter(), handmade.line_gather()]
SUMS = [SCATTER, REDUCE]

any_row = st.integers(0, ROWS - 1)
later_row = st.integers(N, ROWS - 1)
little = st.integers(1, LATENCY)


def caught(algorithm: Algorithm, *kinds: str) -> Verdict:
    verdict = verify(algorithm)
    assert not verdict
    assert verdict.kind in kinds, verdict.violation
    assert verdict.violation
    assert not is_right(algorithm)
    return verdict


@given(st.sampled_from(TIMED), st.data(), st.integers(-HOP, HOP).filter(bool))
def test_changed_end(algorithm: Algorithm, data: st.DataObject, by: int) -> None:
    row = data.draw(st.integers(0, len(algorithm.transfers) - 1))
    end = int(algorithm.transfers.end[row])
    verdict = caught(change(algorithm, row, end=end + by), "time")
    assert verdict.row == row
    assert verdict.violation.startswith(f"row {row} ends at ")


@given(any_row, st.integers(1, HOP))
def test_start_earlier_than_the_cost_allows(row: int, by: int) -> None:
    start = int(GATHER.transfers.start[row])
    assert caught(change(GATHER, row, start=start - by), "time").row == row


@given(st.integers(0, N - 1), st.integers(1, HOP))
def test_negative_start(row: int, by: int) -> None:
    assert "before the beginning" in caught(change(GATHER, row, shift=-by), "time").violation


@given(later_row, little)
def test_send_before_receive(row: int, by: int) -> None:
    verdict = caught(change(GATHER, row, shift=-by), "causality")
    npu, chunk = GATHER.transfers.src[row], GATHER.transfers.chunk[row]
    assert verdict.violation.startswith(f"NPU {npu} sends chunk {chunk} at ")
    assert verdict.row == row


@given(st.sampled_from(SUMS), later_row, little)
def test_partial_sent_too_early_loses_contributions(
    algorithm: Algorithm, row: int, by: int
) -> None:
    verdict = caught(change(algorithm, row, shift=-by), "reduction")
    assert f"ends chunk {algorithm.transfers.chunk[row]} without" in verdict.violation


def test_late_contribution_is_lost() -> None:
    verdict = caught(change(handmade.line_reduce(), 0, shift=1), "reduction")
    assert verdict.violation == "NPU 3 ends chunk 0 without the contribution of NPU 0"


@given(st.integers(1, 2), st.integers(1, SHARE * 1000 - 1))
def test_link_held_twice(chunk: int, by: int) -> None:
    algorithm = handmade.line_broadcast(4, 3)
    verdict = caught(change(algorithm, chunk * 3, shift=-by), "link")
    assert verdict.violation.startswith(f"link 0 (0>1) is held by row {chunk * 3 - 3} until ")
    assert f"but row {chunk * 3} takes it at " in verdict.violation


@pytest.mark.parametrize("store_and_forward", [False, True])
@pytest.mark.parametrize("slow_up", [False, True])
def test_link_behind_a_switch_held_twice(store_and_forward: bool, slow_up: bool) -> None:
    algorithm = handmade.star_all_gather(True, store_and_forward, slow_up)
    caught(change(algorithm, 5, shift=-1), "link")


def test_link_held_twice_in_rows_out_of_order() -> None:
    algorithm = handmade.line_broadcast(2, 3)
    assert verify(pick(algorithm, [2, 0, 1]))
    verdict = caught(change(pick(algorithm, [2, 0, 1]), 0, shift=-1), "link")
    assert "held by row 2" in verdict.violation


@given(st.permutations(range(N)))
def test_swapped_chunks(order: list[int]) -> None:
    one, two = order[:2]
    chunk = GATHER.transfers.chunk
    mutant = change(change(GATHER, one, chunk=chunk[two]), two, chunk=chunk[one])
    caught(mutant, "causality", "precondition")


@given(st.sampled_from(TIMED), st.data())
def test_dropped_row(algorithm: Algorithm, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, len(algorithm.transfers) - 1))
    sums = algorithm.chunks.reduce.all()
    kinds = ["reduction"] if sums else ["precondition", "postcondition"]
    verdict = caught(drop(algorithm, row), *kinds)
    assert f"chunk {algorithm.transfers.chunk[row]}" in verdict.violation


def test_missing_result_names_npu_and_chunk() -> None:
    verdict = caught(drop(GATHER, ROWS - 1), "postcondition")
    t = GATHER.transfers
    assert verdict.violation == f"NPU {t.dst[-1]} never receives chunk {t.chunk[-1]}"
    assert verdict.row is None


@given(st.integers(ROWS - N, ROWS - 1))
def test_contribution_twice(row: int) -> None:
    verdict = caught(repeat_at_end(SCATTER, row), "reduction")
    npu, chunk = SCATTER.transfers.dst[row], SCATTER.transfers.chunk[row]
    assert verdict.violation.startswith(f"NPU {npu} ends chunk {chunk} with the contribution of")
    assert verdict.violation.endswith("twice")


@given(any_row)
def test_redundant_copy_is_harmless(row: int) -> None:
    assert verify(repeat_at_end(GATHER, row))


@given(st.sampled_from(TIMED[:3]), any_row)
def test_changed_destination(algorithm: Algorithm, row: int) -> None:
    other = (algorithm.transfers.dst[row] + 1) % N
    assert caught(change(algorithm, row, dst=other), "route").row == row


@given(any_row)
def test_redirected_row(row: int) -> None:
    back = (int(GATHER.transfers.src[row]) - 1) % N
    mutant = change(GATHER, row, dst=back, route=N + back)
    caught(mutant, "precondition", "postcondition")


@given(st.sampled_from(TIMED[:3]), any_row, st.integers(1, 2 * N - 1))
def test_changed_route(algorithm: Algorithm, row: int, by: int) -> None:
    other = (int(algorithm.transfers.route[row]) + by) % (2 * N)
    assert "route leads from" in caught(change(algorithm, row, route=other), "route").violation


@given(any_row)
def test_flipped_reduce_of_a_copy(row: int) -> None:
    assert "not a reduction" in caught(change(GATHER, row, reduce=True), "reduction").violation


@given(st.integers(0, 2 * ROWS - 1))
def test_flipped_reduce_of_a_sum(row: int) -> None:
    caught(change(REDUCE, row, reduce=not REDUCE.transfers.reduce[row]), "reduction")


@given(st.sampled_from([GATHER, SCATTER, REDUCE]), later_row)
def test_rows_out_of_order(algorithm: Algorithm, row: int) -> None:
    step, npu = divmod(row, N)
    cause = (step - 1) * N + (npu - 1) % N
    verdict = caught(swap(algorithm, cause, row), "order")
    assert verdict.violation.startswith("if the rows run one after the other, NPU ")


@given(later_row)
def test_untimed_rows_out_of_order(row: int) -> None:
    step, npu = divmod(row, N)
    cause = (step - 1) * N + (npu - 1) % N
    mutant = swap(handmade.untimed(GATHER), cause, row)
    assert f"only in row {row}" in caught(mutant, "causality").violation


@given(any_row, st.integers(0, 5))
def test_dependency_on_a_row_that_is_not_earlier(row: int, ahead: int) -> None:
    verdict = caught(with_dep(GATHER, row, row + ahead), "dependency")
    assert verdict.violation.startswith(f"row {row} waits for row {row + ahead}")


@given(st.integers(1, ROWS - 1), st.integers(0, N - 1))
def test_dependency_in_time(row: int, dep: int) -> None:
    if row < N:
        row, dep = max(row, 1), 0
        assert "which ends at" in caught(with_dep(GATHER, row, dep), "dependency").violation
    else:
        assert verify(with_dep(GATHER, row, dep))


def test_first_violation_in_time_is_reported() -> None:
    late = change(GATHER, ROWS - 1, shift=-1)
    both = change(late, N, shift=-2)
    assert verify(both).row == N


def test_shortest_difference_is_visible() -> None:
    end = int(GATHER.transfers.end[-1])
    text = verify(change(GATHER, ROWS - 1, end=end + 1)).violation
    assert text == f"row {ROWS - 1} ends at {end + 1}ps; the cost model says {end}ps"


def test_wording_of_times() -> None:
    algorithm = with_columns(GATHER, end=GATHER.transfers.end + np.int64(HOP))
    assert verify(algorithm).violation == "row 0 ends at 3.201us; the cost model says 1.6005us"
