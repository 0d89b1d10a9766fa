"""All-to-All in messages of several chunks: data goes together part of the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weft.collective import Collective
from weft.formats.chakra._flows import SPREAD, Flows, TraceFlow
from weft.formats.chakra._payloads import Payloads
from weft.formats.chakra._row_collector import COMM_RECV, COMM_SEND
from weft.formats.imported import Hints

Int64 = NDArray[np.int64]

MOST_ROWS = 1 << 26


def by_pairs(trace: TraceFlow, group: Sequence[int], hints: Hints) -> tuple[Flows, Payloads] | None:
    """Take it that a message has a chunk from each NPU it may come from to each it may go to.

    So it is where any two NPUs have one way between them, as in hierarchical algorithms and
    Bruck's. None if the sizes of messages say otherwise.
    """
    rank = {npu: r for r, npu in enumerate(group)}
    sources, targets = _sources(trace), _targets(trace)
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


def _sources(trace: TraceFlow) -> list[int]:
    """For each node the NPUs whose data it may have, as bits."""
    nodes, messages = trace.nodes, trace.messages
    found = [0] * len(nodes)
    kind, npu, of = nodes.kind.tolist(), nodes.npu.tolist(), messages.of.tolist()
    send, (offsets, waited) = messages.send.tolist(), _data_waits(trace)
    for node in np.argsort(trace.levels(), kind="stable").tolist():
        if kind[node] == COMM_RECV:
            found[node] = found[send[of[node]]]
            continue
        for before in waited[offsets[node] : offsets[node + 1]]:
            found[node] |= found[before]
        if kind[node] == COMM_SEND:
            found[node] |= 1 << npu[node]
    return found


def _targets(trace: TraceFlow) -> list[int]:
    """For each node the NPUs that what it has may go to, as bits."""
    nodes, messages = trace.nodes, trace.messages
    found = [0] * len(nodes)
    kind, npu, of = nodes.kind.tolist(), nodes.npu.tolist(), messages.of.tolist()
    recv, (offsets, waited) = messages.recv.tolist(), _data_waits(trace)
    for node in np.argsort(-trace.levels(), kind="stable").tolist():
        if kind[node] == COMM_RECV:
            found[node] |= 1 << npu[node]
            continue
        if kind[node] == COMM_SEND:
            found[node] = found[recv[of[node]]]
        for before in waited[offsets[node] : offsets[node + 1]]:
            found[before] |= found[node]
    return found


def _data_waits(trace: TraceFlow) -> tuple[list[int], list[int]]:
    """The nodes that each node may get data from: offsets, and nodes."""
    nodes = trace.nodes
    kept = nodes.carries & (nodes.kind[nodes.waits] != COMM_SEND)
    offsets = np.concatenate([[0], np.cumsum(kept)])[nodes.offsets]
    return offsets.tolist(), nodes.waits[kept].tolist()


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]
