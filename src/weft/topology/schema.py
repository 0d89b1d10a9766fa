"""The topology file as typed records, and what they mean. See ``docs/topology-files.md``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike, NDArray

from weft.documents import PlacedError, Words, placed
from weft.errors import InputError
from weft.quoting import quoted
from weft.topology.checks import check_dimensions
from weft.topology.dimensions import MAX_LINKS, MAX_NPUS
from weft.topology.labels import Labels
from weft.topology.model import Topology
from weft.topology.wiring import Wiring
from weft.units import (
    MAX_BANDWIDTH,
    MAX_LATENCY_PS,
    parse_bandwidth,
    parse_buffer,
    parse_latency,
)

MAX_SWITCHES = MAX_LINKS

Node = Annotated[int, Meta(ge=0, le=MAX_NPUS + MAX_SWITCHES)]
Rate = Annotated[int, Meta(ge=1, le=MAX_BANDWIDTH)]
Delay = Annotated[int, Meta(ge=0, le=MAX_LATENCY_PS)]
Quantity = str | int | float


class Link(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One link, or one each way."""

    src: int | str
    dst: int | str
    bandwidth: Quantity | None = None
    latency: Quantity | None = None
    both: bool = False


class Columns(msgspec.Struct, forbid_unknown_fields=True):
    """All links as columns of plain integers: nodes by number, B/s, ps."""

    src: list[Node]
    dst: list[Node]
    bandwidth: list[Rate] | Rate
    latency: list[Delay] | Delay


class Nodes(msgspec.Struct, forbid_unknown_fields=True):
    """What each node is called in the file that the network was read from: see `Labels`."""

    kinds: list[str]
    names: list[str]
    hosts: list[str]


