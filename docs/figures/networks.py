"""Write the page of networks and its pictures: ``python docs/figures/networks.py``.

What is said of links, speeds and distances is counted in the networks themselves, so that the
page stays true; a test makes it again and compares.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.errors import InputError
from weft.judge.automorphisms import symmetry_words
from weft.topology import Topology, load_topology
from weft.topology.summary import summarize
from weft.units import format_bandwidth, format_time

FIGURES = Path(__file__).parent
MACHINE_FILE = FIGURES / "machines.toml"
PAGE = FIGURES.parent / "networks.md"
COLOURS = ("#1b5e7b", "#d65414", "#4a8f3c", "#8a4f9e")
STEP, PAD, DOT = 46.0, 40.0, 11.0

Point = tuple[float, float]
Layout = Callable[[Topology], dict[int, Point]]


def circle(network: Topology) -> dict[int, Point]:
    """All nodes on a circle, the first on top."""
    radius = max(1.2, network.nodes / 6.5)
    turns = (2 * math.pi * node / network.nodes for node in range(network.nodes))
    return {
        node: (radius + radius * math.sin(turn), radius - radius * math.cos(turn))
        for node, turn in enumerate(turns)
    }


def grid(network: Topology) -> dict[int, Point]:
    """NPUs at their coordinates; a third dimension goes to the back."""
    width, height, depth = (*network.dimensions, 1)[:3]
    step = max(1.7, 0.55 * depth + 0.05)
    places = {}
    for npu in range(network.npus):
        x, rest = npu % width, npu // width
        y, z = rest % height, rest // height
        places[npu] = (x * step + 0.55 * z, y * step + 0.5 * z)
    return places


def rows(*counts: int) -> Layout:
    """Nodes in rows from above, so many of the highest numbers left in each; NPUs among them."""

    def place(network: Topology) -> dict[int, Point]:
        return _in_rows(_taken(network, counts))

    return place


def _taken(network: Topology, counts: Sequence[int]) -> list[list[int]]:
    """Rows from above; negative counts are switches below the NPUs, which come first."""
    below = -sum(count for count in counts if count < 0)
    last, lines = network.nodes, []
    for count in (count for count in counts if count > 0):
        lines.append(list(range(last - count, last)))
        last -= count
    lines.append(list(range(network.npus)))
    if below:
        lines.append(list(range(network.npus, network.npus + below)))
    return lines


def _in_rows(lines: Sequence[Sequence[int]]) -> dict[int, Point]:
    width = max(map(len, lines))
    places = {}
    for height, line in enumerate(lines):
        for i, node in enumerate(line):
            places[node] = ((i + 0.5) * width / len(line) - 0.5, height * 1.9)
    return places


def facing(network: Topology) -> dict[int, Point]:
    """Two boxes of NPUs, one above the other, each on the side of its switch."""
    half = network.npus // 2
    upper, lower = range(half), range(half, network.npus)
    return _in_rows([[network.npus], upper, lower, [network.npus + 1]])


def sandwich(network: Topology) -> dict[int, Point]:
    """Two rows of NPUs with the switches that join them in between."""
    half = network.npus // 2
    return _in_rows([range(half), range(network.npus, network.nodes), range(half, network.npus)])


def spokes(network: Topology) -> dict[int, Point]:
    """Routers on a circle, the NPUs of each behind it."""
    each = network.npus // network.switches
    inner = max(1.5, network.switches / 4.5)
    outer = max(inner + 1.2, network.npus / 7.5)
    places = {}
    for node in range(network.nodes):
        radius = inner if node >= network.npus else outer
        at = node - network.npus if node >= network.npus else (node + 0.5) / each - 0.5
        turn = 2 * math.pi * at / network.switches
        places[node] = (outer + radius * math.sin(turn), outer - radius * math.cos(turn))
    return places


def racks(network: Topology) -> dict[int, Point]:
    """Racks of trays with four GPUs side by side, a switch below each, leaves and a spine above."""
    count = network.npus // 72
    places = {}
    for npu in range(network.npus):
        rack, local = divmod(npu, 72)
        places[npu] = (rack * 11.5 + local // 4 * 0.6, 4.0 + local % 4 * 0.6)
    for rack in range(count):
        places[network.npus + rack] = (rack * 11.5 + 5.1, 7.6)
    middle = (count - 1) * 5.75 + 5.1
    for rail in range(4):
        places[network.npus + count + rail] = (middle + (rail - 1.5) * 3, 1.9)
    places[network.nodes - 1] = (middle, 0)
    return places


def cubes(network: Topology) -> dict[int, Point]:
    """Boxes of eight side by side, four of each before the others."""
    places = {}
    for npu in range(network.npus):
        box, local = divmod(npu, 8)
        back = local // 4
        x, y = local % 2 * 2.6 + back * 1.2, local % 4 // 2 * 2.6 + back * 0.5
        places[npu] = (box * 5.5 + x, box * 1.2 + y)
    return places


@dataclass(frozen=True)
class Entry:
    """A network on the page: its name, a spec, what is said, and how a spec is drawn, if it is."""

    name: str
    spec: str
    layout: Layout | None
    text: str
    source: str = ""
    drawn: str = ""


BUILDERS = (
    Entry(
        "ring",
        "ring:8",
        circle,
        "Every NPU with the next and the one before; `ring:2` is one connection.",
    ),
    Entry("line", "line:8", rows(), "A ring without the connection that closes it."),
    Entry(
        "mesh",
        "mesh:4x3",
        grid,
        "Lines in every dimension: `mesh:8x8`, `mesh:3x4x5`. NPU x + 4·y sits at (x, y).",
    ),
    Entry(
        "torus",
        "torus:4x4",
        grid,
        "Rings in every dimension: `torus:4x4x8`. The picture shows the beginnings of links "
        "that go round.",
    ),
    Entry(
        "twisted",
        "twisted:2x4x4",
        grid,
        "A torus of n x n x 2n or n x 2n x 2n, in any order, with twisted rings: `twisted:4x4x8`. "
        "Whoever leaves the end of a short dimension comes in again at its beginning, n places on "
        "along every long one. All NPUs and all links are alike, no way is longer than 3n/2, and "
        "an All-to-All is up to x1.7 as fast as on the torus of these sizes. A speed for each "
        "dimension.",
        "Cámara et al., *Twisted Torus Topologies for Enhanced Interconnection Networks*, IEEE "
        "TPDS 2010, to which Jouppi et al., *TPU v4*, ISCA 2023, refer; as lattices FCC(n) and "
        "BCC(n) of Camarero et al., *Lattice Graphs for High-Scale Interconnection Topologies*, "
        "IEEE TPDS 2015.",
    ),
    Entry(
        "hypercube", "hypercube:3", circle, "2ⁿ NPUs, joined where one bit of the number differs."
    ),
    Entry("fc", "fc:6", circle, "Fully connected: a link from every NPU to every other."),
    Entry(
        "switch",
        "switch:8",
        rows(1),
        "All NPUs on one switch. `switch:8*switch:4` is the *2D switch* of the literature.",
    ),
    Entry(
        "products",
        "line:4*switch:2",
        sandwich,
        "Any of the above multiplied by `*`, such as `ring:4*fc:8*switch:4`, the first "
        "dimension varying fastest; each has a speed of its own: `--bandwidth 400GB/s,50GB/s`.",
    ),
    Entry(
        "dragonfly",
        "dragonfly:3x4",
        circle,
        "Groups that are fully connected inside, with one connection between every two groups: "
        "`dragonfly:MEMBERSxGROUPS`. Speeds: within groups, between them.",
    ),
    Entry(
        "dragonfly-routers",
        "dragonfly:p=2,a=3,h=1",
        spokes,
        "The same with routers as switches: `dragonfly:p=4,a=8,h=4` has 4 NPUs on each router, 8 "
        "routers a group, all connected, and 4 links from each router to other groups. There are "
        "a·h + 1 groups, each with one link to each other, or as many as `g=` says: their global "
        "links go round the other groups as often as there are links for a whole round. p·a·g "
        "NPUs, a·g switches. Speeds: NPU to router, within groups, between them.",
    ),
    Entry(
        "leaf-spine",
        "leaf-spine:4x3x2",
        rows(2, 3),
        "A fat tree of two levels: `leaf-spine:NPUS_A_LEAFxLEAVESxSPINES`, every leaf on every "
        "spine. Speeds: NPU to leaf, leaf to spine.",
    ),
    Entry(
        "rails",
        "rails:4x2x2",
        rows(2, 4, -2),
        "Boxes with a switch inside, and a leaf for each place in a box, its rail: "
        "`rails:NPUS_A_BOXxBOXES`; a third number is spines above the leaves. Speeds: within "
        "boxes, NPU to leaf, leaf to spine.",
    ),
    Entry(
        "fat-tree",
        "fat-tree:4",
        rows(4, 8, 8),
        "The fat tree of switches with K ports, half of them up: K pods of K/2 leaves and K/2 "
        "spines, K/2 NPUs a leaf, K²/4 cores. K³/4 NPUs, 5·K²/4 switches, 3·K³/2 directed links; "
        "nothing is oversubscribed. Speeds: NPU to leaf, leaf to spine, spine to core.",
    ),
    Entry(
        "clos",
        "clos:4x2x3,up=2x2",
        rows(4, 6, 6),
        "Three tiers of any size: `clos:NPUS_A_LEAFxLEAVES_A_PODxPODS`. Every leaf is on every "
        "spine of its pod, every spine on as many cores, which it shares with the spines at its "
        "place in the other pods. As many links lead up as down from each leaf and spine, unless "
        "`up=SPINES_A_PODxCORES_A_SPINE` says how many, or `oversubscription=2` (of leaves; "
        "`2x2`: of leaves and spines) how many times fewer. With l leaves, s spines and p pods, c "
        "cores a spine: p·(l + s) + s·c switches, 2·p·s·(l + c) directed links besides those of "
        "NPUs. Speeds: NPU to leaf, leaf to spine, spine to core.",
    ),
    Entry(
        "hyperx",
        "hyperx:3x2,p=2",
        spokes,
        "Routers on a grid, each linked to all that differ from it in one coordinate, p NPUs on "
        "each: `hyperx:8x8,p=8`; one dimension is a full mesh of routers, two are a flattened "
        "butterfly. Speeds: NPU to router, then each dimension.",
    ),
)


def machines() -> tuple[Entry, ...]:
    """The entries of machines, from their file."""
    found = tomllib.loads(MACHINE_FILE.read_text(encoding="utf-8"))["machine"]
    return tuple(Entry(**{**entry, "layout": layout(entry.get("layout"))}) for entry in found)


def layout(said: str | list[int] | None) -> Layout | None:
    """A layout by name, or by its rows of switches."""
    if isinstance(said, list):
        return rows(*said)
    named = {f.__name__: f for f in (circle, grid, facing, cubes, racks)}
    return None if said is None else named[said]


MACHINES = machines()

HEAD = """\
# Networks

