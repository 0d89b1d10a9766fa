"""Draw how busy each link of a mesh is in an All-Reduce: ``python docs/figures/link_use.py``.

Left: Reduce-Scatter, then All-Gather, as most synthesizers do it. Right: what Weft makes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import weft

WIDTH = 8
CELL, PAD, TOP, GAP = 44, 30, 66, 64
SPAN = CELL * (WIDTH - 1)


def main() -> None:
    network = weft.load_topology(f"mesh:{WIDTH}x{WIDTH}", "50GiB/s", "0.5us")
    halves = [weft.synthesize(network, kind, "1GiB") for kind in ("reduce-scatter", "all-gather")]
    whole = weft.synthesize(network, "all-reduce", "1GiB")
    bound = whole.bound.ideal_us
    panels = [
        panel(network, halves, "Reduce-Scatter, then All-Gather", bound, PAD),
        panel(network, [whole], "Weft: packed trees, pipelined", bound, PAD + SPAN + GAP),
    ]
    size = (2 * PAD + 2 * SPAN + GAP, TOP + SPAN + 56)
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" '
        f'width="{size[0]}" height="{size[1]}" font-family="sans-serif">',
        f'<rect width="{size[0]}" height="{size[1]}" fill="#ffffff"/>',
        *panels,
        legend(PAD, TOP + SPAN + 26),
        "</svg>",
    ]
    Path(__file__).with_suffix(".svg").write_text("\n".join(svg) + "\n", encoding="utf-8")


def panel(
    network: weft.Topology, runs: list[weft.Result], title: str, bound_us: float, left: int
) -> str:
    """One mesh, with a stroke for each directed link, dark where it is busy."""
    time_us = sum(run.time_us for run in runs)
    busy = np.zeros(network.links)
    for run in runs:
        moved = run.algorithm.chunks.bytes[run.transfers.chunk]
        busy += np.bincount(run.transfers.route, moved, network.links)
    use = busy / network.bandwidth / (time_us * 1e-6)
    parts = [
        f'<text x="{left}" y="24" font-size="15" font-weight="bold" fill="#16323f">{title}</text>',
        f'<text x="{left}" y="44" font-size="13" fill="#4a6572">{time_us / 1000:.2f} ms, '
        f"x{time_us / bound_us:.2f} of the bound; links {use.mean():.0%} busy</text>",
    ]
    for src, dst, part in zip(network.src, network.dst, use, strict=True):
        parts.append(stroke(place(src, left), place(dst, left), float(part)))
    for npu in range(network.npus):
        x, y = place(npu, left)
        parts.append(f'<circle cx="{x}" cy="{y}" r="6" fill="#16323f"/>')
    return "\n".join(parts)


def place(npu: int, left: int) -> tuple[float, float]:
    return left + CELL * (npu % WIDTH), TOP + CELL * (npu // WIDTH)


def stroke(src: tuple[float, float], dst: tuple[float, float], part: float) -> str:
    """A link, beside the one that runs the other way."""
    dx, dy = (dst[0] - src[0]) / CELL, (dst[1] - src[1]) / CELL
    ends = [(x - 3.2 * dy + k * dx, y + 3.2 * dx + k * dy) for (x, y), k in ((src, 9), (dst, -9))]
    (x1, y1), (x2, y2) = ends
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{colour(part)}" stroke-width="4"/>'
    )


def colour(part: float) -> str:
    """From pale grey (idle) to deep orange (always busy)."""
    idle, busy = (226, 230, 233), (214, 84, 20)
    return "#" + "".join(
        f"{round(a + (b - a) * part**1.5):02x}" for a, b in zip(idle, busy, strict=True)
    )


def legend(x: float, y: float) -> str:
    parts = [f'<text x="{x}" y="{y + 11}" font-size="12" fill="#4a6572">link busy: 0 %</text>']
    parts += [
        f'<rect x="{x + 92 + 8 * i}" y="{y}" width="8" height="14" fill="{colour(i / 19)}"/>'
        for i in range(20)
    ]
    parts.append(f'<text x="{x + 258}" y="{y + 11}" font-size="12" fill="#4a6572">100 %</text>')
    parts.append(
        f'<text x="{x + 330}" y="{y + 11}" font-size="12" fill="#4a6572">'
        "All-Reduce of 1 GiB, mesh 8x8, 50 GB/s and 0.5 us a link</text>"
    )
    return "\n".join(parts)


if __name__ == "__main__":
    main()
