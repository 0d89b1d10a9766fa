"""Reads a folder of traces back; nothing is believed that the nodes do not confirm."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, Transfers
from weft.collective import Chunks
from weft.documents import naming
from weft.errors import FormatError, InputError
from weft.formats.chakra._attributes import (
    READABLE_VERSIONS,
    Attributes,
    TraceHeader,
    checksum,
    parse_header,
    planned,
)
from weft.formats.chakra._row_collector import Rows
from weft.formats.chakra._trace_files import TraceFiles
from weft.formats.chakra.schema import COMM_RECV, COMM_SEND
from weft.formats.header import read_header, read_network
from weft.formats.limits import count_limit
from weft.formats.row_checks import first_bad_dep

TRACE_NAME = re.compile(r"weft\.(0|[1-9][0-9]{0,8})\.et")
# A row is at least a COMP node with its tag; fewer bytes than this cannot hold one.
LEAST_ROW_BYTES = 16


def load(where: Path | TraceFiles) -> Algorithm:
    """Read the algorithm that `save` wrote into a folder, equal in every column.

    Raises
    ------
    FormatError
        The folder is not one, a file is missing, damaged or not of Weft, or the files
        contradict each other; the message names file and node or byte.
    """
    files = _WeftFiles(where if isinstance(where, TraceFiles) else TraceFiles(where))
    first = files.path(0)
    attributes, nodes = files.read(0)
    with naming(first):
        header = parse_header(attributes.text("weft.header"))
        if not 0 <= header.rows <= files.bytes // LEAST_ROW_BYTES:
            raise InputError(f"{header.rows} rows, which the files are too small to hold")
        files.expect(header.npus)
        empty = _without_rows(header, attributes, count_limit(files.bytes))
        chunks = empty.chunks
        rows = Rows(header, len(chunks), len(empty.routes))
    # A file is read once; what its nodes wait for is remembered as a number.
    digests = np.zeros(header.npus, dtype=np.uint64)
    for npu in range(header.npus):
        if npu > 0:
            attributes, nodes = files.read(npu)
        with naming(files.path(npu)):
            rows.add(npu, attributes, nodes)
            digests[npu] = nodes.digest()
    _check_match(files, rows, chunks)
    table = rows.table()
    with naming(first):
        _check_table(header, table)
    _check_nodes(files, planned(table, chunks.bytes, header.npus), digests)
    with naming(first):
        return replace(empty, rows=table)


class _WeftFiles:
    """Traces that Weft wrote."""

    def __init__(self, files: TraceFiles) -> None:
        self._files = files
        self.path, self.expect, self.bytes = files.path, files.expect, files.bytes

    def read(self, rank: int) -> tuple[Attributes, _core.ChakraNodes]:
        attributes, nodes = self._files.read(rank)
        with naming(self.path(rank)):
            if "weft.version" not in attributes:
                raise InputError("not a trace of Weft: it has no attribute weft.version")
            version = attributes.number("weft.version")
            if version not in READABLE_VERSIONS:
                known = " and ".join(map(str, READABLE_VERSIONS))
                raise InputError(f"version {version} of the schema; this Weft reads {known}")
            if attributes.number("weft.npu") != rank:
                raise InputError(f"the trace of NPU {attributes.number('weft.npu')}, renamed")
        return attributes, nodes

    def node_of(self, npu: int, kind: int, row: int) -> str:
        """The node of a row, for messages."""
        _, nodes = self.read(npu)
        at = np.flatnonzero((nodes.type == kind) & (nodes.comm_tag == row))
        return f"{self.path(npu)}: node {nodes.id[at[0]]}" if len(at) else str(self.path(npu))


def _without_rows(header: TraceHeader, attributes: Attributes, limit: int) -> Algorithm:
    """The algorithm without its rows."""
    columns = {name: attributes.column(f"weft.{name}") for name in header.column_names()}
    topology = None
    if header.topology is not None:
        if header.topology.npus != header.npus:
            raise InputError("the topology's NPUs or switches make no sense")
        topology = read_network(header.topology, columns, limit)
    return read_header(header, columns, topology, header.npus, limit)


def _check_match(files: _WeftFiles, rows: Rows, chunks: Chunks) -> None:
    """Every row is sent once and received once, by the right NPUs, with its chunk's bytes."""
    sent, received = rows.src >= 0, rows.receiver >= 0
    for row in np.flatnonzero(~sent & ~received)[:1]:
        raise FormatError(f"{files.path(0)}: there are {len(sent)} rows, but no node has row {row}")
    for row in np.flatnonzero(~sent)[:1]:
        where = files.node_of(rows.receiver[row], COMM_RECV, row)
        raise FormatError(f"{where} receives row {row}, which nobody sends")
    for row in np.flatnonzero(~received)[:1]:
        where = files.node_of(rows.src[row], COMM_SEND, row)
        raise FormatError(f"{where} sends row {row}, which nobody receives")
    for row in np.flatnonzero((rows.receiver != rows.dst) | (rows.expected_src != rows.src))[:1]:
        where = files.node_of(rows.src[row], COMM_SEND, row)
        raise FormatError(
            f"{where} sends row {row} to NPU {rows.dst[row]}, but NPU {rows.receiver[row]} "
            f"receives it from NPU {rows.expected_src[row]}"
        )
    for row in np.flatnonzero(rows.sent_bytes != rows.received_bytes)[:1]:
        where = files.node_of(rows.receiver[row], COMM_RECV, row)
        raise FormatError(
            f"{where} receives {rows.received_bytes[row]} B of row {row}, but "
            f"NPU {rows.src[row]} sends {rows.sent_bytes[row]} B"
        )
    size = chunks.bytes[rows.chunk]
    for row in np.flatnonzero((rows.sent_bytes != size) & (rows.src != rows.dst))[:1]:
        where = files.node_of(rows.src[row], COMM_SEND, row)
        raise FormatError(
            f"{where} sends {rows.sent_bytes[row]} B, but chunk {rows.chunk[row]} has {size[row]} B"
        )


def _check_table(header: TraceHeader, table: Transfers) -> None:
    row = first_bad_dep(table)
    if row is not None:
        raise InputError(f"row {row} depends on a row that is not before it")
    if header.checksum is not None and checksum(table) != header.checksum:
        raise InputError(
            "the rows do not have the checksum written here: a file was changed, or is of "
            "another algorithm"
        )


def _check_nodes(files: _WeftFiles, plan: _core.ChakraPlan, digests: NDArray[np.uint64]) -> None:
    """The nodes are the very ones the rows call for: what others run is what is loaded."""
    for npu, digest in enumerate(digests.tolist()):
        expected = plan.nodes(npu)
        if expected.digest() == digest:
            continue
        _, nodes = files.read(npu)
        with naming(files.path(npu)):
            nodes.check()
            raise InputError(nodes.first_difference(expected))
