"""An algorithm as one JSON document: collectives, columns of transfers, perhaps a network."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from weft.algorithm import COLUMN_TYPES, Algorithm, Routes, Transfers
from weft.collective import Chunks, Collective
from weft.cost import CostModel
from weft.documents import (
    Document,
    PlacedError,
    Words,
    convert,
    load_json,
    new_file,
    placed,
    read_document,
)
from weft.errors import InputError
from weft.formats.imported import Hints, Imported
from weft.formats.limits import (
    PART_TYPES,
    check_npu_numbers,
    checked_parts,
    checked_range,
    chunk_total,
    count_limit,
)
from weft.formats.table import _records as records
from weft.quoting import brief, quoted
from weft.topology.model import Topology

Int64 = NDArray[np.int64]

MOST_BYTES = 4 << 30
# What a column of rows is called in the file, where it is not its own name.
NAMES = {"start": "start_ps", "end": "end_ps"}
_WORDS = Words(
    {
        "": records.TableRecord,
        "collectives": records.CollectiveRecord,
        "parts": records.Parts,
        "transfers": records.TransferColumns,
        "topology": records.TopologyRecord,
        "links": records.Links,
        "routes": records.RouteColumns,
        "cost": records.CostRecord,
    },
    {"collectives": "collective"},
)


def recognise_json(path: Path, head: bytes) -> bool:
    """Whether a file is a JSON object that may be such a table."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return text.startswith(b"{") and (b'"weft_table"' in text or path.suffix.lower() == ".json")


def write_json(algorithm: Algorithm, path: Path) -> None:
    """Write all of an algorithm; the file appears whole or not at all."""
    rows = algorithm.transfers
    columns = {NAMES.get(name, name): column.tolist() for name, column in rows.columns().items()}
    if rows.dep_offsets is not None:
        del columns["dep_offsets"]
        columns["dep_count"] = np.diff(rows.dep_offsets).tolist()
    document = records.TableRecord(
        weft_table=records.VERSION,
        collectives=[_collective_record(demand) for demand in algorithm.demands],
        transfers=records.TransferColumns(**columns),
        topology=_topology_record(algorithm.topology),
        routes=_route_record(algorithm.routes),
        cost=_cost_record(algorithm.cost),
        provenance={name: _plain(value) for name, value in algorithm.provenance.items()},
    )
    new_file(path, msgspec.json.encode(document, enc_hook=_plain) + b"\n")


def _finite(value: str | float) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _plain(value: Any) -> Any:
    """A value of Python's own that JSON can hold."""
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, str | int | float | bool) or not _finite(value):
        raise InputError(
            f"the provenance cannot be written as JSON: {quoted(value)} is no plain value"
        )
    return value


def _cost_record(cost: CostModel | None) -> records.CostRecord | None:
    return None if cost is None else records.CostRecord(cost.latency_model, cost.switching)


def _part_record(parts: Chunks | None) -> records.Parts | None:
    if parts is None:
        return None
    return records.Parts(
        **{name: getattr(parts, name).tolist() for name in PART_TYPES},
        sets=[parts.members(number).tolist() for number in range(len(parts.set_sizes))],
    )


def _collective_record(demand: Collective) -> records.CollectiveRecord:
    return records.CollectiveRecord(
        demand.kind,
        list(demand.group),
        demand.size,
        demand.chunks_per_share,
        demand.root,
        demand.alignment,
        demand.relay,
        _part_record(demand.parts),
    )


def _topology_record(topology: Topology | None) -> records.TopologyRecord | None:
    if topology is None:
        return None
    return records.TopologyRecord(
        topology.name,
        topology.npus,
        records.Links(
            topology.src.tolist(),
            topology.dst.tolist(),
            topology.bandwidth.tolist(),
            topology.latency.tolist(),
        ),
        topology.switches,
        sorted(int(npu) for npu in topology.removed),
        [(int(switch), int(size)) for switch, size in topology.buffers.items()],
        sorted(int(switch) for switch in topology.copying),
        list(topology.dimensions),
        list(topology.changes),
    )


def _route_record(routes: Routes | None) -> records.RouteColumns | None:
    if routes is None:
        return None
    return records.RouteColumns(np.diff(routes.offsets).tolist(), routes.links.tolist())


def read_json(path: Path, hints: Hints) -> Imported:
    """Read what `write_json` wrote, or what somebody wrote by the same rules."""
    algorithm = read_document(path, "table", _algorithm, MOST_BYTES)
    hints.check(path, algorithm.demands)
    return Imported(algorithm, path)


