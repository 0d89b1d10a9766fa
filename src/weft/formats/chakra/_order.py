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
from weft.formats.chakra._deps import Ordered, with_deps
from weft.formats.chakra._flows import Flows, TraceFlow
from weft.formats.chakra._payloads import Payloads

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


def ordered(trace: TraceFlow, flows: Flows, payloads: Payloads) -> Ordered:
    """The rows of a trace, with the dependencies that the flow of data does not explain."""
    depth = trace.levels()[trace.messages.send[flows.message]]
    order = np.lexsort((np.arange(len(depth)), depth))
    message = flows.message[order]
    chunk = payloads.chunk[flows.part[order]].astype(np.int32)
    content = flows.content[order]
    reduce = payloads.demand.chunks.reduce[chunk] & ~flows.complete[content]
    rows = _Rows(message, content, chunk, flows.src[order], flows.dst[order], reduce)
    done = _with_scratch(rows, flows)
    return replace(done, transfers=with_deps(trace, done, _node_chunks(flows, payloads)))


def _node_chunks(flows: Flows, payloads: Payloads) -> Int32:
    """The chunk that each node computes on alone, or -1."""
    alone = flows.node_part >= 0
    chunks = np.full(len(alone), -1, dtype=np.int32)
    chunks[alone] = payloads.chunk[flows.node_part[alone]]
    return chunks


@dataclass(frozen=True, eq=False)
class _Rows:
    message: Int64
    content: Int64
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

    def merged(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([first, second])[order]

    table = Transfers(
        merged(rows.chunk, rows.chunk[late]),
        merged(rows.src, rows.dst[late]),
        merged(rows.dst, rows.dst[late]),
        merged(reduce, np.ones(len(late), dtype=np.bool_)),
        src_place=merged(reads, slots),
        dst_place=merged(writes, home[late]),
    )
    return Ordered(table, merged(rows.message, rows.message[late]))


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
        has = flows.contributors[rows.content[senders[at]]]
        waits = ((flows.contributors[rows.content[asked]] & ~has) == 0).all(axis=1)
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
