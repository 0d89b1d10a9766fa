"""The attributes of GlobalMetadata: what Weft writes into them, and how it finds it again."""

from __future__ import annotations

import json
import zlib
from dataclasses import fields
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm, Transfers
from weft.arrays import Bool, Int64
from weft.errors import InputError
from weft.formats.chakra.schema import BOOL_LIST, INT64, SINT64_LIST, TAGS, TEXT
from weft.formats.header import Header, header_json, header_of
from weft.formats.limits import check_rows
from weft.ragged import lengths_of, places

SCHEMA_VERSION = 2
READABLE_VERSIONS = (1, 2)

# Columns a table may lack, in the order of their attributes.
OPTIONAL = ("route", "start", "end", "src_place", "dst_place", "deps")
# What an attribute can hold: one value, or a list of them.
Value = int | float | bytes | Int64 | NDArray[np.float64] | list[bytes] | None
Attribute = tuple[str, int, Value]


def delta(values: NDArray[Any]) -> Int64:
    """Each value less the one before it: small numbers, which take few bytes. Wraps around."""
    steps: Int64 = values.astype(np.int64)
    steps[1:] -= steps[:-1].copy()
    return steps


def undelta(steps: Int64) -> Int64:
    return np.cumsum(steps, dtype=np.int64)


class Attributes:
    """Attributes by name. Every getter raises InputError where the value is not what it must be."""

    def __init__(self, found: list[tuple[bytes, int, Value]]) -> None:
        self._found = {name: (kind, value) for name, kind, value in found}
        if len(self._found) != len(found):
            raise InputError("an attribute is there twice")

    def __contains__(self, name: str) -> bool:
        return name.encode() in self._found

    def _get(self, name: str, kind: int) -> Any:
        found, value = self._found.get(name.encode(), (0, None))
        if found != kind:
            raise InputError(f"attribute {name} is missing or of another kind")
        return value

    def number(self, name: str) -> int:
        return int(self._get(name, INT64))

    def text(self, name: str) -> bytes:
        return bytes(self._get(name, TEXT))

    def column(self, name: str) -> Int64:
        """A column written by `delta`."""
        return undelta(self._get(name, SINT64_LIST))

    def flags(self, name: str) -> Bool:
        values: Int64 = self._get(name, BOOL_LIST)
        return values.astype(np.bool_)


class TraceHeader(Header, kw_only=True):
    """The JSON text of the attribute ``weft.header``; its columns are attributes of their own."""

    npus: int
    rows: int
    checksum: int | None = None
    columns: list[str] = msgspec.field(default_factory=list)


def header_attributes(algorithm: Algorithm, table: Transfers, npus: int) -> list[Attribute]:
    """The attributes that only NPU 0's file has; `table` has the rows."""
    fields, columns = header_of(algorithm, algorithm.routes)
    header = TraceHeader(
        npus=npus,
        rows=len(table),
        checksum=checksum(table),
        columns=[name for name in OPTIONAL if getattr(table, name) is not None],
        **fields,
    )
    return [
        ("weft.header", TEXT, header_json(header)),
        *((f"weft.{name}", SINT64_LIST, delta(values)) for name, values in columns.items()),
    ]


def parse_header(text: bytes) -> TraceHeader:
    """Raise InputError where the text is no header."""
    try:
        return msgspec.convert(json.loads(text), TraceHeader)
    except (ValueError, RecursionError) as error:
        raise InputError(f"weft.header is damaged ({error})") from None


def checksum(table: Transfers) -> int:
    """CRC-32 of all columns, little-endian, in the order of the table."""
    value = 0
    for field in fields(table):
        column = getattr(table, field.name)
        if column is not None:
            value = zlib.crc32(np.ascontiguousarray(column).view(np.uint8).data, value)
    return value


def sent_attributes(table: Transfers, rows: Int64) -> list[Attribute]:
    """What the nodes do not say about `rows`, the ones this NPU sends or copies, ascending."""
    columns: dict[str, NDArray[Any]] = {"weft.chunk": table.chunk[rows]}
    if table.route is not None and table.start is not None and table.end is not None:
        start = table.start[rows]
        columns["weft.route"] = table.route[rows]
        columns["weft.start_ps"] = start
        columns["weft.duration_ps"] = table.end[rows] - start
    if table.src_place is not None:
        columns["weft.src_place"] = table.src_place[rows]
    if table.dst_place is not None:
        columns["weft.dst_place"] = table.dst_place[rows]
    if table.dep_offsets is not None and table.deps is not None:
        columns["weft.dep_count"] = lengths_of(table.dep_offsets, rows)
        columns["weft.deps"] = table.deps[places(table.dep_offsets, rows)]
    attributes: list[Attribute] = [
        (name, SINT64_LIST, delta(values)) for name, values in columns.items()
    ]
    local = rows[table.dst[rows] == table.src[rows]]
    if len(local):
        attributes.append(("weft.local_reduce", BOOL_LIST, table.reduce[local].astype(np.int64)))
    return attributes


def check_savable(table: Transfers, npus: int, chunks: int, routes: int) -> None:
    """Raise InputError if a row makes no sense, before anything is written."""
    if len(table) >= TAGS:
        raise InputError(f"{len(table)} transfers; a trace can number at most {TAGS - 1}")
    check_rows(table, npus, chunks, routes)
