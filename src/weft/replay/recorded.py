"""A run of traces without the core's objects: what pickling and copying hand on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.values import Value

KINDS = ("compute", "send", "receive", "host")
"""What a node does, by the numbers of `TraceRun.kind`; ``host`` computes on the CPU."""
_MESSAGES = [KINDS.index("send"), KINDS.index("receive")]


@dataclass(frozen=True, eq=False)
class RecordedGraph(Value):
    """What `_core.RunGraph` says of the nodes, as columns.

    Attributes
    ----------
    firsts, kind
        As those of the core's.
    id_of
        The id of each node in its rank's file.
    messages
        Source, destination, tag and bytes of each node's message; zeros where there is none.
    """

    firsts: NDArray[np.uint32]
    kind: NDArray[np.uint8]
    id_of: NDArray[np.uint64]
    messages: NDArray[np.int64]

    @classmethod
    def of(cls, graph: _core.RunGraph | RecordedGraph) -> RecordedGraph:
        if isinstance(graph, RecordedGraph):
            return graph
        messages = np.zeros((len(graph), 4), dtype=np.int64)
        for node in np.flatnonzero(np.isin(graph.kind, _MESSAGES)).tolist():
            messages[node] = graph.message(node)
        return cls(graph.firsts, graph.kind, graph.ids(), messages)

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def ranks(self) -> int:
        return len(self.firsts) - 1

    def ids(self) -> NDArray[np.uint64]:
        return self.id_of

    def rank(self, node: int) -> int:
        return int(np.searchsorted(self.firsts, node, side="right")) - 1

    def id(self, node: int) -> int:
        return int(self.id_of[node])

    def message(self, node: int) -> tuple[int, int, int, int]:
        source, destination, tag, size = self.messages[node].tolist()
        return source, destination, tag, size


@dataclass(frozen=True, eq=False)
class RecordedRun(Value):
    """What `_core.TraceRun` says of the times; `unhindered` is by the sends of the chain."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    finish: NDArray[np.int64]
    links: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]
    stuck: list[tuple[int, int | None]]
    chain: NDArray[np.uint32]
    unhindered: dict[int, int]

    @classmethod
    def of(
        cls, run: _core.TraceRun | RecordedRun, graph: _core.RunGraph | RecordedGraph
    ) -> RecordedRun:
        if isinstance(run, RecordedRun):
            return run
        chain = run.critical_chain()
        sends = chain[graph.kind[chain] == KINDS.index("send")].tolist()
        unhindered = {node: run.alone(node) for node in sends}
        return cls(run.start, run.end, run.finish, run.links, run.stuck, chain, unhindered)

    def alone(self, node: int) -> int:
        return self.unhindered[node]

    def critical_chain(self) -> NDArray[np.uint32]:
        return self.chain
