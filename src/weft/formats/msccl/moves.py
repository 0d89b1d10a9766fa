"""Rows as a runtime moves them: in steps of so many slots, and what must come before what."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Buffer, Transfers
from weft.algorithm.memory import Memory
from weft.ragged import owners

Place = tuple[int, int]  # a buffer and the first of its slots


@dataclass(frozen=True)
class Move:
    """Slots that go from a place on one GPU to a place on another, or on the same."""

    src: int
    dst: int
    source: Place
    target: Place
    count: int
    reduce: bool
    rows: tuple[int, ...]  # what it stands for; the last is its place in the order of all
    chunk: int  # of its first row
    start: int = -1  # when its first row starts and its last ends, if that is known
    end: int = -1

    @property
    def local(self) -> bool:
        return self.src == self.dst


@dataclass(eq=False)
class Order:
    """What each half of a move does to memory, and what it must wait for.

    The halves of move ``m`` are ``2 m``, which reads and sends, and ``2 m + 1``, which receives
    and writes; a local move has only the latter, which does both.

    Attributes
    ----------
    before
        Halves on the same GPU that must be done first.
    read
        The half that wrote all that this one reads (and sends or copies); -1 if that is not one.
    added_to
        The same of what it adds to, if nobody else has read that since.
    readers
        The halves that use what this one wrote.
    overwritten
        How many of the slots this one wrote are written again.
    dropped
        How many dependencies of rows cannot be said.
    """

    before: list[list[int]]
    read: list[int]
    added_to: list[int]
    readers: list[list[int]]
    overwritten: list[int]
    dropped: int = 0


def moves_of(memory: Memory, most: int, timed: Transfers) -> list[Move]:
    """A move for each row; rows of more slots than a step can have are cut."""
    rows = memory.transfers
    columns = (
        rows.chunk.tolist(),
        rows.src.tolist(),
        rows.dst.tolist(),
        zip(memory.src_buffer.tolist(), memory.src_slot.tolist(), strict=True),
        zip(memory.dst_buffer.tolist(), memory.dst_slot.tolist(), strict=True),
        memory.units[rows.chunk].tolist(),
        rows.reduce.tolist(),
    )
    times = zip(_padded(timed.start, len(rows)), _padded(timed.end, len(rows)), strict=True)
    moves = []
    for row, values in enumerate(zip(*columns, times, strict=True)):
        chunk, src, dst, source, target, units, reduce, period = values
        for at in range(0, units, most):
            count = min(most, units - at)
            here, there = (source[0], source[1] + at), (target[0], target[1] + at)
            moves.append(Move(src, dst, here, there, count, reduce, (row,), chunk, *period))
    return moves


def _padded(times: NDArray[np.int64] | None, rows: int) -> list[int]:
    """The times of rows; -1 for those that have none, as copies that were added."""
    known = [] if times is None else times.tolist()
    return known + [-1] * (rows - len(known))


def order_of(moves: list[Move], rows: Transfers) -> Order:
    """Follow the moves one after the other: reads after writes, writes after both.

    `rows` are what the moves stand for; their explicit dependencies are added.
    """
    halves = 2 * len(moves)
    before: list[list[int]] = [[] for _ in range(halves)]
    readers: list[list[int]] = [[] for _ in range(halves)]
    order = Order(before, [-1] * halves, [-1] * halves, readers, [0] * halves)
    memory = _Memory(order)
    for number, move in enumerate(moves):
        memory.read(_slots(move.src, move.source, move.count), 2 * number + move.local)
        memory.write(_slots(move.dst, move.target, move.count), 2 * number + 1, move.reduce)
    order.dropped = _add_dependencies(order, moves, rows)
    return order


def _slots(gpu: int, place: Place, count: int) -> range:
    """Numbers for slots, of which each GPU has its own."""
    first = (gpu * len(Buffer) + place[0]) << 32 | place[1]
    return range(first, first + count)


class _Memory:
    """Who wrote each slot last, and who has read it since."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self._writer: dict[int, int] = {}
        self._readers: dict[int, list[int]] = {}

    def read(self, slots: range, half: int) -> None:
        order, writer = self.order, -1
        writers = [self._writer.get(slot, -1) for slot in slots]
        for slot, writer in zip(slots, writers, strict=True):
            self._readers.setdefault(slot, []).append(half)
            if writer >= 0:
                order.before[half].append(writer)
                order.readers[writer].append(half)
        if writers.count(writer) == len(writers):
            order.read[half] = writer

    def write(self, slots: range, half: int, adds: bool) -> None:
        order, writer = self.order, -1
        writers = [self._writer.get(slot, -1) for slot in slots]
        fresh = True
        for slot, writer in zip(slots, writers, strict=True):
            readers = self._readers.pop(slot, ())
            fresh = fresh and not readers
            order.before[half] += [reader for reader in readers if reader != half]
            if writer >= 0:
                order.overwritten[writer] += 1
                order.before[half].append(writer)
                if adds:
                    order.readers[writer].append(half)
            self._writer[slot] = half
        if adds and fresh and writers.count(writer) == len(writers):
            order.added_to[half] = writer


def _add_dependencies(order: Order, moves: list[Move], rows: Transfers) -> int:
    """Add the explicit dependencies of rows; how many cannot be said.

    A row that waits for another starts after that has ended. Where both are on one GPU, the
    format can say so; elsewhere it holds only if something else implies it.
    """
    if rows.deps is None or rows.dep_offsets is None:
        return 0
    of_row: defaultdict[int, list[int]] = defaultdict(list)
    for number, move in enumerate(moves):
        for row in move.rows:
            of_row[row].append(number)
    dropped = 0
    waiting = owners(np.diff(rows.dep_offsets)).tolist()
    for row, earlier in zip(waiting, rows.deps.tolist(), strict=True):
        first, last = of_row[row][0], of_row[earlier][-1]
        half = 2 * first + moves[first].local
        if moves[last].dst == moves[first].src:
            order.before[half].append(2 * last + 1)
        elif 2 * last not in order.before[2 * first + 1]:
            dropped += not _implied(order, 2 * last + 1, half)
    return dropped


def _implied(order: Order, earlier: int, half: int) -> bool:
    """Whether a half surely comes after another; a search that takes too long says no."""
    stack, seen = [half], {half}
    while stack and len(seen) < 1000:
        at = stack.pop()
        causes = set(order.before[at])
        if at % 2:
            causes.add(at - 1)  # what is received was sent; harmless for a local move
        if earlier in causes:
            return True
        fresh = causes - seen
        seen |= fresh
        stack.extend(fresh)
    return False
