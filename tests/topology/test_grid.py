"""Where the NPUs of a group sit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft import Topology, load_topology
from weft.topology.grid import Grid, grid_of


@pytest.mark.parametrize(
    ("spec", "group", "sizes", "npus"),
    [
        ("mesh:3x2", [5, 0, 3, 1, 2, 4], (3, 2), [0, 1, 2, 3, 4, 5]),
        ("mesh:4x3", [6, 4, 5, 7], (4,), [4, 5, 6, 7]),
        ("mesh:4x3", [9, 1, 5], (3,), [1, 5, 9]),
        ("mesh:4x3", [0, 2, 8, 10], (2, 2), [0, 2, 8, 10]),
        ("mesh:2x2x3", [1, 3, 5, 7, 9, 11], (2, 3), [1, 3, 5, 7, 9, 11]),
        ("torus:4x1x2", list(range(8)), (4, 2), list(range(8))),
        ("h100:2", list(range(16)), (8, 2), list(range(16))),
        # No full part of the grid: one dimension, in order of rank.
        ("mesh:4x3", [7, 0, 5], (3,), [7, 0, 5]),
        ("mesh:3x3", [0, 1, 3, 8], (4,), [0, 1, 3, 8]),
        ("mesh:4x3", [7], (1,), [7]),
    ],
)
def test_groups(spec: str, group: list[int], sizes: tuple[int, ...], npus: list[int]) -> None:
    grid = grid_of(load_topology(spec), group)
    assert grid.sizes == sizes
    assert grid.npus.tolist() == npus


def test_networks_without_dimensions_are_one() -> None:
    network = Topology.from_links("net", 4, [0], [1], 1, 1)
    assert grid_of(network, [2, 0, 1]).sizes == (3,)
    assert grid_of(network, [2, 0, 1]).npus.tolist() == [2, 0, 1]


def test_failed_npus_leave_no_full_grid() -> None:
    network = load_topology("mesh:3x3").without(npus=[4])
    assert grid_of(network, network.members.tolist()).sizes == (8,)


@given(st.lists(st.integers(2, 4), min_size=1, max_size=4), st.data())
def test_places(sizes: list[int], data: st.DataObject) -> None:
    npus = data.draw(st.permutations(range(int(np.prod(sizes)))))
    grid = Grid(tuple(sizes), np.array(npus, dtype=np.int32))
    place = np.arange(len(npus))
    assert (grid.place_of(grid.npus) == place).all()
    columns = [grid.along(d, place) for d in range(len(sizes))]
    assert (sum(c * grid.stride(d) for d, c in enumerate(columns)) == place).all()
    some = data.draw(st.sets(st.integers(0, len(sizes) - 1)))
    others_are_0 = np.all([columns[d] == 0 for d in range(len(sizes)) if d not in some], axis=0)
    assert (
        grid.lines(sorted(some)) == np.flatnonzero(np.broadcast_to(others_are_0, place.shape))
    ).all()
