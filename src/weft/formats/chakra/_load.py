"""Reads a folder of traces back; nothing is believed that the nodes do not confirm."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import COLUMN_TYPES, Algorithm, Transfers
from weft.arrays import Bool, Int32, Int64
from weft.collective import Chunks
from weft.documents import naming
from weft.errors import FormatError, InputError
from weft.formats.chakra._attributes import (
    OPTIONAL,
    READABLE_VERSIONS,
    Attributes,
    TraceHeader,
    checksum,
    parse_header,
)
from weft.formats.chakra._trace_files import TraceFiles, check_present
from weft.formats.chakra.schema import COMM_RECV, COMM_SEND, COMP, HAS_TAG
from weft.formats.header import read_header, read_network
from weft.formats.limits import check_deps, checked_range, count_limit
from weft.quoting import quoted
from weft.ragged import earlier_equals, offsets_of, ranges

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
    files = where if isinstance(where, TraceFiles) else TraceFiles(where)
    first = files.path(0)
    attributes, nodes = _read(files, 0)
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
            attributes, nodes = _read(files, npu)
        with naming(files.path(npu)):
            rows.add(npu, attributes, nodes)
            digests[npu] = nodes.digest()
    _check_match(files, rows, chunks)
    table = rows.table()
    with naming(first):
        _check_table(header, table)
    _check_nodes(files, _core.ChakraPlan(header.npus, table.core, chunks.bytes), digests)
    with naming(first):
        return replace(empty, rows=table)


def _read(files: TraceFiles, rank: int) -> tuple[Attributes, _core.ChakraNodes]:
    """A trace that Weft wrote."""
    attributes, nodes = files.read(rank)
    with naming(files.path(rank)):
        if "weft.version" not in attributes:
            raise InputError("not a trace of Weft: it has no attribute weft.version")
        version = attributes.number("weft.version")
        if version not in READABLE_VERSIONS:
            known = " and ".join(map(str, READABLE_VERSIONS))
            raise InputError(f"version {version} of the schema; this Weft reads {known}")
        if attributes.number("weft.npu") != rank:
            raise InputError(f"the trace of NPU {attributes.number('weft.npu')}, renamed")
    return attributes, nodes


def _node_of(files: TraceFiles, npu: int, kind: int, row: int) -> str:
    """The node of a row, for messages."""
    _, nodes = _read(files, npu)
    at = np.flatnonzero((nodes.type == kind) & (nodes.comm_tag == row))
    return f"{files.path(npu)}: node {nodes.id[at[0]]}" if len(at) else str(files.path(npu))


def _without_rows(header: TraceHeader, attributes: Attributes, limit: int) -> Algorithm:
    """The algorithm without its rows."""
    columns = {name: attributes.column(f"weft.{name}") for name in header.column_names()}
    topology = None
    if header.topology is not None:
        if header.topology.npus != header.npus:
            raise InputError("the topology's NPUs or switches make no sense")
        topology = read_network(header.topology, columns, limit)
    return read_header(header, columns, topology, header.npus, limit)


def _check_match(files: TraceFiles, rows: Rows, chunks: Chunks) -> None:
    """Every row is sent once and received once, by the right NPUs, with its chunk's bytes."""
    sent, received, size = rows.src >= 0, rows.receiver >= 0, chunks.bytes[rows.chunk]
    for row in np.flatnonzero(~sent & ~received)[:1]:
        raise FormatError(f"{files.path(0)}: there are {len(sent)} rows, but no node has row {row}")
    wrong_end = (rows.receiver != rows.dst) | (rows.sender != rows.src)
    faults = {
        "receives row {row}, which nobody sends": ~sent,
        "sends row {row}, which nobody receives": ~received,
        "sends row {row} to NPU {dst}, but NPU {receiver} receives it from NPU {sender}": wrong_end,
        "receives {received_bytes} B of row {row}, but NPU {src} sends {sent_bytes} B": (
            rows.sent_bytes != rows.received_bytes
        ),
        "sends {sent_bytes} B, but chunk {chunk} has {size} B": (
            (rows.sent_bytes != size) & (rows.src != rows.dst)
        ),
    }
    for text, wrong in faults.items():
        for row in np.flatnonzero(wrong)[:1]:
            npus, kind = (
                (rows.src, COMM_SEND) if text.startswith("sends") else (rows.receiver, COMM_RECV)
            )
            facts = {name: column[row] for name, column in vars(rows).items() if name[0] != "_"}
            said = text.format(row=row, size=size[row], **facts)
            raise FormatError(f"{_node_of(files, npus[row], kind, row)} {said}")


