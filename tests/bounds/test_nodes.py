"""The bound of NPUs: how far its search goes."""

from __future__ import annotations

import pytest

from weft.bounds.classes import ChunkClasses
from weft.bounds.nodes import node_bound
from weft.collective import Move, custom
from weft.cost import CostModel
from weft.topology import load_topology
from weft.units import NEVER

NETWORK = load_topology("line:9").with_links(bandwidth=10**9, latency=10**6)
HOP = 2 * 10**6  # of 1000 bytes, in picoseconds
# Who sends and who receives is asked in order of NPU: two sides one hop apart, two two, two three.
MOVES = [Move(1000, (0,), (1,)), Move(1000, (2,), (4,)), Move(1000, (5,), (8,))]
CLASSES = ChunkClasses.of(custom(range(9), MOVES).chunks)
SIDE = NETWORK.links + NETWORK.nodes  # what the distances of one side cost
PROVED = [1, 1, 1, 2, 2, 3, 3]  # hops, by sides considered


def proved(budget: int, enough: int = NEVER) -> int:
    time = node_bound(NETWORK, CLASSES, CostModel(), enough, budget).time
    assert time % HOP == 0
    return time // HOP


@pytest.mark.parametrize("sides", range(len(PROVED)))
def test_the_budget_ends_the_search(sides: int) -> None:
    assert proved(sides * SIDE) == PROVED[sides]
    assert proved((sides + 1) * SIDE - 1) == PROVED[sides]


def test_the_search_ends_with_its_sides() -> None:
    assert proved(10**9) == PROVED[-1]
    assert proved(-1) == PROVED[0]


@pytest.mark.parametrize(
    ("enough", "hops"), [(HOP, 1), (HOP + 1, 2), (2 * HOP, 2), (2 * HOP + 1, 3), (NEVER, 3)]
)
def test_the_search_ends_with_what_is_enough(enough: int, hops: int) -> None:
    assert proved(10**9, enough) == hops
