"""What flows from where to where in a trace: the parts that its messages carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.arrays import Bool, Int32, Int64
from weft.errors import FormatError
from weft.formats.chakra._graph import Messages, TraceNodes
from weft.ragged import owners

SPREAD = _core.TraceDirection.spread
COLLECT = _core.TraceDirection.collect
BOTH = _core.TraceDirection.collect_and_spread

MAX_SET_BYTES = 4 << 30
ADVICE = "give messages msg_chunk_idx, msg_chunk_cnt and total_chunk_cnt"


@dataclass(frozen=True, eq=False)
class Flows:
    """Parts: pieces of data that are never cut further, and the messages that carry them.

    Attributes
    ----------
    message, part
        One row for each part of each message, in order of messages.
    npu
        Where each part starts, or ends if it is collected.
    size
        Bytes of each part.
    node_part
        For each node that computes on one part alone, that part; else -1.
    complete
        For each message, whether it has all contributions.
    contributors
        For each message the set of ranks that contributed, as words of 64 bits.
    by_row
        Whether `complete` and `contributors` are of each row instead: the chunks of one message
        may have come different ways.
    """

    nodes: TraceNodes
    messages: Messages
    message: Int64
    part: Int32
    npu: Int32
    size: Int64
    node_part: Int32
    complete: Bool
    contributors: NDArray[np.uint64]
    by_row: bool = False

    def __len__(self) -> int:
        return len(self.npu)

    @property
    def content(self) -> Int64:
        """Which of `complete` and `contributors` is each row's."""
        return np.arange(len(self.message)) if self.by_row else self.message

    @property
    def src(self) -> Int32:
        """The sender of each row."""
        return self.nodes.npu[self.messages.send[self.message]]

    @property
    def dst(self) -> Int32:
        """The receiver of each row."""
        return self.nodes.npu[self.messages.recv[self.message]]

    def first_nodes(self) -> Int64:
        """A node that sends each part, for messages."""
        first = np.full(len(self), -1, dtype=np.int64)
        first[self.part[::-1]] = self.messages.send[self.message[::-1]]
        return first

    def masks(self, npus: Int32) -> list[int]:
        """For each part the set of the NPUs named by its rows, as bits."""
        masks = [0] * len(self)
        for part, npu in zip(self.part.tolist(), npus.tolist(), strict=True):
            masks[part] |= 1 << npu
        return masks


class TraceFlow:
    """The graph of a trace, ready to be followed."""

    def __init__(self, nodes: TraceNodes, messages: Messages) -> None:
        self.nodes, self.messages = nodes, messages
        self._graph = _core.TraceGraph(
            npu=nodes.npu,
            offsets=nodes.offsets,
            waits=nodes.waits,
            carries=nodes.carries,
            message=messages.of,
            send=messages.send,
            recv=messages.recv,
            bytes=np.ascontiguousarray(nodes.size[messages.send]),
        )
        if self._graph.stuck >= 0:
            raise nodes.error(
                self._graph.stuck, "can never run: dependencies and messages form a cycle"
            )

    def levels(self) -> Int32:
        """How deep each node lies: everything it waits for lies less deep."""
        return self._graph.levels()

    def gathered(
        self, seeds: list[int], source: Int64, target: Int64, *, backward: bool = False
    ) -> list[int]:
        """For each node its seed and those of all nodes that lead to it, as bits.

        Each edge leads from a node to one that lies deeper, or from that to it if `backward`.
        """
        found = list(seeds)
        depth = -self.levels() if backward else self.levels()
        start, end = (target, source) if backward else (source, target)
        order = np.argsort(depth[end], kind="stable")
        for before, after in zip(start[order].tolist(), end[order].tolist(), strict=True):
            found[after] |= found[before]
        return found

    def follow(
        self, group: Sequence[int], direction: _core.TraceDirection, *, parts: bool = True
    ) -> Flows:
        """Find out what messages carry; contributions are those of the group.

        Without `parts` only whose contributions messages have.
        """
        npus = len(self.nodes.files)
        rank = np.full(npus, -1, dtype=np.int32)
        rank[list(group)] = np.arange(len(group))
        ranks = 0 if direction == SPREAD else len(group)
        computing = int((self.messages.of < 0).sum())
        words = (ranks + 63) // 64
        if (len(self.messages) + computing) * words * 8 > MAX_SET_BYTES:
            raise FormatError(
                f"{self.nodes.path(0)}: following {len(self.messages)} messages among {ranks} "
                "NPUs would take more than 4GiB"
            )
        flow = self._graph.follow(rank, ranks, direction, parts)
        if flow.fault != _core.TraceFault.none:
            many = flow.fault == _core.TraceFault.too_many
            raise (self.nodes.error if many else self.nodes.unclear)(
                flow.node, self._sentence(flow)
            )
        return Flows(
            self.nodes,
            self.messages,
            owners(np.diff(flow.offsets)),
            flow.parts,
            flow.part_npu,
            flow.part_bytes,
            flow.node_part,
            flow.complete,
            flow.contributors.reshape(len(self.messages), words),
        )

    def _sentence(self, flow: _core.TraceFlow) -> str:
        size = self.nodes.size[flow.node]
        if flow.fault == _core.TraceFault.mixed_source:
            return (
                f"sends {size} B and waits for {flow.found} B, and nothing says which of them it "
                f"passes on; {ADVICE}"
            )
        if flow.fault == _core.TraceFault.mixed_use:
            return (
                f"receives {size} B of which {flow.found} B are passed on, and nothing says how "
                f"they fit together; {ADVICE}"
            )
        if flow.fault == _core.TraceFault.too_many:
            return f"and those before it carry more than {flow.found} pieces of data in all"
        return f"brings together messages that are cut in different pieces; {ADVICE}"
