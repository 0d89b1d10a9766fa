"""Patterns the user describes: matrices, permutations and moves of any kind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.collective import Collective, Move, all_to_allv, custom, permutation
from weft.errors import InputError

GROUPS = st.lists(st.integers(0, 30), min_size=1, max_size=6, unique=True)


@given(st.data(), GROUPS, st.integers(1, 5), st.integers(1, 64))
def test_all_to_allv_moves_what_the_matrix_says(
    data: st.DataObject, group: list[int], chunks: int, alignment: int
) -> None:
    n = len(group)
    row = st.lists(st.integers(0, 500), min_size=n, max_size=n)
    matrix = data.draw(st.lists(row, min_size=n, max_size=n).filter(lambda m: np.any(m)))
    demand = all_to_allv(group, matrix, chunks_per_share=chunks, alignment=alignment)
    table, moved = demand.chunks, np.zeros((n, n), dtype=int)
    for chunk in range(len(table)):
        ends = [int(table.members(side[chunk])[0]) for side in (table.pre, table.post)]
        moved[group.index(ends[0]), group.index(ends[1])] += table.bytes[chunk]
    assert moved.tolist() == matrix
    assert demand.size == max(np.sum(matrix, axis=0).max(), np.sum(matrix, axis=1).max())


def test_a_permutation_is_by_rank() -> None:
    table = permutation([4, 7, 9], 100, [2, 0, 1]).chunks
    ends = [
        (int(table.members(a)[0]), int(table.members(b)[0]))
        for a, b in zip(table.pre, table.post, strict=True)
    ]
    assert ends == [(4, 9), (7, 4), (9, 7)]


def test_custom_moves() -> None:
    demand = custom(
        [5, 3, 8],
        [Move(64, (0,), (1, 2)), Move(48, (0, 1, 2), (1,), reduce=True)],
        chunks_per_share=2,
    )
    table = demand.chunks
    assert table.bytes.tolist() == [32, 32, 16, 32]
    assert table.offset.tolist() == [0, 32, 64, 80]
    assert table.reduce.tolist() == [False, False, True, True]
    assert [table.members(s).tolist() for s in table.pre] == [[5], [5], [3, 5, 8], [3, 5, 8]]
    assert [table.members(s).tolist() for s in table.post] == [[3, 8], [3, 8], [3], [3]]
    assert demand.size == 112


def test_equal_patterns_are_equal() -> None:
    one, two = (permutation([0, 1], 10, [1, 0]) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert one != permutation([0, 1], 10, [0, 1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: custom([0, 1], []), "nothing moves"),
        (lambda: custom([0, 1], [Move(0, (0,), (1,))]), "move 0 has size 0 B"),
        (lambda: custom([0, 1], [Move(5, (), (1,))]), "move 0 has no source"),
        (lambda: custom([0, 1], [Move(5, (0,), (2,))]), "destination 2; expected a rank from 0 to"),
        (lambda: custom([0, 1], [Move(1 << 60, (0,), (1,))] * 17), "B in all"),
        (lambda: all_to_allv([0, 1], [[1, 2]]), "shape (1, 2); expected 2 rows"),
        (lambda: all_to_allv([0, 1], [[1, -2], [0, 0]]), "whole numbers of bytes from 0"),
        (lambda: all_to_allv([0, 1], [[1.5, 2], [0, 0]]), "whole numbers of bytes from 0"),
        (lambda: all_to_allv([0, 1], [[1, 2], [0]]), "not a matrix"),
        (lambda: all_to_allv([0, 1], [[0, 0], [0, 0]]), "nothing moves"),
        (lambda: permutation([0, 1], 10, [0, 0]), "does not name each rank"),
        (lambda: permutation([0, 1], 0, [1, 0]), "size 0 B"),
        (lambda: Collective("custom", (0, 1), 10), "needs to know what moves"),
        (
            lambda: replace(permutation([0, 1], 10, [1, 0]), kind="all-to-all"),
            "says itself what moves",
        ),
        (lambda: replace(permutation([0, 1], 10, [1, 0]), group=(0, 2)), "outside the group"),
    ],
)
def test_wrong_patterns(make, message: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert message in str(caught.value)
