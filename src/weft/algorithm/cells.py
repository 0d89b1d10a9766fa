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

    def inputs(self, npu: int) -> list[int]:
        chunks: list[int] = self._inputs.of(npu).tolist()
        return chunks

    def outputs(self, npu: int) -> list[int]:
        chunks: list[int] = self._outputs.of(npu).tolist()
        return chunks


class _Table:
    """Collects cells, one after the other."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, int, int]] = []
        self._slots: dict[Buffer, list[Int32]] = {
            Buffer.INPUT: [],
            Buffer.OUTPUT: [],
            Buffer.SCRATCH: [],
        }

    def add(
        self, npu: int, name: int, chunk: int = -1, result: int = -1, result_place: int = -1
    ) -> int:
        self._rows.append((npu, name, chunk, result, result_place))
        return len(self._rows) - 1

    def close(self, inputs: list[int], outputs: list[int], scratch: list[int]) -> None:
        """The buffers of the next NPU."""
        for buffer, cells in zip(self._slots, (inputs, outputs, scratch), strict=True):
            self._slots[buffer].append(np.array(cells, dtype=np.int32))

    def cells(self) -> Cells:
        rows = np.array(self._rows, dtype=np.int32).reshape(-1, 5)
        npu, name, chunk, result, result_place = (rows[:, i].copy() for i in range(5))
        return Cells(npu, name, chunk, result, result_place, self._slots)


def _add_npu(
    table: _Table, npu: int, meaning: _Meaning, *, in_place: bool, counts: tuple[int, int, int]
) -> None:
    scratch = [table.add(npu, place(Buffer.SCRATCH, slot)) for slot in range(counts[2])]
    if in_place and meaning.own_buffers:
        inputs, outputs = _exchanged(table, npu, meaning)
    elif in_place:
        inputs, outputs = _shared(table, npu, meaning)
    else:
        inputs = [
            table.add(npu, place(Buffer.INPUT, chunk), chunk) for chunk in meaning.inputs(npu)
        ]
        outputs = [table.add(npu, place(Buffer.OUTPUT, chunk)) for chunk in meaning.outputs(npu)]
    spare = counts[2]
    for buffer, count in ((inputs, counts[0]), (outputs, counts[1])):
        for _ in range(len(buffer), count):
            buffer.append(table.add(npu, place(Buffer.SCRATCH, spare)))
            spare += 1
    table.close(inputs, outputs, scratch)


def _shared(table: _Table, npu: int, meaning: _Meaning) -> tuple[list[int], list[int]]:
    """Input and output hold the same chunks, as far as both hold them: each chunk is at home."""
    first, last = meaning.inputs(npu), meaning.outputs(npu)
    held = set(first)
    if meaning.whole and npu in meaning.members:
        first = last = list(range(meaning.count))
    home = {
        chunk: table.add(npu, place(Buffer.HOME, chunk), chunk if chunk in held else -1)
        for chunk in dict.fromkeys([*first, *last])
    }
    return [home[chunk] for chunk in first], [home[chunk] for chunk in last]


def _exchanged(table: _Table, npu: int, meaning: _Meaning) -> tuple[list[int], list[int]]:
    """Input and output hold other chunks in the same memory, slot by slot."""
    first, last = meaning.inputs(npu), meaning.outputs(npu)
    cells = []
    for slot in range(max(len(first), len(last))):
        before = first[slot] if slot < len(first) else -1
        after = last[slot] if slot < len(last) else -1
        result = place(Buffer.OUTPUT, after) if after >= 0 else -1
        name = place(Buffer.INPUT, before) if before >= 0 else result
        cells.append(table.add(npu, name, before, after, result))
    return cells[: len(first)], cells[: len(last)]
