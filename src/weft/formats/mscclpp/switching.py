"""Plans in which a switch adds and copies: one operation for each sum and what comes of it.

MSCCL++'s executor loads a sum of the same place of all GPUs through the switch, and stores it
there again, with ``glres``; ``gstore`` stores something of one GPU in all. So what can be written
so is an algorithm in which each chunk has one owner, who gets all parts at once and gives all the
sum at once. Chunks of an owner that lie side by side have one operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from weft.algorithm import Algorithm, Buffer
from weft.algorithm.memory import Memory, lay_out
from weft.formats.mscclpp.executor import BUFFERS, MAX_CHANNELS, MAX_CHANNELS_AN_OPERATION, MEMORY

Record = dict[str, Any]
_MOST_BLOCKS = 8  # thread blocks of a GPU: enough to use all of its links
_SWITCH = "switch"


def is_switched(algorithm: Algorithm) -> bool:
    """Whether a plan has all of an algorithm done in a switch."""
    memory = lay_out(algorithm)
    return gpus_of(algorithm, memory, _MOST_BLOCKS) is not None


def gpus_of(algorithm: Algorithm, memory: Memory, thread_blocks: int) -> list[Record] | None:
    """What each GPU does besides the sizes of its buffers; None if it is not all in a switch."""
    ranks = len(memory.ranks)
    if not _is_in_switch(algorithm) or len(memory.transfers) > len(algorithm.transfers):
        return None
    if not 2 < ranks <= MAX_CHANNELS + 1:
        return None
    moves = list(_moves(memory))
    if not moves:
        return None
    blocks = min(_MOST_BLOCKS, thread_blocks, max(len(mine) for mine in moves))
    return [_gpu(rank, mine, ranks, blocks) for rank, mine in enumerate(moves)]


def _is_in_switch(algorithm: Algorithm) -> bool:
    """Whether all parts of a sum reach its owner together over one link, and copies leave so."""
    if not algorithm.timed or len(algorithm.demands) != 1:
        return False
    rows, network, routes = algorithm.transfers, algorithm.topology, algorithm.routes
    if network is None or not network.copying or rows.src_place is not None or len(rows) == 0:
        return False
    if rows.dep_offsets is not None or (rows.reduce.any() and not network.adding):
        return False
    route, start, end = rows.require_times()
    first, last = (routes.links[at] for at in (routes.offsets[:-1], routes.offsets[1:] - 1))
    owner = np.where(rows.reduce, rows.dst, rows.src)
    port = np.where(rows.reduce, last[route], first[route])
    time = np.where(rows.reduce, end, start)
    key = rows.chunk.astype(np.int64) * 2 + rows.reduce
    order = np.argsort(key, kind="stable")
    same = key[order][1:] == key[order][:-1]
    alike = all((column[order][1:] == column[order][:-1])[same].all() for column in (port, time))
    one = np.full(int(rows.chunk.max()) + 1, -1)
    one[rows.chunk] = owner
    return alike and bool((one[rows.chunk] == owner).all())


class _Move:
    """The chunks of one owner that lie side by side, as one operation."""

    def __init__(self, adds: bool, source: tuple[int, int], target: tuple[int, int], size: int):
        self.adds, self.source, self.target, self.size = adds, source, target, size

    def follows(self, other: _Move) -> bool:
        """Whether this is what comes after another."""
        ends = ((one[0], one[1] + other.size) for one in (other.source, other.target))
        return self.adds == other.adds and (self.source, self.target) == tuple(ends)


def _moves(memory: Memory) -> Iterator[list[_Move]]:
    """For each rank what it adds and stores; nothing at all if a chunk does not go from all to all.

    All ranks have it in the same place: a switch knows but one.
    """
    rows, ranks = memory.transfers, len(memory.ranks)
    made: list[list[_Move]] = [[] for _ in range(ranks)]
    for chunk in np.unique(rows.chunk).tolist():
        mine = rows.chunk == chunk
        sums, copies = np.flatnonzero(mine & rows.reduce), np.flatnonzero(mine & ~rows.reduce)
        if len(copies) != ranks - 1 or len(sums) not in (0, ranks - 1):
            return
        owner = int(rows.src[copies[0]])
        before, after = np.unique(rows.src[sums]), np.unique(rows.dst[copies])
        if owner in after or len(after) < ranks - 1 or len(before) not in (0, ranks - 1):
            return
        read, written = (
            set(zip(buffer.tolist(), slot.tolist(), strict=True))
            for buffer, slot in (
                (memory.src_buffer[mine], memory.src_slot[mine]),
                (memory.dst_buffer[copies], memory.dst_slot[copies]),
            )
        )
        if len(read) > 1 or len(written) > 1:
            return
        size = int(memory.units[chunk])
        made[owner].append(_Move(len(sums) > 0, read.pop(), written.pop(), size))
    for moves in made:
        moves.sort(key=lambda move: (move.adds, move.source, move.target))
    yield from made


def _gpu(rank: int, moves: list[_Move], ranks: int, blocks: int) -> Record:
    peers = [peer for peer in range(ranks) if peer != rank]
    bounds = [len(moves) * block // blocks for block in range(blocks + 1)]
    buffers = sorted({end for move in moves for end in _switched(move)})
    parts = [_joined(moves[begin:end]) for begin, end in pairwise(bounds)]
    groups = [{"size": ranks, "ranks": list(range(ranks))}]
    return {
        "id": rank,
        "threadblocks": [
            _block(number, part, len(peers), buffers) for number, part in enumerate(parts)
        ],
        "channels": [
            {"channel_type": MEMORY, "connected_to": peers * blocks},
            *(
                {
                    "channel_type": _SWITCH,
                    "buffer_type": BUFFERS[Buffer(buffer)],
                    "rank_groups": groups,
                }
                for buffer in buffers
            ),
        ],
        "remote_buffers": [],
        "semaphores": [],
    }


def _switched(move: _Move) -> list[int]:
    """The buffers that an operation reaches through the switch."""
    return [move.source[0], move.target[0]] if move.adds else [move.target[0]]


def _joined(moves: list[_Move]) -> list[_Move]:
    found: list[_Move] = []
    for move in moves:
        if found and move.follows(found[-1]):
            found[-1].size += move.size
        else:
            found.append(_Move(move.adds, move.source, move.target, move.size))
    return found


def _block(number: int, moves: list[_Move], peers: int, buffers: list[int]) -> Record:
    """All GPUs must be there before something is read or written, and all done at the end."""
    meet = [*_on_all("signal", peers), *_on_all("wait", peers)]
    nop = {"name": "nop"}
    return {
        "id": number,
        "ops": [*meet, nop, *(_operation(move, buffers) for move in moves), nop, *meet],
        "channels": [
            {
                "channel_type": MEMORY,
                "channel_ids": list(range(number * peers, (number + 1) * peers)),
            },
            {"channel_type": _SWITCH, "channel_ids": list(range(len(buffers)))},
        ],
        "remote_buffer_refs": [],
    }


def _on_all(name: str, peers: int) -> Iterator[Record]:
    for begin in range(0, peers, MAX_CHANNELS_AN_OPERATION):
        some = list(range(begin, min(peers, begin + MAX_CHANNELS_AN_OPERATION)))
        yield {"name": name, "channel_ids": some, "channel_type": MEMORY}


def _operation(move: _Move, buffers: list[int]) -> Record:
    def through(place: tuple[int, int]) -> Record:
        return {
            "switch_channel_id": buffers.index(place[0]),
            "index": place[1],
            "size": move.size,
        }

    record: Record = {"dst_buff": [through(move.target)], "channel_type": _SWITCH}
    if move.adds:
        return {"name": "glres", "src_buff": [through(move.source)], "reduce_op": "sum", **record}
    own = {"type": BUFFERS[Buffer(move.source[0])], "index": move.source[1], "size": move.size}
    return {"name": "gstore", "src_buff": [own], **record}
