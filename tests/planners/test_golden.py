"""Known times: those of TACOS's regression instances, and networks where the optimum is met."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.topology import Topology, load_topology

# All-Gather, blocking α: spec, GiB/s a dimension, α in us, MiB, chunks, us.
ONE_SPEED = [
    ("mesh:5x5", "50", 0.5, 1024, 1, 9606.0),
    ("mesh:10x10", "100", 1, 1024, 2, 5049.0),
    ("mesh:7x12", "100", 1, 4096, 3, 19966.27),
    ("mesh:3x3x3", "50", 0.5, 1024, 1, 6671.17),
    ("mesh:3x4x5", "50", 0.5, 2048, 2, 13353.33),
    ("torus:3x3x3", "50", 0.5, 1024, 1, 3706.20),
    ("torus:3x4x5", "50", 0.5, 2048, 2, 6676.67),
]
TWO_SPEEDS = [
    ("mesh:5x5", "50,75", 0.5, 1024, 1, 8005.0),
    ("mesh:8x5", "80,35", 1, 1024, 2, 8595.43),
    ("mesh:7x10", "16,73", 1.5, 4096, 3, 44612.47),
]


@pytest.mark.parametrize(
    ("row", "seed"), [*((row, seed) for row in ONE_SPEED for seed in range(3))]
)
def test_regression_instances(row: tuple[str, str, float, int, int, float], seed: int) -> None:
    _check(row, seed)


@pytest.mark.parametrize("row", TWO_SPEEDS)
def test_regression_instances_of_two_speeds(row: tuple[str, str, float, int, int, float]) -> None:
    _check(row, 0)


def _check(row: tuple[str, str, float, int, int, float], seed: int) -> None:
    spec, rates, alpha, size, chunks, expected = row
    rate = ",".join(f"{text}GiB/s" for text in rates.split(","))
    network = load_topology(spec, rate, f"{alpha}us")
    result = weft.synthesize(
        network, "all-gather", f"{size}MiB", chunks=chunks, seed=seed, latency_model="blocking"
    )
    assert result.verified
    # The figures are known to a hundredth of a microsecond.
    assert result.time_us == pytest.approx(expected, rel=1e-6, abs=0.006)
    assert result.lower_bound_us == pytest.approx(result.time_us, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
@pytest.mark.parametrize("spec", ["torus:8x8", "torus:16x16", "torus:8x8x8"])
def test_tori_meet_the_bound(spec: str, kind: str, seed: int) -> None:
    if kind == "reduce-scatter" and spec == "torus:8x8x8":
        pytest.skip("the same plan backwards; the smaller ones show it")
    network = load_topology(spec, "50GiB/s", "0.5us")
    result = weft.synthesize(network, kind, "1GiB", chunks=1, seed=seed, latency_model="blocking")
    assert result.verified
    assert result.efficiency >= 0.999999


def test_dgx1_ideal() -> None:
    result = weft.synthesize(load_topology("dgx1", latency="0"), "all-gather", "8MB", chunks=6)
    assert result.bound.ideal_us == pytest.approx(46.6667, rel=1e-4)
    assert result.time_us >= result.lower_bound_us >= result.bound.ideal_us


@pytest.mark.parametrize(
    ("spec", "rate"),
    [
        ("mesh:3x3", 112.5),
        ("mesh:4x4", 106.67),
        ("mesh:5x5", 104.17),
        ("mesh:6x6", 102.86),
        ("mesh:8x8", 101.59),
        ("torus:4x4", 213.33),
        ("torus:8x8", 203.17),
        ("hypercube:3", 171.43),
        ("hypercube:4", 213.33),
    ],
)
@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
def test_fluid_bounds(spec: str, rate: float, kind: str) -> None:
    """GB/s of output at 50 GB/s a link: what no chunking can beat."""
    network = load_topology(spec, "50GB/s", "0")
    result = weft.synthesize(network, kind, "1GB", chunks=1)
    assert 1e3 / result.bound.ideal_us * 1e3 == pytest.approx(rate, rel=1e-4)


def test_more_ways_than_are_listed_are_all_used() -> None:
    """20 spines, of which a pair of NPUs gets 16: together they use the whole fabric."""
    network = load_topology("leaf-spine:20x2x20", "50GB/s,50GB/s", "0.5us")
    how = {"chunks": 1, "method": "matching"}
    result = weft.synthesize(network, "all-gather", "40MB", threads=1, **how)
    assert result.verified
    assert result.efficiency > 0.95
    crossed = set(network.dst[result.algorithm.routes.links].tolist())
    assert crossed >= set(range(42, 62))
    again = weft.synthesize(network, "all-gather", "40MB", threads=2, **how)
    assert (again.algorithm.transfers.start == result.algorithm.transfers.start).all()


def test_parallel_links_are_all_used() -> None:
    """Two switches with four NPUs each and four links between them: as good as one switch."""
    npus, here = np.arange(8), np.repeat([8, 9], 4)
    network = Topology.from_links(
        "parallel",
        8,
        np.concatenate([npus, here, here]),
        np.concatenate([here, npus, 17 - here]),
        10**9,
        0,
        switches=2,
    )
    result = weft.synthesize(network, "all-gather", "8MB", chunks=1, threads=1)
    assert result.verified
    assert result.time_us == 7000
    assert set(result.algorithm.routes.links.tolist()) == set(range(24))
