"""All of an algorithm but its rows, as small records and columns of numbers.

Formats that keep an algorithm whole write the records as JSON and the columns as they like.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm, Routes, Timing, Transfers
from weft.collective import DEFAULT_ALIGNMENT, Chunks, Collective
from weft.cost import CostModel
from weft.errors import InputError
from weft.formats.limits import PART_TYPES, checked_parts, checked_range, chunk_total
from weft.quoting import brief, quoted
from weft.ragged import distinct_pairs, offsets_of
from weft.topology.model import Topology

Columns = Mapping[str, NDArray[Any]]

PART_COLUMNS = (*(f"part_{name}" for name in PART_TYPES), "part_set_length", "part_set_members")
LINK_COLUMNS = ("link_src", "link_dst", "link_speed", "speed_bandwidth", "speed_latency_ps")
ROUTE_COLUMNS = ("route_length", "route_links")
_NONE = np.zeros(0, dtype=np.int64)
_NO_NPU = np.zeros(0, dtype=np.int32)
_NO_ROWS = Transfers(_NO_NPU, _NO_NPU, _NO_NPU, np.zeros(0, dtype=np.bool_))
# Called with the name and the place in a file of what is read meanwhile.
Placed = Callable[[str, Sequence[str | int]], AbstractContextManager[None]]


class Demand(msgspec.Struct, forbid_unknown_fields=True):
    """A collective; its group lies in the column ``groups``."""

    kind: str
    ranks: int
    size: int
    chunks_per_share: int = 1
    root: int | None = None
    alignment: int = DEFAULT_ALIGNMENT
    relay: bool = True
    parts: int | None = None  # how many rows of ``part_*`` are its own; None if named
    sets: int = 0  # how many of ``part_set_length``


class Network(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A topology but for its links, which are columns."""

    name: str
    npus: int
    switches: int = 0
    removed: list[int] = []
    buffers: list[tuple[int, int]] = []  # node and bytes of each switch with a limited buffer
    copying: list[int] = []  # switches that copy
    adding: list[int] = []  # switches that add
    dimensions: list[int] = []  # sizes of the grid on which the NPUs sit
    changes: list[str] = []  # in words, how it differs from what its name stands for


class Cost(msgspec.Struct, forbid_unknown_fields=True):
    latency_model: str
    switching: str


class Header(msgspec.Struct, kw_only=True):
    """What an algorithm says besides its rows."""

    demands: list[Demand]
    topology: Network | None = None
    routes: Literal["links", "listed"] | None = None
    cost: Cost | None = None
    provenance: dict[str, str | int | float | bool] = {}

    def column_names(self) -> list[str]:
        """The columns that belong to it."""
        names = ["groups"]
        if any(demand.parts is not None for demand in self.demands):
            names += PART_COLUMNS
        if self.topology is not None:
            names += LINK_COLUMNS
        if self.routes == "listed":
            names += ROUTE_COLUMNS
        return names


