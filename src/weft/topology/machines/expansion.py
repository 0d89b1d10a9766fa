"""The graph that the counts, slices and schemes of an InfraGraph file stand for.

Each instance of a device has a copy of its components; edges join components by name and slice,
within a device and between instances. The graph has a node for each component, in the order of the
file, and at most one edge between two nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from math import prod

from weft.documents import PlacedError
from weft.quoting import quoted
from weft.topology.machines.infragraph import (
    At,
    Component,
    Device,
    Edge,
    Endpoint,
    Infrastructure,
    Link,
)

MAX_NODES = MAX_EDGES = 1 << 18
MAX_DEPTH = 16
"""Devices within devices."""
_ELEMENT = re.compile(r"([^\[\].]+)(?:\[([^\[\]]*)\])?")
_INDEX = re.compile(r"\s*(-?[0-9]{1,9})?\s*")

Nodes = tuple[range, ...]
"""All sums of one number of each, the first varying slowest: no list of them is made."""


@dataclass(frozen=True)
class _Slot:
    """Where the copies of a component are within its device: each has so many nodes."""

    component: Component
    first: int
    each: int
    inner: _Device | None

    @property
    def size(self) -> int:
        return self.component.count * self.each


@dataclass(frozen=True)
class _Device:
    record: Device
    at: At
    slots: dict[str, _Slot]
    size: int
    edges: int
    """Those of one copy of it, with all within."""
    depth: int


@dataclass
class Graph:
    """The nodes and edges that a file stands for."""

    kinds: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """Within the instance, such as ``xpu.3``."""
    hosts: list[str] = field(default_factory=list)
    """The copy of an instance, such as ``host.0``."""
    links: list[Link] = field(default_factory=list)
    places: list[At] = field(default_factory=list)
    """Where in the file each link is."""
    edges: dict[tuple[int, int], int] = field(default_factory=dict)
    """The link of each two nodes that an edge joins, the lower one first."""
    twice: list[tuple[int, int]] = field(default_factory=list)
    """Nodes that several edges join with links that differ: the last counts."""

    def join(self, a: int, b: int, link: int) -> None:
        ends = (a, b) if a < b else (b, a)
        if self.edges.setdefault(ends, link) != link:
            self.twice.append(ends)
            self.edges[ends] = link


def expand(record: Infrastructure, at: At) -> Graph:
    """The graph; nothing is made before it is known to be small enough."""
    return _Expansion(record, at).graph()


class _Expansion:
    """The devices and instances of a file, laid out one after the other."""

    def __init__(self, record: Infrastructure, at: At) -> None:
        alone = at == ("device",)
        self.record, self.at = record, () if alone else at
        self.devices: dict[str, Device] = {}
        self.places: dict[str, At] = {}
        for i, device in enumerate(record.devices):
            place = () if alone else (*at, "devices", i)
            if device.name in self.devices:
                raise PlacedError(f"a second device is called {quoted(device.name)}", place)
            self.devices[device.name], self.places[device.name] = device, place
        self.made: dict[str, _Device] = {}
        self.instances: dict[str, tuple[_Device, int, int]] = {}
        """The device of each instance, its first node and how many there are."""

    def graph(self) -> Graph:
        size = edges = 0
        for i, instance in enumerate(self.record.instances):
            at = (*self.at, "instances", i)
            if instance.name in self.instances:
                raise PlacedError(f"a second instance is called {quoted(instance.name)}", at)
            device = self.device(instance.device, at, ())
            self.instances[instance.name] = device, size, instance.count
            size += instance.count * device.size
            edges += instance.count * device.edges
            self.check(size, edges, at)
        between = []
        for i, edge in enumerate(self.record.edges):
            at = (*self.at, "edges", i)
            one, other = self.nodes(edge.ep1, at), self.nodes(edge.ep2, at)
            edges += _number(edge, one, other, at)
            self.check(size, edges, at)
            between.append((edge, one, other, at))
        graph = Graph()
        for name, (device, first, count) in self.instances.items():
            if not device.size:
                continue
            for copy in range(count):
                self.nodes_of(graph, device, f"{name}.{copy}", "")
            self.edges_of(graph, device, [first + copy * device.size for copy in range(count)])
        links = _Links(graph, self.record.links, (*self.at, "links"))
        for edge, one, other, at in between:
            link = links.number(edge.link, at)
            for a, b in _pairs(edge, one, other):
                graph.join(a, b, link)
        return graph

    def check(self, nodes: int, edges: int, at: At) -> None:
        """Refuse what is too much before any of it is made."""
        for what, number, most in (("nodes", nodes, MAX_NODES), ("edges", edges, MAX_EDGES)):
            if number > most:
                raise PlacedError(
                    f"with this the graph has {number:.6g} {what}; expected up to {most}", at
                )

    def device(self, name: str, at: At, above: tuple[str, ...]) -> _Device:
        """The layout of a device."""
        if name in above or len(above) > MAX_DEPTH:
            why = "contains itself" if name in above else f"is more than {MAX_DEPTH} devices deep"
            raise PlacedError(f"device {quoted(name)} {why}", at)
        if name not in self.devices:
            raise PlacedError(f"device {quoted(name)} is not among the devices of the file", at)
        if name in self.made:
            return self.made[name]
        record, place = self.devices[name], self.places[name]
        slots: dict[str, _Slot] = {}
        size = edges = depth = 0
        for i, component in enumerate(record.components):
            here = (*place, "components", i)
            if component.name in slots:
                raise PlacedError(f"a second component is called {quoted(component.name)}", here)
            inner = None
            if component.choice == "device":
                inner = self.device(component.name, here, (*above, name))
                edges += component.count * inner.edges
                depth = max(depth, inner.depth + 1)
            slot = _Slot(component, size, inner.size if inner else 1, inner)
            slots[component.name] = slot
            size += slot.size
            self.check(size, edges, here)
        made = _Device(record, place, slots, size, edges, depth)
        for i, edge in enumerate(record.edges):
            here = (*place, "edges", i)
            edges += _number(edge, *_ends(made, edge, here), here)
            self.check(size, edges, here)
        self.made[name] = _Device(record, place, slots, size, edges, depth)
        return self.made[name]

    def nodes(self, end: Endpoint, at: At) -> Nodes:
        """The nodes at an end of an edge between instances."""
        if end.instance is None:
            raise PlacedError("an end of the edge has no instance", at)
        name, text = _element(end.instance.split(".", 1)[0], at)
        if name not in self.instances:
            raise PlacedError(f"instance {quoted(name)} is not in the file", at)
        device, first, count = self.instances[name]
        copies = _times(_slice(text, count, name, at), device.size, first)
        return (copies, *_within(device, end.component, None, at))

    def nodes_of(self, graph: Graph, device: _Device, host: str, prefix: str) -> None:
        """The nodes of one copy of a device."""
        for name, slot in device.slots.items():
            for i in range(slot.component.count if slot.each else 0):
                if slot.inner is not None:
                    self.nodes_of(graph, slot.inner, host, f"{prefix}{name}.{i}.")
                else:
                    graph.kinds.append(slot.component.kind)
                    graph.names.append(f"{prefix}{name}.{i}")
                    graph.hosts.append(host)

    def edges_of(self, graph: Graph, device: _Device, copies: list[int]) -> None:
        """The edges of all copies of a device, which begin at these nodes."""
        if not copies or not device.edges:
            return
        for slot in device.slots.values():
            if slot.inner is not None:
                step = range(slot.first, slot.first + slot.size, slot.each or 1)
                self.edges_of(graph, slot.inner, [copy + i for copy in copies for i in step])
        links = _Links(graph, device.record.links, (*device.at, "links"))
        for i, edge in enumerate(device.record.edges):
            at = (*device.at, "edges", i)
            link = links.number(edge.link, at)
            for a, b in _pairs(edge, *_ends(device, edge, at)):
                for copy in copies:
                    graph.join(copy + a, copy + b, link)


class _Links:
    """The links that may be named at one place of the file."""

    def __init__(self, graph: Graph, links: list[Link], at: At) -> None:
        self.graph, self.at = graph, at
        self.known = {link.name: i for i, link in enumerate(links)}
        self.links = links
        self.used: dict[str, int] = {}

    def number(self, name: str, at: At) -> int:
        """The number of a link in the graph, where it is put when it is first used."""
        if name not in self.known:
            raise PlacedError(f"link {quoted(name)} is not among the links beside it", at)
        if name not in self.used:
            self.used[name] = len(self.graph.links)
            self.graph.links.append(self.links[self.known[name]])
            self.graph.places.append((*self.at, self.known[name]))
        return self.used[name]


def _ends(device: _Device, edge: Edge, at: At) -> tuple[Nodes, Nodes]:
    """The nodes at the ends of an edge within one copy of a device."""
    one, other = (_within(device, end.component, end.device, at) for end in (edge.ep1, edge.ep2))
    return one, other


def _within(device: _Device, text: str, prefix: str | None, at: At) -> Nodes:
    """The nodes of one copy of a device that an end of an edge names, such as ``cx5[0].port``."""
    found: Nodes = ()
    words = (f"{prefix}.{text}" if prefix else text).split(".")
    if len(words) > MAX_DEPTH:
        raise PlacedError(f"{quoted(text)} is more than {MAX_DEPTH} devices deep", at)
    inner: _Device | None = device
    for i, word in enumerate(words):
        name, indices = _element(word, at)
        if inner is None:
            raise PlacedError(f"{quoted(words[i - 1])} has no components", at)
        if i == 0 and len(words) > 1 and name == inner.record.name and name not in inner.slots:
            continue
        slot = inner.slots.get(name)
        if slot is None:
            raise PlacedError(
                f"device {quoted(inner.record.name)} has no component {quoted(name)}", at
            )
        some = _slice(indices, slot.component.count, name, at)
        found = (*found, _times(some, slot.each, slot.first))
        inner = slot.inner
    if inner is not None:
        raise PlacedError(f"{quoted(text)} is a device; expected a component of it", at)
    return found


def _times(some: range, each: int, first: int) -> range:
    """Where these copies of so many nodes begin."""
    step = max(each, 1)
    return range(first + some.start * step, first + some.stop * step, some.step * step)


def _all(nodes: Nodes) -> Iterator[int]:
    if not nodes:
        yield 0
        return
    for a in nodes[0]:
        for b in _all(nodes[1:]):
            yield a + b


def _size(nodes: Nodes) -> int:
    return prod(map(len, nodes))


def _element(text: str, at: At) -> tuple[str, str]:
    """A name, and what is in its brackets: empty for all."""
    match = _ELEMENT.fullmatch(text.strip())
    if match is None:
        raise PlacedError(f"{quoted(text)} is no name with a slice; write it like xpu[0:2]", at)
    return match[1].strip(), match[2] or ""


def _slice(text: str, count: int, name: str, at: At) -> range:
    """What a slice of Python takes of so many."""
    numbers = []
    for part in text.split(":"):
        match = _INDEX.fullmatch(part)
        if match is None:
            raise PlacedError(
                f"{quoted(name)} has slice {quoted(text)}; expected one such as 0:2", at
            )
        numbers.append(None if match[1] is None else int(match[1]))
    if len(numbers) > 3 or (len(numbers) == 3 and numbers[2] == 0):
        raise PlacedError(
            f"{quoted(name)} has slice {quoted(text)}; expected one such as 0:8:2", at
        )
    if len(numbers) > 1:
        found = range(*slice(*numbers).indices(count))
    elif numbers[0] is None:
        found = range(count)
    else:
        index = numbers[0] + count * (numbers[0] < 0)
        found = range(index, index + 1) if 0 <= index < count else range(0)
    if not found:
        raise PlacedError(f"{quoted(name)}[{text}] is none of the {count} there are", at)
    return found


def _number(edge: Edge, one: Nodes, other: Nodes, at: At) -> int:
    """How many edges it stands for, or some more."""
    if edge.scheme == "ring":
        if one != other:
            raise PlacedError(
                "a ring has ends that differ; expected the same components as ep1 and ep2", at
            )
        return _size(one)
    sizes = _size(one), _size(other)
    return min(sizes) if edge.scheme == "one2one" else prod(sizes)


def _pairs(edge: Edge, one: Nodes, other: Nodes) -> Iterator[tuple[int, int]]:
    """The nodes that an edge joins; none to itself."""
    if edge.scheme == "many2many":
        pairs: Iterator[tuple[int, int]] = product(_all(one), _all(other))
    elif edge.scheme == "one2one":
        pairs = zip(_all(one), _all(other), strict=False)
    else:
        ring = list(_all(one))
        pairs = zip(ring, [*ring[1:], ring[0]], strict=True)
    return ((a, b) for a, b in pairs if a != b)
