"""The nodes of all ranks as one graph: which message each takes part in, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.arrays import Bool, Int32, Int64
from weft.documents import naming
from weft.errors import FormatError, InputError, UnclearError
from weft.formats.chakra._trace_files import TraceFiles, check_present
from weft.formats.chakra.schema import (
    COMM_COLL,
    COMM_RECV,
    COMM_SEND,
    COMP,
    HAS_CHUNKS,
    HAS_SIZE,
    METADATA,
    TAGS,
)
from weft.ragged import lengths_of, offsets_of, owners, places, ranges
from weft.units import MAX_BYTES

MAX_TAG = (1 << 31) - 1


@dataclass(frozen=True, eq=False)
class TraceNodes:
    """The nodes of all ranks, one rank after the other, in the order of their files.

    Attributes
    ----------
    firsts
        The first node of each rank, and at the end the number of nodes.
    number
        Their ids (uint64).
    npu, kind, peer, size, tag
        The rank; the node's type; the other NPU, the bytes and the tag of messages.
    offsets, waits
        The nodes each node waits for, by position.
    carries
        Whether each of these waits may be for data.
    chunks
        The three counts of chunks, one column each; None unless all messages have them.
    """

    files: TraceFiles
    firsts: Int64
    number: NDArray[np.uint64]
    npu: Int32
    kind: Int32
    peer: Int64
    size: Int64
    tag: Int64
    offsets: Int64
    waits: Int64
    carries: Bool
    chunks: tuple[Int64, Int64, Int64] | None

    def __len__(self) -> int:
        return len(self.number)

    def path(self, node: int) -> Path:
        return self.files.path(int(self.npu[node]))

    def name(self, node: int) -> str:
        """File and id of a node, for messages."""
        return f"{self.path(node).name} node {self.number[node]}"

    def error(self, node: int, text: str) -> FormatError:
        """What is wrong with a node, or with what it takes part in."""
        return FormatError(self._about(node, text))

    def unclear(self, node: int, text: str) -> UnclearError:
        """What is unclear about a node, or of what it takes part in."""
        return UnclearError(self._about(node, text))

    def _about(self, node: int, text: str) -> str:
        return f"{self.path(node)}: node {self.number[node]} {text}"


def through_sends(nodes: TraceNodes) -> TraceNodes:
    """The same trace, in which who waits for a COMM_SEND has what that waited for.

    Some writers let a COMM_SEND wait for the one before it instead of for what both pass on. For
    each that is waited for there is one more node, at the end, which waits for the same.
    """
    waiter = owners(np.diff(nodes.offsets))
    to_send = (nodes.kind[nodes.waits] == COMM_SEND) & nodes.carries
    sends, which = np.unique(nodes.waits[to_send], return_inverse=True)
    more = len(nodes) + np.arange(len(sends))
    counts = lengths_of(nodes.offsets, sends)
    copied = places(nodes.offsets, sends)
    waits = nodes.waits.copy()
    waits[to_send] = more[which]
    # Who waited for a COMM_SEND still does, for the sake of order.
    owner = np.concatenate([waiter, np.repeat(more, counts), waiter[to_send]])
    waited = np.concatenate([waits, waits[copied], nodes.waits[to_send]])
    carries = np.concatenate([nodes.carries, nodes.carries[copied], np.zeros(len(which), np.bool_)])
    order = np.argsort(owner, kind="stable")
    offsets = np.searchsorted(owner[order], np.arange(len(nodes) + len(sends) + 1))

    def grown(column: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([column, column[sends]])

    return replace(
        nodes,
        number=grown(nodes.number),
        npu=grown(nodes.npu),
        kind=np.concatenate([nodes.kind, np.full(len(sends), COMP, dtype=np.int32)]),
        peer=grown(nodes.peer),
        size=grown(nodes.size),
        tag=grown(nodes.tag),
        offsets=offsets.astype(np.int64),
        waits=waited[order],
        carries=carries[order],
    )


def read_nodes(files: TraceFiles, size: int | None) -> TraceNodes:
    """All ranks' nodes; each file makes sense by itself, and names NPUs that are there.

    `size` is that of the buffer whose chunks messages name if they say no size of their own.
    """
    files.expect(len(files))
    parts = [_Rank(files, rank, size) for rank in range(len(files))]
    firsts = offsets_of([len(part.number) for part in parts])
    any_data = any(part.has_data for part in parts)
    labelled = all(part.chunks is not None for part in parts)

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    counts = joined("wait_counts")
    waits = [part.waits + first for part, first in zip(parts, firsts[:-1], strict=True)]
    columns = [part.chunks for part in parts if part.chunks is not None]
    chunks = tuple(np.concatenate(column) for column in zip(*columns, strict=True))
    return TraceNodes(
        files,
        firsts,
        joined("number"),
        np.repeat(np.arange(len(parts), dtype=np.int32), np.diff(firsts)),
        joined("kind"),
        joined("peer"),
        joined("size"),
        joined("tag"),
        offsets_of(counts),
        np.concatenate(waits).astype(np.int64),
        # Some writers know one kind of dependency only.
        joined("is_data") if any_data else np.ones(int(counts.sum()), dtype=np.bool_),
        chunks if labelled else None,  # type: ignore[arg-type]  # three columns
    )


class _Rank:
    """The nodes of one file, with waits as positions in it: first those for data."""

    def __init__(self, files: TraceFiles, rank: int, size: int | None) -> None:
        _, nodes = files.read(rank)
        with naming(files.path(rank)):
            nodes.check()
            self._check_kinds(nodes)
            self.number = nodes.id
            self.kind = nodes.type
            self.peer = np.where(nodes.type == COMM_SEND, nodes.comm_dst, nodes.comm_src)
            self.size = self._sizes(nodes, size)
            self.tag = nodes.comm_tag
            self._check_messages(rank, len(files))
        self._find_waits(nodes)
        moves = (nodes.type == COMM_SEND) | (nodes.type == COMM_RECV)
        self.chunks: tuple[Int64, Int64, Int64] | None = None
        if (nodes.present[moves] & HAS_CHUNKS == HAS_CHUNKS).all():
            self.chunks = (nodes.msg_chunk_idx, nodes.msg_chunk_cnt, nodes.total_chunk_cnt)

    @staticmethod
    def _check_kinds(nodes: _core.ChakraNodes) -> None:
        for node in np.flatnonzero(nodes.type == COMM_COLL)[:1]:
            raise InputError(
                f"node {nodes.id[node]} is a whole collective: this is a workload; `weft lower` "
                "makes messages of its collectives"
            )
        known = np.isin(nodes.type, (METADATA, COMP, COMM_SEND, COMM_RECV))
        for node in np.flatnonzero(~known)[:1]:
            raise InputError(
                f"node {nodes.id[node]} is of type {nodes.type[node]}; an algorithm has only "
                "COMM_SEND, COMM_RECV and COMP"
            )
        counted = nodes.present & HAS_CHUNKS == HAS_CHUNKS
        size = np.where(counted, HAS_SIZE, 0).astype(nodes.present.dtype)
        check_present(nodes, nodes.present | size)

    @staticmethod
    def _sizes(nodes: _core.ChakraNodes, size: int | None) -> Int64:
        """Bytes of messages; those of messages that only count chunks follow from the buffer's."""
        moves = (nodes.type == COMM_SEND) | (nodes.type == COMM_RECV)
        counted = np.flatnonzero(moves & (nodes.present & HAS_SIZE == 0))
        if len(counted) == 0:
            return nodes.comm_size
        if size is None:
            raise InputError(
                f"node {nodes.id[counted[0]]} has no comm_size, only chunks of a buffer; say how "
                "large that is with --size"
            )
        count, total = nodes.msg_chunk_cnt[counted], nodes.total_chunk_cnt[counted]
        for node in np.flatnonzero((count < 1) | (count > total))[:1]:
            raise InputError(
                f"node {nodes.id[counted[node]]} moves {count[node]} of {total[node]} chunks; "
                f"expected 1 to {max(total[node], 1)}"
            )
        sizes = nodes.comm_size.copy()
        sizes[counted] = size // total * count
        return sizes

    def _check_messages(self, rank: int, ranks: int) -> None:
        moves = (self.kind == COMM_SEND) | (self.kind == COMM_RECV)
        for wrong, text in (
            ((self.peer < 0) | (self.peer >= ranks), "names NPU {peer}, but ranks are 0 to {last}"),
            (self.peer == rank, "moves data from its NPU to itself"),
            (self.size < 1, "moves {size} B; expected 1 B or more"),
            (self.size > MAX_BYTES, f"moves {{size}} B; expected {MAX_BYTES} B at most"),
            ((self.tag < 0) | (self.tag > MAX_TAG), "has tag {tag}; expected 0 to 2147483647"),
        ):
            for node in np.flatnonzero(moves & wrong)[:1]:
                facts = {name: getattr(self, name)[node] for name in ("peer", "size", "tag")}
                said = text.format(last=ranks - 1, **facts)
                raise InputError(f"node {self.number[node]} {said}")

    def _find_waits(self, nodes: _core.ChakraNodes) -> None:
        """Both kinds of waits, node by node: data first."""
        data, ctrl = np.diff(nodes.data_offsets), np.diff(nodes.ctrl_offsets)
        self.has_data = len(nodes.data) > 0
        self.wait_counts = data + ctrl
        starts = offsets_of(self.wait_counts)[:-1]
        ids = np.zeros(int(self.wait_counts.sum()), dtype=np.uint64)
        self.is_data = np.zeros(len(ids), dtype=np.bool_)
        at_data = ranges(starts, data)
        ids[at_data] = nodes.data
        self.is_data[at_data] = True
        ids[ranges(starts + data, ctrl)] = nodes.ctrl
        order = np.argsort(nodes.id, kind="stable")
        self.waits = order[np.searchsorted(nodes.id, ids, sorter=order)]


