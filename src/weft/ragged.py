"""Lists of different lengths, one after the other in one array.

List i lies at the places ``offsets[i]`` to ``offsets[i + 1] - 1`` of the array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.int64]


def offsets_of(lengths: ArrayLike) -> Numbers:
    """Where each list begins, and where the last ends."""
    counts = np.asarray(lengths, dtype=np.int64)
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def owners(lengths: NDArray[Any]) -> Numbers:
    """The list that each place is of."""
    return np.repeat(np.arange(len(lengths)), lengths)


def positions(lengths: NDArray[Any]) -> Numbers:
    """Which of its list each place is, counted from 0."""
    return ranges(np.zeros(len(lengths), dtype=np.int64), lengths)


def ranges(starts: NDArray[Any], lengths: NDArray[Any]) -> Numbers:
    """All numbers from each start on, as many as its length, one range after the other."""
    begins = offsets_of(lengths)
    shifts: Numbers = np.repeat(starts - begins[:-1], lengths)
    return shifts + np.arange(begins[-1])


def lengths_of(offsets: Numbers, which: NDArray[np.integer[Any]]) -> Numbers:
    """The lengths of some of the lists."""
    lengths: Numbers = offsets[which + 1] - offsets[which]
    return lengths


def places(offsets: Numbers, which: NDArray[np.integer[Any]]) -> Numbers:
    """The places of some of the lists, one list after the other."""
    return ranges(offsets[which], lengths_of(offsets, which))


def earlier_equals(values: NDArray[Any]) -> Numbers:
    """How many equal values stand before each."""
    order = np.argsort(values, kind="stable")
    counts = np.unique(values, return_counts=True)[1]
    found: Numbers = np.empty(len(values), dtype=np.int64)
    found[order] = positions(counts)
    return found


def distinct_pairs(first: Numbers, second: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The pairs of values there are, in ascending order, and which of them each is."""
    # Numbers are sorted quickly, pairs of them are not.
    ones, one = np.unique(first, return_inverse=True)
    others, other = np.unique(second, return_inverse=True)
    pairs, which = np.unique(one.reshape(-1) * len(others) + other.reshape(-1), return_inverse=True)
    at, of = np.divmod(pairs, max(len(others), 1))
    return ones[at], others[of], which.reshape(-1)
