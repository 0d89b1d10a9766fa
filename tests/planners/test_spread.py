"""Broadcast and Reduce along levels: near their bounds, from any root, among any number of NPUs."""

from __future__ import annotations

import pytest

import weft
from weft.algorithm import SpreadRows


@pytest.mark.parametrize(
    ("network", "kind", "size", "root", "most"),
    [
        ("h100:64", "broadcast", "256MiB", 5, 1.02),
        ("h100:64", "reduce", "256MiB", 77, 1.02),
        ("h100:64", "broadcast", "256B", 0, 1.06),
        ("h100:64", "reduce", "1MiB", 511, 1.10),
        ("clos:32x16x8", "broadcast", "1GiB", 0, 1.04),
        ("clos:32x16x8", "reduce", "1GiB", 9, 1.04),
        ("rails:8x32x16", "reduce", "256MiB", 9, 1.15),  # in two orders
        ("leaf-spine:16x16x8", "broadcast", "64MiB", 3, 1.25),  # half as many links up
    ],
)
def test_near_the_bound(network: str, kind: str, size: str, root: int, most: float) -> None:
    result = weft.synthesize(network, kind, size, root=root)
    assert result.verified
    assert isinstance(result.algorithm.rows, SpreadRows)
    assert result.time <= most * result.bound.ideal


def test_numbers_of_chunks_that_are_given() -> None:
    made = weft.synthesize("h100:32", "broadcast", "1MiB", chunks=7 * 31 * 3, method="spread")
    assert made.verified
    assert made.algorithm.demands[0].chunk_count == 651


@pytest.mark.parametrize(
    ("network", "kind", "message"),
    [
        ("ring:8", "broadcast", "see the same switches"),
        ("switch:8", "all-gather", "plans one broadcast or reduce"),
    ],
)
def test_what_it_does_not_plan(network: str, kind: str, message: str) -> None:
    with pytest.raises(weft.WeftError, match=message):
        weft.synthesize(network, kind, "1MiB", method="spread")