def header_of(
    algorithm: Algorithm, routes: Routes
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The fields of an algorithm's `Header` and its columns, with `routes` as those of its rows."""
    columns: dict[str, NDArray[Any]] = {
        "groups": np.concatenate([np.array(d.group, np.int32) for d in algorithm.demands]),
        **_part_columns(algorithm.demands),
    }
    topology, cost = algorithm.topology, algorithm.cost
    if topology is not None:
        columns |= link_columns(topology)
    fields = {
        "demands": [_demand(demand) for demand in algorithm.demands],
        "topology": None if topology is None else network_of(topology),
        "routes": _routes(routes, topology, columns),
        "cost": None if cost is None else Cost(cost.latency_model, cost.switching),
        "provenance": {name: plain(value) for name, value in algorithm.provenance.items()},
    }
    return fields, columns


def header_json(header: Header) -> bytes:
    """A header as JSON, in ASCII."""
    return json.dumps(msgspec.to_builtins(header, enc_hook=plain), separators=(",", ":")).encode(
        "ascii"
    )


def plain(value: Any) -> str | int | float | bool:
    """A value of Python's own that JSON can hold, from one that may be NumPy's."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InputError(f"the provenance cannot be written as JSON: {quoted(value)} is no plain value")


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
        f"part_{name}": np.concatenate([getattr(table, name) for table in tables])
        for name in PART_TYPES
    }
    lengths = np.concatenate([table.set_sizes for table in tables])
    members = np.concatenate([table.set_members for table in tables])
    return columns | {"part_set_length": lengths, "part_set_members": members}


def network_of(topology: Topology) -> Network:
    """A topology's record."""
    return Network(
        *(topology.name, topology.npus, topology.switches),
        removed=sorted(int(npu) for npu in topology.removed),
        buffers=list(topology.buffers.items()),
        copying=sorted(topology.copying),
        adding=sorted(topology.adding),
        dimensions=list(topology.dimensions),
        changes=list(topology.changes),
    )


def link_columns(topology: Topology) -> dict[str, NDArray[Any]]:
    """Links as columns; the few distinct speeds are listed once, in ascending order."""
    bandwidth, latency, which = distinct_pairs(topology.bandwidth, topology.latency)
    number = np.min_scalar_type(max(len(bandwidth) - 1, 0))
    return {
        "link_src": topology.src,
        "link_dst": topology.dst,
        "link_speed": which.astype(number),
        "speed_bandwidth": bandwidth,
        "speed_latency_ps": latency,
    }


def _routes(
    routes: Routes, topology: Topology | None, columns: dict[str, NDArray[Any]]
) -> Literal["links", "listed"] | None:
    if not len(routes):
        return None
    if topology is not None and routes.are_links and len(routes) == topology.links:
        return "links"
    columns["route_length"] = np.diff(routes.offsets)
    columns["route_links"] = routes.links
    return "listed"


def read_header(
    header: Header,
    columns: Columns,
    topology: Topology | None,
    npus: int,
    limit: int,
    *,
    rows: Transfers = _NO_ROWS,
    placed: Placed = lambda _name, _path: nullcontext(),
) -> Algorithm:
    """The algorithm of a header and its rows; `limit` chunks at most, among `npus` NPUs.

    An error raised within ``placed(name, path)`` is about that part of the header.
    """
    demands = _read_demands(header, columns, npus, limit, placed)
    with placed("routes", ("routes",)):
        routes = _read_routes(header, columns, topology)
    cost = None
    if header.cost is not None:
        with placed("cost", ("cost",)):  # CostModel itself refuses names it does not know
            cost = CostModel(header.cost.latency_model, header.cost.switching)  # type: ignore[arg-type]
    if header.routes is not None and cost is None:
        raise InputError("a timed algorithm needs a topology, routes and a cost model")
    timing = None
    if topology is not None and cost is not None and (header.routes or not rows.timed):
        timing = Timing(topology, cost, routes)
    return Algorithm(demands, rows, timing, MappingProxyType(header.provenance))


def _read_demands(
    header: Header, columns: Columns, npus: int, limit: int, placed: Placed
) -> tuple[Collective, ...]:
    members = columns["groups"]
    chunks, at, demands = 0, 0, []
    parts = _PartReader(columns)
    for number, demand in enumerate(header.demands):
        with placed(f"collective {number}", ("demands", number)):
            chunks += chunk_total(demand.kind, demand.ranks, demand.parts, demand.chunks_per_share)
            group = members[at : at + max(demand.ranks, 0)]
            at += len(group)
            if chunks > limit:
                raise InputError(f"{chunks} chunks make no sense: far more than the file can move")
            if len(group) != demand.ranks or (group >= npus).any():
                raise InputError(f"the group of a {brief(demand.kind)} makes no sense")
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
    if at != len(members) or not parts.at_end:
        raise InputError("the groups or the parts do not fit the demands")
    return tuple(demands)


class _PartReader:
    """Hands out the rows of the ``part_*`` columns, demand by demand."""

    def __init__(self, columns: Columns) -> None:
        self._columns = {name: columns.get(f"part_{name}", _NONE) for name in PART_TYPES}
        self._lengths = columns.get("part_set_length", _NONE)
        self._members = columns.get("part_set_members", _NONE)
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
            raise InputError(f"the parts of a {brief(demand.kind)} do not fit their columns")
        left = len(self._members) - self._member
        if (lengths > left).any() or int(lengths.sum()) > left:
            raise InputError("part_set_members does not fit part_set_length")
        members = self._members[self._member : self._member + int(lengths.sum())]
        self._row += demand.parts
        self._set += len(lengths)
        self._member += len(members)
        return checked_parts(taken, lengths, members, "part_")


def read_network(network: Network, columns: Columns, limit: int) -> Topology:
    """The topology of a record and its columns; at most `limit` NPUs and switches each."""
    if not (1 <= network.npus <= limit and 0 <= network.switches <= limit):
        raise InputError(f"{network.npus} NPUs and {network.switches} switches make no sense")
    speed = columns["link_speed"]
    bandwidth, latency = columns["speed_bandwidth"], columns["speed_latency_ps"]
    if len(bandwidth) != len(latency):
        raise InputError("the columns of the links' speeds differ in length")
    checked_range("link_speed", speed, len(bandwidth))
    nodes = network.npus + network.switches
    checked_range("link_src", columns["link_src"], nodes)
    checked_range("link_dst", columns["link_dst"], nodes)
    if len(columns["link_src"]) != len(speed):
        raise InputError("the columns of the links differ in length")
    topology = Topology.from_links(
        network.name,
        network.npus,
        columns["link_src"],
        columns["link_dst"],
        bandwidth[speed],
        latency[speed],
        switches=network.switches,
        dimensions=network.dimensions,
    )
    if not all(0 <= npu < network.npus for npu in network.removed):
        raise InputError("a removed NPU is none of the topology's")
    topology = topology.with_switches(
        buffers=dict(network.buffers), copying=network.copying, adding=network.adding
    )
    return replace(topology, removed=frozenset(network.removed), changes=tuple(network.changes))


def _read_routes(header: Header, columns: Columns, topology: Topology | None) -> Routes:
    """The routes; none if the rows have no times, or know theirs."""
    if header.routes is None:
        return Routes.of_links(0)
    if header.routes == "listed":
        lengths, links = columns["route_length"], columns["route_links"]
        checked_range("route_length", lengths, len(links) + 1)
        offsets = offsets_of(lengths)
        if offsets[-1] != len(links):
            raise InputError("route_length does not fit route_links")
    if topology is None:
        raise InputError("there are routes but no topology")
    if header.routes == "links":
        return Routes.of_links(topology.links)
    checked_range("route_links", links, topology.links)
    return Routes(offsets, links.astype(np.int32))
