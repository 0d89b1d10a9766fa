"""All-to-All in messages of several chunks: data goes together part of the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from weft.arrays import Int64
from weft.collective import Chunks, Collective
from weft.formats.chakra._flows import SPREAD, Flows, TraceFlow
from weft.formats.chakra._payloads import Payloads
from weft.formats.chakra.schema import COMM_RECV, COMM_SEND
from weft.formats.imported import Hints
from weft.ragged import owners

MOST_ROWS = 1 << 26


def by_pairs(trace: TraceFlow, group: Sequence[int], hints: Hints) -> tuple[Flows, Payloads] | None:
    """Take it that a message has a chunk from each NPU it may come from to each it may go to.

    So it is where any two NPUs have one way between them, as in hierarchical algorithms and
    Bruck's. None if the sizes of messages say otherwise.
    """
    rank = {npu: r for r, npu in enumerate(group)}
    ways = _ways(trace)
    sources = trace.gathered(_seeds(trace, COMM_SEND), *ways)
    targets = trace.gathered(_seeds(trace, COMM_RECV), *ways, backward=True)
    n = len(group)
    rows: list[int] = []
    chunks: list[int] = []
    sizes = trace.nodes.size[trace.messages.send].tolist()
    share = hints.size // n if hints.size is not None else None
    for message, size in enumerate(sizes):
        node = trace.messages.send[message]
        pairs = [
            rank[a] * n + rank[b]
            for a in _bits(sources[node])
            for b in _bits(targets[node])
            if a != b and a in rank and b in rank
        ]
        share = share or size // max(len(pairs), 1)
        if share * len(pairs) != size or len(rows) > MOST_ROWS:
            return None
        rows += [message] * len(pairs)
        chunks += pairs
    if share is None:
        return None
    demand = Collective.of("all-to-all", group, hints.size or share * n, 1, alignment=1)
    if len(demand.chunks) != n * n:
        return None
    flows = replace(
        trace.follow(group, SPREAD, parts=False),
        message=np.array(rows, dtype=np.int64),
        part=np.array(chunks, dtype=np.int32),
    )
    return flows, Payloads(demand, np.arange(n * n, dtype=np.int32))


def _ways(trace: TraceFlow) -> tuple[Int64, Int64]:
    """The edges over which data may go: what nodes wait for, and messages."""
    nodes, messages = trace.nodes, trace.messages
    waiter = owners(np.diff(nodes.offsets))
    kept = (
        nodes.carries & (nodes.kind[nodes.waits] != COMM_SEND) & (nodes.kind[waiter] != COMM_RECV)
    )
    before = np.concatenate([nodes.waits[kept], messages.send])
    return before, np.concatenate([waiter[kept], messages.recv])


def _seeds(trace: TraceFlow, kind: int | None = None) -> list[int]:
    """For each node its NPU, as a bit; nothing if it is not of the `kind` that is asked for."""
    kinds = trace.nodes.kind.tolist()
    npus = zip(trace.nodes.npu.tolist(), kinds, strict=True)
    return [1 << npu if kind in (None, there) else 0 for npu, there in npus]


def out_of_reach(trace: TraceFlow, chunks: Chunks) -> bool:
    """Whether some NPU lacks a contribution, whatever the messages carry.

    A message may carry whatever its sender may have by then: what came before anything that the
    COMM_SEND waits for.
    """
    nodes, messages = trace.nodes, trace.messages
    before = np.concatenate([nodes.waits, messages.send])
    after = np.concatenate([owners(np.diff(nodes.offsets)), messages.recv])
    has = [1 << npu for npu in range(len(nodes.files))]  # at the end
    for npu, data in zip(
        nodes.npu.tolist(), trace.gathered(_seeds(trace), before, after), strict=True
    ):
        has[npu] |= data
    ends = np.stack([chunks.pre, chunks.post, chunks.reduce], axis=1)
    for pre, post, reduce in np.unique(ends, axis=0).tolist():
        givers = sum(1 << npu for npu in chunks.members(pre).tolist())
        for npu in chunks.members(post).tolist():
            there = has[npu] & givers
            if there != givers if reduce else not there:
                return True
    return False


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]
