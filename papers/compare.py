"""Weft beside classical algorithms: docs/comparison.md and its figures, written anew.

``python -m papers compare``; it takes long, so no other command runs it. All-Reduce on fabrics has
a page of its own: ``python -m papers compare-fabrics``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.comparison import Comparison, Row, Run, compare
from weft.comparison.files import picture_of
from weft.documents import new_file
from weft.topology import Topology, load_topology
from weft.units import format_size, format_time

DOCS = Path(__file__).parent.parent / "docs"
COLLECTIVES = ("all-reduce", "all-gather", "all-to-all")
SIZES = "64KiB,1MiB,64MiB,1GiB"
FABRICS_PAGE = "comparison-fabrics.md"
ALL_SIZES = "256,4KiB,64KiB,1MiB,16MiB,256MiB,1GiB"


@dataclass(frozen=True)
class Network:
    """A network of the page: its name there, its file names, and what it is."""

    title: str
    slug: str
    spec: str
    bandwidth: str | None = None
    latency: str | None = None

    def load(self) -> Topology:
        return load_topology(self.spec, self.bandwidth, self.latency)


NETWORKS = (
    Network("Mesh 8x8, 50 GB/s and 0.5 us a link", "mesh", "mesh:8x8", "50GB/s", "0.5us"),
    Network("Torus 4x4x4, 50 GB/s and 0.5 us a link", "torus", "torus:4x4x4", "50GB/s", "0.5us"),
    Network("DGX-1", "dgx1", "dgx1"),
    Network("Two NDv2", "ndv2", "ndv2:2"),
    Network(
        "2D switch, 8 NPUs at 300 GB/s and 4 at 25 GB/s a dimension, 0.5 us a link",
        "switch",
        "switch:8*switch:4",
        "300GB/s,25GB/s",
        "0.5us",
    ),
)
FABRICS = (
    Network("Four boxes of H100, switches that only forward", "h100", "h100:4,plain"),
    Network("Rails: eight boxes of eight", "rails", "rails:8x8"),
    Network("Leaves and spines", "leaf-spine", "leaf-spine:8x8x4"),
)


def write(
    docs: Path = DOCS,
    networks: Sequence[Network] = NETWORKS,
    collectives: Sequence[str] = COLLECTIVES,
    sizes: str = SIZES,
    page_name: str = "comparison.md",
) -> None:
    """Compare, draw, and write the page; print what is found on the way."""
    page, lost, equal = [], [], []
    for network in networks:
        page += [f"## {network.title}", ""]
        for kind in collectives:
            found = compare(network.load(), kind, sizes)
            figure = f"figures/compare-{network.slug}-{kind}.svg"
            new_file(docs / figure, picture_of(found, ".svg"))
            page += [f"### {found.title}", "", *table(found), "", f"![{found.title}]({figure})", ""]
            lost += [f"{found.title}, {line}" for line in losses(found)]
            equal += [f"{found.title}, {line}" for line in classical(found)]
            print("\n".join([found.title, *table(found), ""]), flush=True)
    page = [*heading(page_name), *summary(lost, equal), *page]
    new_file(docs / page_name, "\n".join(page).rstrip("\n").encode() + b"\n")
    print("\n".join(summary(lost, equal)))


def write_fabrics() -> None:
    """The page of All-Reduce on fabrics, at every size."""
    write(DOCS, FABRICS, COLLECTIVES[:1], ALL_SIZES, FABRICS_PAGE)


def heading(page_name: str) -> list[str]:
    of_fabrics = page_name == FABRICS_PAGE
    title = "# All-Reduce on fabrics" if of_fabrics else "# Weft and classical algorithms"
    command = "compare-fabrics" if of_fabrics else "compare"
    return [
        title,
        "",
        f"Written by `python -m papers {command}`, with the algorithms that Weft had then; do not",
        "edit. How to read it, and how to make such a table for a network of your own:",
        "[](compare.md). How classical algorithms are put on networks: [](baselines.md).",
        "",
        "Every time is verified, else it is WRONG. `*` is the best, `-` what does not fit.",
        "*Speed-up* is Weft's over the best of the others. *Method* says how Weft's answer was",
        "found: it can be a classical algorithm itself.",
        "",
    ]


def summary(lost: Sequence[str], equal: Sequence[str]) -> list[str]:
    """Where classical algorithms are as good or better."""
    return [
        "## Where a classical algorithm wins",
        "",
        "Faster than Weft's answer:" if lost else "None is faster than Weft's answer.",
        "",
        *(f"* {line}" for line in lost),
        *([""] if lost else []),
        "Weft's answer is a classical algorithm:"
        if equal
        else "In no case is Weft's answer a classical algorithm.",
        "",
        *(f"* {line}" for line in equal),
        *([""] if equal else []),
    ]


def losses(found: Comparison) -> Iterator[str]:
    for row in found.rows:
        if row.winner not in ("weft", None):
            yield f"{format_size(row.size)}: {row.winner}, x{1 / (row.speedup or 1):.3f}"


def classical(found: Comparison) -> Iterator[str]:
    for row in found.rows:
        if row.classical is not None:
            yield f"{format_size(row.size)}: {row.classical}"


def table(found: Comparison) -> list[str]:
    """Algorithms down, sizes across: there are more algorithms than a page is wide."""
    rows = found.rows
    lines = [("", *(format_size(row.size) for row in rows)), ("---", *("---:" for _ in rows))]
    lines.append(("lower bound", *(format_time(row.bound) for row in rows)))
    lines += [(name, *(cell(row, name) for row in rows)) for name in ("weft", *found.names)]
    ratios = [row.speedup for row in rows]
    lines.append(("speed-up", *("-" if r is None else f"x{r:.3f}" for r in ratios)))
    lines.append(("of the bound", *(of_bound(row) for row in rows)))
    lines.append(("method", *(row.weft.method for row in rows)))
    return [f"| {' | '.join(line)} |" for line in lines]


def cell(row: Row, name: str) -> str:
    run = row.weft if name == "weft" else row.baselines[name]
    if not isinstance(run, Run):
        return "-"
    if not run.verified:
        return "WRONG"
    return format_time(run.time) + (" \\*" if name == row.winner else "")


def of_bound(row: Row) -> str:
    return f"x{row.weft.time / row.bound:.3f}" if row.bound else "x1"
