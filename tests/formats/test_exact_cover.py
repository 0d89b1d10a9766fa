"""Sets that make up a whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.formats.chakra._exact_cover import exact_cover


@given(st.integers(1, 10), st.integers(1, 4), st.randoms(use_true_random=False))
def test_sets_cut_from_wholes_are_put_together(size, wholes, random):
    sets = []
    for _ in range(wholes):
        places = list(range(size))
        random.shuffle(places)
        while places:
            count = random.randint(1, len(places))
            sets.append(sum(1 << place for place in places[:count]))
            places = places[count:]
    random.shuffle(sets)
    groups = exact_cover(sets, (1 << size) - 1)
    assert groups is not None
    assert sorted(i for group in groups for i in group) == list(range(len(sets)))
    for group in groups:
        assert sum(sets[i] for i in group) == (1 << size) - 1


def test_what_does_not_fit_is_given_up():
    assert exact_cover([1, 1], 3) is None
    assert exact_cover([1, 3, 2, 1], 3) is None
    assert exact_cover([1 << i % 3 for i in range(30_000)], 7) is not None
    assert exact_cover([1 << i % 2 for i in range(30_000)], 7) is None
    assert exact_cover([0, 3], 3) == [[1, 0]]
    assert exact_cover([], 3) == []
