"""The cells a program reads and writes: slots of buffers on NPUs, and what they hold at first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.transfers import Buffer, place
from weft.collective import Collective
from weft.collective.slots import input_slots, output_slots

# Patterns whose input and output are the same whole buffer, on every NPU.
WHOLE = frozenset({"all-reduce", "broadcast", "reduce"})

Int32 = NDArray[np.int32]


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
    table = _Table()
    meaning = _Meaning(collective, npus)
    for npu in range(npus):
        _add_npu(
            table,
            npu,
            meaning,
            in_place=in_place,
            counts=(inputs[npu], outputs[npu], scratch[npu]),
        )
    return table.cells()


class _Meaning:
    """Which chunk belongs in which slot."""

    def __init__(self, collective: Collective, npus: int) -> None:
        chunks = collective.chunks
        self.own_buffers = collective.pattern.own_buffers
        self.whole = collective.kind in WHOLE
        self.count = len(chunks)
        self.members = frozenset(collective.group)
        self._inputs, self._outputs = input_slots(chunks, npus), output_slots(chunks, npus)

    def inputs(self, npu: int) -> Int32:
        return self._inputs.of(npu)

    def outputs(self, npu: int) -> Int32:
        return self._outputs.of(npu)


class _Table:
    """Collects cells, a run of them at a time."""

    def __init__(self) -> None:
        self._runs: list[NDArray[np.int32]] = []
        self._count = 0
        self._slots: dict[Buffer, list[Int32]] = {
            Buffer.INPUT: [],
            Buffer.OUTPUT: [],
            Buffer.SCRATCH: [],
        }

    def add(
        self,
        npu: int,
        name: Int32,
        chunk: Int32 | int = -1,
        result: Int32 | int = -1,
        result_place: Int32 | int = -1,
    ) -> Int32:
        """The numbers of new cells."""
        run = np.empty((5, len(name)), dtype=np.int32)
        for row, column in enumerate((npu, name, chunk, result, result_place)):
            run[row] = column
        self._runs.append(run)
        self._count += len(name)
        return np.arange(self._count - len(name), self._count, dtype=np.int32)

    def close(self, inputs: Int32, outputs: Int32, scratch: Int32) -> None:
        """The buffers of the next NPU."""
        for buffer, cells in zip(self._slots, (inputs, outputs, scratch), strict=True):
            self._slots[buffer].append(cells)

    def cells(self) -> Cells:
        npu, name, chunk, result, result_place = np.concatenate(self._runs, axis=1)
        return Cells(npu, name, chunk, result, result_place, self._slots)


def _names(buffer: Buffer, index: Int32) -> Int32:
    return index | np.int32(place(buffer, 0))


def _numbers(first: int, end: int) -> Int32:
    return np.arange(first, max(first, end), dtype=np.int32)


def _add_npu(
    table: _Table, npu: int, meaning: _Meaning, *, in_place: bool, counts: tuple[int, int, int]
) -> None:
    scratch = table.add(npu, _names(Buffer.SCRATCH, _numbers(0, counts[2])))
    if in_place and meaning.own_buffers:
        inputs, outputs = _exchanged(table, npu, meaning)
    elif in_place:
        inputs, outputs = _shared(table, npu, meaning)
    else:
        first, last = meaning.inputs(npu), meaning.outputs(npu)
        inputs = table.add(npu, _names(Buffer.INPUT, first), first)
        outputs = table.add(npu, _names(Buffer.OUTPUT, last))
    longer = _lengthened(table, npu, inputs, counts[0], counts[2])
    spare = counts[2] + len(longer) - len(inputs)
    table.close(longer, _lengthened(table, npu, outputs, counts[1], spare), scratch)


def _lengthened(table: _Table, npu: int, cells: Int32, count: int, spare: int) -> Int32:
    """A buffer of at least `count` cells; those without a meaning are scratch from `spare` on."""
    more = table.add(npu, _names(Buffer.SCRATCH, _numbers(spare, spare + count - len(cells))))
    return np.concatenate([cells, more])


def _shared(table: _Table, npu: int, meaning: _Meaning) -> tuple[Int32, Int32]:
    """Input and output hold the same chunks, as far as both hold them: each chunk is at home."""
    held, last = meaning.inputs(npu), meaning.outputs(npu)
    first = held
    if meaning.whole and npu in meaning.members:
        first = last = _numbers(0, meaning.count)
    chunks = np.union1d(first, last)
    home = table.add(npu, chunks, np.where(np.isin(chunks, held), chunks, -1))
    return home[np.searchsorted(chunks, first)], home[np.searchsorted(chunks, last)]


def _exchanged(table: _Table, npu: int, meaning: _Meaning) -> tuple[Int32, Int32]:
    """Input and output hold other chunks in the same memory, slot by slot."""
    first, last = meaning.inputs(npu), meaning.outputs(npu)
    slots = max(len(first), len(last))
    before = np.pad(first, (0, slots - len(first)), constant_values=-1)
    after = np.pad(last, (0, slots - len(last)), constant_values=-1)
    result = np.where(after >= 0, _names(Buffer.OUTPUT, after), -1)
    name = np.where(before >= 0, _names(Buffer.INPUT, before), result)
    cells = table.add(npu, name, before, after, result)
    return cells[: len(first)], cells[: len(last)]
