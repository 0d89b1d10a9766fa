"""What no reading of a trace can make up for: data that has no way to where it must go."""

from __future__ import annotations

import numpy as np

from weft.collective import Chunks
from weft.formats.chakra._flows import TraceFlow
from weft.formats.chakra._row_collector import COMM_RECV


def out_of_reach(trace: TraceFlow, chunks: Chunks) -> bool:
    """Whether some NPU lacks a contribution, whatever the messages carry."""
    has = _reached(trace)
    ends = np.stack([chunks.pre, chunks.post, chunks.reduce], axis=1)
    for pre, post, reduce in np.unique(ends, axis=0).tolist():
        givers = sum(1 << npu for npu in chunks.members(pre).tolist())
        for npu in chunks.members(post).tolist():
            there = has[npu] & givers
            if there != givers if reduce else not there:
                return True
    return False


def _reached(trace: TraceFlow) -> list[int]:
    """For each NPU those whose data it may have at the end, as bits.

    A message may carry whatever its sender may have by then: what came before anything that the
    COMM_SEND waits for.
    """
    nodes, messages = trace.nodes, trace.messages
    had = [1 << npu for npu in nodes.npu.tolist()]
    offsets, waits, of = nodes.offsets.tolist(), nodes.waits.tolist(), messages.of.tolist()
    for node in np.argsort(trace.levels(), kind="stable").tolist():
        for earlier in waits[offsets[node] : offsets[node + 1]]:
            had[node] |= had[earlier]
        if nodes.kind[node] == COMM_RECV:
            had[node] |= had[int(messages.send[of[node]])]
    found = [1 << npu for npu in range(len(nodes.files))]
    for npu, data in zip(nodes.npu.tolist(), had, strict=True):
        found[npu] |= data
    return found