Every network that has a name. The drawn sizes are examples; others are asked for in the same way.
`weft topo show SPEC` prints these facts of any network, and `-o net.yaml` writes it as a
[file](topology-files.md) to edit. This page is made by `python docs/figures/networks.py`.

Links are directed, and each direction of a cable is one. A circle is an NPU, a square a switch.
Bisection is each way, over the thinnest cut between two halves of the NPUs; "at most" where not
every cut was tried. A network is vertex-transitive if its NPUs can be exchanged, with switches, so
that any of them comes to the place of any other. Up to 4,096 NPUs that is searched for.
"""
BUILT = """
## Built from sizes

All links have 50 GB/s and 0.5 us unless `--bandwidth` and `--latency` give others: one for all,
or one for each dimension or level. All switches copy with `,multicast`, add with `,adding` and have
small buffers with `,buffer=64KiB` behind the spec; with `,plain` they only forward.
"""
REAL = """
## Machines

A number of boxes follows the name: `h100:4`; without one there is one box. Speeds are the
machine's; `--bandwidth` and `--latency` take one value for all links. GPUs are numbered box by
box, switches after them: first one per box, then network cards, then those between boxes.

Rates are *nominal*, what the maker says, or with `--rates reachable` what was published that the
same links carry under load. NVLink and xGMI are those that NCCL and RCCL count with
(`src/graph/topo.h`), InfiniBand is what `ib_write_bw` gives: 96.6 of 100 Gbit/s (EDR), 388.8 of 400
(NDR). Where nothing was published of a link, `--rates reachable` is refused: no share of one
generation is taken for that of the next.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD, BUILT, *map(section, BUILDERS), REAL, *map(section, MACHINES)]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def section(entry: Entry) -> str:
    network = load_topology(entry.spec)
    drawn = f"\n![{entry.drawn or entry.spec}](figures/network-{entry.name}.svg)\n"
    table = "\n".join(f"| {name} | {value} |" for name, value in facts(network, entry))
    source = f"\nSource: {entry.source}\n" if entry.source else ""
    return f"""
### {entry.name}

{entry.text}
{drawn if entry.layout else ""}
| `{entry.spec}` | |
|---|---|
{table}
{source}"""


