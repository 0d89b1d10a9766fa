"""Chakra execution traces: the home format of an algorithm on disk.

A folder holds one file per NPU, ``weft.{npu}.et``. The nodes are what ASTRA-sim and other
readers of Chakra run: a COMM_SEND and a COMM_RECV a transfer, a COMP where a chunk is summed or
copied. What nodes cannot say (chunks, times, routes, the network, the collectives) lies in the
attributes of each file's GlobalMetadata, so that nothing is lost: see ``docs/chakra-schema.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from weft import _core
from weft.algorithm import Algorithm, Transfers, chunk_bytes
from weft.arrays import Int64
from weft.collective import Collective, format_group, parse_group
from weft.documents import naming, new_folder
from weft.errors import FormatError, InputError
from weft.formats.chakra._attributes import (
    SCHEMA_VERSION,
    Attribute,
    check_savable,
    header_attributes,
    sent_attributes,
)
from weft.formats.chakra._load import TRACE_NAME, load
from weft.formats.chakra._trace_files import TraceFiles, has_traces
from weft.formats.chakra.schema import CHAKRA_VERSION, INT64, TAGS, TEXT
from weft.formats.format import FORMATS, Format, Option
from weft.formats.imported import Hints, Imported
from weft.formats.limits import count_limit, named_npus, standard_columns
from weft.memory import fits_table

__all__ = [
    "TRACE_NAME",
    "TraceFiles",
    "check_demands",
    "has_traces",
    "load",
    "read",
    "save",
]

MAX_NPUS = 1 << 20
_PART = "weft.part"  # the attribute of traces of some NPUs only
# All that nodes of an algorithm have, but for their tags.
_COLUMNS = (
    *("id", "type", "ctrl_offsets", "ctrl", "data_offsets", "data", "start", "duration"),
    *("present", "comm_src", "comm_dst", "comm_size"),
)


def save(algorithm: Algorithm, folder: Path, *, ranks: Sequence[int] | None = None) -> None:
    """Write `algorithm` as a folder of traces; the whole folder appears at once or not at all.

    An existing folder is replaced only if it is empty or holds nothing but such traces. With
    `ranks` only the traces of these NPUs are written: they can be run, but not read back.

    Raises
    ------
    InputError
        The algorithm has rows that make no sense, or more than tags can number.
    FormatError
        The folder cannot be written.
    """
    if ranks is not None:
        _save_part(algorithm, folder, ranks)
        return
    table = standard_columns(algorithm.transfers)
    npus = _count_npus(algorithm)
    check_savable(table, npus, len(algorithm.chunks), len(algorithm.routes))
    plan = _core.ChakraPlan(npus, table.core, algorithm.chunks.bytes)
    header = header_attributes(algorithm, table, npus)
    written = 0
    with new_folder(folder, TRACE_NAME) as place:
        for npu in range(npus):
            more = [*(header if npu == 0 else []), *sent_attributes(table, plan.sent(npu))]
            written += _write(place, npu, more, plan.nodes(npu))
        _check_loadable(algorithm, written)


def _save_part(algorithm: Algorithm, folder: Path, ranks: Sequence[int]) -> None:
    """Write the traces of some NPUs, which say that they are no whole algorithm."""
    npus = _count_npus(algorithm)
    for rank in ranks:
        if not 0 <= rank < npus:
            raise InputError(f"there is no NPU {rank} to write; NPUs are 0 to {npus - 1}")
    part: list[Attribute] = [(_PART, TEXT, f"{format_group(ranks)} of {npus}".encode())]
    with new_folder(folder, TRACE_NAME) as place:
        for npu, nodes in _nodes_of(algorithm, ranks, npus):
            _write(place, npu, part, nodes)


def _nodes_of(
    algorithm: Algorithm, ranks: Sequence[int], npus: int
) -> Iterator[tuple[int, _core.ChakraNodes]]:
    """The nodes of these NPUs: those of a whole trace, but that compact rows are renumbered.

    A row of a table has its own number. Compact rows have none: those of the chosen NPUs are
    counted in order of start, then of route.
    """
    if not algorithm.rows.compact:
        whole = standard_columns(algorithm.transfers)
        check_savable(whole, npus, len(algorithm.chunks), len(algorithm.routes))
        plan = _core.ChakraPlan(npus, whole.core, algorithm.chunks.bytes)
        yield from ((rank, plan.nodes(rank)) for rank in ranks)
        return
    tables = [standard_columns(algorithm.of_npu(rank)) for rank in ranks]
    for rank, table, tags in zip(ranks, tables, _tags(tables), strict=True):
        yield rank, _tagged(_nodes(algorithm, table, rank, npus), tags)


def _tags(tables: Sequence[Transfers]) -> list[Int64]:
    """The number of each row of each table; a row that two tables have is the same in both."""
    if not sum(map(len, tables)):
        return [np.zeros(0, dtype=np.int64) for _ in tables]
    # No two transfers start at once on the same route.
    _, moment = np.unique(np.concatenate([table.start for table in tables]), return_inverse=True)
    route = np.concatenate([table.route for table in tables]).astype(np.int64)
    rows, tag = np.unique(moment * (int(route.max()) + 1) + route, return_inverse=True)
    if len(rows) >= TAGS:
        raise InputError(f"{len(rows)} transfers; a trace can number at most {TAGS - 1}")
    return np.split(tag, np.cumsum([len(table) for table in tables])[:-1])


def _nodes(algorithm: Algorithm, table: Transfers, rank: int, npus: int) -> _core.ChakraNodes:
    """The nodes of one NPU; chunks are numbered anew, since there may be too many to list."""
    chunks, named = np.unique(table.chunk, return_inverse=True)
    table = replace(table, chunk=named.astype(np.int32))
    return _core.ChakraPlan(npus, table.core, chunk_bytes(algorithm, chunks)).nodes(rank)


def _tagged(nodes: _core.ChakraNodes, tags: Int64) -> _core.ChakraNodes:
    """The same nodes with other tags."""
    if not len(tags):
        return nodes
    columns = {name: getattr(nodes, name) for name in _COLUMNS}
    return _core.ChakraNodes(**columns, comm_tag=tags[nodes.comm_tag])


def _write(place: Path, npu: int, more: list[Attribute], nodes: _core.ChakraNodes) -> int:
    """Write one NPU's trace, with what every file says and more; gives its bytes."""
    first: list[Attribute] = [("weft.version", INT64, SCHEMA_VERSION), ("weft.npu", INT64, npu)]
    trace = _core.write_chakra(CHAKRA_VERSION, first + more, nodes)
    (place / f"weft.{npu}.et").write_bytes(trace)
    return len(trace)


