"""InfraGraph 3: infrastructures and single devices, in YAML or JSON."""

from __future__ import annotations

import math
import re
from collections import Counter
from decimal import Decimal

from weft.documents import Document, PlacedError
from weft.quoting import counted, quoted
from weft.topology.labels import Wishes
from weft.topology.machines.expansion import Graph, expand
from weft.topology.machines.infragraph import (
    At,
    Bandwidth,
    Infrastructure,
    Latency,
    Link,
    Physical,
    records,
)
from weft.topology.machines.machine import Cable, Machine, Part
from weft.topology.machines.reader import READERS, Reader
from weft.topology.rates import Rate
from weft.units import MAX_BANDWIDTH, MAX_LATENCY_PS

TITLE = "an InfraGraph file"
OWN = "weft.version"
"""The mark of networks that Weft wrote."""
_NEAR = 65536  # characters that are looked at
_COMPONENTS = re.compile(r"\bcomponents[\"']?\s*:\s*(?:-\s|\[)")
_INSTANCES = re.compile(r"^[ \t]*instances\s*:", re.MULTILINE)
_CONNECTIONS = re.compile(r"^[ \t]*connections\s*:\s*-\s", re.MULTILINE)
_BYTES = {"gigabits_per_second": 10**9 // 8, "gigabytes_per_second": 10**9}
_PICOSECONDS = {"ms": 10**9, "us": 10**6, "ns": 10**3}


def is_infragraph(document: Document) -> bool:
    """Whether it is one, of Weft's own or not."""
    text = document.text
    head = text[:_NEAR]
    older = _INSTANCES.search(head) and _CONNECTIONS.search(head)
    first = text.find("components")  # long annotations may come before it
    found = first >= 0 and _COMPONENTS.search(text, first, first + _NEAR)
    return bool(found or older)


def recognise(document: Document) -> bool:
    return is_infragraph(document) and OWN not in document.text


def read(document: Document, wishes: Wishes) -> Machine:  # noqa: ARG001 - rates come later
    record, at = records(document.plain())
    graph = expand(record, at)
    machine = Machine(document.path.stem, TITLE)
    one = len(set(graph.hosts)) == 1
    for kind, name, host in zip(graph.kinds, graph.names, graph.hosts, strict=True):
        machine.add(Part("gpu" if kind == "xpu" else kind.lower(), name, "" if one else host))
    if "xpu" not in graph.kinds:
        raise PlacedError("no component with choice xpu is in it, so there is no NPU", at, line=1)
    speeds = [speed(link, place) for link, place in zip(graph.links, graph.places, strict=True)]
    for (a, b), link in graph.edges.items():
        rate, latency = speeds[link]
        kind = " ".join(graph.links[link].name.split()).lower()
        both = None if rate is None else Rate(rate, rate)
        machine.cables += [Cable(kind, x, y, both, latency=latency) for x, y in ((a, b), (b, a))]
    machine.asked = _asked(machine)
    _doubt(machine, graph)
    return _ranked(machine, record, graph)


def speed(link: Link, at: At) -> tuple[int | None, int | None]:
    """B/s and ps of a link; None for what it does not say."""
    physical = link.physical or Physical()
    rate = _quantity(link, physical.bandwidth, _BYTES, (1, MAX_BANDWIDTH, "B/s"), at)
    delay = _quantity(link, physical.latency, _PICOSECONDS, (0, MAX_LATENCY_PS, "ps"), at)
    return rate, delay


def _quantity(
    link: Link,
    said: Bandwidth | Latency | None,
    units: dict[str, int],
    bounds: tuple[int, int, str],
    at: At,
) -> int | None:
    """What a link says in one of these units; None if nothing, or in a unit that does not tell."""
    value = None if said is None else getattr(said, said.choice)
    if said is None or value is None or said.choice not in units:
        return None
    number = _whole(value, units[said.choice])
    least, most, unit = bounds
    if number is None or not least <= number <= most:
        raise PlacedError(
            f"link {quoted(link.name)} has {said.choice} {quoted(value)}; expected {least} to "
            f"{most} {unit}",
            at,
        )
    return number


def _whole(value: float, unit: int) -> int | None:
    """So many units of a decimal number, rounded; None if it is none, or huge."""
    if not math.isfinite(value) or abs(value) > 1e18:
        return None
    return round(Decimal(repr(value)) * unit)


def _asked(machine: Machine) -> frozenset[str]:
    """Kinds of links without a rate that lead from one NPU to another, not into a dead end."""
    near: dict[int, set[int]] = {}
    for cable in machine.cables:
        near.setdefault(cable.src, set()).add(cable.dst)
    npus = set(machine.of_kind("gpu"))
    waiting = list(near)
    gone = set()
    while waiting:
        part = waiting.pop()
        if part not in npus and part not in gone and len(near[part]) < 2:
            gone.add(part)
            for other in near[part]:
                near[other].discard(part)
                waiting.append(other)
    return frozenset(
        cable.kind
        for cable in machine.cables
        if cable.rate is None and not {cable.src, cable.dst} & gone
    )


def _doubt(machine: Machine, graph: Graph) -> None:
    """Say where edges contradict each other."""
    if graph.twice:
        a, b = (machine.parts[part].described for part in graph.twice[0])
        number = len(set(graph.twice))
        machine.doubts.append(
            f"{counted({'pair': number})} joined by edges with links that differ, such as {a} and "
            f"{b}; the last edge counts"
        )


def _ranked(machine: Machine, record: Infrastructure, graph: Graph) -> Machine:
    """GPUs in the order of the ranks that annotations give them, if all have one."""
    ranks: dict[str, str] = {}
    for mark in record.annotations.nodes if record.annotations else ():
        for attribute in mark.attributes:
            if attribute.attribute == "rank":
                ranks[mark.name] = attribute.value
    if not ranks:
        return machine
    npus = machine.of_kind("gpu")
    said = [ranks.get(f"{graph.hosts[npu]}.{graph.names[npu]}") for npu in npus]
    numbers = [int(text) for text in said if text is not None and re.fullmatch("[0-9]{1,9}", text)]
    if len(numbers) < len(npus):
        machine.notes.append("not every xpu has a rank; NPUs are in the order of the file")
        return machine
    if len(set(numbers)) < len(npus):
        twice = Counter(numbers).most_common(1)[0][0]
        raise PlacedError(f"rank {twice} is that of two xpus", ("annotations", "nodes"))
    order = [npu for _, npu in sorted(zip(numbers, npus, strict=True))]
    moved = dict(zip(order, npus, strict=True))
    parts = list(machine.parts)
    for old, new in moved.items():
        machine.parts[new] = parts[old]
    machine.cables = [
        Cable(c.kind, moved.get(c.src, c.src), moved.get(c.dst, c.dst), c.rate, latency=c.latency)
        for c in machine.cables
    ]
    return machine


READERS.add("infragraph", Reader(name="infragraph", title=TITLE, recognise=recognise, read=read))
