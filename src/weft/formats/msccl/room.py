"""Whether an algorithm can fit in a runtime at all: found before any step is made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.memory import Memory
from weft.errors import InputError
from weft.formats.msccl.dialects import Dialect

Int64 = NDArray[np.int64]


def fewer_chunks(memory: Memory, needed: int, room: int) -> str:
    """What to do about `needed` steps where there is room for so many."""
    collective = memory.collective
    now = collective.chunks_per_share
    fit = now * max(room, 0) // needed
    if collective.parts is not None:
        return "take fewer chunks"
    if fit == 0:
        return f"1 chunk a share (it has {now}) would be too many, so take fewer GPUs"
    return f"cut a share in {fit} chunk{'s' * (fit > 1)} or fewer (it has {now})"


def or_msccl(name: str) -> str:
    """The way out of the limits of the smaller runtime."""
    return ", or write the dialect msccl" if name == "rccl" else ""


def check_room(memory: Memory, dialect: Dialect, name: str) -> None:
    """Raise if a GPU has more to send and receive than a runtime has steps or blocks for.

    Whatever fits may still turn out too large: waits are not counted here.
    """
    messages = _messages(memory, dialect.count)
    gpus = len(memory.ranks)
    sends, receives, fusable = (
        np.bincount(end, weights=steps, minlength=gpus).astype(np.int64)
        for end, steps in (
            (messages.src, messages.steps),
            (messages.dst, messages.steps),
            (messages.src, messages.fusable),
        )
    )
    steps = sends + receives - np.minimum(fusable, receives)
    blocks = _blocks(messages, gpus, dialect.steps)
    elements = 1 + gpus + blocks + steps
    gpu = int(elements.argmax())
    if elements[gpu] > dialect.nodes:
        room = dialect.nodes - int(elements[gpu] - steps[gpu])
        raise InputError(
            f"GPU {gpu} would have {elements[gpu]} elements or more; {name} loads up to "
            f"{dialect.nodes}; {fewer_chunks(memory, int(steps[gpu]), room)}"
        )
    gpu = int(blocks.argmax())
    if blocks[gpu] > dialect.blocks:
        peers = int(_blocks(messages, gpus, 1 << 31)[gpu])
        what = f"GPU {gpu} would need {blocks[gpu]} thread blocks or more; {name} loads up to "
        if peers > dialect.blocks:
            raise InputError(
                f"{what}{dialect.blocks}, and it talks to {peers} others, each of which needs one; "
                f"take an algorithm in which a GPU talks to fewer others{or_msccl(name)}"
            )
        chunks = fewer_chunks(memory, int(blocks[gpu]), dialect.blocks)
        raise InputError(
            f"{what}{dialect.blocks} of {dialect.steps} steps; {chunks}{or_msccl(name)}"
        )


@dataclass(frozen=True, eq=False)
class _Messages:
    """Messages as few as can be, by connection; how many steps, and how many may be fused."""

    src: Int64
    dst: Int64
    steps: Int64
    fusable: Int64


def _messages(memory: Memory, most: int) -> _Messages:
    rows = memory.transfers
    remote = np.flatnonzero(rows.src != rows.dst)
    by = remote[np.lexsort((rows.dst[remote], rows.src[remote]))]
    src, dst = rows.src[by].astype(np.int64), rows.dst[by].astype(np.int64)
    units = memory.units[rows.chunk[by]]
    columns = (src, dst, rows.reduce[by], memory.src_buffer[by], memory.dst_buffer[by])
    joins = np.zeros(len(by), dtype=np.bool_)
    joins[1:] = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    for slot in (memory.src_slot[by], memory.dst_slot[by]):
        joins[1:] &= slot[1:] == slot[:-1] + units[:-1]
    first = np.flatnonzero(~joins)
    if not len(first):
        none = np.zeros(0, dtype=np.int64)
        return _Messages(none, none, none, none)
    steps = -(-np.add.reduceat(units, first) // most)
    passed = np.logical_or.reduceat(_passed_on(memory)[by], first)
    return _Messages(src[first], dst[first], steps, steps * passed)


def _passed_on(memory: Memory) -> NDArray[np.bool_]:
    """Whether each row may send on, in one step, what came to its source.

    Copies do so only if they are stored in the same place here and there.
    """
    rows = memory.transfers
    cells = [
        (npu.astype(np.int64) * 8 + buffer) << 40 | slot
        for npu, buffer, slot in (
            (rows.src, memory.src_buffer, memory.src_slot),
            (rows.dst, memory.dst_buffer, memory.dst_slot),
        )
    ]
    came: NDArray[np.bool_] = np.isin(cells[0], cells[1][rows.src != rows.dst])
    if not rows.reduce.any():
        came &= memory.src_buffer == memory.dst_buffer
        came &= memory.src_slot == memory.dst_slot
    return came


def _blocks(messages: _Messages, gpus: int, steps: int) -> Int64:
    """Thread blocks of each GPU at least: each has one other to send to and one to receive from."""
    connection, at = np.unique(messages.src * gpus + messages.dst, return_inverse=True)
    length = np.bincount(at, weights=messages.steps, minlength=len(connection)).astype(np.int64)
    lanes = -(-length // steps)
    sending, receiving = (
        np.bincount(end, weights=lanes, minlength=gpus).astype(np.int64)
        for end in (connection // gpus, connection % gpus)
    )
    most: Int64 = np.maximum(sending, receiving)
    return most
