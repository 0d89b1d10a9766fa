"""Double binary trees: their shape, and whether sums and copies overlap."""

from __future__ import annotations

import numpy as np
import pytest

from tests.strategies import GB_S, US
from weft.classical import BASELINES, baseline
from weft.classical.double_tree import _two_trees
from weft.collective import Collective
from weft.topology import load_topology


@pytest.mark.parametrize("kind", ["all-reduce", "broadcast"])
@pytest.mark.parametrize("ranks", [*range(2, 21), 64, 100])
def test_shape(kind: str, ranks: int) -> None:
    """Binary, flat, and next to nobody passes on in both trees."""
    trees = _two_trees(Collective.of(kind, range(ranks), 1000))
    inner: list[set[int]] = []
    for number in (0, 1):
        mine = trees.tree == number
        assert len(set(trees.dst[mine].tolist())) == mine.sum() == ranks - 1
        children = np.bincount(trees.src[mine], minlength=ranks)
        assert children.max() <= 2
        assert children[trees.src[mine & (trees.step == 0)]].tolist() == [1]
        inner.append(set(np.flatnonzero(children).tolist()))
    assert trees.rounds <= (ranks - 1).bit_length()
    in_both = inner[0] & inner[1]
    assert len(in_both) <= 1
    if kind == "all-reduce" and ranks % 2 == 0:
        assert not in_both or ranks == 2


def test_barrier() -> None:
    """No tree copies before its root has the sum of its last chunk; C-Cube does."""
    network = load_topology("switch:8", bandwidth=[GB_S], latency=[US])
    demand = Collective.of("all-reduce", range(8), 64_000, 2, None, 1)
    plain, overlapped = (
        baseline(name, network, [demand]) for name in ("double-binary-tree", "c-cube")
    )
    assert overlapped.time < plain.time
    for algorithm, waits in ((plain, True), (overlapped, False)):
        rows = algorithm.transfers
        for tree in (0, 1):
            mine = rows.chunk % 2 == tree
            last_sum = rows.end[mine & rows.reduce & (rows.chunk >= 14)].max()
            first_copy = rows.start[mine & ~rows.reduce].min()
            assert (first_copy >= last_sum) == waits


def test_barriers_of_several_collectives() -> None:
    """Rows keep what they wait for when those of others come before them."""
    network = load_topology("fc:6")
    demands = [Collective.of("all-reduce", group, 4000, 1) for group in ([0, 1, 2], [5, 4, 3, 2])]
    rows = baseline("double-binary-tree", network, demands).transfers
    assert rows.deps is not None
    assert rows.dep_offsets is not None
    waiting = np.flatnonzero(np.diff(rows.dep_offsets))
    assert len(waiting) == len(demands[0].chunks) + len(demands[1].chunks)
    assert (rows.dst[rows.deps] == rows.src[waiting]).all()
    assert rows.reduce[rows.deps].all()
    assert (rows.end[rows.deps] <= rows.start[waiting]).all()


def test_halves() -> None:
    demand = Collective.of("broadcast", range(8), 4000, 4, 3, 1)
    sends = BASELINES["double-binary-tree"].sends(load_topology("switch:8"), demand)
    assert np.bincount(sends.chunk).tolist() == [7] * 4
    assert (sends.src == 3).sum() == 4
