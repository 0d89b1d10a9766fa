"""The columns of transfers as attributes of the NPU that sends them, and back."""

from __future__ import annotations

import zlib
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import COLUMN_TYPES, Transfers
from weft.collective import Chunks
from weft.errors import InputError
from weft.formats.chakra._attributes import BOOL_LIST, SINT64_LIST, Attribute, delta

Int64 = NDArray[np.int64]

TAGS = 500_000_000  # ASTRA-sim takes tags modulo this
# Columns a table may lack, in the order of their attributes.
OPTIONAL = ("route", "start", "end", "src_place", "dst_place", "deps")


def standard_columns(table: Transfers) -> Transfers:
    """The same table with the types the kernels want; columns that have them are not copied."""
    columns: dict[str, Any] = {
        name: np.ascontiguousarray(column, dtype=COLUMN_TYPES[name])
        for name, column in table.columns().items()
    }
    return replace(table, **columns)


def planned(table: Transfers, chunks: Chunks, npus: int) -> _core.ChakraPlan:
    """The nodes that a table of standard columns calls for."""
    return _core.ChakraPlan(
        npus,
        table.chunk,
        table.src,
        table.dst,
        table.reduce,
        chunks.bytes,
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
    rows = len(table)
    if rows >= TAGS:
        raise InputError(f"{rows} transfers; a trace can number at most {TAGS - 1}")
    _check_lengths(table)
    for name, column, most in (
        ("source NPU", table.src, npus),
        ("destination NPU", table.dst, npus),
        ("chunk", table.chunk, chunks),
        ("route", table.route, routes),
        ("source place", table.src_place, 1 << 31),
        ("destination place", table.dst_place, 1 << 31),
    ):
        if column is None:
            continue
        for row in np.flatnonzero((column < 0) | (column >= most))[:1]:
            raise InputError(
                f"row {row}: {name} {column[row]} is out of range; expected 0 to {most - 1}"
            )
    row = first_bad_dep(table)
    if row is not None:
        raise InputError(f"row {row} depends on a row that is not before it")


def _check_lengths(table: Transfers) -> None:
    timed = [column is not None for column in (table.route, table.start, table.end)]
    if any(timed) != all(timed):
        raise InputError("a timed table has a route, a start and an end for each row")
    if (table.dep_offsets is None) != (table.deps is None):
        raise InputError("dependencies need both their offsets and their rows")
    for name, column in table.columns().items():
        if name == "deps":
            continue
        if len(column) != len(table) + (name == "dep_offsets"):
            raise InputError(f"column '{name}' has {len(column)} entries for {len(table)} rows")
    if table.dep_offsets is not None and table.deps is not None:
        marks = table.dep_offsets
        if marks[0] != 0 or marks[-1] != len(table.deps) or (np.diff(marks) < 0).any():
            raise InputError("the offsets of the dependencies do not fit the dependencies")


def first_bad_dep(table: Transfers) -> int | None:
    """The first row with a dependency that is not an earlier row, if any."""
    if table.dep_offsets is None or table.deps is None:
        return None
    owner = np.repeat(np.arange(len(table)), np.diff(table.dep_offsets))
    bad = np.flatnonzero((table.deps < 0) | (table.deps >= owner))
    return int(owner[bad[0]]) if len(bad) else None