def facts(network: Topology, entry: Entry) -> Iterator[tuple[str, str]]:
    found = summarize(network)
    yield "NPUs, switches", f"{found.npus}, {found.switches}"
    yield "directed links", str(found.links)
    yield "diameter", f"{found.diameter} link{'s' * (found.diameter != 1)}"
    most = "" if found.bisection_exact else "at most "
    yield "bisection", f"{most}{format_bandwidth(found.bisection or 0)}"
    into = dict.fromkeys(map(format_bandwidth, (found.ingress_min, found.ingress_max)))
    yield "into each NPU", " to ".join(into)
    yield "symmetry", symmetry_words(network)
    for speed in found.speeds:
        pair = f"{format_bandwidth(speed.bandwidth)}, {format_time(speed.latency)}"
        yield "link speed", f"{pair} ({speed.links} links)"
    if entry in MACHINES:
        yield "reachable", reachable(entry.spec, network)


def reachable(spec: str, network: Topology) -> str:
    """What links reach, by what they carry nominally."""
    try:
        found = load_topology(spec, rates="reachable")
    except InputError as error:
        return re.sub(r".*: what (.*) of \S+ reaches .*", r"not published of \1", str(error))
    pairs = dict(zip(network.bandwidth.tolist(), found.bandwidth.tolist(), strict=True))
    return ", ".join(
        f"{format_bandwidth(reached)} of {format_bandwidth(rate)}"
        for rate, reached in sorted(pairs.items(), reverse=True)
    )


