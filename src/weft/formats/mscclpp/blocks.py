"""Rows spread over thread blocks and channels, and the semaphores that keep them in order.

A lane is a channel from one GPU to another with a thread block at each end: one puts, the other
waits. Every thread block takes its rows in the order of the table, which is why nothing can
deadlock: see ``docs/mscclpp.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.memory import Memory
from weft.formats.mscclpp.executor import (
    A_LANE,
    MAX_CHANNELS,
    MAX_CHANNELS_AN_OPERATION,
    MAX_OPERATIONS,
    MAX_SEMAPHORES_AN_OPERATION,
    PORT,
)
from weft.formats.mscclpp.hazards import Hazards

BUFFERS_A_PEER = 3
"""A peer has an input, an output and a scratch buffer that a thread block may write."""

Stream = tuple[int, str, int]  # GPU, what it does, peer
Clock = NDArray[np.int32]


@dataclass(eq=False)
class Step:
    """What a thread block does for a row: all of it, the sender's part or the receiver's.

    Where thread blocks are short, it may be for several rows of a lane at once.
    """

    lane: Lane | None
    sends: bool = False
    rows: list[int] = field(default_factory=list)
    acquires: list[int] = field(default_factory=list)
    releases: list[int] = field(default_factory=list)


@dataclass(eq=False)
class Block:
    """A thread block: its steps and channels, and how many operations they need at most."""

    gpu: int
    number: int
    steps: list[Step] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    operations: int = 0
    known: Clock = field(kw_only=True)  # the last step of each block that is over; -1: none


@dataclass(eq=False)
class Lane:
    """A channel and the thread blocks at its ends."""

    kind: str
    sender: Block
    receiver: Block
    rows: list[int] = field(default_factory=list)
    # Of sender and receiver: among a GPU's channels of that type, and the last step.
    numbers: list[int] = field(default_factory=list)
    latest: list[Step] = field(default_factory=list)


@dataclass(eq=False)
class Gpu:
    """What a GPU needs: thread blocks, peers of its channels by type, and semaphores."""

    blocks: list[Block] = field(default_factory=list)
    channels: dict[str, list[int]] = field(default_factory=dict)
    semaphores: dict[tuple[int, int], int] = field(default_factory=dict)


def arrange(
    memory: Memory,
    hazards: Hazards,
    kind_of: Callable[[int, int], str],
    most_blocks: int,
    streams: int,
    together: int,
) -> tuple[list[Gpu], int]:
    """Thread blocks for every GPU: one for each peer and direction, more if rows are many.

    If a GPU cannot run so many at once, rows that are ready together go together; if that is not
    enough, peers share thread blocks, more and more of them as long as that helps.

    Parameters
    ----------
    kind_of
        The type of the channels between two ranks.
    most_blocks
        How many thread blocks a GPU runs at once.
    streams, together
        Among how many thread blocks each way peers are spread, and how many rows may go together,
        to begin with.

    Returns
    -------
    The GPUs, and how many of the rows they have room for; all, if nothing is amiss.
    """
    most_rows = -1
    while True:
        arrangement = _Arrangement(memory, hazards, kind_of, most_blocks, streams, together)
        rows = arrangement.run()
        if rows == len(memory.transfers) or (rows < most_rows and streams < most_blocks):
            return arrangement.gpus, max(rows, most_rows)
        most_rows = max(rows, most_rows)
        if together < MAX_CHANNELS_AN_OPERATION:
            together = MAX_CHANNELS_AN_OPERATION
        elif streams > 1:
            streams = max(min(streams, most_blocks) // 2, 1)
        else:
            return arrangement.gpus, most_rows


@dataclass(eq=False)
class _Arrangement:
    memory: Memory
    hazards: Hazards
    kind_of: Callable[[int, int], str]
    most_blocks: int
    streams: int
    together: int

    def __post_init__(self) -> None:
        rows = self.memory.transfers
        self.src, self.dst = rows.src.tolist(), rows.dst.tolist()
        self.src_buffer = self.memory.src_buffer.tolist()
        # A row may open two blocks of a GPU before it is seen that there are too many.
        self.nothing = np.full(self.most_blocks + 2, -1, dtype=np.int32)
        self.gpus = [Gpu() for _ in self.memory.ranks]
        self.open: dict[tuple[int, str, int], Block] = {}
        self.lanes: dict[tuple[int, int], Lane] = {}
        self.slots: dict[tuple[int, str], dict[int, int]] = {}  # of peers
        self.fan = Counter(chain.from_iterable(self.hazards.before))  # how many wait for each event
        # Of events that others wait for: block, place in it, and what it knew then.
        self.done: dict[int, tuple[Block, int, Clock]] = {}

    def run(self) -> int:
        """Arrange rows until a GPU has too many blocks; how many had room."""
        for row, (src, dst) in enumerate(zip(self.src, self.dst, strict=True)):
            if src == dst:
                cost = self._keeping(2 * row + 1) + 2  # nop, copy or add
                block = self._block((src, "local", src), cost)
                block.steps.append(Step(None))
                self._take(2 * row + 1, block)
            elif not self._join(row, src, dst):
                lane = self._lane(row, src, dst)
                lane.latest = [Step(lane, sends=True), Step(lane)]
                lane.sender.steps.append(lane.latest[0])
                lane.receiver.steps.append(lane.latest[1])
                self._take_both(row, lane)
            if max(len(self.gpus[gpu].blocks) for gpu in (src, dst)) > self.most_blocks:
                return row
        return len(self.src)

    def _take_both(self, row: int, lane: Lane) -> None:
        lane.rows.append(row)
        self._take(2 * row, lane.sender)
        self._take(2 * row + 1, lane.receiver)

    def _take(self, event: int, block: Block) -> None:
        """Let the last step of a block do an event too."""
        block.steps[-1].rows.append(event // 2)
        block.steps[-1].acquires += self._acquire(block, self.hazards.before[event])
        if event in self.fan:
            self.done[event] = (block, len(block.steps) - 1, block.known)

    def _join(self, row: int, src: int, dst: int) -> bool:
        """Let a row go with the one before it on its lane, if it was ready when that one was."""
        lane = self.lanes.get((src, dst))
        if lane is None or len(lane.latest[0].rows) >= self.together:
            return False
        first = lane.latest[0].rows[0]
        before = (*self.hazards.before[2 * row], *self.hazards.before[2 * row + 1])
        if any(event // 2 >= first for event in before):
            return False
        if self.src_buffer[first] != self.src_buffer[row]:  # a put reads from one buffer
            return False
        more = lane.kind == PORT and len(lane.latest[0].rows) == 1  # nop and signal after a put
        costs = (
            self._keeping(2 * row) + 2 * more,
            self._keeping(2 * row + 1) + (not self.hazards.direct[row]),
        )
        ends = (lane.sender, lane.receiver)
        for block, step, cost in zip(ends, lane.latest, costs, strict=True):
            if block.steps[-1] is not step or block.operations + cost > MAX_OPERATIONS:
                return False
        for block, cost in zip(ends, costs, strict=True):
            block.operations += cost
        self._take_both(row, lane)
        return True

    def _keeping(self, event: int) -> int:
        """Operations, at most, to wait for others at an event and to tell others of it."""
        waits, fan = len(self.hazards.before[event]), self.fan.get(event, 0)
        return _operations(waits) + _operations(fan) + (fan > 0)

    def _block(self, stream: Stream, cost: int, *, fits: bool = True) -> Block:
        """The open block of a stream; a new one if `cost` operations do not fit in it."""
        gpu, role, peer = stream
        block = self._opened(stream)
        if block is None or not fits or block.operations + cost + A_LANE > MAX_OPERATIONS:
            blocks = self.gpus[gpu].blocks
            block = Block(gpu, len(blocks), known=self.nothing)
            self.open[gpu, role, self.slots[gpu, role][peer]] = block
            blocks.append(block)
        block.operations += cost
        return block

    def _opened(self, stream: Stream) -> Block | None:
        """The block in use for a stream; if there are too many peers, several share one."""
        gpu, role, peer = stream
        slots = self.slots.setdefault((gpu, role), {})
        slot = slots.setdefault(peer, len(slots) % self.streams)
        return self.open.get((gpu, role, slot))

    def _lane(self, row: int, src: int, dst: int) -> Lane:
        """The lane for a row: the one in use, unless one of its blocks is full."""
        lane, kind = self.lanes.get((src, dst)), self.kind_of(src, dst)
        port = kind == PORT
        put = self._keeping(2 * row) + (3 if port else 4)  # nop, put and signal, wait or nop
        wait = self._keeping(2 * row + 1) + 1 + 2 * port + 2 * (not self.hazards.direct[row])
        ends = []
        for stream, cost, most in (
            ((src, "send", dst), put, MAX_CHANNELS // BUFFERS_A_PEER),
            ((dst, "receive", src), wait, MAX_CHANNELS),
        ):
            block = self._opened(stream)
            mine = lane is not None and block in (lane.sender, lane.receiver)
            fits = mine or block is None or len(block.lanes) < most
            ends.append(self._block(stream, cost, fits=fits))
        if lane is None or [lane.sender, lane.receiver] != ends:
            lane = self.lanes[src, dst] = self._new_lane(kind, *ends)
        return lane

    def _new_lane(self, kind: str, sender: Block, receiver: Block) -> Lane:
        lane = Lane(kind, sender, receiver)
        for block, peer in ((sender, receiver.gpu), (receiver, sender.gpu)):
            listed = self.gpus[block.gpu].channels.setdefault(kind, [])
            lane.numbers.append(len(listed))
            listed.append(peer)
            block.lanes.append(lane)
            block.operations += A_LANE
        return lane

    def _acquire(self, block: Block, events: list[int]) -> list[int]:
        """Semaphores to acquire before a step so that all `events` are over.

        There is a semaphore for each pair of blocks. The places waited for in a block only rise,
        so the k-th acquire takes what the k-th release gave.
        """
        semaphores = []
        for event in sorted(events, reverse=True):  # the latest may imply the others
            other, place, knew = self.done[event]
            if other is block or block.known[other.number] >= place:
                continue
            numbers = self.gpus[block.gpu].semaphores
            semaphore = numbers.setdefault((other.number, block.number), len(numbers))
            other.steps[place].releases.append(semaphore)
            semaphores.append(semaphore)
            # A new one: others may hold on to what was known before.
            block.known = np.maximum(block.known, knew)
            block.known[other.number] = place
        return semaphores


def _operations(semaphores: int) -> int:
    """How many operations it takes to acquire or release so many semaphores."""
    return -(-semaphores // MAX_SEMAPHORES_AN_OPERATION)


def needs_acknowledgement(lane: Lane, rows: list[int], hazards: Hazards) -> bool:
    """Whether the sender waits until the rows of a step have arrived.

    What goes through a port is read by a proxy at a time of its own, so its source is free only
    when the data has come. At the latest that must be known at the end, when the buffers are the
    user's again.
    """
    if lane.kind != PORT:
        return False
    return lane.rows[-1] in rows or any(hazards.settled[row] for row in rows)
