"""Messages that say themselves which chunks they carry, by msg_chunk_idx and its companions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from weft.arrays import Int64
from weft.collective import DEFAULT_ALIGNMENT, MAX_CHUNKS, PATTERNS, Collective, all_reduce_of
from weft.errors import FormatError, InputError
from weft.formats.chakra._flows import Flows, TraceFlow
from weft.formats.chakra._payloads import Payloads
from weft.formats.imported import Hints
from weft.ragged import owners, ranges

_MOST_NODES = 1 << 15  # of a rank: sets of those before each take up to 128 MiB


def labelled(
    trace: TraceFlow, flows: Flows, kind: str, group: Sequence[int], hints: Hints
) -> tuple[Flows, Payloads] | None:
    """What messages carry, by the numbers they have; None if they have none that say it.

    ``total_chunk_cnt`` is the number of chunks of the buffer, ``msg_chunk_idx`` the first one a
    message carries and ``msg_chunk_cnt`` how many follow each other. Where every NPU has a buffer
    of its own, as in All-to-All, that does not say whose chunk it is.
    """
    columns = flows.nodes.chunks
    if columns is None or PATTERNS[kind].own_buffers or len(flows.messages) == 0:
        return None
    first, count, total = (column[flows.messages.send] for column in columns)
    whole = int(total[0])
    wrong = (total != whole) | (first < 0) | (count < 1) | (first > whole - count)
    for message in np.flatnonzero(wrong | (whole > MAX_CHUNKS))[:1]:
        raise flows.nodes.error(
            int(flows.messages.send[message]),
            f"carries {count[message]} chunks from {first[message]} on, of {total[message]}; other "
            f"messages are of {whole}",
        )
    _check_both_ends(flows, columns)
    size = hints.size or _size(flows, count, whole)
    demand = _demand(kind, group, hints, size, whole)
    if demand is None:
        return None
    message = owners(count)
    chunk = ranges(first, count).astype(np.int32)
    found = replace(flows, message=message, part=chunk)
    if demand.chunks.reduce.any() and np.diff(flows.nodes.firsts).max() <= _MOST_NODES:
        found = _summed(trace, found, group)
    return found, Payloads(demand, np.arange(whole, dtype=np.int32))


def _check_both_ends(flows: Flows, columns: Sequence[Int64]) -> None:
    send, recv = flows.messages.send, flows.messages.recv
    differ = np.any([column[send] != column[recv] for column in columns], axis=0)
    for message in np.flatnonzero(differ)[:1]:
        sent, received = (
            f"{columns[1][node]} of {columns[2][node]} chunks from {columns[0][node]} on"
            for node in (send[message], recv[message])
        )
        raise flows.nodes.unclear(
            int(send[message]),
            f"sends {sent}, but {flows.nodes.name(int(recv[message]))} receives {received}",
        )


def _size(flows: Flows, count: Int64, whole: int) -> int:
    sent = flows.nodes.size[flows.messages.send]
    largest = int(np.argmax(count))
    size = int(sent[largest]) * whole // int(count[largest])
    if not 0 < size <= 1 << 60:
        raise FormatError(
            f"{flows.nodes.path(0)}: its messages do not tell the size; give it with --size"
        )
    return size


def _demand(
    kind: str, group: Sequence[int], hints: Hints, size: int, whole: int
) -> Collective | None:
    """The collective in so many chunks, as evenly cut as its size allows."""
    shares = PATTERNS[kind].shares(len(group))
    if size < whole:
        raise InputError(f"{size} B cannot be cut in {whole} chunks, of which messages are")
    for alignment in (DEFAULT_ALIGNMENT, 1):
        if whole % shares == 0:
            demand = Collective.of(kind, group, size, whole // shares, hints.root, alignment)
        elif kind == "all-reduce":
            demand = all_reduce_of(group, size, whole, alignment=alignment)
        else:
            return None
        if len(demand.chunks) == whole:
            return demand
    return None


def _summed(trace: TraceFlow, flows: Flows, group: Sequence[int]) -> Flows:
    """Whose contributions each row has: those of the same chunk that came before it.

    Writers let a node wait for whatever their program did before it, of whatever chunk, so that
    what a whole message waits for says nothing of one chunk.
    """
    nodes, messages = flows.nodes, flows.messages
    places = np.arange(len(nodes)) - nodes.firsts[nodes.npu]
    # For each node those of its rank that have ended when it ends, as bits.
    ended = trace.gathered(
        [1 << place for place in places.tolist()], nodes.waits, owners(np.diff(nodes.offsets))
    )
    own = {npu: 1 << rank for rank, npu in enumerate(group)}
    everyone = (1 << len(own)) - 1
    arrived: dict[tuple[int, int], int] = defaultdict(int)  # by NPU and chunk: COMM_RECVs, as bits
    sums: dict[tuple[int, int], int] = {}  # by COMM_RECV and chunk
    found = [0] * len(flows.message)
    levels = trace.levels()[messages.send[flows.message]]
    for row in np.argsort(levels, kind="stable").tolist():
        message, chunk = int(flows.message[row]), int(flows.part[row])
        send, recv = int(messages.send[message]), int(messages.recv[message])
        npu, to = int(nodes.npu[send]), int(nodes.npu[recv])
        has = own.get(npu, 0)
        earlier, first = ended[send] & arrived[npu, chunk], int(nodes.firsts[npu])
        while earlier:
            has |= sums[first + earlier.bit_length() - 1, chunk]
            earlier ^= 1 << earlier.bit_length() - 1
        found[row] = sums[recv, chunk] = has
        arrived[to, chunk] |= 1 << recv - int(nodes.firsts[to])
    words = flows.contributors.shape[1]
    packed = b"".join(has.to_bytes(8 * words, "little") for has in found)
    return replace(
        flows,
        complete=np.array([has == everyone for has in found], dtype=np.bool_),
        contributors=np.frombuffer(packed, dtype=np.uint64).reshape(len(found), words),
        by_row=True,
    )
