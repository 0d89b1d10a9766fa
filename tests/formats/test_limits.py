"""What formats that keep an algorithm whole may claim, to the last number."""

from __future__ import annotations

import numpy as np
import pytest

from weft.errors import InputError
from weft.formats.limits import (
    checked_parts,
    checked_range,
    chunk_total,
    count_limit,
)
from weft.units import MAX_BYTES


def parts(*sizes: int, **changes):
    """Parts that NPU 0 has and NPU 1 wants."""
    rows = len(sizes)
    columns = {
        "bytes": np.array(sizes, np.int64),
        "offset": np.zeros(rows, np.int64),
        "pre": np.zeros(rows, np.int64),
        "post": np.ones(rows, np.int64),
        "reduce": np.zeros(rows, np.int64),
    }
    columns |= {name: np.array(value, np.int64) for name, value in changes.items()}
    return checked_parts(columns, np.array([1, 1]), np.array([0, 1]), "part_")


@pytest.mark.parametrize("size", [1, 2, MAX_BYTES - 1, MAX_BYTES])
def test_a_part_has_one_byte_up_to_all(size: int) -> None:
    assert parts(size).bytes.tolist() == [size]


@pytest.mark.parametrize("size", [0, -1, MAX_BYTES + 1, (1 << 63) - 1, -(1 << 63)])
def test_a_part_of_another_size_is_named(size: int) -> None:
    message = rf"part_bytes\[1\] is {size}; expected 1 to {MAX_BYTES}$"
    with pytest.raises(InputError, match=message):
        parts(1, size)


def test_all_parts_together_are_bounded() -> None:
    half = MAX_BYTES // 2
    assert parts(half, half).bytes.sum() == MAX_BYTES
    with pytest.raises(InputError, match=f"more than {MAX_BYTES} B in all"):
        parts(half, half, 1 << 16)
    with pytest.raises(InputError, match="in all"):
        parts(*[MAX_BYTES] * 9)  # whose sum is beyond 64 bits


@pytest.mark.parametrize("name", ["pre", "post"])
@pytest.mark.parametrize("number", [-1, 2])
def test_a_set_that_is_not_there_is_named(name: str, number: int) -> None:
    with pytest.raises(InputError, match=rf"part_{name}\[0\] is {number}; expected 0 to 1"):
        parts(5, **{name: [number]})


@pytest.mark.parametrize(("value", "fine"), [(2, False), (3, True), (6, True), (7, False)])
def test_ranges_include_both_ends(value: int, fine: bool) -> None:
    values = np.array([4, value])
    if fine:
        checked_range("x", values, 7, least=3)
    else:
        with pytest.raises(InputError, match=rf"x\[1\] is {value}; expected 3 to 6"):
            checked_range("x", values, 7, least=3)


def test_claims() -> None:
    assert count_limit(0) == count_limit(1 << 20) == 1 << 20
    assert count_limit((1 << 20) + 1) == (1 << 20) + 1
    assert chunk_total("all-gather", 8, None, 3) == 24
    assert chunk_total("all-to-all", 8, None, 3) == 192
    assert chunk_total("custom", 4, 10, 2) == 20
    assert chunk_total("all-gather", -1, None, 3) == 0
