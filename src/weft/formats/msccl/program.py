"""From the steps of a file to a program of actions on cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Buffer, Cells, Program
from weft.formats.limits import count_limit
from weft.formats.msccl.document import Document, Int64, Type
from weft.formats.msccl.steps import ADDS, READS_SRC, RECEIVES, SENDS, WRITES_DST
from weft.ragged import offsets_of, owners, positions, ranges

_KINDS = (Buffer.INPUT, Buffer.OUTPUT, Buffer.SCRATCH)  # whose numbers follow each other

Bool = NDArray[np.bool_]
Pairs = tuple[Int64, Int64]


@dataclass(frozen=True, eq=False)
class Units:
    """Every step once for each chunk it moves (int64); nops are left out."""

    step: Int64
    turn: Int64  # which chunk of the step
    first: Int64  # of each step: its first unit

    def __len__(self) -> int:
        return len(self.step)


def units_of(document: Document) -> Units:
    steps = document.steps
    counts = np.where(steps.type == Type.NOP, 0, steps.count)
    most = count_limit(document.size)
    if int(counts.sum()) > most:
        document.fail("<algo>", f"moves more than {most} chunks; no runtime loads that")
    return Units(owners(counts), positions(counts), offsets_of(counts)[:-1])


def private_counts(document: Document, units: Units) -> Int64:
    """How many sums each GPU sends on without storing them: each gets a slot of its own."""
    gpu = document.blocks.gpu[document.steps.block[units.step]]
    passing = document.steps.type[units.step] == Type.RRS
    return np.bincount(gpu[passing], minlength=len(document.gpus)).astype(np.int64)


class Translation:
    """A document as a program, with the way back from events to steps and cells to slots.

    `matches` and `waits` are pairs of steps: of each message, and of who waits for whom.
    """

    def __init__(
        self, document: Document, units: Units, matches: Pairs, waits: Pairs, cells: Cells
    ) -> None:
        self.document, self.units, self.cells = document, units, cells
        self._matches, self._waits = matches, waits
        steps = document.steps
        self._type = steps.type[units.step]
        self._gpu = document.blocks.gpu[steps.block[units.step]]
        src = self._cells(READS_SRC, steps.src_buffer, steps.src)
        dst = self._cells(WRITES_DST, steps.dst_buffer, steps.dst)
        self._check_overlaps(src, dst)
        passing = self._type == Type.RRS
        dst[passing] = self._private(passing)
        # A sum of what is received and what lies elsewhere takes a local addition.
        receives = RECEIVES[self._type]
        self._local = np.where(receives, ADDS[self._type] & (src != dst), ~SENDS[self._type])
        self._src, self._dst = src, dst
        self._out = np.where(self._type == Type.S, src, dst)  # what a send takes
        self.program = self._program()

    def _cells(self, uses: Bool, buffer: Int64, offset: Int64) -> Int64:
        """The cell at one end of each unit; -1 if its step does not use that end."""
        used = np.flatnonzero(uses[self._type])
        step, turn = self.units.step[used], self.units.turn[used]
        rows = [row for kind in _KINDS for row in self.cells.slots[kind]]
        starts = offsets_of([len(row) for row in rows])
        row = (buffer[step] - _KINDS[0]) * len(self.document.gpus) + self._gpu[used]
        found = np.full(len(self.units), -1, dtype=np.int64)
        found[used] = np.concatenate(rows)[starts[row] + offset[step] + turn]
        return found

    def _private(self, passing: Bool) -> Int64:
        """A cell for each sum that is only passed on: the last ones of the scratch."""
        gpu = self._gpu[passing]
        order = np.argsort(gpu, kind="stable")
        counts = np.bincount(gpu, minlength=len(self.document.gpus))
        rows = self.cells.slots[Buffer.SCRATCH]
        lasts = [row[len(row) - count :] for row, count in zip(rows, counts, strict=True)]
        found = np.empty(len(gpu), dtype=np.int64)
        found[order] = np.concatenate([*lasts, []])
        return found

    def _check_overlaps(self, src: Int64, dst: Int64) -> None:
        """A step of several chunks must not read one of them where it has written another."""
        units = self.units
        both = np.flatnonzero((src >= 0) & (dst >= 0) & (self.document.steps.count[units.step] > 1))
        width = len(self.cells.npu)
        reads = units.step[both] * width + src[both]
        writes = units.step[both] * width + dst[both]
        order = np.argsort(reads)
        at = np.minimum(np.searchsorted(reads[order], writes), max(len(both) - 1, 0))
        clash = (reads[order][at] == writes) & (order[at] != np.arange(len(both)))
        for unit in both[clash][:1]:
            self.document.fail(
                self.document.place(int(units.step[unit])), "reads slots that it writes as others"
            )

    def _program(self) -> Program:
        units = self.units
        send, receive = (self._spread(steps) for steps in self._matches)
        local = np.flatnonzero(self._local)
        messages = len(send)
        chain = np.full((len(units), 4), -1, dtype=np.int64)
        chain[receive, 0] = 2 * np.arange(messages) + 1
        chain[local, 1] = 2 * (messages + np.arange(len(local)))
        chain[local, 2] = chain[local, 1] + 1
        chain[send, 3] = 2 * np.arange(messages)
        self._unit_of = np.concatenate([np.stack([send, receive]), np.stack([local, local])], 1)
        there = chain >= 0
        lengths = np.zeros(len(self.document.blocks) + 1, dtype=np.int64)
        np.add.at(lengths, self.document.steps.block[units.step] + 1, there.sum(axis=1))
        edge_from, edge_to, wished = self._edges(chain, there)
        sums = ADDS[self._type]
        return Program(
            self.cells,
            np.concatenate([self._out[send], self._src[local]]).astype(np.int32),
            np.concatenate([self._dst[receive], self._dst[local]]).astype(np.int32),
            np.concatenate([(sums & ~self._local)[receive], sums[local]]),
            2 * (messages + len(local)),
            np.cumsum(lengths),
            chain[there],
            edge_from,
            edge_to,
            wished,
        )

    def _spread(self, steps: Int64) -> Int64:
        """The units of these steps, step by step."""
        counts = self.document.steps.count[steps]
        return ranges(self.units.first[steps], counts)

    def _edges(self, chain: Int64, there: Bool) -> tuple[Int64, Int64, Bool]:
        """Every chunk of a step begins after the last event of the step it waits for.

        A row waits for the end of another: that is said, as a wish, where the other ends on this
        GPU and the row starts on it.
        """
        steps = self.document.steps
        step, after = self._waits
        # What comes later in the same block is a deadlock; what comes earlier needs no word.
        open_ = (steps.block[step] != steps.block[after]) | (after >= step)
        step, after = step[open_], after[open_]
        done = np.repeat((self.units.first + steps.count - 1)[after], steps.count[step])
        waiting = self._spread(step)
        last = chain[done, 3 - np.argmax(there[done, ::-1], axis=1)]
        begin = chain[waiting, np.argmax(there[waiting], axis=1)]
        written = np.maximum(chain[done, 0], chain[done, 2])
        read = np.where(there[waiting, 1], chain[waiting, 1], chain[waiting, 3])
        both = (written >= 0) & (read >= 0)
        wished = np.repeat([False, True], [len(last), int(both.sum())])
        return np.append(last, written[both]), np.append(begin, read[both]), wished

    def event(self, event: int) -> str:
        """The step an event belongs to."""
        return self.document.place(int(self.units.step[self._unit_of[event % 2, event // 2]]))

    def cell(self, cell: int) -> str:
        gpu = self.cells.npu[cell]
        rows = {kind: self.cells.slots[kind][gpu] for kind in _KINDS}
        kind = next(kind for kind, row in rows.items() if cell in row)  # every cell is a slot
        return f"{kind.name.lower()}[{np.flatnonzero(rows[kind] == cell)[0]}] of GPU {gpu}"

    def origin(self, action: int) -> str:
        """Where an action is in the file: one step, or the two ends of a message."""
        ends = dict.fromkeys([self.event(2 * action), self.event(2 * action + 1)])
        return " to ".join(ends)