@dataclass(frozen=True, eq=False)
class Messages:
    """Which COMM_SEND goes with which COMM_RECV.

    Attributes
    ----------
    of
        The message of each node, or -1.
    send, recv
        The nodes of each message.
    doubtful
        A node whose message has the tag, ends and size of another, in an order that its own
        file leaves open; -1 if there is none.
    """

    of: Int64
    send: Int64
    recv: Int64
    doubtful: int

    def __len__(self) -> int:
        return len(self.send)


def match(nodes: TraceNodes) -> Messages:
    """Pair the i-th COMM_SEND of a tag, source, destination and size with the i-th COMM_RECV."""
    send = np.flatnonzero(nodes.kind == COMM_SEND)
    recv = np.flatnonzero(nodes.kind == COMM_RECV)
    depth = _depths(nodes)
    send, send_keys = _sorted(nodes, send, nodes.npu[send], nodes.peer[send], depth)
    recv, recv_keys = _sorted(nodes, recv, nodes.peer[recv], nodes.npu[recv], depth)
    _check_paired(nodes, (send, send_keys), (recv, recv_keys))
    again = (np.diff(send_keys, axis=1) == 0).all(axis=0)
    open_order = again & ((np.diff(depth[send]) == 0) | (np.diff(depth[recv]) == 0))
    doubtful = send[1:][open_order]
    order = np.argsort(send, kind="stable")  # messages in order of their senders
    send, recv = send[order], recv[order]
    of = np.full(len(nodes), -1, dtype=np.int64)
    of[send] = of[recv] = np.arange(len(send))
    return Messages(of, send, recv, int(doubtful.min()) if len(doubtful) else -1)