class TopologyFile(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The whole file; `bandwidth` and `latency` are for links that name none.

    `buffer` is one for all switches or by switch, `multicast` and `adding` for all or those listed.
    """

    weft: Literal["topology"]
    version: Literal[1]
    npus: Annotated[int, Meta(ge=1, le=MAX_NPUS)]
    name: str | None = None
    switches: Annotated[int, Meta(ge=0, le=MAX_SWITCHES)] = 0
    removed: list[Node] = []
    dimensions: list[int] = []
    changes: list[str] = []
    notes: list[str] = []
    nodes: Nodes | None = None
    wiring: Wiring | None = None
    bandwidth: Quantity | None = None
    latency: Quantity | None = None
    buffer: Quantity | dict[str, Quantity] | None = None
    multicast: bool | list[str] = False
    adding: bool | list[str] = False
    link_count: int | None = None
    links: list[Link] | None = None
    columns: Columns | None = None


WORDS = Words(
    {"": TopologyFile, "links": Link, "columns": Columns, "nodes": Nodes, "wiring": Wiring},
    {"links": "link"},
)
_CABLES = ("cables", "src", "dst", "rates", "counts", "delays")


def build(record: TopologyFile, name: str) -> Topology:
    """The network a file describes; `name` is used if the file has none. Raises `PlacedError`."""
    if record.links is not None and record.columns is None:
        table = _from_links(record, record.links)
    elif record.columns is not None and record.links is None:
        table = _from_columns(record.columns)
    else:
        raise PlacedError("the file needs either links or columns, and not both", ("columns",))
    src, dst, _, _, rows = table
    if record.link_count is not None and record.link_count != len(src):
        raise PlacedError(
            f"link_count is {record.link_count}, but {len(src)} links follow; "
            "the file may be cut short",
            ("link_count",),
        )
    _check_ends(record, src, dst, rows)
    name = name if record.name is None else record.name
    with placed("", ("dimensions",)):
        check_dimensions(name, record.dimensions, record.npus)
    topology = Topology.from_links(
        name,
        record.npus,
        *table[:4],
        switches=record.switches,
        dimensions=record.dimensions,
    ).with_switches(
        buffers=_buffers(record), copying=_able(record, "multicast"), adding=_able(record, "adding")
    )
    topology = _remove(topology, record)
    if record.changes:
        topology = replace(topology, changes=tuple(record.changes))
    labels = _labels(record)
    return replace(topology, labels=labels) if labels else topology


def _labels(record: TopologyFile) -> Labels | None:
    nodes, count = record.nodes, record.npus + record.switches
    if nodes is None:
        return None
    for what in Nodes.__struct_fields__:
        there = len(getattr(nodes, what))
        if there != count:
            raise PlacedError(
                f"nodes has {there} {what}, but there are {count} nodes", ("nodes", what)
            )
    if record.wiring is not None:
        _check_wiring(record.wiring)
    columns = tuple(nodes.names), tuple(nodes.kinds), tuple(nodes.hosts), tuple(record.notes)
    return Labels(*columns, record.wiring)


def _check_wiring(wiring: Wiring) -> None:
    """Raise if its columns do not fit together."""
    for columns in (("kinds", "names", "hosts", "ports"), _CABLES):
        number = len(getattr(wiring, columns[0]))
        for what in columns[1:]:
            there = len(getattr(wiring, what))
            if there != number:
                raise PlacedError(
                    f"wiring has {there} {what}, but {number} {columns[0]}", ("wiring", what)
                )
    parts = range(len(wiring.kinds))
    for what in ("adding", "src", "dst"):
        for part in getattr(wiring, what):
            if part not in parts:
                raise PlacedError(
                    f"wiring has part {part} in {what}, but {len(parts)} parts", ("wiring", what)
                )
    if any(a == b for a, b in zip(wiring.src, wiring.dst, strict=True)):
        raise PlacedError("wiring has a cable from a part to itself", ("wiring", "dst"))


def _buffers(record: TopologyFile) -> dict[int, int]:
    """Bytes by node number of a switch."""
    named = record.buffer
    if named is None:
        return {}
    if not isinstance(named, dict):
        size = _buffer(named, ("buffer",))
        return {record.npus + i: size for i in range(record.switches)}
    return {
        _switch(record, name, "buffer", name): _buffer(size, ("buffer", name))
        for name, size in named.items()
    }


def _buffer(value: Quantity, path: tuple[str, ...]) -> int:
    try:
        return parse_buffer(str(value))
    except InputError:
        raise PlacedError(
            f"buffer {quoted(value)} is not a size from 0; write it like 64KiB", path
        ) from None


def _able(record: TopologyFile, what: str) -> list[int]:
    """The node numbers of the switches that copy (`multicast`), or add (`adding`)."""
    named: bool | list[str] = getattr(record, what)
    if isinstance(named, bool):
        return [record.npus + i for i in range(record.switches if named else 0)]
    return [_switch(record, name, what, i) for i, name in enumerate(named)]


def _switch(record: TopologyFile, name: str, key: str, place: str | int) -> int:
    """The node number of a switch written as ``s0``."""
    if not re.fullmatch(r"s[0-9]{1,9}", name) or int(name[1:]) >= record.switches:
        raise PlacedError(f"{key} names {quoted(name)}, but {_nodes(record)}", (key, place))
    return record.npus + int(name[1:])


Numbers = NDArray[np.int64]
Table = tuple[Numbers, Numbers, ArrayLike, ArrayLike, Numbers]


def _from_links(record: TopologyFile, links: list[Link]) -> Table:
    """Columns src, dst, bandwidth, latency, and the item of `links` each row came from."""
    rates: dict[Quantity | None, int] = {}
    delays: dict[Quantity | None, int] = {}
    rows: list[tuple[int, int, int, int, int]] = []
    for i, link in enumerate(links):
        if link.bandwidth not in rates:
            rates[link.bandwidth] = _speed(record, link, i, "bandwidth")
        if link.latency not in delays:
            delays[link.latency] = _speed(record, link, i, "latency")
        src, dst = _node(record, link.src, i, "src"), _node(record, link.dst, i, "dst")
        speed = rates[link.bandwidth], delays[link.latency]
        rows.append((src, dst, *speed, i))
        if link.both:
            rows.append((dst, src, *speed, i))
    table = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    return table[0], table[1], table[2], table[3], table[4]


_EXPECTED: dict[str, tuple[Callable[[str], int], str, str]] = {
    "bandwidth": (parse_bandwidth, "a positive rate", "50GB/s"),
    "latency": (parse_latency, "a time from 0", "0.5us"),
}


def _speed(record: TopologyFile, link: Link, i: int, what: str) -> int:
    """The bandwidth or latency of link i, its own or that of all links that say none."""
    parse, expected, example = _EXPECTED[what]
    own: Quantity | None = getattr(link, what)
    value = getattr(record, what) if own is None else own
    if value is None:
        raise PlacedError(f"link {i} has no {what}; give it one such as {example}", ("links", i))
    try:
        return parse(str(value))
    except InputError:
        raise PlacedError(
            f"link {i} has {what} {quoted(value)}; expected {expected} such as {example}",
            (what,) if own is None else ("links", i, what),
        ) from None


def _node(record: TopologyFile, value: int | str, i: int, end: str) -> int:
    """The number of a node written as a number or, for switches, as ``s0``."""
    if isinstance(value, int):
        number = value
    elif re.fullmatch(r"s[0-9]{1,9}", value):
        number = record.npus + int(value[1:])
    else:
        raise PlacedError(
            f"link {i} has {end} {quoted(value)}; expected a number, or s0 for the first switch",
            ("links", i, end),
        )
    if not 0 <= number < record.npus + record.switches:
        raise PlacedError(f"link {i} has {end} {value}, but {_nodes(record)}", ("links", i, end))
    return number


def _nodes(record: TopologyFile) -> str:
    text = f"NPUs are 0 to {record.npus - 1}"
    if record.switches:
        text += f" and switches s0 to s{record.switches - 1}"
    return text


def _from_columns(columns: Columns) -> Table:
    """The same five columns; each row came from itself."""
    count = len(columns.src)
    for field in ("dst", "bandwidth", "latency"):
        values = getattr(columns, field)
        if isinstance(values, list) and len(values) != count:
            raise PlacedError(
                f"columns have different lengths: {count} in src, {len(values)} in {field}",
                ("columns", field),
            )
    src, dst = (np.array(nodes, dtype=np.int64) for nodes in (columns.src, columns.dst))
    return src, dst, columns.bandwidth, columns.latency, np.arange(count)


def _check_ends(record: TopologyFile, src: Numbers, dst: Numbers, rows: Numbers) -> None:
    def fault(row: int, problem: str) -> PlacedError:
        item = int(rows[row])
        path = ("links", item) if record.columns is None else ("columns", "src", item)
        return PlacedError(f"link {item} {problem}", path)

    nodes, gone = record.npus + record.switches, record.removed
    for row in np.flatnonzero((src >= nodes) | (dst >= nodes))[:1]:
        raise fault(row, f"joins node {max(src[row], dst[row])}, but {_nodes(record)}")
    for row in np.flatnonzero(src == dst)[:1]:
        raise fault(row, f"joins node {src[row]} to itself")
    for row in np.flatnonzero(np.isin(src, gone) | np.isin(dst, gone))[:1]:
        raise fault(row, "joins an NPU that is listed as removed")


def _remove(topology: Topology, record: TopologyFile) -> Topology:
    for npu in record.removed:
        if npu >= record.npus:
            raise PlacedError(
                f"removed NPU {npu} does not exist; NPUs are 0 to {record.npus - 1}", ("removed",)
            )
    with placed("", ("removed",)):
        return topology.without(npus=record.removed)
