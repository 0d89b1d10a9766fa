"""The columns of transfers as attributes of the NPU that sends them, and back."""

from __future__ import annotations

import zlib
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Transfers
from weft.errors import InputError
from weft.formats.chakra._attributes import BOOL_LIST, SINT64_LIST, Attribute, delta
from weft.formats.row_checks import check_rows

Int64 = NDArray[np.int64]

TAGS = 500_000_000  # ASTRA-sim takes tags modulo this
# Columns a table may lack, in the order of their attributes.
OPTIONAL = ("route", "start", "end", "src_place", "dst_place", "deps")


def planned(table: Transfers, chunk_bytes: Int64, npus: int) -> _core.ChakraPlan:
    """The nodes that a table of standard columns calls for."""
    return _core.ChakraPlan(
        npus,
        table.chunk,
        table.src,
        table.dst,
        table.reduce,
        chunk_bytes,
        table.src_place,
        table.dst_place,
        table.dep_offsets,
        table.deps,
    )


def checksum(table: Transfers) -> int:
    """CRC-32 of all columns, little-endian, in the order of the table."""
    value = 0
    for field in fields(table):
        column = getattr(table, field.name)
        if column is not None:
            value = zlib.crc32(np.ascontiguousarray(column).view(np.uint8).data, value)
    return value


def optional_columns(table: Transfers) -> list[str]:
    """Names of the optional columns this table has."""
    return [name for name in OPTIONAL if getattr(table, name) is not None]


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
        counts = table.dep_offsets[rows + 1] - table.dep_offsets[rows]
        columns["weft.dep_count"] = counts
        columns["weft.deps"] = table.deps[ragged(table.dep_offsets[rows], counts)]
    attributes: list[Attribute] = [
        (name, SINT64_LIST, delta(values)) for name, values in columns.items()
    ]
    local = rows[table.dst[rows] == table.src[rows]]
    if len(local):
        attributes.append(("weft.local_reduce", BOOL_LIST, table.reduce[local].astype(np.int64)))
    return attributes


def ragged(starts: Int64, counts: Int64) -> Int64:
    """All numbers of the ranges [start, start + count), one range after the other."""
    ends = np.cumsum(counts)
    shift = np.repeat(starts - (ends - counts), counts)
    numbers: Int64 = np.arange(len(shift), dtype=np.int64) + shift
    return numbers


def check_savable(table: Transfers, npus: int, chunks: int, routes: int) -> None:
    """Raise InputError if a row makes no sense, before anything is written."""
    if len(table) >= TAGS:
        raise InputError(f"{len(table)} transfers; a trace can number at most {TAGS - 1}")
    check_rows(table, npus, chunks, routes)
