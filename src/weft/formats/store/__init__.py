"""The compact store: any algorithm as one file, read without loading it.

A log of rounds of gigabytes, the rows of one NPU's chunks, or a table: ``docs/compact.md`` has the
format to the byte.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from weft.algorithm import Algorithm, Routes, SymmetricRows, UnnamedFile
from weft.documents import check_replaces_file, give_name, link_target, naming, new_descriptor
from weft.errors import InputError
from weft.formats.format import FORMATS, Format
from weft.formats.header import (
    LINK_COLUMNS,
    Columns,
    header_json,
    header_of,
    link_columns,
    network_of,
    read_header,
    read_network,
)
from weft.formats.imported import Hints, Imported
from weft.formats.limits import check_npu_numbers, count_limit
from weft.formats.store._layout import (
    HEAD_BYTES,
    LOG,
    MAGIC,
    Arrays,
    Column,
    Directory,
    Entry,
    entries_of,
    opened,
    write_all,
)
from weft.formats.store.kinds import KINDS
from weft.quoting import brief
from weft.topology.model import Topology

__all__ = ["SUFFIX", "read", "recognise", "write"]

SUFFIX = ".weft"

# What Weft 0.1.0 called kinds of rows that have other names now.
_RENAMED = {"mended": "repaired", "mended-exchange": "repaired-exchange"}


def recognise(path: Path, head: bytes) -> bool:
    """Whether a file is a compact store, or is called one."""
    return head.startswith(MAGIC) or (path.suffix.lower() == SUFFIX and path.is_file())


def write(algorithm: Algorithm, path: Path) -> None:
    """Write all of an algorithm; the file appears whole or not at all.

    A log that lies in a file without a name on the same file system gets that file's name, and is
    not copied.
    """
    rows = algorithm.rows
    kind = KINDS.find(rows.kind)
    columns, numbers = kind.take(rows, algorithm)
    # Compact rows know their routes.
    routes = Routes.of_links(0) if rows.compact else algorithm.routes
    fields, header_columns = header_of(algorithm, routes)
    columns |= header_columns
    whole = None if algorithm.topology is None else algorithm.topology.whole
    if whole is not None:
        columns |= {f"whole_{name}": column for name, column in link_columns(whole).items()}
    entries = entries_of(columns)
    directory = Directory(
        rows=rows.kind,
        numbers=numbers,
        arrays=entries,
        translates=algorithm.topology is not None and _translates(algorithm, algorithm.topology),
        whole=None if whole is None else network_of(whole),
        **fields,
    )
    text = header_json(directory)
    if not _named(kind.file(rows), path, entries, columns, text):
        with new_descriptor(path) as descriptor:
            write_all(descriptor, entries, columns, text)


def _named(
    file: UnnamedFile | None,
    path: Path,
    entries: list[Entry],
    columns: Mapping[str, Column],
    text: bytes,
) -> bool:
    """Whether a log that lies in a file without a name could be given that of `path`."""
    if file is None or not file.linkable:
        return False
    with suppress(OSError):  # then it is copied, which says what is wrong
        check_replaces_file(path)
        status = os.fstat(file.fd)
        end = HEAD_BYTES + columns[LOG].nbytes
        if status.st_nlink or status.st_size < end:
            return False  # it has a name, perhaps from an earlier time: its content stays
        if status.st_dev != link_target(path).parent.stat().st_dev:
            return False
        os.ftruncate(file.fd, end)
        others = {name: column for name, column in columns.items() if name != LOG}
        write_all(file.fd, entries, others, text)
        give_name(file.fd, path)
        return True
    return False


def read(path: Path, hints: Hints) -> Imported:
    """Read what `write` wrote; a log stays in the file and is read as it is used."""
    directory, arrays, size = opened(path)
    with naming(path):
        algorithm = _algorithm(directory, arrays, size)
        check_npu_numbers(algorithm, size)
    hints.check(path, algorithm.demands)
    return Imported(algorithm, path)


def _algorithm(directory: Directory, arrays: Arrays, size: int) -> Algorithm:
    kind = KINDS.get(_RENAMED.get(directory.rows, directory.rows))
    if kind is None:
        raise InputError(f"rows of the kind {brief(directory.rows)}, which this Weft does not know")
    limit = count_limit(size)
    columns = _whole_numbers(arrays, directory.column_names())
    topology = _topology(directory, arrays, columns, limit)
    npus = 1 << 31 if topology is None else topology.npus
    # Rows of one NPU's chunks stand for those of all: in an All-to-All each has as many as there
    # are NPUs, elsewhere there are no more chunks than such rows.
    exchange = [demand.kind for demand in directory.demands] == ["all-to-all"]
    most = limit * npus if kind.of_one and exchange else max(limit, kind.most * npus)
    empty = read_header(directory, columns, topology, npus, most)
    return replace(empty, rows=kind.make(empty, arrays))


def _whole_numbers(arrays: Arrays, names: Iterable[str], prefix: str = "") -> Columns:
    """Columns of a header in 64 bits: files keep what is narrower, of which sums wrap around."""
    columns = {}
    for name in names:
        column = arrays[f"{prefix}{name}"]
        if (column.dtype == np.bool_) != (name == "part_reduce"):
            expected = "bool" if name == "part_reduce" else "whole numbers"
            raise InputError(f"the array {prefix}{name} is of {column.dtype}; expected {expected}")
        columns[name] = column.astype(np.int64, copy=False)
    return columns


def _topology(
    directory: Directory, arrays: Arrays, columns: Columns, limit: int
) -> Topology | None:
    if directory.topology is None:
        return None
    topology = read_network(directory.topology, columns, limit)
    if directory.translates:
        topology = _translating(topology)
    if directory.whole is None:
        return topology
    links = _whole_numbers(arrays, LINK_COLUMNS, "whole_")
    whole = _translating(read_network(directory.whole, links, limit))
    if whole.npus != topology.npus:
        raise InputError("the network before failures has other NPUs")
    return replace(topology, whole=whole)


def _translates(algorithm: Algorithm, topology: Topology) -> bool:
    """Whether the network says so, or the rows mean nothing if it does not."""
    return topology.translates or isinstance(algorithm.rows, SymmetricRows)


def _translating(topology: Topology) -> Topology:
    """The same network with the claim that it translates onto itself; the judge does not trust."""
    if not topology.dimensions or topology.removed:
        raise InputError("a network that is said to translate onto itself cannot do so")
    return replace(topology, translates=True)


STORE = Format(
    "weft",
    "a compact store, one file in a few bytes per transfer",
    recognise,
    read,
    write,
    SUFFIX,
    rank=20,
)
FORMATS.add(STORE.name, STORE, rank=STORE.rank)