def _algorithm(document: Document) -> Algorithm:
    plain = load_json(document.data)
    if not isinstance(plain, dict) or "weft_table" not in plain:
        raise PlacedError('is not a table of Weft: expected an object with "weft_table"')
    if plain["weft_table"] != records.VERSION:
        raise PlacedError(
            f"version {brief(plain['weft_table'])} of the table; this Weft reads version "
            f"{records.VERSION}",
            ("weft_table",),
        )
    record = convert(plain, records.TableRecord, _WORDS)
    limit = count_limit(len(document.data))
    demands = _demands(record.collectives, limit)
    with placed("topology", ("topology",)):
        topology = None if record.topology is None else _topology(record.topology, limit)
    with placed("routes", ("routes",)):
        routes = None if record.routes is None else _routes(record.routes, topology)
    with placed("cost", ("cost",)):
        cost = None if record.cost is None else _cost(record.cost)
    with placed("transfers", ("transfers",)):
        rows = _transfers(record.transfers)
        provenance = MappingProxyType(record.provenance)
        algorithm = Algorithm(demands, rows, topology, routes, cost, provenance)
        check_npu_numbers(algorithm, len(document.data))
        return algorithm


def _numbers(name: str, values: Iterable[int], kind: type[np.generic] = np.int64) -> NDArray[Any]:
    """A column of whole numbers, all of which its type can hold."""
    try:
        return np.array(values, dtype=kind)
    except OverflowError:
        raise InputError(f"{name} has a number that is too large") from None


def _demands(found: list[records.CollectiveRecord], limit: int) -> tuple[Collective, ...]:
    claims, demands = 0, []
    for i, record in enumerate(found):
        with placed(f"collective {i}", ("collectives", i)):
            parts = None if record.parts is None else len(record.parts.bytes)
            claims += chunk_total(record.kind, len(record.group), parts, record.chunks)
            if claims > limit:
                raise InputError(f"{claims} chunks, far more than the file can move")
            if any(npu >= 1 << 31 for npu in record.group):
                raise InputError("the group names an NPU whose number is too large")
            demands.append(
                Collective(
                    record.kind,
                    tuple(record.group),
                    record.size,
                    record.chunks,
                    record.root,
                    record.alignment,
                    record.relay,
                    None if record.parts is None else _parts(record.parts),
                )
            )
    return tuple(demands)


def _parts(record: records.Parts) -> Chunks:
    columns = {name: _numbers(name, getattr(record, name)) for name in PART_TYPES}
    if len({len(column) for column in columns.values()}) > 1:
        raise InputError("the columns of the parts differ in length")
    lengths = _numbers("sets", [len(members) for members in record.sets])
    members = _numbers("sets", [npu for members in record.sets for npu in members])
    return checked_parts(columns, lengths, members, "parts.")


def _topology(record: records.TopologyRecord, limit: int) -> Topology:
    names = record.links.__struct_fields__
    links = {name: _numbers(name, getattr(record.links, name)) for name in names}
    if len({len(column) for column in links.values()}) > 1:
        raise InputError("the columns of the links differ in length")
    if not (1 <= record.npus <= limit and 0 <= record.switches <= limit):
        raise InputError(f"{record.npus} NPUs and {record.switches} switches make no sense")
    for name in ("src", "dst"):
        checked_range(f"links.{name}", links[name], record.npus + record.switches)
    topology = Topology.from_links(
        record.name,
        record.npus,
        *links.values(),
        switches=record.switches,
        dimensions=record.dimensions,
    )
    if not all(0 <= npu < record.npus for npu in record.removed):
        raise InputError("a removed NPU is none of the topology's")
    topology = topology.with_switches(buffers=dict(record.buffers), copying=record.copying)
    return replace(topology, removed=frozenset(record.removed), changes=tuple(record.changes))


def _routes(record: records.RouteColumns, topology: Topology | None) -> Routes:
    lengths, links = _numbers("length", record.length), _numbers("links", record.links)
    checked_range("length", lengths, len(links) + 1)
    checked_range("links", links, topology.links if topology else 1 << 31)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    if offsets[-1] != len(links):
        raise InputError(f"lengths of {offsets[-1]} links in all, but there are {len(links)}")
    return Routes(offsets, links.astype(np.int32))


def _cost(record: records.CostRecord) -> CostModel:
    # CostModel itself refuses names it does not know.
    return CostModel(record.latency_model, record.switching)  # type: ignore[arg-type]


def _transfers(record: records.TransferColumns) -> Transfers:
    columns: dict[str, Any] = {}
    for name, kind in COLUMN_TYPES.items():
        values = getattr(record, NAMES.get(name, name), None)
        if values is not None:
            columns[name] = _numbers(NAMES.get(name, name), values, kind)
    for name, column in columns.items():
        if name != "deps" and len(column) != len(columns["chunk"]):
            raise InputError(
                f"column {NAMES.get(name, name)} has {len(column)} entries, but chunk has "
                f"{len(columns['chunk'])}"
            )
    if (record.dep_count is None) != (record.deps is None):
        raise InputError("dependencies need both dep_count and deps")
    if record.dep_count is not None:
        counts = _numbers("dep_count", record.dep_count)
        checked_range("dep_count", counts, len(columns["deps"]) + 1)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        if len(counts) != len(columns["chunk"]) or offsets[-1] != len(columns["deps"]):
            raise InputError("dep_count does not fit deps")
        columns["dep_offsets"] = offsets
    there = [name in columns for name in ("route", "start", "end")]
    if any(there) and not all(there):
        raise InputError("route, start_ps and end_ps must be there together")
    return Transfers(**columns)
