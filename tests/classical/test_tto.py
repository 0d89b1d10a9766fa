"""TTO: three trees on a 2D mesh."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.strategies import COSTS, GB_S, same
from weft import Collective, CostModel, load_topology
from weft.classical import baseline
from weft.classical.tto import _parents
from weft.errors import InputError
from weft.formats import write
from weft.judge import verify
from weft.topology.grid import Grid

SIDES = st.integers(2, 6)


def check(algorithm: weft.Algorithm) -> None:
    verdict = verify(algorithm)
    assert verdict.ok, verdict


@given(SIDES, SIDES)
def test_trees(width: int, height: int) -> None:
    grid = Grid((width, height), np.arange(width * height, dtype=np.int32))
    joined: Counter[frozenset[int]] = Counter()
    roots = []
    for parent in _parents(grid):
        roots += np.flatnonzero(parent < 0).tolist()
        for place in range(width * height):
            steps, at = 0, place
            while parent[at] >= 0:
                above = int(parent[at])
                assert abs(at % width - above % width) + abs(at // width - above // width) == 1
                steps, at = steps + 1, above
            root = roots[-1]
            near = abs(place % width - root % width) + abs(place // width - root // width)
            assert steps == near
            if place != root:
                joined[frozenset([place, int(parent[place])])] += 1
    assert roots == [0, width - 1, (height - 1) * width]
    assert max(joined.values()) == (2 if min(width, height) > 2 else 3)


@examples(40)
@given(SIDES, SIDES, st.booleans(), COSTS, st.integers(1, 10**5), st.integers(1, 4), st.data())
def test_any_mesh(
    width: int,
    height: int,
    torus: bool,
    cost: CostModel,
    size: int,
    chunks: int,
    data: st.DataObject,
) -> None:
    network = load_topology(f"{'torus' if torus else 'mesh'}:{width}x{height}")
    group = data.draw(st.permutations(network.members.tolist()))
    check(baseline("tto", network, [Collective.of("all-reduce", group, size, chunks)], cost))


def test_planes_of_larger_meshes() -> None:
    network = load_topology("mesh:3x4x3")
    groups = [range(12, 24), range(0, 36, 3)]
    check(baseline("tto", network, [Collective.of("all-reduce", g, 1 << 20) for g in groups]))


def test_links_carry_two_thirds() -> None:
    network = load_topology("mesh:4x4", bandwidth=[GB_S], latency=[0])
    size = 16 * 12 * 1000
    algorithm = baseline("tto", network, [Collective.of("all-reduce", range(16), size, 12)])
    rows = algorithm.transfers
    carried = np.bincount(rows.route, algorithm.chunks.bytes[rows.chunk])
    assert carried.max() == size * 2 / 3
    # Sums and copies overlap: one after the other would take as long as twice the trees.
    assert size * 2 / 3 * 1000 < algorithm.time < size * 1000


def test_what_leaves_wait_for_comes_back_from_disk(tmp_path: Path) -> None:
    network = load_topology("mesh:3x3")
    algorithm = baseline("tto", network, [Collective.of("all-reduce", range(9), 90000, 4)] * 2)
    assert algorithm.transfers.deps is not None
    check(algorithm)
    write(algorithm, tmp_path / "traces")
    assert same(algorithm, weft.load(tmp_path / "traces"))


@pytest.mark.parametrize(
    ("spec", "group", "message"),
    [
        ("ring:8", range(8), "tto needs a group that fills a 2D mesh; on ring:8 the group has 8"),
        ("mesh:2x2x2", range(8), "the group has 2x2x2 NPUs"),
        ("mesh:4x4", range(5), "the group has 5 NPUs"),
        ("h100:2", range(16), "tto needs a 2D mesh; h100:2 has no link 0>1 between neighbours"),
    ],
)
def test_refusals(spec: str, group: Sequence[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        baseline("tto", load_topology(spec), [Collective.of("all-reduce", group, 1000)])


def test_missing_links_are_named() -> None:
    network = load_topology("mesh:3x3").without(links=[(5, 4)])
    with pytest.raises(InputError, match="has no link 5>4 between neighbours"):
        baseline("tto", network, [Collective.of("all-reduce", range(9), 1000)])


def test_all_reduce_only() -> None:
    with pytest.raises(InputError, match="tto does not know all-gather; it does all-reduce"):
        baseline("tto", load_topology("mesh:3x3"), [Collective.of("all-gather", range(9), 1000)])