def _depths(nodes: TraceNodes) -> Int32:
    """How deep each node lies in its own file."""
    none = np.zeros(0, dtype=np.int64)
    return _core.TraceGraph(
        npu=nodes.npu,
        offsets=nodes.offsets,
        waits=nodes.waits,
        carries=nodes.carries,
        message=np.full(len(nodes), -1, dtype=np.int64),
        send=none,
        recv=none,
        bytes=none,
    ).levels()


def _sorted(
    nodes: TraceNodes,
    which: Int64,
    src: NDArray[np.integer],
    dst: NDArray[np.integer],
    depth: Int32,
) -> tuple[Int64, Int64]:
    """Nodes by what must be equal at both ends, then in an order that their file allows."""
    keys = np.stack([src, dst, nodes.tag[which] % TAGS, nodes.size[which]]).astype(np.int64)
    order = np.lexsort((which, depth[which], *keys[::-1]))
    return which[order], keys[:, order]


def _check_paired(
    nodes: TraceNodes, sends: tuple[Int64, Int64], recvs: tuple[Int64, Int64]
) -> None:
    """Raise at the first message that only one end knows."""
    (send, send_keys), (recv, recv_keys) = sends, recvs
    common = min(len(send), len(recv))
    differ = np.flatnonzero((send_keys[:, :common] != recv_keys[:, :common]).any(axis=0))
    if len(differ) == 0 and len(send) == len(recv):
        return
    at = int(differ[0]) if len(differ) else common
    alone_sends = at >= len(recv) or (
        at < len(send) and tuple(send_keys[:, at]) < tuple(recv_keys[:, at])
    )
    node, keys = (send[at], send_keys) if alone_sends else (recv[at], recv_keys)
    src, dst, tag, size = keys[:, at]
    does, lacks = ("sends", "receives") if alone_sends else ("receives", "sends")
    raise nodes.error(
        int(node),
        f"{does} {size} B from NPU {src} to NPU {dst} with tag {tag}, which nobody {lacks}",
    )
