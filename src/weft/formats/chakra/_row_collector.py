"""Collects the rows of a table from the traces of one NPU after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import COLUMN_TYPES, Transfers
from weft.arrays import Bool, Int32, Int64
from weft.errors import InputError
from weft.formats.chakra._attributes import OPTIONAL, Attributes, TraceHeader
from weft.formats.chakra._trace_files import check_present
from weft.formats.chakra.schema import COMM_RECV, COMM_SEND, COMP, HAS_TAG
from weft.formats.limits import checked_range
from weft.quoting import quoted
from weft.ragged import earlier_equals, offsets_of, ranges


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
        self.expected_src = np.full(rows, -1, dtype=np.int32)
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
        self.expected_src[rows] = self._peers(nodes, which, nodes.comm_src[which], npu)
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
        self.expected_src[here] = npu

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
