"""Routes and places: what tables of transfers are made of."""

from __future__ import annotations

import numpy as np

from weft.algorithm import Buffer, Routes, place
from weft.algorithm.transfers import moved_places, scratch_slots


def test_links_that_routes_cross() -> None:
    routes = Routes(np.array([0, 2, 2, 5]), np.array([7, 1, 4, 0, 3], dtype=np.int32))
    at, link = routes.crossed(np.array([2, 1, 0, 2], dtype=np.int32))
    assert at.tolist() == [0, 0, 0, 2, 2, 3, 3, 3]
    assert link.tolist() == [4, 0, 3, 7, 1, 4, 0, 3]
    assert [len(column) for column in routes.crossed(np.empty(0, dtype=np.int32))] == [0, 0]


def test_places_beside_those_of_others() -> None:
    places = np.array([0, place(Buffer.OUTPUT, 2), place(Buffer.SCRATCH, 4)], dtype=np.int32)
    assert scratch_slots(places) == 5
    assert scratch_slots(places[:2]) == 0
    moved = [10, place(Buffer.OUTPUT, 12), place(Buffer.SCRATCH, 104)]
    assert moved_places(places, 10, 100).tolist() == moved
