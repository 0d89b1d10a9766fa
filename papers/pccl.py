"""The evaluation of PCCL: process groups, All-to-All at scale, and patterns of any kind.

Its tables also stand beside TE-CCL, TACCL and TACOS, whose figures were had by running their public
code, or are from runs shipped with it. Speed-ups are over Direct, with the chunks that suit it best
unless a number is given. Links of 50 GB/s and 0.5 us unless said; sizes as nccl-tests counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from papers.contests import Contest, contest, efficiency_bars
from papers.figures import Lines
from papers.networks import torn_mesh
from papers.report import VERIFIED, Experiment, Extent, Paper, Setup, Table
from weft.collective import Collective, Move, all_to_allv, custom
from weft.comparison import Run
from weft.topology import Topology, load_topology

MIB = 1 << 20


@dataclass(frozen=True)
class Case:
    """Demands on a network, and what PCCL reaches over Direct or takes to synthesize them."""

    name: str
    network: Topology
    demands: Sequence[Collective]
    published: str | None = None
    chunks: int | None = None


def run_case(case: Case) -> Contest:
    """Weft's answer and Direct."""
    return contest(case.name, case.network, case.demands, ["direct"], chunks=case.chunks)


def single_groups(side: int) -> list[Case]:
    """One group in a square mesh: a row, a column, a block, and NPUs all over it."""
    random = np.random.default_rng(0)
    middle, half = side // 2 - 1, side // 2
    where = {
        "a row": range(middle * side, (middle + 1) * side),
        "a column": range(middle, side * side, side),
        "a block": [(middle + y) * side + x + half // 2 for y in range(2) for x in range(half)],
        "scattered": sorted(random.choice(side * side, side, replace=False).tolist()),
    }
    return [
        Case(
            f"{kind}, {name}",
            load_topology(f"mesh:{side}x{side}"),
            [Collective.of(kind, group, 128 * MIB)],
            "x3.05" if kind == "all-to-all" else None,
        )
        for kind in ("all-to-all", "all-gather")
        for name, group in where.items()
    ]


def rows_at_once(side: int, counts: Sequence[int]) -> list[Case]:
    """Rows of a square mesh, evenly spread, each a group."""
    cases, mesh = [], load_topology(f"mesh:{side}x{side}")
    for kind in ("all-to-all", "all-gather"):
        for count in counts:
            rows = [(2 * i + 1) * side // (2 * count) for i in range(count)]
            groups = [range(side * y, side * (y + 1)) for y in rows]
            demands = [Collective.of(kind, group, 128 * MIB) for group in groups]
            beside = "x2.33 to x3.03" if kind == "all-to-all" else None
            cases.append(Case(f"{kind}, {count} rows", mesh, demands, beside))
    return cases


def switches(counts: Sequence[int]) -> list[Case]:
    """All-to-All, boxes of 8 on a fast switch, a slower one per rail."""
    return [
        Case(
            f"{npus} NPUs",
            load_topology(f"switch:8*switch:{npus // 8}", "400GB/s,50GB/s"),
            [Collective.of("all-to-all", range(npus), npus * MIB)],
            "x1.33",
            1,
        )
        for npus in counts
    ]


def all_to_alls(specs: Sequence[str]) -> list[Case]:
    """All-to-All among all, 1 MiB and one chunk per pair."""
    cases = []
    for spec in specs:
        network = load_topology(spec)
        npus = network.npus
        demand = Collective.of("all-to-all", range(npus), npus * MIB)
        cases.append(Case(spec, network, [demand], PUBLISHED_SYNTHESIS.get(npus), 1))
    return cases


PUBLISHED_SYNTHESIS = {512: "11.68 min", 1000: "2.01 h (second hand)"}


def irregular(seeds: int) -> list[Case]:
    """Patterns without a name, different collectives at once, and networks that lost links."""
    sizes = MIB * np.array([[0, 4, 8], [2, 0, 6], [10, 1, 0]])
    uneven = all_to_allv([0, 1, 2], sizes)
    gather = Collective.of("all-gather", [6, 7, 8], 48 * MIB)
    moves = [
        Move(16 * MIB, (0,), (5, 10, 15)),
        Move(8 * MIB, (12,), (3,)),
        Move(8 * MIB, (1, 2, 4), (13, 14), reduce=True),
    ]
    small, grid = load_topology("mesh:3x3"), load_topology("mesh:4x4")
    return [
        Case("All-to-Allv, 3x3", small, [uneven]),
        Case("All-to-Allv and All-Gather, 3x3", small, [uneven, gather]),
        Case("custom, 4x4", grid, [custom(range(16), moves)]),
        *torn(8, 8, seeds),
    ]


def torn(width: int, height: int, seeds: int) -> list[Case]:
    """All-to-All, 1 MiB and one chunk per pair, on meshes without a tenth of their connections."""
    npus = width * height
    demands = [Collective.of("all-to-all", range(npus), npus * MIB)]
    return [
        Case(
            f"All-to-All, torn {width}x{height}, seed {seed}",
            torn_mesh(width, height, seed),
            demands,
            chunks=1,
        )
        for seed in range(seeds)
    ]


def scattered(seeds: int) -> list[Case]:
    """All-Gather among NPUs drawn at random, 1 MiB per chunk, four chunks per member."""
    cases = []
    for spec, members, count in (("mesh:8x8", 8, 10), ("torus:8x8x8", 64, seeds)):
        network = load_topology(spec)
        for seed in range(count):
            random = np.random.default_rng(seed)
            group = np.sort(random.choice(network.npus, members, replace=False)).tolist()
            demand = Collective.of("all-gather", group, 4 * members * MIB)
            name = f"{members} of {spec}, seed {seed}"
            cases.append(Case(name, network, [demand], chunks=4))
    return cases


def machines() -> list[Case]:
    """Real machines: what other synthesizers take, and how long they search."""
    cases = []
    for spec, latency, kind, size, published in (
        ("dgx1", "0us", "all-to-all", 8 * 10**6, "TE-CCL 120 us in 7.3 s"),
        ("ndv2:2", None, "all-to-all", 10**9, "TACCL 320049 us in 1215 s"),
        (
            *("ndv2:2", None, "all-gather", 10**9),
            "TACOS 40981 us, TE-CCL 43750 us in 43 s (15 ranks)",
        ),
    ):
        network = load_topology(spec, None, latency)
        demands = [Collective.of(kind, network.members, size)]
        name = f"{spec} {kind} {size // 10**6} MB"
        cases += [
            Case(name + (", one chunk" if chunks else ""), network, demands, published, chunks)
            for chunks in (1, None)
        ]
    return cases


def setups(quick: bool) -> list[Setup]:
    """All experiments of the paper."""
    side = 4 if quick else 8
    mesh = f"{side}x{side} mesh"
    meshes = ["mesh:4x4", "mesh:8x8", "mesh:12x12", "mesh:16x16", "mesh:16x32", "torus:8x8x8"]
    return [
        _setup(
            "group",
            f"One group of {side} in an {mesh}",
            "128 MiB an NPU; the other NPUs may relay.",
            single_groups(side)[:: 4 if quick else 1],
        ),
        _setup(
            "rows",
            "Groups at once",
            f"Rows of an {mesh}, each a group with 128 MiB an NPU, all at the same time. "
            "`alone` is what becomes of groups that do not know of each other: each synthesized "
            "as if it had the network to itself, then all run at once, first come first served.",
            rows_at_once(side, (2,) if quick else (1, 2, 4, 8)),
        ),
        _setup(
            "switch",
            "Heterogeneous 2D switch",
            "All-to-All, 1 MiB and one chunk per pair: boxes of 8 on a switch of 400 GB/s, a "
            "switch of 50 GB/s per rail.",
            switches((16,) if quick else (16, 32, 64, 128)),
        ),
        Setup(all_to_alls(meshes[:1] if quick else meshes), run_case, _scaling),
        _setup(
            "irregular",
            "Irregular patterns and networks",
            "An All-to-Allv of the top row of a 3x3 mesh with another size for every pair, alone "
            "and beside an All-Gather of the bottom row; a list of copies and sums on a 4x4 mesh "
            "(one to three, one to one, three summed for two); and All-to-All on 8x8 meshes that "
            "lost a tenth of their connections.",
            irregular(0 if quick else 3),
        ),
    ]


def _setup(
    name: str, title: str, text: str, cases: Sequence[Case], beside: str = "PCCL over Direct"
) -> Setup:
    def conclude(found: Sequence[Contest]) -> Experiment:
        figure = efficiency_bars(f"{title}: share of the bound's speed", found, ("Weft", "Direct"))
        return Experiment(name, title, text, [_speed_ups(cases, found, beside)], figure)

    return Setup(cases, run_case, conclude)


def _direct(found: Contest) -> Run | None:
    direct = found.row.baselines["direct"]
    return direct if isinstance(direct, Run) else None


def _speed_ups(cases: Sequence[Case], found: Sequence[Contest], beside: str) -> Table:
    several = any(one.row.alone is not None for one in found)
    rows = []
    for case, one in zip(cases, found, strict=True):
        weft, direct, alone = one.row.weft, _direct(one), one.row.alone
        rows.append(
            (
                case.name,
                one.row.bound / 1e6,
                weft.time / 1e6,
                weft.time / one.row.bound,
                None if direct is None else direct.time / 1e6,
                None if direct is None else one.speed_up(direct),
                case.published,
                *((alone.time / 1e6 if isinstance(alone, Run) else None,) if several else ()),
                weft.synthesis_s,
                one.verified,
            )
        )
    head = ("what", "bound us", "Weft us", "Weft over bound", "Direct us", "over Direct")
    more = ("alone us",) if several else ()
    columns = (*head, beside, *more, "synthesis s", VERIFIED)
    return Table("Weft and Direct:", columns, rows)


def _scaling(found: Sequence[Contest]) -> Experiment:
    npus = [load_topology(one.name).npus for one in found]
    rows = [
        (
            one.name,
            n,
            PUBLISHED_SYNTHESIS.get(n),
            one.row.weft.synthesis_s,
            one.row.weft.time / one.row.bound,
            None if (direct := _direct(one)) is None else one.speed_up(direct),
            one.verified,
        )
        for one, n in zip(found, npus, strict=True)
    ]
    columns = ("network", "NPUs", "PCCL", "synthesis s", "Weft over bound", "over Direct", VERIFIED)
    meshes = [(n, one) for n, one in zip(npus, found, strict=True) if "mesh" in one.name]
    return Experiment(
        "synthesis",
        "All-to-All at scale",
        "All-to-All among all NPUs, 1 MiB and one chunk per pair. PCCL's 11.68 min are published; "
        "its network is not known to us.",
        [Table("Seconds of synthesis:", columns, rows)],
        Lines(
            "All-to-All: seconds of synthesis",
            "NPUs",
            "s",
            [n for n, _ in meshes],
            {
                "Weft": [one.row.weft.synthesis_s for _, one in meshes],
                "PCCL (published)": [11.68 * 60 if n == 512 else None for n, _ in meshes],
            },
        ),
    )


def _meshes(extent: Extent) -> Setup:
    specs = ("mesh:6x6", "mesh:10x10", "mesh:20x20", "mesh:24x24", "mesh:10x10x10")
    cases = all_to_alls(specs[: (2, 4, 5)[extent]])
    return _setup("meshes", "All-to-All, 1 MiB and one chunk per pair", "", cases, "PCCL")


def _switches(extent: Extent) -> Setup:
    title = "All-to-All, 1 MiB per pair: boxes of 8 on a 400 GB/s switch, a 50 GB/s switch per rail"
    return _setup("switches", title, "", switches((256,) if extent >= Extent.USUAL else ()))


def _machines(_: Extent) -> Setup:
    return _setup("machines", "Real machines, beside other synthesizers", "", machines(), "others")


def _scattered(extent: Extent) -> Setup:
    title = "All-Gather among NPUs drawn at random, 1 MiB per chunk, four chunks per member"
    return _setup("scattered", title, "", scattered(1 if extent == Extent.SHORT else 3))


def _torn(extent: Extent) -> Setup:
    title = "Meshes without a tenth of their links, 1 MiB and one chunk per pair"
    return _setup("torn", title, "", torn(16, 32, 3 if extent >= Extent.LONG else 1))


TABLES = {
    "meshes": _meshes,
    "switches": _switches,
    "machines": _machines,
    "scattered": _scattered,
    "torn": _torn,
}

PAPER = Paper(
    "pccl",
    "PCCL, run again",
    "PCCL (arXiv 2606.07019) synthesizes arbitrary patterns for process groups, through NPUs "
    "outside the group where that helps. Its abstract gives 11.68 min for an All-to-All of 512 "
    "NPUs. All else is second hand and unchecked: 3.05x over Direct (pairwise sends) for one "
    "group of 8 in an 8x8 mesh; 2.33x to 3.03x, 2.68x on average, for the All-to-All of groups; "
    "1.33x on heterogeneous 2D switches.",
    "Speed-ups over [Direct](baselines.md#direct) on the same network, both verified, each with "
    "the number of chunks that suits it best unless one is given. Links of 50 GB/s and 0.5 us "
    "unless said; α does not occupy the link. The bound holds for every algorithm, whatever its "
    "chunks; groups that run at once are bounded together. Synthesis seconds are those of the "
    "search alone.",
    "Our Direct is not PCCL's: its messages go in dimension order over shortest paths, everybody "
    "begins with its next, and links serve first come first. On whole meshes and 2D switches it "
    "loads the busiest links evenly, so that there is little left to win: both end near the "
    "bound, and our speed-ups are smaller than PCCL's. Where few NPUs take part they are larger. "
    "Which rows, sizes and rates PCCL used is not known to us.",
    setups,
)
