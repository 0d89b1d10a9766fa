"""Whether an algorithm can fit in a runtime at all: found before any step is made."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.memory import Memory, writers
from weft.errors import InputError
from weft.formats.msccl.dialects import Dialect
from weft.formats.msccl.moves import Move

Int64 = NDArray[np.int64]

_MORE = 1.15  # lanes are not equally long, some steps need a nop, and fewer chunks share less


def fewer_chunks(memory: Memory, messages: Messages, dialect: Dialect) -> str:
    """What to do about too many steps: how many chunks fit, even if no two steps become one."""
    collective = memory.collective
    now = collective.chunks_per_share
    if collective.parts is not None:
        return "take fewer chunks"
    fit = bisect_left(range(1, now), 1, key=lambda n: not messages.fit(n / now, dialect))
    if fit == 0:
        return f"take fewer GPUs: 1 chunk per share (it has {now}) may be too many"
    return f"cut a share in {fit} chunk{'s' * (fit > 1)} or fewer (it has {now})"


def or_msccl(name: str) -> str:
    """The way out of the limits of the smaller runtime."""
    return ", or write the dialect msccl" if name == "rccl" else ""


def check_room(memory: Memory, dialect: Dialect, name: str) -> None:
    """Raise if a GPU has more to send and receive than a runtime has steps or blocks for.

    Whatever fits may still turn out too large: waits are not counted here.
    """
    messages = _fewest_messages(memory, dialect.count)
    blocks = messages.least_blocks(dialect.steps)
    elements = 1 + messages.gpus + blocks + messages.least_steps()
    gpu = int(elements.argmax())
    if elements[gpu] > dialect.nodes:
        raise InputError(
            f"GPU {gpu} would have {elements[gpu]} elements or more; {name} loads up to "
            f"{dialect.nodes}; {fewer_chunks(memory, messages, dialect)}"
        )
    gpu = int(blocks.argmax())
    if blocks[gpu] > dialect.blocks:
        peers = int(messages.least_blocks(1 << 31)[gpu])
        why = f" of {dialect.steps} steps; {fewer_chunks(memory, messages, dialect)}"
        if peers > dialect.blocks:
            why = (
                f", and it talks to {peers} others, each of which needs one; take an algorithm in "
                "which a GPU talks to fewer others"
            )
        raise InputError(
            f"GPU {gpu} would need {blocks[gpu]} thread blocks or more; {name} loads up to "
            f"{dialect.blocks}{why}{or_msccl(name)}"
        )


@dataclass(frozen=True, eq=False)
class Messages:
    """How much goes from where to where.

    Attributes
    ----------
    src, dst, steps
        From where to where, and how many steps at each end.
    sent_on, passed_on
        How many steps may send what another message brought, and bring what another sends.
    """

    gpus: int
    src: Int64
    dst: Int64
    steps: Int64
    sent_on: Int64
    passed_on: Int64

    @staticmethod
    def of(moves: list[Move], gpus: int) -> Messages:
        """Of moves, each of which is a step at both ends; none is passed on."""
        ends = [(move.src, move.dst) for move in moves if not move.local]
        src, dst = np.array(ends, dtype=np.int64).reshape(-1, 2).T
        return Messages(gpus, src, dst, *np.array([1, 0, 0])[:, None].repeat(len(src), axis=1))

    def least_steps(self) -> Int64:
        """Steps of each GPU at least: one may receive and send on."""
        fused = np.minimum(self._at(self.src, self.sent_on), self._at(self.dst, self.passed_on))
        return self._steps - fused

    def least_blocks(self, steps: int) -> Int64:
        """Blocks of each GPU at least: each has one other to send to and one to receive from."""
        src, dst, length = self._connections()
        lanes = -(-length // steps)
        most: Int64 = np.maximum(self._at(src, lanes), self._at(dst, lanes))
        return most

    def fit(self, part: float, dialect: Dialect) -> bool:
        """Whether a part of all messages surely fits, if no step receives and sends on."""
        src, dst, length = self._connections()
        length = np.ceil(length * part * _MORE).astype(np.int64)
        ends = [self._at(end, np.ones_like(length)) for end in (src, dst)]
        apart, shared = sum(ends), np.maximum(*ends)
        steps = np.ceil(self._steps * part * _MORE)
        longest = np.zeros(self.gpus, dtype=np.int64)  # connection of each GPU
        for end in (src, dst):
            np.maximum.at(longest, end, length)
        for lanes in range(1, dialect.channels + 1):
            is_shared = lanes * apart > dialect.blocks
            blocks = lanes * np.where(is_shared, shared, apart)
            lengths = -(-longest * (1 + is_shared) // lanes)
            elements = 1 + self.gpus + blocks + steps
            limits = ((blocks, dialect.blocks), (lengths, dialect.steps), (elements, dialect.nodes))
            if all((counts <= most).all() for counts, most in limits):
                return True
        return False

    @property
    def _steps(self) -> Int64:
        return self._at(self.src, self.steps) + self._at(self.dst, self.steps)

    def _connections(self) -> tuple[Int64, Int64, Int64]:
        """Source, destination and steps of each connection."""
        found, at = np.unique(self.src * self.gpus + self.dst, return_inverse=True)
        length = np.bincount(at, weights=self.steps, minlength=len(found)).astype(np.int64)
        return found // self.gpus, found % self.gpus, length

    def _at(self, end: Int64, count: Int64) -> Int64:
        """Sums by GPU."""
        return np.bincount(end, weights=count, minlength=self.gpus).astype(np.int64)


def _fewest_messages(memory: Memory, most: int) -> Messages:
    """As few messages as can be, of `most` units a step."""
    rows, gpus = memory.transfers, len(memory.ranks)
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
        return Messages.of([], gpus)
    steps = -(-np.add.reduceat(units, first) // most)
    sent_on, passed_on = (
        steps * np.logical_or.reduceat(may[by], first) for may in _fusable(memory)
    )
    return Messages(gpus, src[first], dst[first], steps, sent_on, passed_on)


def _fusable(memory: Memory) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of each row, whether it may send what another brought, and bring what another sends.

    Copies do so in one step only if they are stored in the same place here and there; sums that a
    local row makes of what came may do so too.
    """
    rows = memory.transfers
    brought = writers(memory)
    onward = (brought >= 0) & (rows.src != rows.dst)
    if not rows.reduce.any():
        onward &= memory.src_buffer == memory.dst_buffer
        onward &= memory.src_slot == memory.dst_slot
    passed = np.zeros(len(rows), dtype=np.bool_)
    passed[brought[onward]] = True
    if (passed & (rows.src == rows.dst)).any():  # what it adds may have come in any message
        passed[:] = True
    return onward, passed
