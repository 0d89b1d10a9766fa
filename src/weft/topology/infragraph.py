"""Networks as InfraGraph 3: NPUs and switches are instances, links are edges between them.

Edges have no direction and carry a rate and a latency. All else that a network has, and links that
do not run alike both ways, stand in the annotations of the graph; with them the network that is
read back is the same.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import msgspec

from weft.documents import Document, PlacedError, convert
from weft.errors import InputError
from weft.quoting import quoted
from weft.topology.machines.expansion import MAX_EDGES, MAX_NODES, Graph, expand
from weft.topology.machines.infragraph import Link, records
from weft.topology.machines.readers.infragraph import OWN, is_infragraph, speed
from weft.topology.model import Topology
from weft.topology.schema import WORDS, TopologyFile, build
from weft.topology.schema import Link as OwnLink
from weft.units import exact_bandwidth, exact_latency, format_bandwidth, format_time

_PREFIX = "weft."
_CARRIED = ("weft", "version", "npus", "switches", "links", "columns", "link_count")
"""What instances and edges say of a record."""
_ENDS = {"npu": "xpu", "switch": "asic"}
"""The component of each instance."""

Pair = tuple[int, int]
Speed = tuple[int, int]


def infragraph_of(topology: Topology, record: TopologyFile) -> dict[str, Any]:
    """The plain values of a network's file; `record` is what Weft's own file says of it."""
    if topology.nodes > MAX_NODES or topology.links > 2 * MAX_EDGES:
        raise InputError(
            f"{topology.name} has {topology.nodes} nodes and {topology.links} links; InfraGraph is "
            f"written for up to {MAX_NODES} nodes and {2 * MAX_EDGES} links"
        )
    ways: dict[Pair, dict[bool, list[Speed]]] = defaultdict(lambda: {False: [], True: []})
    for a, b, *way in zip(*(column.tolist() for column in topology.columns), strict=True):
        ways[min(a, b), max(a, b)][a > b].append((way[0], way[1]))
    classes: dict[Speed, list[Pair]] = defaultdict(list)
    own: list[OwnLink] = []
    for pair, both in sorted(ways.items()):
        there = both[False] or both[True]
        total = sum(rate for rate, _ in there), min(delay for _, delay in there)
        classes[total].append(pair)
        if both[False] != both[True] or len(there) > 1 or _read(total) != total:
            for a, b, links in ((*pair, both[False]), (*pair[::-1], both[True])):
                ends = _own(topology, a), _own(topology, b)
                own += [OwnLink(*ends, exact_bandwidth(r), exact_latency(d)) for r, d in links]
    said = {key: value for key, value in msgspec.to_builtins(record).items() if key not in _CARRIED}
    if own:
        said["links"] = msgspec.to_builtins(own)
    attributes = [{"attribute": OWN, "value": "1"}]
    attributes += [
        {"attribute": _PREFIX + key, "value": json.dumps(value)} for key, value in said.items()
    ]
    counts = {"npu": topology.npus} | ({"switch": topology.switches} if topology.switches else {})
    return {
        "name": re.sub(r"[^a-zA-Z0-9-]+", "-", topology.name).strip("-") or "network",
        "description": "a network of Weft",
        "devices": [_device(name, _ENDS[name]) for name in counts],
        "instances": [{"name": n, "device": n, "count": count} for n, count in counts.items()],
        "links": [_link(i, *total) for i, total in enumerate(classes)],
        "edges": [
            edge
            for i, pairs in enumerate(classes.values())
            for edge in _edges(f"link{i}", pairs, topology.npus)
        ],
        "annotations": {"graph": attributes},
    }


def _device(name: str, component: str) -> dict[str, Any]:
    choice = "switch" if name == "switch" else "xpu"
    parts = [{"name": component, "count": 1, "choice": choice, choice: {}}]
    return {"name": name, "components": parts, "links": [], "edges": []}


def _link(number: int, rate: int, delay: int) -> dict[str, Any]:
    bandwidth = {"choice": "gigabytes_per_second", "gigabytes_per_second": _decimal(rate, 10**9)}
    latency = {"choice": "ns", "ns": _decimal(delay, 1000)}
    words = f"{format_bandwidth(rate)}, {format_time(delay)}"
    physical = {"bandwidth": bandwidth, "latency": latency}
    return {"name": f"link{number}", "description": words, "physical": physical}


def _decimal(value: int, unit: int) -> int | float:
    return value // unit if value % unit == 0 else value / unit


def _read(total: Speed) -> tuple[int | None, int | None]:
    """What is read of such a link: numbers of more than 15 digits may not come back."""
    try:
        return speed(convert(_link(0, *total), Link, WORDS), ())
    except PlacedError:
        return None, None


def _own(topology: Topology, node: int) -> int | str:
    return node if node < topology.npus else topology.node_name(node)


def _edges(link: str, pairs: list[Pair], npus: int) -> Iterator[dict[str, Any]]:
    """Edges that stand for these pairs, few where they are regular."""
    kinds: dict[tuple[bool, bool], list[Pair]] = defaultdict(list)
    for a, b in pairs:
        kinds[a < npus, b < npus].append((a, b))
    for some in kinds.values():
        diagonals, blocks = _diagonals(some), _blocks(some)
        few = diagonals if len(diagonals) < len(blocks) else blocks
        scheme = "one2one" if few is diagonals else "many2many"
        for one, other in few:
            ends = _end(one, npus), _end(other, npus)
            yield {"ep1": ends[0], "ep2": ends[1], "scheme": scheme, "link": link}


def _end(nodes: range, npus: int) -> dict[str, str]:
    name, first = ("npu", 0) if nodes[0] < npus else ("switch", npus)
    low, high, step = nodes[0] - first, nodes[-1] - first, nodes.step
    some = f"{low}" if low == high else f"{low}:{high + 1}" + (f":{step}" if step > 1 else "")
    return {"instance": f"{name}[{some}]", "component": f"{_ENDS[name]}[0]"}


def _diagonals(pairs: list[Pair]) -> list[tuple[range, range]]:
    """Runs of pairs equally far apart: (0, 4), (1, 5), (2, 6)."""
    found = []
    for apart, group in groupby(
        sorted(pairs, key=lambda p: (p[1] - p[0], p)), lambda p: p[1] - p[0]
    ):
        found += [
            (run, range(run.start + apart, run.stop + apart, run.step))
            for run in _runs([a for a, _ in group])
        ]
    return found


def _blocks(pairs: list[Pair]) -> list[tuple[range, range]]:
    """Nodes one after the other with the same others: 0 and 1 with 4, 6 and 8."""
    rows: dict[range, list[int]] = defaultdict(list)
    for a, group in groupby(pairs, lambda pair: pair[0]):
        for run in _runs([b for _, b in group]):
            rows[run].append(a)
    return [(some, others) for others, nodes in rows.items() for some in _runs(nodes)]


def _runs(numbers: list[int]) -> list[range]:
    """Ascending numbers as slices."""
    runs: list[range] = []
    for number in numbers:
        last = runs[-1] if runs else None
        if last is not None and len(last) == 1:
            runs[-1] = range(last[0], number + 1, number - last[0])
        elif last is not None and number - last[-1] == last.step:
            runs[-1] = range(last.start, number + 1, last.step)
        else:
            runs.append(range(number, number + 1))
    return runs


def is_own(document: Document) -> bool:
    """Whether Weft wrote it."""
    return is_infragraph(document) and OWN in document.text


def network_of_infragraph(plain: Any, name: str) -> Topology:
    """The network that Weft wrote."""
    infrastructure, at = records(plain)
    graph = expand(infrastructure, at)
    place = ("annotations", "graph")
    said: dict[str, Any] = {}
    marks = infrastructure.annotations.graph if infrastructure.annotations else []
    for i, mark in enumerate(marks):
        if mark.attribute.startswith(_PREFIX):
            try:
                said[mark.attribute.removeprefix(_PREFIX)] = json.loads(mark.value)
            except (ValueError, RecursionError):
                raise PlacedError(
                    f"{mark.attribute} is {quoted(mark.value)}, not JSON", (*place, i)
                ) from None
    version = said.pop("version", None)
    if version != 1:
        raise PlacedError(f"{OWN} is {quoted(version)}; expected 1", place)
    own = said.pop("links", [])
    npus = graph.kinds.count("xpu")
    head = {"weft": "topology", "version": 1, "npus": npus, "switches": len(graph.kinds) - npus}
    try:
        record = convert({"name": name, **said, **head, "links": own}, TopologyFile, WORDS)
        return build(_with_edges(record, graph), name)
    except PlacedError as error:
        raise PlacedError(f"annotations: {error.message}", place) from None


def _with_edges(record: TopologyFile, graph: Graph) -> TopologyFile:
    """The record with the links that edges stand for, but where it has its own."""
    number = {node: i for i, node in enumerate(_npus_first(graph))}
    own = list(record.links or ())
    said = {frozenset((link.src, link.dst)) for link in own}
    speeds = [speed(link, at) for link, at in zip(graph.links, graph.places, strict=True)]
    links = []
    for ends, link in graph.edges.items():
        a, b = (
            i if i < record.npus else f"s{i - record.npus}"
            for i in sorted(number[node] for node in ends)
        )
        if {a, b} in said:
            said.discard(frozenset((a, b)))
            continue
        rate, delay = speeds[link]
        if rate is None or delay is None:
            name = quoted(graph.links[link].name)
            raise PlacedError(f"link {name} has no bandwidth in bytes or bits, or no latency")
        links.append(OwnLink(a, b, exact_bandwidth(rate), exact_latency(delay), both=True))
    if said:
        where = " and ".join(map(str, next(iter(said))))
        raise PlacedError(f"{_PREFIX}links has a link between {where}, which no edge joins")
    record.links = links + own
    return record


def _npus_first(graph: Graph) -> list[int]:
    return sorted(range(len(graph.kinds)), key=lambda node: graph.kinds[node] != "xpu")
