"""Rows from messages: in an order in which they could run one after the other, with places.

A message reads when it is sent, and what it brings is added when it has arrived. Rows do both at
once. Where an NPU sends its own sum after a row would have added to it, though the trace does not
wait for that, the row goes to scratch, and a local row adds it later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Buffer, Transfers, place
from weft.formats.chakra._carried import Carried
from weft.formats.chakra._columns import ragged
from weft.formats.chakra._flows import Flows, TraceFlow
from weft.formats.chakra._rows import COMM_RECV, COMM_SEND

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Ordered:
    """The table, and the message each row is from."""

    transfers: Transfers
    message: Int64


def ordered(trace: TraceFlow, flows: Flows, carried: Carried) -> Ordered:
    """The rows of a trace, with the dependencies that the flow of data does not explain."""
    depth = trace.levels()[trace.messages.send[flows.message]]
    order = np.lexsort((np.arange(len(depth)), depth))
    message = flows.message[order]
    chunk = carried.chunk[flows.part[order]].astype(np.int32)
    reduce = carried.demand.chunks.reduce[chunk] & ~flows.complete[message]
    rows = _Rows(message, chunk, flows.src[order], flows.dst[order], reduce)
    done = _with_scratch(rows, flows)
    return replace(done, transfers=_with_deps(trace, done))


@dataclass(frozen=True, eq=False)
class _Rows:
    message: Int64
    chunk: Int32
    src: Int32
    dst: Int32
    reduce: Bool


def _with_scratch(rows: _Rows, flows: Flows) -> Ordered:
    until = _added_before(rows, flows)
    count = len(rows.chunk)
    late = np.flatnonzero(until >= 0)
    if len(late) == 0:
        return Ordered(Transfers(rows.chunk, rows.src, rows.dst, rows.reduce), rows.message)
    slots = np.array([place(Buffer.SCRATCH, i) for i in _counted(rows.dst[late])], dtype=np.int32)
    home = rows.chunk.copy()
    reads, writes, reduce = home.copy(), home.copy(), rows.reduce.copy()
    writes[late] = slots
    reduce[late] = False
    # Local rows stand just before the row that needs the sum.
    order = np.argsort(np.concatenate([np.arange(count) * 2 + 1, until[late] * 2]), kind="stable")

    def merged(first: NDArray[np.generic], second: NDArray[np.generic]) -> NDArray[np.generic]:
        return np.concatenate([first, second])[order]

    table = Transfers(
        merged(rows.chunk, rows.chunk[late]),  # type: ignore[arg-type]
        merged(rows.src, rows.dst[late]),  # type: ignore[arg-type]
        merged(rows.dst, rows.dst[late]),  # type: ignore[arg-type]
        merged(reduce, np.ones(len(late), dtype=np.bool_)),  # type: ignore[arg-type]
        src_place=merged(reads, slots),  # type: ignore[arg-type]
        dst_place=merged(writes, home[late]),  # type: ignore[arg-type]
    )
    return Ordered(table, merged(rows.message, rows.message[late]))  # type: ignore[arg-type]


def _added_before(rows: _Rows, flows: Flows) -> Int64:
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
        has = flows.contributors[rows.message[senders[at]]]
        waits = ((flows.contributors[rows.message[asked]] & ~has) == 0).all(axis=1)
        until[asked[waits & early]] = senders[at[waits & early]]
        asked, at, early = asked[~waits], at[~waits] + 1, np.ones(int((~waits).sum()), np.bool_)
    return until


def _counted(values: Int32) -> Int64:
    """How many equal values stand before each."""
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    starts = np.flatnonzero(np.concatenate([[True], np.diff(ranked) != 0]))
    counts = np.diff(np.concatenate([starts, [len(values)]]))
    found = np.zeros(len(values), dtype=np.int64)
    found[order] = np.arange(len(values)) - np.repeat(starts, counts)
    return found


def _with_deps(trace: TraceFlow, done: Ordered) -> Transfers:
    """The table with what nodes wait for besides the data that they pass on."""
    later, earlier = _Waits(trace, done).unexplained()
    first = np.searchsorted(done.message[order := np.argsort(done.message, kind="stable")],
                            np.arange(len(trace.messages) + 1))
    counts = np.diff(first)
    # Every row of the one waits for every row of the other.
    pairs = np.repeat(np.arange(len(later)), counts[later])
    row = order[ragged(first[later], counts[later])]
    width = counts[earlier][pairs]
    row = np.repeat(row, width)
    dep = order[ragged(first[earlier][pairs], width)]
    kept = (dep < row) & (done.transfers.src[row] != done.transfers.dst[row])
    row, dep = row[kept], dep[kept]
    if len(row) == 0:
        return done.transfers
    pair = np.unique(row * len(done.message) + dep)
    row, dep = np.divmod(pair, len(done.message))
    counts = np.bincount(row, minlength=len(done.message))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return replace(done.transfers, dep_offsets=offsets, deps=dep.astype(np.int64))


class _Waits:
    """Pairs of messages of which one waits for the other."""

    def __init__(self, trace: TraceFlow, done: Ordered) -> None:
        self._nodes, self._messages = trace.nodes, trace.messages
        chunks = int(done.transfers.chunk.max(initial=0)) + 1
        keys = done.message * chunks + done.transfers.chunk
        self._chunks, self._keys = chunks, np.unique(keys)
        self._first = np.zeros(len(trace.messages), dtype=np.int64)
        self._first[done.message[::-1]] = done.transfers.chunk[::-1]

    def unexplained(self) -> tuple[Int64, Int64]:
        """Messages that wait for others from which they do not get what they pass on."""
        nodes = self._nodes
        waiter = np.repeat(np.arange(len(nodes)), np.diff(nodes.offsets))
        moves = self._messages.of[waiter] >= 0
        later, node = self._messages.of[waiter[moves]], nodes.waits[moves]
        receives = nodes.kind[waiter[moves]] == COMM_RECV
        # What a COMM_RECV waits for only counts if it ends on the same NPU.
        counts = ~(receives & (nodes.kind[node] == COMM_SEND))
        later, node, receives = later[counts], node[counts], receives[counts]
        earlier = self._nearest()[node]
        sends = nodes.kind[node] == COMM_SEND
        known = (earlier >= 0) & ~sends & ~receives & self._share(later, earlier)
        later, node = self._spread_out(later[~known], node[~known])
        earlier = self._messages.of[node]
        known = (nodes.kind[node] == COMM_RECV) & self._share(later, earlier)
        plain = ~known & (earlier != later)
        return later[plain], earlier[plain]

    def _nearest(self) -> Int64:
        """The message of each node; of one that computes, the first it waits for directly."""
        nodes, of = self._nodes, self._messages.of.copy()
        waiter = np.repeat(np.arange(len(nodes)), np.diff(nodes.offsets))[::-1]
        waited = nodes.waits[::-1]
        direct = (self._messages.of[waiter] < 0) & (nodes.kind[waited] == COMM_RECV)
        of[waiter[direct]] = self._messages.of[waited[direct]]
        return of

    def _share(self, one: Int64, other: Int64) -> Bool:
        """Whether two messages have a chunk in common; one has all that the other has, or none."""
        return self._carries(one, self._first[other]) | self._carries(other, self._first[one])

    def _carries(self, message: Int64, chunk: Int64) -> Bool:
        keys = message * self._chunks + chunk
        at = np.minimum(np.searchsorted(self._keys, keys), max(len(self._keys) - 1, 0))
        found: Bool = self._keys[at] == keys if len(self._keys) else np.zeros(len(keys), np.bool_)
        return found

    def _spread_out(self, later: Int64, node: Int64) -> tuple[Int64, Int64]:
        """Instead of a node that computes all that it waits for, over others like it too."""
        nodes, done_later, done_node = self._nodes, [], []
        while len(later):
            moves = self._messages.of[node] >= 0
            done_later.append(later[moves])
            done_node.append(node[moves])
            later, node = later[~moves], node[~moves]
            counts = nodes.offsets[node + 1] - nodes.offsets[node]
            later = np.repeat(later, counts)
            node = nodes.waits[ragged(nodes.offsets[node], counts)]
            pair = np.unique(later * len(nodes) + node)
            later, node = np.divmod(pair, max(len(nodes), 1))
        none = np.zeros(0, dtype=np.int64)
        return np.concatenate([none, *done_later]), np.concatenate([none, *done_node])
