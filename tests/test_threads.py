from __future__ import annotations

import threading

import pytest

from weft.threads import in_threads


@pytest.mark.parametrize("threads", [1, 3, 50])
def test_all_are_done_in_order(threads: int) -> None:
    assert in_threads(lambda number: number * number, range(20), threads) == [
        number * number for number in range(20)
    ]
    assert in_threads(str, [], threads) == []


def test_they_run_side_by_side() -> None:
    together = threading.Barrier(3)
    assert len(in_threads(lambda _: together.wait(), range(3), 3)) == 3


def test_an_error_reaches_the_caller_and_no_more_are_begun() -> None:
    begun = []

    def work(number: int) -> None:
        begun.append(number)
        if number == 1:
            raise KeyError(number)

    with pytest.raises(KeyError):
        in_threads(work, range(100), 1)
    assert begun == [0, 1]


def test_the_first_error_is_raised() -> None:
    together = threading.Barrier(2)

    def work(number: int) -> None:
        together.wait()
        raise KeyError(number)

    with pytest.raises(KeyError, match="0"):
        in_threads(work, range(2), 2)


def test_no_threads_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert in_threads(str, range(3), 8) == ["0", "1", "2"]
