"""What a folder of traces says once, in NPU 0's file: demands, network, cost model, origin."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm, Routes
from weft.collective import DEFAULT_ALIGNMENT, Chunks, Collective
from weft.cost import CostModel
from weft.errors import InputError
from weft.formats.chakra._attributes import SINT64_LIST, TEXT, Attribute, delta
from weft.formats.claims import PART_TYPES, checked_parts, checked_range, claimed_chunks
from weft.topology.model import Topology

Columns = dict[str, NDArray[np.int64]]

PART_COLUMNS = [
    *(f"weft.part_{name}" for name in PART_TYPES),
    "weft.part_set_length",
    "weft.part_set_members",
]
_NONE = np.zeros(0, dtype=np.int64)


class Demand(msgspec.Struct):
    """A collective; its group lies in the column ``weft.groups``."""

    kind: str
    ranks: int
    size: int
    chunks_per_share: int = 1
    root: int | None = None
    alignment: int = DEFAULT_ALIGNMENT
    relay: bool = True
    parts: int | None = None  # how many rows of ``weft.part_*`` are its own; None if named
    sets: int = 0  # how many of ``weft.part_set_length``


class Network(msgspec.Struct):
    """A topology but for its links, which are columns."""

    name: str
    npus: int
    switches: int
    removed: list[int]
    buffers: list[tuple[int, int]] = []  # node and bytes of each switch with a limited buffer
    copying: list[int] = []  # switches that copy
    dimensions: list[int] = []  # sizes of the grid on which the NPUs sit


class Cost(msgspec.Struct):
    latency_model: str
    switching: str


class Header(msgspec.Struct):
    """The JSON text of the attribute ``weft.header``."""

    npus: int
    rows: int
    demands: list[Demand]
    checksum: int | None = None
    columns: list[str] = []
    topology: Network | None = None
    routes: Literal["links", "listed"] | None = None
    cost: Cost | None = None
    provenance: dict[str, str | int | float | bool] = {}


def header_attributes(
    algorithm: Algorithm, npus: int, checksum: int, optional: list[str]
) -> list[Attribute]:
    """The attributes that only NPU 0's file has; `optional` names the rows' columns."""
    columns: dict[str, NDArray[np.generic]] = {
        "weft.groups": np.concatenate([np.array(d.group, np.int64) for d in algorithm.demands]),
        **_part_columns(algorithm.demands),
    }
    header = Header(
        npus=npus,
        rows=len(algorithm.transfers),
        checksum=checksum,
        columns=optional,
        demands=[_demand(demand) for demand in algorithm.demands],
        topology=_network(algorithm.topology, columns),
        routes=_routes(algorithm, columns),
        cost=_cost(algorithm.cost),
        provenance=dict(algorithm.provenance),
    )
    return [
        ("weft.header", TEXT, _json(header)),
        *((name, SINT64_LIST, delta(values)) for name, values in columns.items()),
    ]


def _json(header: Header) -> bytes:
    try:
        plain = msgspec.structs.asdict(header) | {
            "demands": [msgspec.structs.asdict(demand) for demand in header.demands],
            "topology": header.topology and msgspec.structs.asdict(header.topology),
            "cost": header.cost and msgspec.structs.asdict(header.cost),
        }
        return json.dumps(plain, separators=(",", ":"), default=_plain_number).encode("ascii")
    except TypeError as error:
        raise InputError(f"the provenance cannot be written as JSON: {error}") from None


def _plain_number(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is not text, a number or a truth value")


def _demand(demand: Collective) -> Demand:
    return Demand(
        demand.kind,
        demand.ranks,
        demand.size,
        demand.chunks_per_share,
        demand.root,
        demand.alignment,
        demand.relay,
        None if demand.parts is None else len(demand.parts),
        0 if demand.parts is None else len(demand.parts.set_offsets) - 1,
    )


def _part_columns(demands: Sequence[Collective]) -> dict[str, NDArray[np.generic]]:
    """What moves in collectives whose name does not say it; nothing if there are none."""
    tables = [demand.parts for demand in demands if demand.parts is not None]
    if not tables:
        return {}
    columns = {
        f"weft.part_{name}": np.concatenate([getattr(table, name) for table in tables])
        for name in PART_TYPES
    }
    lengths = np.concatenate([table.set_sizes for table in tables])
    members = np.concatenate([table.set_members for table in tables])
    return columns | {"weft.part_set_length": lengths, "weft.part_set_members": members}


def _network(topology: Topology | None, columns: dict[str, NDArray[np.generic]]) -> Network | None:
    """Links as columns; the few distinct speeds are listed once."""
    if topology is None:
        return None
    pairs = np.stack([topology.bandwidth, topology.latency], axis=1)
    speeds, which = np.unique(pairs, axis=0, return_inverse=True)
    columns["weft.link_src"] = topology.src
    columns["weft.link_dst"] = topology.dst
    columns["weft.link_speed"] = which.reshape(-1)
    columns["weft.speed_bandwidth"] = speeds[:, 0]
    columns["weft.speed_latency_ps"] = speeds[:, 1]
    removed = sorted(int(npu) for npu in topology.removed)
    buffers = list(topology.buffers.items())
    copying = sorted(topology.copying)
    sizes = list(topology.dimensions)
    counts = topology.npus, topology.switches
    return Network(topology.name, *counts, removed, buffers, copying, sizes)


def _routes(
    algorithm: Algorithm, columns: dict[str, NDArray[np.generic]]
) -> Literal["links", "listed"] | None:
    routes = algorithm.routes
    if routes is None:
        return None
    if algorithm.topology is not None:
        plain = Routes.of_links(algorithm.topology.links)
        if np.array_equal(routes.offsets, plain.offsets) and np.array_equal(
            routes.links, plain.links
        ):
            return "links"
    columns["weft.route_length"] = np.diff(routes.offsets)
    columns["weft.route_links"] = routes.links
    return "listed"


def _cost(cost: CostModel | None) -> Cost | None:
    return None if cost is None else Cost(cost.latency_model, cost.switching)


def parse_header(text: bytes) -> Header:
    """Raise InputError where the text is no header."""
    try:
        return msgspec.convert(json.loads(text), Header)
    except (ValueError, RecursionError) as error:
        raise InputError(f"weft.header is damaged ({error})") from None


def read_demands(header: Header, columns: Columns, limit: int) -> tuple[Collective, ...]:
    """The collectives; at most `limit` chunks in all."""
    members = columns["weft.groups"]
    claims, at, demands = 0, 0, []
    parts = _PartReader(columns)
    for demand in header.demands:
        claims += claimed_chunks(demand.kind, demand.ranks, demand.parts, demand.chunks_per_share)
        group = members[at : at + max(demand.ranks, 0)]
        at += len(group)
        if claims > limit or len(group) != demand.ranks or (group >= header.npus).any():
            raise InputError(f"the group or the chunks of a {demand.kind[:40]} make no sense")
        demands.append(
            Collective(
                demand.kind,
                tuple(group.tolist()),
                demand.size,
                demand.chunks_per_share,
                demand.root,
                demand.alignment,
                demand.relay,
                parts.read(demand),
            )
        )
    if at != len(members) or not demands or not parts.at_end:
        raise InputError("weft.groups or the parts do not fit the demands")
    return tuple(demands)


class _PartReader:
    """Hands out the rows of the ``weft.part_*`` columns, demand by demand."""

    def __init__(self, columns: Columns) -> None:
        self._columns = {name: columns.get(f"weft.part_{name}", _NONE) for name in PART_TYPES}
        self._lengths = columns.get("weft.part_set_length", _NONE)
        self._members = columns.get("weft.part_set_members", _NONE)
        self._row = self._set = self._member = 0

    @property
    def at_end(self) -> bool:
        ends = [len(self._lengths) == self._set, len(self._members) == self._member]
        return all([*ends, *(len(column) == self._row for column in self._columns.values())])

    def read(self, demand: Demand) -> Chunks | None:
        if demand.parts is None:
            return None
        rows = slice(self._row, self._row + max(demand.parts, 0))
        lengths = self._lengths[self._set : self._set + max(demand.sets, 0)]
        taken = {name: column[rows] for name, column in self._columns.items()}
        if any(len(column) != demand.parts for column in taken.values()) or (lengths < 1).any():
            raise InputError(f"the parts of a {demand.kind[:40]} do not fit their columns")
        left = len(self._members) - self._member
        if (lengths > left).any() or int(lengths.sum()) > left:
            raise InputError("weft.part_set_members does not fit weft.part_set_length")
        members = self._members[self._member : self._member + int(lengths.sum())]
        self._row += demand.parts
        self._set += len(lengths)
        self._member += len(members)
        return checked_parts(taken, lengths, members, "weft.part_")


def read_topology(header: Header, columns: Columns, limit: int) -> Topology | None:
    network = header.topology
    if network is None:
        return None
    if network.npus != header.npus or not 0 <= network.switches <= limit:
        raise InputError("the topology's NPUs or switches make no sense")
    speed = columns["weft.link_speed"]
    bandwidth = columns["weft.speed_bandwidth"]
    latency = columns["weft.speed_latency_ps"]
    if len(bandwidth) != len(latency):
        raise InputError("the columns of the links' speeds differ in length")
    checked_range("weft.link_speed", speed, len(bandwidth))
    nodes = network.npus + network.switches
    checked_range("weft.link_src", columns["weft.link_src"], nodes)
    checked_range("weft.link_dst", columns["weft.link_dst"], nodes)
    if len(columns["weft.link_src"]) != len(speed):
        raise InputError("the columns of the links differ in length")
    topology = Topology.from_links(
        network.name,
        network.npus,
        columns["weft.link_src"],
        columns["weft.link_dst"],
        bandwidth[speed],
        latency[speed],
        switches=network.switches,
        dimensions=network.dimensions,
    )
    if not all(0 <= npu < network.npus for npu in network.removed):
        raise InputError("a removed NPU is none of the topology's")
    topology = topology.with_switches(buffers=dict(network.buffers), copying=network.copying)
    return replace(topology, removed=frozenset(network.removed))


def read_routes(header: Header, columns: Columns, topology: Topology | None) -> Routes | None:
    if header.routes is None:
        return None
    if header.routes == "links":
        if topology is None:
            raise InputError("there are routes but no topology")
        return Routes.of_links(topology.links)
    lengths, links = columns["weft.route_length"], columns["weft.route_links"]
    checked_range("weft.route_length", lengths, len(links) + 1)
    checked_range("weft.route_links", links, topology.links if topology else 1 << 31)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    if offsets[-1] != len(links):
        raise InputError("weft.route_length does not fit weft.route_links")
    return Routes(offsets, links.astype(np.int32))


def read_cost(header: Header) -> CostModel | None:
    if header.cost is None:
        return None
    # CostModel itself refuses names it does not know.
    return CostModel(header.cost.latency_model, header.cost.switching)  # type: ignore[arg-type]