def check_demands(demands: Sequence[Collective]) -> None:
    """Raise, before any work, if traces surely cannot hold what these collectives take."""
    least = sum(demand.least_transfers for demand in demands)
    if least >= TAGS or not fits_table(least):
        raise InputError(
            f"this takes {least:,} transfers or more, too many for traces; save it in a compact "
            "store, a file whose name ends in .weft"
        )


def read(path: Path, hints: Hints) -> Imported:
    """Read what `save` wrote, or traces of others for which the user names the collective."""
    files = TraceFiles(path)
    attributes, _ = files.read(files.first)
    if _PART in attributes:
        with naming(files.path(files.first)):
            part = attributes.text(_PART).decode(errors="replace")
        raise FormatError(
            f"{path} has the traces of NPUs {part} only, which are no whole algorithm; read what "
            "they were made of"
        )
    if "weft.version" in attributes:
        algorithm = load(files)
        hints.check(path, algorithm.demands)
        return Imported(algorithm, path)
    from weft.formats.chakra.foreign import read_foreign  # seldom needed, and large

    return read_foreign(path, files, hints)


def _count_npus(algorithm: Algorithm) -> int:
    """How many files there are: one for each NPU number of the network, or of those named."""
    npus = named_npus(algorithm)
    named = max(max(demand.group) for demand in algorithm.demands)
    if named >= npus:
        raise InputError(f"a group names NPU {named}, but NPUs are 0 to {npus - 1}")
    if npus > MAX_NPUS:
        raise InputError(f"{npus} NPUs; a folder of traces can hold at most {MAX_NPUS}")
    return npus


def _check_loadable(algorithm: Algorithm, written: int) -> None:
    """Refuse what `load` would take for a corrupt header: far more chunks than are moved."""
    claims = sum(demand.part_count * demand.chunks_per_share for demand in algorithm.demands)
    if claims > count_limit(written):
        raise InputError(
            f"the demands have {claims} chunks, but the transfers move too few of them "
            "for a trace; cut the shares in fewer chunks"
        )


CHAKRA = Format(
    "chakra",
    "a folder of Chakra execution traces, one file per rank",
    lambda path, _head: has_traces(path),
    read,
    save,
    suffix="",
    options={
        "ranks": Option(
            "write the traces of these NPUs only, such as 0-3,17",
            "NPUS",
            lambda text: parse_group(text, MAX_NPUS),
        )
    },
    hints=("collective", "size", "chunks", "group", "root"),
    members=TRACE_NAME,
    check_demands=check_demands,
    rank=10,
)
FORMATS.add(CHAKRA.name, CHAKRA, rank=CHAKRA.rank)
