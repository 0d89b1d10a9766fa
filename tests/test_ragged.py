"""Lists in one array: the same as lists of lists."""

from __future__ import annotations

from itertools import chain

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weft.ragged import lengths_of, offsets_of, owners, places, positions, ranges

LENGTHS = st.lists(st.integers(0, 5), max_size=8)


def flat(lists: list[list[int]]) -> list[int]:
    return list(chain.from_iterable(lists))


@given(LENGTHS)
def test_places_have_an_owner_and_a_position(lengths: list[int]) -> None:
    counts = np.array(lengths, dtype=np.int32)
    offsets = offsets_of(lengths)
    assert offsets.dtype == np.int64
    assert offsets.tolist() == [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    assert owners(counts).tolist() == flat([[i] * n for i, n in enumerate(lengths)])
    assert positions(counts).tolist() == flat([list(range(n)) for n in lengths])


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 5)), max_size=8))
def test_ranges_are_one_after_the_other(pairs: list[tuple[int, int]]) -> None:
    starts, lengths = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    assert ranges(starts, lengths).tolist() == flat([list(range(s, s + n)) for s, n in pairs])


@given(LENGTHS.filter(bool), st.data())
def test_some_of_the_lists(lengths: list[int], data: st.DataObject) -> None:
    offsets = offsets_of(lengths)
    which = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=6))
    assert lengths_of(offsets, np.array(which, dtype=np.int64)).tolist() == [
        lengths[i] for i in which
    ]
    expected = flat([list(range(offsets[i], offsets[i + 1])) for i in which])
    assert places(offsets, np.array(which, dtype=np.int64)).tolist() == expected