def picture(entry: Entry) -> str:
    """The network as an SVG."""
    assert entry.layout is not None
    network = load_topology(entry.drawn or entry.spec)
    places = {
        node: (PAD + x * STEP, PAD + y * STEP) for node, (x, y) in entry.layout(network).items()
    }
    speeds = [(speed.bandwidth, speed.latency) for speed in summarize(network).speeds]
    width = max(max(x for x, _ in places.values()) + PAD, 230)
    bottom = max(y for _, y in places.values()) + PAD
    height = bottom + 18 * len(speeds)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="10">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        *cables(network, places, speeds),
        *(node(network, number, at) for number, at in sorted(places.items())),
    ]
    for i, (bandwidth, latency) in enumerate(speeds):
        y = bottom + 18 * i
        words = f"{format_bandwidth(bandwidth)}, {format_time(latency)}"
        lines.append(stroke((12, y), (36, y), i) + f'<text x="42" y="{y + 3.5:.1f}">{words}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def cables(
    network: Topology, places: dict[int, Point], speeds: Sequence[tuple[int, int]]
) -> Iterator[str]:
    """One stroke for all links between two nodes at one speed; slow ones first, below."""
    columns = (network.src, network.dst, network.bandwidth, network.latency)
    joined: Counter[tuple[int, int, int]] = Counter()
    for src, dst, rate, delay in zip(*(column.tolist() for column in columns), strict=True):
        joined[-speeds.index((rate, delay)), min(src, dst), max(src, dst)] += 1
    for rank, a, b in sorted(joined):
        step = wrap(network, a, b)
        if step is None:
            yield stroke(places[a], places[b], -rank)
            continue
        for end, sign in ((a, -1), (b, 1)):  # only the beginnings of what goes round
            x, y = places[end]
            yield stroke((x, y), (x + sign * step[0] * STEP, y + sign * step[1] * STEP), -rank)


def wrap(network: Topology, a: int, b: int) -> Point | None:
    """The way out of the picture for links of a torus that go round; None for others."""
    if not network.name.startswith(("torus", "tpu", "trn")):
        return None
    outwards = ((0.55, 0.0), (0.0, 0.55), (0.4, 0.36))
    stride = 1
    for size, way in zip(network.dimensions, outwards, strict=False):
        if b - a == stride * (size - 1) and size > 2:
            return way
        stride *= size
    return None


def stroke(start: Point, end: Point, rank: int) -> str:
    colour, thick = COLOURS[rank % len(COLOURS)], max(2.4 - 0.7 * rank, 1.0)
    ends = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{thick:.1f}" opacity="0.8"/>'


def node(network: Topology, number: int, at: Point) -> str:
    x, y = at
    name = network.node_name(number)
    if number < network.npus:
        shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{DOT}" fill="#ffffff" stroke="#222222"/>'
    else:
        shape = (
            f'<rect x="{x - DOT:.1f}" y="{y - DOT:.1f}" width="{2 * DOT}" height="{2 * DOT}" '
            'fill="#eeeeee" stroke="#222222"/>'
        )
    return shape + f'<text x="{x:.1f}" y="{y + 3.5:.1f}" text-anchor="middle">{name}</text>'


def files() -> dict[Path, str]:
    """All that is written: the page and the pictures."""
    pictures = {
        FIGURES / f"network-{entry.name}.svg": picture(entry)
        for entry in (*BUILDERS, *MACHINES)
        if entry.layout
    }
    return {PAGE: page(), **pictures}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
