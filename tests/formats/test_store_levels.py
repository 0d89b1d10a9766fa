"""Compositions by level in a compact store: they come back whole; what cannot be is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from compact_samples import levels
from hypothesis import given
from test_store import _demand, rewrite
from tests.examples import examples
from tests.level_plans import level_plans, rows_of

import weft
from weft.algorithm import Activity, Algorithm, LevelPart, LevelStep
from weft.errors import FormatError
from weft.formats import write
from weft.judge import verify
from weft.topology.ladders import Ladder


def assert_same(a: Algorithm, b: Algorithm) -> None:
    one, two = rows_of(a), rows_of(b)
    assert [d.group for d in a.demands] == [d.group for d in b.demands]
    assert (one.sizes, one.parts) == (two.sizes, two.parts)
    assert (one.exchange, one.sums, one.copies) == (two.exchange, two.sums, two.copies)
    assert np.array_equal(one.npus, two.npus)
    assert np.array_equal(one.start, two.start)
    for left, right in zip(one.ladders, two.ladders, strict=True):
        assert all(np.array_equal(getattr(left, c), getattr(right, c)) for c in COLUMNS)


COLUMNS = ("up", "down", "turn")


@examples(40)
@given(level_plans())
def test_they_come_back_whole(tmp_path_factory, algorithm: Algorithm) -> None:
    path = tmp_path_factory.mktemp("levels") / "a.weft"
    write(algorithm, path)
    again = weft.load(path)
    assert_same(algorithm, again)
    assert verify(again)
    assert again.time == algorithm.time
    table = algorithm.transfers
    for npu in (0, int(rows_of(algorithm).npus[-1])):
        mine = (table.src == npu) | (table.dst == npu)
        local = int((mine & (table.src == table.dst)).sum())
        own = algorithm.rows.of_npu(algorithm, npu)
        assert len(own) == int(mine.sum())
        assert sorted(own.require_times().end) == sorted(table.require_times().end[mine])
        assert len(Activity.of(again, npu)) >= int(mine.sum()) - local


def _with(**change: object) -> Algorithm:
    algorithm = levels()
    return replace(algorithm, rows=replace(algorithm.rows, **change))


STEPS = rows_of(levels()).parts[0].steps
LADDER = rows_of(levels()).ladders[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": (2, 3)}, "as many places as NPUs"),
        ({"sizes": (0,)}, "as many places as NPUs"),
        ({"npus": np.array([0, 1, 2, 2], np.int32)}, "no NPU of its own"),
        ({"npus": np.array([0, 1, 2, 4], np.int32)}, r"npus\[3\] is 4"),
        ({"start": np.array([0, -1, 0])}, r"start\[1\] is -1"),
        ({"start": np.array([0, 1])}, "'start'"),
        ({"parts": ()}, "there are no parts"),
        ({"parts": (LevelPart(STEPS, 0),)}, "has no pieces"),
        (
            {"parts": (LevelPart((*STEPS, STEPS[0]), 1),)},
            "along every dimension",
        ),
        ({"parts": (LevelPart((LevelStep((0,), True, 1),), 1),)}, "has no ladder"),
        ({"parts": (LevelPart((LevelStep((), True, 0),), 1),)}, "no dimensions"),
        ({"parts": (LevelPart(STEPS, 1), LevelPart(STEPS[:1], 1))}, "along every dimension"),
        ({"ladders": (replace(LADDER, up=LADDER.up + 99),)}, r"up\[0\] is 99"),
        ({"ladders": (Ladder(LADDER.up, LADDER.down[:1], LADDER.turn),)}, "one link for every"),
    ],
)
def test_what_cannot_be_is_refused(change, message, tmp_path) -> None:
    write(_with(**change), tmp_path / "a.weft")
    with pytest.raises(FormatError, match=message):
        weft.load(tmp_path / "a.weft")


def test_another_collective_is_refused(tmp_path) -> None:
    write(levels(), tmp_path / "a.weft")
    rewrite(tmp_path / "a.weft", _demand(kind="gather", root=0))
    with pytest.raises(FormatError, match="such rows cannot be those of this gather"):
        weft.load(tmp_path / "a.weft")


def test_dimensions_of_a_step_in_another_order_are_not_stored(tmp_path) -> None:
    part = LevelPart((LevelStep((1, 0), True, 0),), 1)
    with pytest.raises(weft.WeftError, match="not in ascending order"):
        write(_with(parts=(part,)), tmp_path / "a.weft")
