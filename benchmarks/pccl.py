"""Weft beside PCCL, TE-CCL, TACCL and TACOS, and over Direct, where `weft reproduce` has no row.

TE-CCL's, TACCL's and TACOS's figures were had by running their public code, or are from runs
shipped with it. Direct (`weft.baselines`) runs with the chunks that suit it best, unless a number
is given. Links of 50 GB/s and 0.5 us unless said; sizes as nccl-tests counts them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.tables import Extent, Row, Table
from weft.collective import Collective
from weft.compare import Run
from weft.reproduce.networks import torn_mesh
from weft.reproduce.pccl import MIB, PUBLISHED_SYNTHESIS, Case, all_to_alls, run_case, switches
from weft.topology import load_topology

FIGURES = ("time us", "bound us", "of the bound", "synthesis s", "over Direct", "verified")


def figures(case: Case) -> Row:
    """What Weft makes of the demands, and how much faster that is than Direct."""
    found = run_case(case)
    row, direct = found.row, found.row.baselines["direct"]
    return (
        f"{row.weft.time / 1e6:.2f}",
        f"{row.bound / 1e6:.2f}",
        f"x{row.weft.time / row.bound:.6f}",
        f"{row.weft.synthesis_s:.3f}",
        f"x{found.speed_up(direct):.3f}" if isinstance(direct, Run) else "-",
        "yes" if found.verified else f"NO: {row.violations}",
    )


def meshes(extent: Extent) -> Iterator[Row]:
    """All-to-All, 1 MiB and one chunk a pair."""
    yield "network", "PCCL", *FIGURES
    specs = ["mesh:6x6", "mesh:10x10"]
    if extent >= Extent.USUAL:
        specs += ["mesh:20x20", "mesh:24x24"]
    if extent >= Extent.LONG:
        specs += ["mesh:10x10x10"]
    for case in all_to_alls(specs):
        published = PUBLISHED_SYNTHESIS.get(case.demands[0].ranks, "-")
        yield case.name, published, *figures(case)


def large_switches(extent: Extent) -> Iterator[Row]:
    """All-to-All, 1 MiB a pair: boxes of 8 on a 400 GB/s switch, a 50 GB/s switch a rail."""
    yield "what", "PCCL over Direct", *FIGURES
    for case in switches((256,) if extent >= Extent.USUAL else ()):
        yield case.name, f"{case.published} (second hand)", *figures(case)


def machines(_: Extent) -> Iterator[Row]:
    """Real machines: what other synthesizers take, and how long they search."""
    yield "what", "chunks", "others", *FIGURES
    te_ccl, taccl = "TE-CCL 120 us in 7.3 s", "TACCL 320049 us in 1215 s"
    gathers = "TACOS 40981 us, TE-CCL 43750 us in 43 s (15 ranks)"
    for spec, latency, kind, size, published in (
        ("dgx1", "0us", "all-to-all", 8 * 10**6, te_ccl),
        ("ndv2:2", None, "all-to-all", 10**9, taccl),
        ("ndv2:2", None, "all-gather", 10**9, gathers),
    ):
        network = load_topology(spec, None, latency)
        demand = Collective.of(kind, network.members, size)
        for chunks in (1, None):
            name = f"{spec} {kind} {size // 10**6} MB"
            case = Case(name, lambda network=network: network, [demand], chunks=chunks)
            yield name, "auto" if chunks is None else str(chunks), published, *figures(case)


def scattered(extent: Extent) -> Iterator[Row]:
    """All-Gather among NPUs drawn at random, 1 MiB a chunk, four chunks a member."""
    yield "group", "seed", *FIGURES
    wanted = [("mesh:8x8", 8, 10), ("torus:8x8x8", 64, 1 if extent == Extent.SHORT else 3)]
    for spec, members, seeds in wanted:
        network = load_topology(spec)
        for seed in range(seeds):
            random = np.random.default_rng(seed)
            group = np.sort(random.choice(network.npus, members, replace=False))
            demand = Collective.of("all-gather", group.tolist(), 4 * members * MIB)
            case = Case("", lambda network=network: network, [demand], chunks=4)
            yield f"{members} of {spec}", str(seed), *figures(case)


def torn(extent: Extent) -> Iterator[Row]:
    """All-to-All, 1 MiB and one chunk a pair, on 16x32 meshes without a tenth of their links."""
    yield "seed", *FIGURES
    demand = Collective.of("all-to-all", range(512), 512 * MIB)
    for seed in range(3 if extent >= Extent.LONG else 1):
        case = Case("", lambda seed=seed: torn_mesh(16, 32, seed), [demand], chunks=1)
        yield str(seed), *figures(case)


TABLES: dict[str, Table] = {
    "meshes": meshes,
    "switches": large_switches,
    "machines": machines,
    "scattered": scattered,
    "torn": torn,
}
