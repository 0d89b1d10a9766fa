"""Traces as other tools write them: nodes only, no attribute of Weft's."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from weft import _core

COMP, SEND, RECV = 4, 5, 6


class TraceWriter:
    """Collects the nodes of all ranks; a node is named by its rank and its number."""

    def __init__(self, ranks: int) -> None:
        self.nodes = [[] for _ in range(ranks)]
        self._tags = defaultdict(int)

    def add(self, rank, kind, after=(), order=(), **known):
        self.nodes[rank].append((kind, list(after), list(order), known))
        return len(self.nodes[rank]) - 1

    def comp(self, rank, after=(), order=()):
        return self.add(rank, COMP, after, order)

    def message(self, src, dst, size, after=(), order=(), tag=None, chunks=None, received=None):
        """A message; gives the node that receives it, which may name other chunks."""
        if tag is None:
            tag = self._tags[src, dst]
            self._tags[src, dst] += 1
        known = {"comm_size": size, "comm_tag": tag}
        names = ("msg_chunk_idx", "msg_chunk_cnt", "total_chunk_cnt")
        sent, taken = (
            dict(zip(names, numbers, strict=True)) if numbers else {}
            for numbers in (chunks, received or chunks)
        )
        self.add(src, SEND, after, order, comm_dst=dst, **known, **sent)
        return self.add(dst, RECV, comm_src=src, **known, **taken)

    def write(self, folder: Path, prefix: str = "trace.") -> Path:
        folder.mkdir(exist_ok=True)
        for rank, nodes in enumerate(self.nodes):
            if not nodes:
                self.comp(rank)
            (folder / f"{prefix}{rank}.et").write_bytes(trace(self.nodes[rank]))
        return folder


KNOWN = (
    "comm_src",
    "comm_dst",
    "comm_size",
    "comm_tag",
    "msg_chunk_cnt",
    "msg_chunk_idx",
    "total_chunk_cnt",
)


def trace(nodes) -> bytes:
    """One file's bytes, from (kind, data waits, order waits, attributes)."""
    count = len(nodes)
    columns = {
        name: np.array([known.get(name, 0) for *_, known in nodes], np.int64) for name in KNOWN
    }
    present = [sum(1 << i for i, name in enumerate(KNOWN) if name in known) for *_, known in nodes]

    def waits(at):
        lists = [node[at] for node in nodes]
        offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
        return offsets, np.array([one for some in lists for one in some], np.uint64)

    (data_offsets, data), (ctrl_offsets, ctrl) = waits(1), waits(2)
    return _core.write_chakra(
        "0.0.4",
        [],
        _core.ChakraNodes(
            id=np.arange(count, dtype=np.uint64),
            type=np.array([node[0] for node in nodes], np.int32),
            data_offsets=data_offsets,
            data=data,
            ctrl_offsets=ctrl_offsets,
            ctrl=ctrl,
            start=np.zeros(count, np.uint64),
            duration=np.zeros(count, np.uint64),
            present=np.array(present, np.uint16),
            **columns,
        ),
    )