def _check_table(header: TraceHeader, table: Transfers) -> None:
    check_deps(table)
    if header.checksum is not None and checksum(table) != header.checksum:
        raise InputError(
            "the rows do not have the checksum written here: a file was changed, or is of "
            "another algorithm"
        )


def _check_nodes(files: TraceFiles, plan: _core.ChakraPlan, digests: NDArray[np.uint64]) -> None:
    """The nodes are the very ones the rows call for: what others run is what is loaded."""
    for npu, digest in enumerate(digests.tolist()):
        expected = plan.nodes(npu)
        if expected.digest() == digest:
            continue
        _, nodes = _read(files, npu)
        with naming(files.path(npu)):
            nodes.check()
            raise InputError(nodes.first_difference(expected))


class Rows:
    """The columns of the table, and beside them what the receiving nodes say.

    `src` and `receiver` are -1 where no node was seen yet.
    """

    def __init__(self, header: TraceHeader, chunks: int, routes: int) -> None:
        rows = header.rows
        for name in header.columns:
            if name not in OPTIONAL:
                raise InputError(f"weft.header names a column {quoted(name)} of unknown meaning")
        if {"route", "start", "end"} & set(header.columns) not in (set(), set(OPTIONAL[:3])):
            raise InputError("weft.header names some of the columns of time, but not all")
        self._limits = {"chunk": chunks, "route": routes}
        self.chunk = np.zeros(rows, dtype=np.int32)
        self.src = np.full(rows, -1, dtype=np.int32)
        self.dst = np.full(rows, -1, dtype=np.int32)
        self.reduce = np.zeros(rows, dtype=np.bool_)
        self.sent_bytes = np.zeros(rows, dtype=np.int64)
        self.receiver = np.full(rows, -1, dtype=np.int32)
        self.sender = np.full(rows, -1, dtype=np.int32)
        self.received_bytes = np.zeros(rows, dtype=np.int64)
        self._optional: dict[str, NDArray[Any]] = {
            name: np.zeros(rows, dtype=COLUMN_TYPES[name])
            for name in header.columns
            if name != "deps"
        }
        self._has_deps = "deps" in header.columns
        self._deps: list[tuple[Int64, Int64, Int64]] = []
        self._npus = header.npus

    def add(self, npu: int, attributes: Attributes, nodes: _core.ChakraNodes) -> None:
        """Take over one NPU's trace."""
        where = self._positions(nodes)
        for waits in (nodes.data, nodes.ctrl):
            if len(waits) and waits.max() >= len(nodes):
                nodes.check()  # names the node that waits for what is not there
        sends = nodes.type == COMM_SEND
        receives = nodes.type == COMM_RECV
        comps = nodes.type == COMP
        for node in np.flatnonzero(~(sends | receives | comps))[:1]:
            raise InputError(f"node {nodes.id[node]} is of type {nodes.type[node]}, none of Weft's")
        check_present(nodes, nodes.present)
        local = comps & (nodes.present & HAS_TAG != 0)
        self._add_received(npu, nodes, np.flatnonzero(receives))
        self._add_sent(npu, nodes, np.flatnonzero(sends | local), local)
        self._add_sums(nodes, np.flatnonzero(comps & ~local), where)
        self._add_columns(nodes, np.flatnonzero(sends | local), local, attributes)

    @staticmethod
    def _positions(nodes: _core.ChakraNodes) -> Int64:
        """Where node 0, 1, 2, ... is in the file."""
        where = np.argsort(nodes.id, kind="stable")
        for number in np.flatnonzero(nodes.id[where] != np.arange(len(nodes), dtype=np.uint64))[:1]:
            nodes.check()  # an id that is there twice is named as such
            raise InputError(f"node {number} is missing: there are {len(nodes)} nodes")
        return where

    def _tags(self, nodes: _core.ChakraNodes, which: Int64, seen: Int32) -> Int64:
        """The rows of some nodes; each is one of the table, and new."""
        tags = nodes.comm_tag[which]
        for at in np.flatnonzero((tags < 0) | (tags >= len(seen)))[:1]:
            raise InputError(
                f"node {nodes.id[which[at]]} has row {tags[at]}, but rows are 0 to {len(seen) - 1}"
            )
        for at in np.flatnonzero((earlier_equals(tags) > 0) | (seen[tags] >= 0))[:1]:
            raise InputError(
                f"node {nodes.id[which[at]]} has row {tags[at]}, which another node has"
            )
        return tags

    def _peers(self, nodes: _core.ChakraNodes, which: Int64, peers: Int64, npu: int) -> Int64:
        for at in np.flatnonzero((peers < 0) | (peers >= self._npus) | (peers == npu))[:1]:
            raise InputError(f"node {nodes.id[which[at]]} names {peers[at]} as the other NPU")
        return peers

    def _add_received(self, npu: int, nodes: _core.ChakraNodes, which: Int64) -> None:
        rows = self._tags(nodes, which, self.receiver)
        self.receiver[rows] = npu
        self.sender[rows] = self._peers(nodes, which, nodes.comm_src[which], npu)
        self.received_bytes[rows] = nodes.comm_size[which]

    def _add_sent(self, npu: int, nodes: _core.ChakraNodes, which: Int64, local: Bool) -> None:
        rows = self._tags(nodes, which, self.src)
        stays = local[which]
        self.src[rows] = npu
        self._peers(nodes, which[~stays], nodes.comm_dst[which[~stays]], npu)
        self.dst[rows] = np.where(stays, npu, nodes.comm_dst[which])
        self.sent_bytes[rows] = np.where(stays, 0, nodes.comm_size[which])
        here = rows[stays]
        for row in here[self.receiver[here] >= 0][:1]:
            raise InputError(f"row {row} is copied here, but also received")
        self.receiver[here] = npu
        self.sender[here] = npu

    def _add_sums(self, nodes: _core.ChakraNodes, which: Int64, where: Int64) -> None:
        """A COMP without a tag adds what the first node it waits for has received."""
        first, end = nodes.data_offsets[which], nodes.data_offsets[which + 1]
        if len(nodes) == 1 and len(which) == 1 and first[0] == end[0]:
            return  # an idle NPU has one node, which does nothing
        for node in which[first == end][:1]:
            raise InputError(f"node {nodes.id[node]} waits for nothing that it could sum")
        received = where[nodes.data[first].astype(np.int64)]
        for node in which[nodes.type[received] != COMM_RECV][:1]:
            raise InputError(f"node {nodes.id[node]} sums something that was not received")
        self.reduce[nodes.comm_tag[received]] = True

    def _add_columns(
        self, nodes: _core.ChakraNodes, which: Int64, local: Bool, attributes: Attributes
    ) -> None:
        """Take over what the attributes say about the rows this NPU sends, ascending."""
        rows = np.sort(nodes.comm_tag[which])
        for name, column in {"chunk": self.chunk, **self._optional}.items():
            if name not in ("start", "end"):
                values = self._column(attributes, name, len(rows))
                checked_range(f"weft.{name}", values, self._limits.get(name, 1 << 31))
                column[rows] = values
        if "start" in self._optional:
            start = self._column(attributes, "start_ps", len(rows))
            self._optional["start"][rows] = start
            duration = self._column(attributes, "duration_ps", len(rows))
            self._optional["end"][rows] = start + duration
        if self._has_deps:
            counts = self._column(attributes, "dep_count", len(rows))
            deps = attributes.column("weft.deps")
            if ((counts < 0) | (counts > len(deps))).any() or counts.sum() != len(deps):
                raise InputError("weft.dep_count does not fit weft.deps")
            self._deps.append((rows, counts, deps))
        here = np.sort(nodes.comm_tag[local])
        if len(here):
            flags = attributes.flags("weft.local_reduce")
            if len(flags) != len(here):
                raise InputError(f"weft.local_reduce has {len(flags)} entries for {len(here)} rows")
            self.reduce[here] = flags

    @staticmethod
    def _column(attributes: Attributes, name: str, count: int) -> Int64:
        values = attributes.column(f"weft.{name}")
        if len(values) != count:
            raise InputError(f"weft.{name} has {len(values)} entries, but nodes send {count} rows")
        return values

    def table(self) -> Transfers:
        """The finished table; every row must have been seen."""
        optional = dict(self._optional)
        if self._has_deps:
            counts = np.zeros(len(self.src), dtype=np.int64)
            for rows, lengths, _ in self._deps:
                counts[rows] = lengths
            offsets = offsets_of(counts)
            deps = np.zeros(offsets[-1], dtype=np.int64)
            for rows, lengths, values in self._deps:
                deps[ranges(offsets[rows], lengths)] = values
            optional |= {"dep_offsets": offsets, "deps": deps}
        return Transfers(self.chunk, self.src, self.dst, self.reduce, **optional)
