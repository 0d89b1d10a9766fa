"""InfraGraph 3 as records: devices with components, instances of devices, edges between them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from weft.documents import PlacedError, Words, convert

At = tuple[str | int, ...]
Count = Annotated[int, Meta(ge=0)]
Number = int | float | None


class Bandwidth(msgspec.Struct):
    """A rate in one of three units; GT/s are those of one lane, of how many is not said."""

    choice: Literal["gigabits_per_second", "gigabytes_per_second", "gigatransfers_per_second"]
    gigabits_per_second: Number = None
    gigabytes_per_second: Number = None
    gigatransfers_per_second: Number = None


class Latency(msgspec.Struct):
    choice: Literal["ms", "us", "ns"]
    ms: Number = None
    us: Number = None
    ns: Number = None


class Physical(msgspec.Struct):
    bandwidth: Bandwidth | None = None
    latency: Latency | None = None


class Link(msgspec.Struct):
    name: str
    physical: Physical | None = None


class Custom(msgspec.Struct):
    type: str


class Component(msgspec.Struct):
    name: str
    count: Count
    choice: Literal["custom", "device", "cpu", "xpu", "nic", "memory", "port", "switch"]
    custom: Custom | None = None

    @property
    def kind(self) -> str:
        return self.custom.type if self.choice == "custom" and self.custom else self.choice


class Endpoint(msgspec.Struct):
    component: str
    instance: str | None = None
    device: str | None = None


class Edge(msgspec.Struct):
    ep1: Endpoint
    ep2: Endpoint
    link: str
    scheme: Literal["one2one", "many2many", "ring"]


class Device(msgspec.Struct):
    name: str
    components: list[Component]
    links: list[Link] = []
    edges: list[Edge] = []


class Instance(msgspec.Struct):
    name: str
    device: str
    count: Count


class Attribute(msgspec.Struct):
    attribute: str
    value: str


class Marked(msgspec.Struct):
    """What is said of some nodes."""

    name: str
    attributes: list[Attribute] = []


class Annotations(msgspec.Struct):
    nodes: list[Marked] = []
    graph: list[Attribute] = []


class Infrastructure(msgspec.Struct):
    devices: list[Device]
    instances: list[Instance]
    links: list[Link] = []
    edges: list[Edge] = []
    name: str = ""
    annotations: Annotations | None = None


class _Within(msgspec.Struct):
    """The form in which annotations stand beside the rest."""

    infrastructure: Infrastructure
    annotations: Annotations | None = None


_ITEMS = ("devices", "components", "links", "edges", "instances", "nodes", "graph", "attributes")
WORDS = Words(items={key: key.removesuffix("s") for key in _ITEMS})


def records(plain: Any) -> tuple[Infrastructure, At]:
    """A file's records, and where in it they begin. A device alone is one instance of itself."""
    if not isinstance(plain, dict):
        raise PlacedError("is not InfraGraph; expected devices, instances, links and edges")
    inner = plain.get("infrastructure")
    top, at = (inner, ("infrastructure",)) if isinstance(inner, dict) else (plain, ())
    _check_version(top, at)
    if at:
        within = convert(plain, _Within, WORDS)
        if within.annotations:
            within.infrastructure.annotations = within.annotations
        return within.infrastructure, at
    if "components" in plain:
        device = convert(plain, Device, WORDS)
        return Infrastructure([device], [Instance(device.name, device.name, 1)]), ("device",)
    return convert(plain, Infrastructure, WORDS), ()


def _check_version(top: dict[str, Any], at: At) -> None:
    """Refuse what was called InfraGraph before edges had two ends."""
    devices = top.get("devices", top.get("device", [top]))
    for place in (top, *(devices if isinstance(devices, list) else ())):
        parts = place.get("components") if isinstance(place, dict) else None
        older = isinstance(place, dict) and "connections" in place
        for part in parts if isinstance(parts, list) else ():
            older |= isinstance(part, dict) and "type" in part and "choice" not in part
        if older:
            raise PlacedError(
                "is an older form of InfraGraph, with connections, or a type for each component; "
                "expected that of version 3, with edges between ep1 and ep2, and a choice",
                at,
                line=None if at else 1,
            )
