"""The cells a program reads and writes: slots of buffers on NPUs, and what they hold at first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weft.algorithm.transfers import Buffer, place
from weft.collective import Collective
from weft.collective.slots import input_slots, output_slots

# Patterns whose input and output are the same whole buffer, on every NPU.
WHOLE = frozenset({"all-reduce", "broadcast", "reduce"})

Int32 = NDArray[np.int32]
Column = Int32 | int  # one for all cells


@dataclass(frozen=True, eq=False)
class Cells:
    """All cells of a collective's NPUs, numbered; in place, slots of two buffers are one cell.

    Attributes
    ----------
    npu
        The NPU a cell lies on (int32).
    place
        What rows call it: see `weft.algorithm.place` (int32).
    chunk
        The chunk it holds at the start, or -1 (int32).
    result, result_place
        The chunk whose result belongs there and what rows call it once it holds that; -1 where
        its name never changes (int32). They differ only where one buffer takes in other chunks
        than it gives out, as in All-to-All in place.
    slots
        The cells of each buffer: ``slots[Buffer.INPUT][npu][slot]``.
    """

    npu: Int32
    place: Int32
    chunk: Int32
    result: Int32
    result_place: Int32
    slots: dict[Buffer, list[Int32]]

    def find(self, npu: int, buffer: Buffer, slot: int) -> int | None:
        """The cell of a slot; None if the buffer is not that long."""
        row = self.slots[buffer][npu]
        return int(row[slot]) if 0 <= slot < len(row) else None

    def with_scratch(self, npu: ArrayLike, slot: ArrayLike) -> Cells:
        """These cells and further ones that are empty: slots of scratch, each on an NPU."""
        npus = np.asarray(npu, dtype=np.int32)
        names = _names(Buffer.SCRATCH, np.asarray(slot, dtype=np.int32))
        empty = np.full(len(npus), -1, dtype=np.int32)
        chunk, result, result_place = (
            np.append(column, empty) for column in (self.chunk, self.result, self.result_place)
        )
        npu, name = np.append(self.npu, npus), np.append(self.place, names)
        return Cells(npu, name, chunk, result, result_place, self.slots)


def cells_of(
    collective: Collective,
    npus: int,
    *,
    in_place: bool,
    inputs: Sequence[int],
    outputs: Sequence[int],
    scratch: Sequence[int],
) -> Cells:
    """The cells of a collective among NPUs 0 to npus - 1.

    Parameters
    ----------
    in_place
        Whether input and output share memory.
    inputs, outputs, scratch
        How many slots each NPU's buffers have at least. Slots beyond what the collective fills
        are as good as scratch.
    """
    table = _Table(collective, npus)
    lengths = zip(inputs, outputs, scratch, strict=True)
    rows = [table.buffers(n, in_place, *counts) for n, counts in enumerate(lengths)]
    kinds = (Buffer.INPUT, Buffer.OUTPUT, Buffer.SCRATCH)
    slots = {kind: list(each) for kind, each in zip(kinds, zip(*rows, strict=True), strict=True)}
    npu, name, chunk, result, result_place = np.concatenate(table.runs, axis=1)
    return Cells(npu, name, chunk, result, result_place, slots)


class _Table:
    """Collects cells, a run of them at a time."""

    def __init__(self, collective: Collective, npus: int) -> None:
        chunks = collective.chunks
        self.runs: list[Int32] = []  # columns of cells, in the order of `Cells`
        self._count = 0
        self._inputs, self._outputs = input_slots(chunks, npus), output_slots(chunks, npus)
        self._own_buffers = collective.pattern.own_buffers
        self._whole = _numbers(0, len(chunks)) if collective.kind in WHOLE else None

    def buffers(
        self, npu: int, in_place: bool, inputs: int, outputs: int, scratch: int
    ) -> tuple[Int32, Int32, Int32]:
        """The cells of an NPU's input, output and scratch, which have so many at least."""
        loose = self._scratch(npu, 0, scratch)
        first, last = self._inputs.of(npu), self._outputs.of(npu)
        if in_place and self._own_buffers:
            given, taken = self._exchanged(npu, first, last)
        elif in_place:
            given, taken = self._shared(npu, first, last)
        else:
            given = self._add(npu, _names(Buffer.INPUT, first), first)
            taken = self._add(npu, _names(Buffer.OUTPUT, last))
        # What has no meaning for the collective is scratch too.
        more = self._scratch(npu, scratch, inputs - len(given))
        rest = self._scratch(npu, scratch + len(more), outputs - len(taken))
        return np.concatenate([given, more]), np.concatenate([taken, rest]), loose

    def _add(
        self, npu: int, name: Int32, chunk: Column = -1, result: Column = -1, place: Column = -1
    ) -> Int32:
        """The numbers of new cells."""
        run = np.empty((5, len(name)), dtype=np.int32)
        for row, column in enumerate((npu, name, chunk, result, place)):
            run[row] = column
        self.runs.append(run)
        self._count += len(name)
        return _numbers(self._count - len(name), len(name))

    def _scratch(self, npu: int, first: int, count: int) -> Int32:
        return self._add(npu, _names(Buffer.SCRATCH, _numbers(first, count)))

    def _shared(self, npu: int, held: Int32, last: Int32) -> tuple[Int32, Int32]:
        """Input and output hold the same chunks, as far as both hold them: each is at home."""
        first, chunks = held, np.union1d(held, last)
        if self._whole is not None and len(chunks):
            first = last = chunks = self._whole
        home = self._add(npu, chunks, np.where(np.isin(chunks, held), chunks, -1))
        return home[np.searchsorted(chunks, first)], home[np.searchsorted(chunks, last)]

    def _exchanged(self, npu: int, first: Int32, last: Int32) -> tuple[Int32, Int32]:
        """Input and output hold other chunks in the same memory, slot by slot."""
        slots = max(len(first), len(last))
        before = np.pad(first, (0, slots - len(first)), constant_values=-1)
        after = np.pad(last, (0, slots - len(last)), constant_values=-1)
        result = np.where(after >= 0, _names(Buffer.OUTPUT, after), -1)
        name = np.where(before >= 0, _names(Buffer.INPUT, before), result)
        cells = self._add(npu, name, before, after, result)
        return cells[: len(first)], cells[: len(last)]


def _names(buffer: Buffer, index: Int32) -> Int32:
    return index | np.int32(place(buffer, 0))


def _numbers(first: int, count: int) -> Int32:
    return np.arange(first, first + max(count, 0), dtype=np.int32)
