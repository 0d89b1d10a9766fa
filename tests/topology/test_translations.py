"""Directions: the hops out of one NPU, and that moving them gives those of all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from weft.cost import CostModel
from weft.errors import InputError
from weft.topology import load_topology
from weft.topology.translations import Translations

FACTORS = st.one_of(
    st.builds("{}:{}".format, st.sampled_from(["ring", "fc", "switch"]), st.integers(1, 5)),
    st.sampled_from(["hypercube:2", "line:2", "torus:3x2"]),
)


@examples(60)
@given(st.lists(FACTORS, min_size=1, max_size=3).map("*".join))
def test_directions_are_the_hops_of_every_npu(spec: str) -> None:
    network = load_topology(spec)
    assert network.translates
    moves = Translations.of(network)
    npus = np.arange(network.npus)
    crossed = []
    for direction in range(len(moves.shift)):
        ways = np.full(network.npus, direction)
        dst = moves.moved(npus, moves.shift[direction : direction + 1])
        assert sorted(dst) == npus.tolist()
        assert (moves.direction(npus, dst) == direction).all()
        assert (moves.between(npus, dst) == moves.shift[direction]).all()
        first, last = moves.hop_links(npus, ways)
        assert (network.src[first] == npus).all()
        assert (network.dst[last] == dst).all()
        assert ((first == last) | (network.dst[first] == network.src[last])).all()
        crossed += [first, last]
        back = moves.opposite(np.array([direction], dtype=np.int32))
        assert (moves.moved(dst, moves.shift[back]) == npus).all()
    used = np.unique(np.concatenate([*crossed, np.empty(0, dtype=np.int64)]))
    assert used.tolist() == list(range(network.links))


@pytest.mark.parametrize(
    ("spec", "directions", "resources"),
    [
        ("ring:2", 1, 1),
        ("ring:8", 2, 2),
        ("torus:8x8x8", 6, 6),
        ("torus:1x4", 2, 2),
        ("hypercube:5", 5, 5),
        ("fc:6", 5, 5),
        ("switch:6", 5, 1),
        ("ring:4*switch:3", 4, 3),
        ("switch:4*switch:3*fc:3", 7, 4),
    ],
)
def test_how_many_there_are(spec: str, directions: int, resources: int) -> None:
    moves = Translations.of(load_topology(spec))
    assert len(moves.shift) == directions
    assert len(np.unique(moves.resource)) == resources


def test_times_through_a_switch() -> None:
    moves = Translations.of(load_topology("ring:3*switch:2", "1GB/s", "1us"))
    stored = CostModel("blocking", "store-and-forward")
    assert moves.durations(CostModel(), 1000).tolist() == [2_000_000, 2_000_000, 3_000_000]
    assert moves.holds(CostModel(), 1000, 900).tolist() == [1_000_000] * 3
    assert moves.durations(stored, 1000).tolist() == [2_000_000, 2_000_000, 4_000_000]
    # The small one behind a large one is at the switch, and wants on, 100 ns too early.
    assert moves.holds(stored, 1000, 900).tolist() == [2_000_000, 2_000_000, 2_100_000]


def test_no_such_hop() -> None:
    moves = Translations.of(load_topology("torus:4x4"))
    with pytest.raises(InputError, match="no hop leads from NPU 0 to NPU 5"):
        moves.direction(np.array([0, 0]), np.array([1, 5]))
