"""Rows from messages: in an order in which they could run one after the other, with places.

A message reads when it is sent, and what it brings is added when it has arrived. Rows do both at
once. Where an NPU sends its own sum after a row would have added to it, though the trace does not
wait for that, the row goes to scratch, and a local row adds it later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Buffer, Transfers, place
from weft.arrays import Bool, Int32, Int64
from weft.formats.chakra._flows import Flows, TraceFlow
from weft.formats.chakra._payloads import Payloads
from weft.formats.chakra.schema import COMM_RECV, COMM_SEND
from weft.ragged import earlier_equals, lengths_of, offsets_of, owners, places

MOST_STEPS = 200_000_000


@dataclass(frozen=True, eq=False)
class Ordered:
    """A table, and the message each row is from."""

    transfers: Transfers
    message: Int64


def ordered(trace: TraceFlow, flows: Flows, payloads: Payloads) -> Ordered:
    """The rows of a trace, with the dependencies that the flow of data does not explain."""
    depth = trace.levels()[trace.messages.send[flows.message]]
    order = np.lexsort((np.arange(len(depth)), depth))
    message = flows.message[order]
    chunk = payloads.chunk[flows.part[order]].astype(np.int32)
    content = flows.content[order]
    reduce = payloads.demand.chunks.reduce[chunk] & ~flows.complete[content]
    rows = Transfers(chunk, flows.src[order], flows.dst[order], reduce)
    done = _with_scratch(Ordered(rows, message), _added_before(rows, flows, content))
    return replace(done, transfers=_with_deps(trace, done, _node_chunks(flows, payloads)))


def _node_chunks(flows: Flows, payloads: Payloads) -> Int32:
    """The chunk that each node computes on alone, or -1."""
    alone = flows.node_part >= 0
    chunks = np.full(len(alone), -1, dtype=np.int32)
    chunks[alone] = payloads.chunk[flows.node_part[alone]]
    return chunks


def _with_scratch(done: Ordered, until: Int64) -> Ordered:
    """The rows, of which those that add too early, before row `until`, do so by way of scratch."""
    rows, count = done.transfers, len(done.message)
    late = np.flatnonzero(until >= 0)
    if len(late) == 0:
        return done
    slots = (earlier_equals(rows.dst[late]) | place(Buffer.SCRATCH, 0)).astype(np.int32)
    writes, reduce = rows.chunk.copy(), rows.reduce.copy()
    writes[late] = slots
    reduce[late] = False
    # Local rows stand just before the row that needs the sum.
    order = np.argsort(np.concatenate([np.arange(count) * 2 + 1, until[late] * 2]), kind="stable")

    def merged(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([first, second])[order]

    table = Transfers(
        merged(rows.chunk, rows.chunk[late]),
        merged(rows.src, rows.dst[late]),
        merged(rows.dst, rows.dst[late]),
        merged(reduce, np.ones(len(late), dtype=np.bool_)),
        src_place=merged(rows.chunk, slots),
        dst_place=merged(writes, rows.chunk[late]),
    )
    return Ordered(table, merged(done.message, done.message[late]))


def _added_before(rows: Transfers, flows: Flows, content: Int64) -> Int64:
    """For each row that adds too early: the row before which it must add; -1 for all others."""
    count, npus = len(rows.chunk), len(flows.nodes.files)
    places = rows.chunk.astype(np.int64) * npus
    _, cell = np.unique(np.concatenate([places + rows.src, places + rows.dst]), return_inverse=True)
    sent, written = cell[:count] * count + np.arange(count), cell[count:] * count
    senders = np.argsort(sent, kind="stable")
    sent = sent[senders]
    until = np.full(count, -1, dtype=np.int64)
    asked = np.flatnonzero(rows.reduce)
    at = np.searchsorted(sent, written[asked] + asked, side="right")
    early = np.zeros(len(asked), dtype=np.bool_)
    while len(asked):
        # The next row that sends from the place, if there is one.
        more = at < count
        more[more] = sent[at[more]] // count == cell[count:][asked[more]]
        until[asked[~more & early]] = count
        asked, at, early = asked[more], at[more], early[more]
        has = flows.contributors[content[senders[at]]]
        waits = ((flows.contributors[content[asked]] & ~has) == 0).all(axis=1)
        until[asked[waits & early]] = senders[at[waits & early]]
        asked, at, early = asked[~waits], at[~waits] + 1, np.ones(int((~waits).sum()), np.bool_)
    return until


def _with_deps(trace: TraceFlow, done: Ordered, node_chunk: Int32) -> Transfers:
    """The table with a dependency for each wait that the flow of data does not explain.

    `node_chunk` is the chunk that a node computes on alone, or -1.
    """
    rows = _MessageRows(trace, done)
    row, node = rows.waits()
    row, node = _unexplained(trace, rows, row, node, node_chunk)
    row, dep = rows.each(row, trace.messages.of[node])
    kept = dep < row
    row, dep = row[kept], dep[kept]
    if len(row) == 0:
        return done.transfers
    count = len(done.message)
    row, dep = np.divmod(np.unique(row * count + dep), count)
    offsets = offsets_of(np.bincount(row, minlength=count))
    return replace(done.transfers, dep_offsets=offsets, deps=dep)


class _MessageRows:
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
        counts = lengths_of(self._first, message)
        return np.repeat(what, counts), self._by_message[places(self._first, message)]

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
        waiter = owners(np.diff(nodes.offsets))
        counts = (of[waiter] >= 0) & (
            (nodes.kind[waiter] == COMM_SEND) | (nodes.kind[nodes.waits] != COMM_SEND)
        )
        node, row = self.each(np.flatnonzero(counts), of[waiter[counts]])
        kept = self._moves[row]
        return row[kept], node[kept]


def _unexplained(
    trace: TraceFlow, rows: _MessageRows, row: Int64, wait: Int64, node_chunk: Int32
) -> tuple[Int64, Int64]:
    """Rows and the COMM_SEND and COMM_RECV nodes they wait for, but for what they pass on."""
    nodes, of = trace.nodes, trace.messages.of
    waiter = owners(np.diff(nodes.offsets))
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
        counts = lengths_of(nodes.offsets, node)
        waited = nodes.waits[places(nodes.offsets, node)]
        keys = np.repeat(row * 2 + sends, counts) * len(nodes) + waited
        row, node = np.divmod(np.unique(keys), max(len(nodes), 1))
        row, sends = row // 2, row % 2 == 1
    none = np.zeros(0, dtype=np.int64)
    return (
        np.concatenate([none, *(some for some, _ in found)]),
        np.concatenate([none, *(some for _, some in found)]),
    )
