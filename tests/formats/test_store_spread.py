"""Broadcasts and Reduces along levels in a compact store: they come back whole, or are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from compact_samples import spread
from hypothesis import given
from test_store import _demand, rewrite
from tests.examples import examples
from tests.spread_plans import rows_of, spread_plans

import weft
from weft.algorithm import Activity, Algorithm, SpreadStep
from weft.algorithm.spread import MOST_CHUNKS, MOST_STEPS
from weft.errors import FormatError, InputError
from weft.formats import write
from weft.judge import verify
from weft.topology.ladders import Ladder
from weft.units import CLOCK_PS

COLUMNS = ("up", "down", "turn")


@examples(20)
@given(spread_plans())
def test_they_come_back_whole(tmp_path_factory, algorithm: Algorithm) -> None:
    path = tmp_path_factory.mktemp("spread") / "a.weft"
    write(algorithm, path)
    again = weft.load(path)
    one, two = rows_of(algorithm), rows_of(again)
    assert again.demands == algorithm.demands
    for name in ("sizes", "parts", "pieces", "period", "sums"):
        assert getattr(one, name) == getattr(two, name)
    assert np.array_equal(one.npus, two.npus)
    assert np.array_equal(one.start, two.start)
    for left, right in zip(one.ladders, two.ladders, strict=True):
        assert all(np.array_equal(getattr(left, c), getattr(right, c)) for c in COLUMNS)
    assert verify(again)
    assert again.time == algorithm.time
    table = algorithm.transfers
    for npu in (int(one.npus[0]), int(one.npus[-1])):
        mine = (table.src == npu) | (table.dst == npu)
        own = algorithm.rows.of_npu(algorithm, npu)
        for name in ("chunk", "src", "dst", "route", "start", "end"):
            assert sorted(getattr(own, name)) == sorted(getattr(table, name)[mine])
        assert len(Activity.of(again, npu)) == int(mine.sum())


def _with(**change: object) -> Algorithm:
    algorithm = spread()
    return replace(algorithm, rows=replace(algorithm.rows, **change))


LEAF, ACROSS, GATHER = rows_of(spread()).parts[0]
LADDER = rows_of(spread()).ladders[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": (2, 3)}, "as many places as NPUs"),
        ({"npus": np.array([0, 1, 2, 2], np.int32)}, "are not the group"),
        ({"npus": np.array([1, 0, 2, 3], np.int32)}, "not of the root"),
        ({"npus": np.array([0, 1, 2, 4], np.int32)}, r"npus\[3\] is 4"),
        ({"start": np.array([0, -1, 0])}, r"start\[1\] is -1"),
        ({"start": np.array([0, 1])}, "'start'"),
        ({"pieces": 3}, "pieces"),
        ({"period": -1}, "period"),
        ({"parts": ()}, "there are no parts"),
        ({"parts": ((LEAF, ACROSS),)}, "does not gather"),
        ({"parts": ((LEAF, ACROSS._replace(ladder=1), GATHER),)}, "has no ladder"),
        ({"parts": ((LEAF, SpreadStep("copy", (), 0), GATHER),)}, "no dimensions"),
        ({"parts": ((LEAF, SpreadStep("copy", (2,), 0), GATHER),)}, "that is not there"),
        ({"parts": ((), (LEAF, ACROSS, GATHER))}, "a part has no steps"),
        ({"ladders": (replace(LADDER, up=LADDER.up + 99),)}, r"up\[0\] is "),
        ({"ladders": (Ladder(LADDER.up, LADDER.down[:1], LADDER.turn),)}, "one link for every"),
    ],
)
def test_what_cannot_be_is_refused(change, message, tmp_path) -> None:
    write(_with(**change), tmp_path / "a.weft")
    with pytest.raises(FormatError, match=message):
        weft.load(tmp_path / "a.weft")


def test_many_chunks_come_back_but_not_any_number(tmp_path) -> None:
    """A few rows stand for as many as planners make; no file may claim all memory."""
    algorithm = spread()
    for chunks, sound in ((1 << 21, True), (1 << 23, False)):
        demand = replace(algorithm.demands[0], size=1 << 28, chunks_per_share=chunks)
        rows = replace(algorithm.rows, pieces=chunks)
        write(replace(algorithm, demands=(demand,), rows=rows), tmp_path / "a.weft")
        if sound:
            assert len(weft.load(tmp_path / "a.weft").rows) == 3 * chunks
            continue
        with pytest.raises(FormatError, match="chunks make no sense"):
            weft.load(tmp_path / "a.weft")


def test_few_bytes_do_not_stand_for_more_than_is_compared(tmp_path) -> None:
    """Parts are told apart two by two, and moves of pieces that are on their way at once."""
    path, algorithm = tmp_path / "a.weft", spread()
    rows = rows_of(algorithm)
    for parts, pieces, period in ((342, 1, 10**9), (1, MOST_CHUNKS, 0), (341, 5000, 1)):
        start = np.arange(3 * parts) * 10**6
        many = replace(
            rows, parts=rows.parts * parts, pieces=pieces, period=period, start=np.array(start)
        )
        demand = replace(
            algorithm.demands[0], size=112 * parts * pieces, chunks_per_share=parts * pieces
        )
        write(replace(algorithm, demands=(demand,), rows=many), path)
        assert path.stat().st_size < 40_000
        if 3 * parts > MOST_STEPS:
            with pytest.raises(FormatError, match="1,026 steps; expected 1,024 at most"):
                weft.load(path)
            continue
        again = weft.load(path)
        verdict = verify(again)
        assert f"{pieces:,} pieces of {3 * parts:,} moves are on their way" in str(verdict)
        assert again.time > 0


@pytest.mark.parametrize("start", [CLOCK_PS - 1, CLOCK_PS - 151_000])
def test_what_leaves_the_clock_is_refused_in_a_sentence(start, tmp_path) -> None:
    write(_with(start=np.array([0, start, 284_000]), period=0), tmp_path / "a.weft")
    again = weft.load(tmp_path / "a.weft")
    assert "leaves the clock" in str(verify(again))
    for use in (lambda: again.time, lambda: again.transfers, lambda: Activity.of(again, 1)):
        with pytest.raises(InputError, match="leaves the clock"):
            use()


def test_another_collective_is_refused(tmp_path) -> None:
    write(spread(), tmp_path / "a.weft")
    rewrite(tmp_path / "a.weft", _demand(kind="gather", root=0))
    with pytest.raises(FormatError, match="such rows cannot be those of this gather"):
        weft.load(tmp_path / "a.weft")
