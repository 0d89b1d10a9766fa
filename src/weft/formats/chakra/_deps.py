"""What nodes of a trace wait for besides the data that they pass on: dependencies of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Transfers
from weft.formats.chakra._columns import ragged
from weft.formats.chakra._flows import TraceFlow
from weft.formats.chakra._row_collector import COMM_RECV, COMM_SEND

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

MOST_STEPS = 200_000_000


@dataclass(frozen=True, eq=False)
class Ordered:
    """A table, and the message each row is from."""

    transfers: Transfers
    message: Int64


def with_deps(trace: TraceFlow, done: Ordered, node_chunk: Int32) -> Transfers:
    """The table with a dependency for each wait that the flow of data does not explain.

    `node_chunk` is the chunk that a node computes on alone, or -1.
    """
    rows = _Rows(trace, done)
    row, node = rows.waits()
    row, node = _unexplained(trace, rows, row, node, node_chunk)
    row, dep = rows.each(row, trace.messages.of[node])
    kept = dep < row
    row, dep = row[kept], dep[kept]
    if len(row) == 0:
        return done.transfers
    count = len(done.message)
    row, dep = np.divmod(np.unique(row * count + dep), count)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=count))])
    return replace(done.transfers, dep_offsets=offsets.astype(np.int64), deps=dep)


class _Rows:
    """The rows of each message, and which chunks it has."""

    def __init__(self, trace: TraceFlow, done: Ordered) -> None:
        self._trace = trace
        self.chunk = done.transfers.chunk
        self._by_message = np.argsort(done.message, kind="stable")
        marks = np.arange(len(trace.messages) + 1)
        self._first = np.searchsorted(done.message[self._by_message], marks)
        self._chunks = int(self.chunk.max(initial=0)) + 1
        self._keys = np.unique(done.message * self._chunks + self.chunk)
        self._moves = done.transfers.src != done.transfers.dst

    def each(self, what: Int64, message: Int64) -> tuple[Int64, Int64]:
        """For each of `what` the rows of its message."""
        counts = self._first[message + 1] - self._first[message]
        return np.repeat(what, counts), self._by_message[ragged(self._first[message], counts)]

    def carries(self, message: Int64, chunk: Int32) -> Bool:
        """Whether messages have these chunks."""
        keys = message * self._chunks + chunk
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        found: Bool = self._keys[at] == keys
        return found

    def waits(self) -> tuple[Int64, Int64]:
        """Rows that move something, and the nodes they wait for.

        A row waits for what its COMM_SEND waits for. What its COMM_RECV waits for only counts if
        it ends there: others send without asking.
        """
        nodes, of = self._trace.nodes, self._trace.messages.of
        waiter = np.repeat(np.arange(len(nodes)), np.diff(nodes.offsets))
        counts = (of[waiter] >= 0) & (
            (nodes.kind[waiter] == COMM_SEND) | (nodes.kind[nodes.waits] != COMM_SEND)
        )
        node, row = self.each(np.flatnonzero(counts), of[waiter[counts]])
        kept = self._moves[row]
        return row[kept], node[kept]


def _unexplained(
    trace: TraceFlow, rows: _Rows, row: Int64, wait: Int64, node_chunk: Int32
) -> tuple[Int64, Int64]:
    """Rows and the COMM_SEND and COMM_RECV nodes they wait for, but for what they pass on."""
    nodes, of = trace.nodes, trace.messages.of
    waiter = np.repeat(np.arange(len(nodes)), np.diff(nodes.offsets))
    sends = nodes.kind[waiter[wait]] == COMM_SEND  # a COMM_RECV passes nothing on
    node = nodes.waits[wait]
    found: list[tuple[Int64, Int64]] = []
    left_to_do = MOST_STEPS
    while len(row):
        left_to_do -= len(row) + 1000  # a step costs something even if it is small
        if left_to_do < 0:
            raise nodes.error(
                int(node[0]), "is waited for over too many nodes that compute to follow them all"
            )
        chunk = rows.chunk[row]
        known = (of[node] < 0) & (node_chunk[node] == chunk)
        arrives = nodes.kind[node] == COMM_RECV
        known[arrives] = rows.carries(of[node[arrives]], chunk[arrives])
        left = ~(known & sends)
        row, node, sends = row[left], node[left], sends[left]
        ends = of[node] >= 0
        found.append((row[ends], node[ends]))
        # A node that computes stands for all that it waits for.
        row, node, sends = row[~ends], node[~ends], sends[~ends]
        counts = nodes.offsets[node + 1] - nodes.offsets[node]
        steps = ragged(nodes.offsets[node], counts)
        keys = np.repeat(row * 2 + sends, counts) * len(nodes) + nodes.waits[steps]
        row, node = np.divmod(np.unique(keys), max(len(nodes), 1))
        row, sends = row // 2, row % 2 == 1
    none = np.zeros(0, dtype=np.int64)
    return (
        np.concatenate([none, *(some for some, _ in found)]),
        np.concatenate([none, *(some for _, some in found)]),
    )
