"""Chakra execution traces: the home format of an algorithm on disk.

A folder holds one file an NPU, ``weft.{npu}.et``. The nodes are what ASTRA-sim and other
readers of Chakra run: a COMM_SEND and a COMM_RECV a transfer, a COMP where a chunk is summed or
copied. What nodes cannot say (chunks, times, routes, the network, the collectives) lies in the
attributes of each file's GlobalMetadata, so that nothing is lost: see ``docs/chakra-schema.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weft import _core
from weft.algorithm import Algorithm
from weft.collective import Collective, format_group, parse_group
from weft.documents import naming, new_folder
from weft.errors import FormatError, InputError
from weft.formats.chakra._attributes import (
    SCHEMA_VERSION,
    Attribute,
    check_savable,
    checksum,
    header_attributes,
    optional_columns,
    planned,
    sent_attributes,
)
from weft.formats.chakra._load import TRACE_NAME, load
from weft.formats.chakra._some_ranks import check_ranks, nodes_of
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
    "recognise",
    "save",
]

MAX_NPUS = 1 << 20
_PART = "weft.part"  # the attribute of traces of some NPUs only


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
    plan = planned(table, algorithm.chunks.bytes, npus)
    header = header_attributes(algorithm, npus, checksum(table), optional_columns(table))
    written = 0
    with new_folder(folder, TRACE_NAME) as place:
        for npu in range(npus):
            more = [*(header if npu == 0 else []), *sent_attributes(table, plan.sent(npu))]
            written += _write(place, npu, more, plan.nodes(npu))
        _check_loadable(algorithm, written)


def _save_part(algorithm: Algorithm, folder: Path, ranks: Sequence[int]) -> None:
    """Write the traces of some NPUs, which say that they are no whole algorithm."""
    npus = _count_npus(algorithm)
    check_ranks(ranks, npus)
    part: list[Attribute] = [(_PART, TEXT, f"{format_group(ranks)} of {npus}".encode())]
    with new_folder(folder, TRACE_NAME) as place:
        for npu, nodes in nodes_of(algorithm, ranks, npus):
            _write(place, npu, part, nodes)


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


def recognise(path: Path, _head: bytes) -> bool:
    """Whether a path is a folder with traces, or names them by the beginning of their names."""
    return has_traces(path)


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
    recognise,
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
