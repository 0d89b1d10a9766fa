"""An algorithm as one JSON document: the header of every format, its columns, and the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from weft.algorithm import COLUMN_TYPES, Algorithm, Transfers
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
from weft.formats.header import (
    Cost,
    Demand,
    Header,
    Network,
    header_of,
    plain,
    read_header,
    read_network,
)
from weft.formats.imported import Hints, Imported
from weft.formats.limits import check_npu_numbers, checked_range, count_limit
from weft.quoting import brief, quoted
from weft.ragged import offsets_of

VERSION = 2
MOST_BYTES = 4 << 30
# What a column of rows is called in the file, where it is not its own name.
NAMES = {"start": "start_ps", "end": "end_ps"}


class TransferColumns(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One entry per row; `deps` has those of all rows, `dep_count` of them each."""

    chunk: list[int]
    src: list[int]
    dst: list[int]
    reduce: list[bool]
    route: list[int] | None = None
    start_ps: list[int] | None = None
    end_ps: list[int] | None = None
    src_place: list[int] | None = None
    dst_place: list[int] | None = None
    dep_count: list[int] | None = None
    deps: list[int] | None = None


class Table(Header, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The whole file."""

    weft_table: int
    columns: dict[str, list[int]]
    transfers: TransferColumns


_WORDS = Words(
    {
        "": Table,
        "demands": Demand,
        "transfers": TransferColumns,
        "topology": Network,
        "cost": Cost,
    },
    {"demands": "collective"},
)


def recognise_json(path: Path, head: bytes) -> bool:
    """Whether a file is a JSON object that may be such a table."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return text.startswith(b"{") and (b'"weft_table"' in text or path.suffix.lower() == ".json")


def named_columns(rows: Transfers) -> dict[str, list[Any]]:
    """The columns of rows as files call them."""
    return {NAMES.get(name, name): column.tolist() for name, column in rows.columns().items()}


def write_json(algorithm: Algorithm, path: Path) -> None:
    """Write all of an algorithm; the file appears whole or not at all."""
    fields, columns = header_of(algorithm, algorithm.routes)
    table = named_columns(algorithm.transfers)
    if "dep_offsets" in table:
        table["dep_count"] = np.diff(table.pop("dep_offsets")).tolist()
    document = Table(
        weft_table=VERSION,
        columns={name: column.astype(np.int64).tolist() for name, column in columns.items()},
        transfers=TransferColumns(**table),
        **fields,
    )
    new_file(path, msgspec.json.encode(document, enc_hook=plain) + b"\n")


def read_json(path: Path, hints: Hints) -> Imported:
    """Read what `write_json` wrote, or what somebody wrote by the same rules."""
    algorithm = read_document(path, "table", _algorithm, MOST_BYTES)
    hints.check(path, algorithm.demands)
    return Imported(algorithm, path)


def _algorithm(document: Document) -> Algorithm:
    found = load_json(document.data)
    if not isinstance(found, dict) or "weft_table" not in found:
        raise PlacedError('is not a table of Weft: expected an object with "weft_table"')
    if found["weft_table"] != VERSION:
        raise PlacedError(
            f"version {brief(found['weft_table'])} of the table; this Weft reads version {VERSION}",
            ("weft_table",),
        )
    table = convert(found, Table, _WORDS)
    limit = count_limit(len(document.data))
    with placed("columns", ("columns",)):
        columns = _columns(table.columns, table.column_names())
    with placed("topology", ("topology",)):
        topology = None
        if table.topology is not None:
            topology = read_network(table.topology, columns, limit)
    npus = 1 << 31 if topology is None else topology.npus
    with placed("transfers", ("transfers",)):
        rows = _transfers(table.transfers)
        algorithm = read_header(table, columns, topology, npus, limit, rows=rows, placed=placed)
        check_npu_numbers(algorithm, len(document.data))
        return algorithm


def _columns(found: Mapping[str, Sequence[int]], names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The columns that a header asks for, no more and no less."""
    for name in names:
        if name not in found:
            raise InputError(f"{name} is missing")
    for name in found.keys() - set(names):
        raise InputError(f"nothing is said in {quoted(name)}; expected {', '.join(names)}")
    return {name: _numbers(name, found[name]) for name in names}


def _numbers(name: str, values: Sequence[int], kind: type[np.generic] = np.int64) -> NDArray[Any]:
    """A column of whole numbers, all of which its type can hold."""
    try:
        return np.array(values, dtype=kind)
    except OverflowError:
        raise InputError(f"{name} has a number that is too large") from None


def _transfers(record: TransferColumns) -> Transfers:
    columns: dict[str, Any] = {}
    for name, kind in COLUMN_TYPES.items():
        said = NAMES.get(name, name)
        values = getattr(record, said, None)
        if values is None:
            continue
        columns[name] = _numbers(said, values, kind)
        if name != "deps" and len(values) != len(record.chunk):
            raise InputError(
                f"column {said} has {len(values)} entries, but chunk has {len(record.chunk)}"
            )
    if (record.dep_count is None) != (record.deps is None):
        raise InputError("dependencies need both dep_count and deps")
    if record.dep_count is not None:
        counts = _numbers("dep_count", record.dep_count)
        checked_range("dep_count", counts, len(columns["deps"]) + 1)
        offsets = offsets_of(counts)
        if len(counts) != len(columns["chunk"]) or offsets[-1] != len(columns["deps"]):
            raise InputError("dep_count does not fit deps")
        columns["dep_offsets"] = offsets
    there = [name in columns for name in ("route", "start", "end")]
    if any(there) and not all(there):
        raise InputError("route, start_ps and end_ps must be there together")
    return Transfers(**columns)
