"""Twisted tori: what was published of them, and what defines them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.topology.helpers import neighbours
from weft.judge.automorphisms import prove_alike
from weft.topology import Topology, parse_topology
from weft.topology.summary import summarize

SIZES = ["2x2x4", "2x4x4", "3x3x6", "4x4x8", "4x8x8", "8x4x4", "8x4x8", "6x3x6"]


def distances(network: Topology) -> NDArray[np.int64]:
    """Links from NPU 0 to each NPU."""
    away = np.full(network.npus, -1)
    near, steps = {0}, 0
    while near:
        away[list(near)] = steps
        steps += 1
        near = {n for npu in near for n in neighbours(network, npu) if away[n] < 0}
    return away


@pytest.mark.parametrize("sizes", SIZES)
def test_each_npu_is_a_lattice_point(sizes: str) -> None:
    """Links are unit steps modulo the lattice FCC(n) or BCC(n), and there are no others."""
    network = parse_topology(f"twisted:{sizes}")
    lengths = network.dimensions
    short = min(lengths)
    long = [size > short for size in lengths]
    places = list(itertools.product(*map(range, lengths[::-1])))
    number = {place[::-1]: npu for npu, place in enumerate(places)}

    def reduced(point: list[int]) -> tuple[int, ...]:
        for axis, size in enumerate(lengths):
            while size == short and not 0 <= point[axis] < size:
                sign = 1 if point[axis] < 0 else -1
                point[axis] += sign * size
                # Every short period has a half of every long one beside it.
                point = [p + sign * -short * far for p, far in zip(point, long, strict=True)]
        return tuple(p % size for p, size in zip(point, lengths, strict=True))

    expected = set()
    for place in (place[::-1] for place in places):
        for axis, step in itertools.product(range(3), (1, -1)):
            there = [p + step * (axis == a) for a, p in enumerate(place)]
            expected.add((number[place], number[reduced(there)]))
    found = list(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    assert len(found) == 6 * network.npus
    assert set(found) == expected


@pytest.mark.parametrize("sizes", SIZES)
def test_all_npus_are_alike_and_no_way_is_long(sizes: str) -> None:
    network = parse_topology(f"twisted:{sizes}")
    assert network.symmetry.transitive
    prove_alike(network, network.symmetry.found, np.zeros(network.links, dtype=np.int64))
    assert distances(network).max() == 3 * min(network.dimensions) // 2


@pytest.mark.parametrize(("sizes", "measured"), [("4x4x8", 1.63), ("4x8x8", 1.31)])
def test_an_all_to_all_gains_what_was_measured_at_most(sizes: str, measured: float) -> None:
    """Jouppi et al. (2023) measured these gains; ways over all links alike allow a little more."""
    network = parse_topology(f"twisted:{sizes}")
    per_link = distances(network).sum() / 6
    longest = max(network.dimensions)
    along = [min(step, longest - step) for step in range(longest)]
    plain = network.npus / longest * sum(along) / 2  # over the links of a long dimension
    assert measured < plain / per_link < measured * 1.08


@pytest.mark.parametrize("sizes", ["2x2x4", "4x4x8", "4x8x8"])
def test_twice_as_much_crosses_the_middle(sizes: str) -> None:
    twisted, plain = (summarize(parse_topology(f"{kind}:{sizes}")) for kind in ("twisted", "torus"))
    assert twisted.bisection == 2 * (plain.bisection or 0)


def test_speeds_by_dimension() -> None:
    network = parse_topology("twisted:2x2x4", bandwidth=[1, 2, 3], latency=[4, 5, 6])
    assert network.bandwidth.tolist() == [1] * 32 + [2] * 32 + [3] * 32
    assert network.latency.tolist() == [4] * 32 + [5] * 32 + [6] * 32
