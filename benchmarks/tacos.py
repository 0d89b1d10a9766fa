"""Weft beside TACOS.

TACOS's figures are from its own regression suite and from running its public code on a two-core
machine; collective times are exact, its wall times good to a factor of two.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator

import weft
from benchmarks.networks import irregular_mesh
from benchmarks.tables import Extent, Row, Table, ratio
from weft.topology import load_topology

MODELS = ("blocking", "pipelined")


def regression(_: Extent) -> Iterator[Row]:
    """TACOS's regression instances: All-Gather, α occupies the link."""
    yield "instance", "TACOS us", "Weft us", "of the bound", "seeds at the bound", "pipelined"
    for spec, rate, alpha, size, chunks, published in (
        ("mesh:5x5", "50GiB/s", "0.5us", "1GiB", 1, 9606.0),
        ("mesh:10x10", "100GiB/s", "1us", "1GiB", 2, 5049.0),
        ("mesh:7x12", "100GiB/s", "1us", "4GiB", 3, 19966.27),
        ("mesh:3x3x3", "50GiB/s", "0.5us", "1GiB", 1, 6671.17),
        ("mesh:3x4x5", "50GiB/s", "0.5us", "2GiB", 2, 13353.33),
        ("torus:3x3x3", "50GiB/s", "0.5us", "1GiB", 1, 3706.20),
        ("torus:3x4x5", "50GiB/s", "0.5us", "2GiB", 2, 6676.67),
        ("mesh:5x5", "50GiB/s,75GiB/s", "0.5us", "1GiB", 1, 8005.0),
        ("mesh:8x5", "80GiB/s,35GiB/s", "1us", "1GiB", 2, 8595.43),
        ("mesh:7x10", "16GiB/s,73GiB/s", "1.5us", "4GiB", 3, 44612.47),
    ):
        network = load_topology(spec, rate, alpha)
        runs = [
            weft.synthesize(
                network, "all-gather", size, chunks=chunks, seed=seed, latency_model="blocking"
            )
            for seed in range(5)
        ]
        met = sum(run.efficiency > 1 - 1e-6 for run in runs)
        other = weft.synthesize(network, "all-gather", size, chunks=chunks)
        yield (
            f"{spec} {rate}",
            f"{published:.2f}",
            f"{runs[0].time_us:.2f}",
            ratio(runs[0]),
            f"{met} of {len(runs)}",
            ratio(other),
        )


def speed(_: Extent) -> Iterator[Row]:
    """Synthesis time at 4096 NPUs: All-Gather, 1 GiB, one chunk an NPU, 50 GiB/s and 0.5 us."""
    yield "what", "α", "Weft s", "with bound and proof s", "of the bound", "peak GiB"
    for model in MODELS:
        began = time.perf_counter()
        network = load_topology("mesh:64x64", "50GiB/s", "0.5us")
        run = weft.synthesize(network, "all-gather", "1GiB", chunks=1, latency_model=model)
        yield (
            "mesh:64x64",
            model,
            f"{run.synthesis_s:.2f}",
            f"{time.perf_counter() - began:.2f}",
            ratio(run),
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f}",
        )


def tori(_: Extent) -> Iterator[Row]:
    """Tori, one chunk an NPU, three seeds: TACOS reached x1.0625, x1.016 and x1.0."""
    yield "torus", "α", "seed 0", "seed 1", "seed 2"
    for spec in ("torus:8x8", "torus:16x16", "torus:8x8x8"):
        network = load_topology(spec, "50GiB/s", "0.5us")
        for model in MODELS:
            runs = (
                weft.synthesize(
                    network, "all-gather", "1GiB", chunks=1, seed=seed, latency_model=model
                )
                for seed in range(3)
            )
            yield spec, model, *map(ratio, runs)


def irregular(_: Extent) -> Iterator[Row]:
    """Irregular meshes, All-Gather of 1 GiB, default settings; TACOS: up to x1.16, causal."""
    yield "network", "blocking", "chunks", "pipelined", "chunks", "one chunk, blocking"
    sizes = [(8, 8), (8, 8), (10, 10), (10, 10), (12, 10), (12, 12), (14, 12), (16, 8), (16, 12)]
    columns: list[list[float]] = [[], [], []]
    for seed, (width, height) in enumerate([*sizes, (16, 16)]):
        network = irregular_mesh(width, height, seed)
        first, second = (
            weft.synthesize(network, "all-gather", "1GiB", latency_model=model) for model in MODELS
        )
        single = weft.synthesize(network, "all-gather", "1GiB", chunks=1, latency_model="blocking")
        for column, run in zip(columns, (first, second, single), strict=True):
            column.append(1 / run.efficiency)
        yield (
            network.name,
            ratio(first),
            str(first.collective.chunks_per_share),
            ratio(second),
            str(second.collective.chunks_per_share),
            ratio(single),
        )
    mean, worst = ([f"x{f(column):.4f}" for column in columns] for f in (average, max))
    yield "mean", mean[0], "", mean[1], "", mean[2]
    yield "worst", worst[0], "", worst[1], "", worst[2]


def all_reduce(_: Extent) -> Iterator[Row]:
    """All-Reduce of 1 GiB, defaults, against Reduce-Scatter and All-Gather one after the other."""
    yield "network", "halves us", "Weft us", "faster", "of the bound", "method", "synthesis s"
    for spec in ("mesh:4x4", "mesh:6x6", "mesh:8x8", "mesh:3x4x5", "torus:4x4x4", "dgx1", "h100:2"):
        network = load_topology(spec)
        halves = sum(
            weft.synthesize(network, kind, "1GiB").time_us
            for kind in ("reduce-scatter", "all-gather")
        )
        run = weft.synthesize(network, "all-reduce", "1GiB")
        yield (
            spec,
            f"{halves:.1f}",
            f"{run.time_us:.1f}",
            f"x{halves / run.time_us:.2f}",
            ratio(run),
            str(run.algorithm.provenance["method"]),
            f"{run.synthesis_s:.2f}",
        )


TABLES: dict[str, Table] = {
    "regression": regression,
    "speed": speed,
    "tori": tori,
    "irregular": irregular,
    "all-reduce": all_reduce,
}


def average(values: list[float]) -> float:
    return sum(values) / len(values)
