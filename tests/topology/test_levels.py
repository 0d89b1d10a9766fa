"""Levels of networks: boxes, leaves and pods, by how near NPUs are."""

from __future__ import annotations

import pytest

from tests.strategies import shuffled
from weft import load_topology
from weft.topology.levels import levels_of


@pytest.mark.parametrize(
    ("spec", "sizes"),
    [
        ("h100:8", (8, 8)),
        ("a100:2", (8, 2)),
        ("dgx2:2", (16, 2)),
        ("leaf-spine:4x6x2", (4, 6)),
        ("mi250:1", None),
        ("torus:4x4", None),
        ("mesh:3x3", None),
        ("switch:8", None),
        ("h100:1", None),
    ],
)
def test_sizes(spec: str, sizes: tuple[int, ...] | None) -> None:
    network = load_topology(spec)
    grid = levels_of(network, range(network.npus))
    if sizes is None:
        assert grid is None or len(grid.sizes) > 1
        return
    assert grid is not None
    assert grid.sizes == sizes
    assert sorted(grid.npus.tolist()) == list(range(network.npus))


def test_boxes_are_parts_and_rails_are_lines() -> None:
    """Whatever the order of the NPUs, a rail joins those behind one leaf."""
    mixed, before = shuffled(load_topology("h100:4"), 3)
    grid = levels_of(mixed, range(mixed.npus))
    assert grid is not None
    assert grid.sizes == (8, 4)
    was = before[grid.npus].reshape(4, 8)
    assert all(len(set((row // 8).tolist())) == 1 for row in was)
    assert all(len(set((column % 8).tolist())) == 1 for column in was.T)


def test_groups() -> None:
    network = load_topology("h100:4")
    grid = levels_of(network, [0, 1, 2, 3, 8, 9, 10, 11])
    assert grid is not None
    assert grid.sizes == (4, 2)
    assert levels_of(network, [0, 1, 2, 8]) is None  # boxes of different sizes
    assert levels_of(network, [0, 8]) is None
