"""What an algorithm does whose file does not say it: found by following its data.

Every slot of the input that is read before it is written is an item. Items that are added to each
other are contributions to one chunk; an output that holds all of them at the end is a result. What
comes out is a claim like any other: the judge decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from weft.algorithm import Buffer, Cells, Linearized, Program, Transfers, linearize, place
from weft.algorithm.linearization import Words
from weft.arrays import Int32, Int64
from weft.collective import Collective, Move, custom
from weft.errors import InputError


@dataclass(frozen=True)
class Buffers:
    """The slots of each GPU's buffers, and whether input and output are one."""

    inputs: Sequence[int]
    outputs: Sequence[int]
    scratch: Sequence[int]
    in_place: bool


class Translation(Words, Protocol):
    """A file as a program on some cells, and what the file calls those."""

    @property
    def cells(self) -> Cells: ...

    @property
    def program(self) -> Program: ...


_Results = list[dict[int, int]]  # of each class: the cell that holds its result, by GPU
T = TypeVar("T", bound=Translation)


def derive(buffers: Buffers, unit: int, translate: Callable[[Cells], T]) -> tuple[Collective, T]:
    """The collective that a file performs in slots of `unit` bytes, and its program on its cells.

    Raises
    ------
    InputError
        What the file does cannot be said as a collective.
    """
    bare = _bare_cells(buffers)
    translation = translate(replace(bare, chunk=_items(bare, buffers)))
    classes = _Classes(translation, linearize(translation.program, translation))
    results = _results(_rows(bare, buffers, Buffer.OUTPUT), classes)
    moves = [replace(move, size=unit) for move in classes.moves(results)]
    collective = custom(range(len(buffers.inputs)), moves, alignment=1)
    return collective, translate(_named_cells(bare, classes, results))


def _bare_cells(buffers: Buffers) -> Cells:
    """Cells with nothing in them; every one is called by another name."""
    slots: dict[Buffer, list[Int32]] = {Buffer.INPUT: [], Buffer.OUTPUT: [], Buffer.SCRATCH: []}
    npu, names = [], []
    at = 0
    sides = (buffers.inputs, buffers.outputs, buffers.scratch)
    for gpu, lengths in enumerate(zip(*sides, strict=True)):
        if buffers.in_place:
            shared = max(lengths[:2])
            starts, total = [at, at, at + shared], shared + lengths[2]
        else:
            starts, total = [at, at + lengths[0], at + sum(lengths[:2])], sum(lengths)
        for buffer, start, length in zip(slots, starts, lengths, strict=True):
            slots[buffer].append(np.arange(start, start + length, dtype=np.int32))
        npu.append(np.full(total, gpu))
        names.append(np.arange(total) | place(Buffer.SCRATCH, 0))
        at += total
    none = np.full(at, -1, dtype=np.int32)
    return Cells(
        np.concatenate(npu).astype(np.int32),
        np.concatenate(names).astype(np.int32),
        *(none, none, none),
        slots,
    )


def _rows(cells: Cells, buffers: Buffers, buffer: Buffer) -> list[Int32]:
    """The cells of each GPU's input or output; in place, the longer of both is both."""
    rows = cells.slots[buffer]
    if not buffers.in_place:
        return rows
    other = cells.slots[Buffer.INPUT if buffer == Buffer.OUTPUT else Buffer.OUTPUT]
    return [max(pair, key=len) for pair in zip(rows, other, strict=True)]


def _items(cells: Cells, buffers: Buffers) -> Int32:
    """A number for each cell that may hold something at the start, by GPU and slot."""
    items = np.full(len(cells.npu), -1, dtype=np.int32)
    inputs = np.concatenate(_rows(cells, buffers, Buffer.INPUT))
    items[inputs] = np.arange(len(inputs))
    return items


class _Classes:
    """Items that are added to each other."""

    def __init__(self, translation: Translation, linear: Linearized) -> None:
        self.translation = translation
        cells, self.rows = translation.cells, linear.transfers
        rows = self.rows
        adds = np.flatnonzero(rows.reduce & (linear.before >= 0))
        if not len(rows):
            raise InputError("the algorithm moves nothing, so that its pattern is unknown")
        parents = _components(int(cells.chunk.max()) + 1, rows.chunk[adds], linear.before[adds])
        self.cell = _used(cells, rows)
        _, self.of = np.unique(parents[cells.chunk[self.cell]], return_inverse=True)
        self.count = int(self.of.max()) + 1
        self.npu = cells.npu[self.cell]
        self.whole = [0] * self.count  # the GPUs that contribute, as bits
        self.givers: list[list[int]] = [[] for _ in self.whole]  # the same as a list
        for item, (number, npu) in enumerate(zip(self.of.tolist(), self.npu.tolist(), strict=True)):
            if self.whole[number] >> npu & 1:
                raise InputError(
                    f"{translation.cell(int(self.cell[item]))} is added to another slot of the "
                    "same input; no collective does that"
                )
            self.whole[number] |= 1 << npu
            self.givers[number].append(npu)

    def moves(self, results: _Results) -> list[Move]:
        moves = []
        for number, given in enumerate(self.givers):
            taken = tuple(sorted(results[number]))
            if not taken:
                first = int(self.cell[np.flatnonzero(self.of == number)[0]])
                raise InputError(
                    f"{self.translation.cell(first)} is used, but its result is in no output"
                )
            moves.append(Move(1, tuple(given), taken, len(given) > 1))
        return moves


def _used(cells: Cells, rows: Transfers) -> Int64:
    """The cells whose first use is a reading of what they hold at the start."""
    uses = np.stack(_ends(rows), axis=1).reshape(-1)
    reads = np.stack([np.ones_like(rows.reduce), rows.reduce], axis=1).reshape(-1)
    touched, first = np.unique(uses, return_index=True)
    full = np.flatnonzero(cells.chunk >= 0)
    return full[np.isin(_spots(cells.npu, cells.place)[full], touched[reads[first]])]


def _spots(npu: Int32, places: Int32) -> Int64:
    """Places of all NPUs, as one number each."""
    return npu.astype(np.int64) << 32 | places


def _ends(rows: Transfers) -> tuple[Int64, Int64]:
    """What each row reads and what it writes."""
    assert rows.src_place is not None
    assert rows.dst_place is not None
    return _spots(rows.src, rows.src_place), _spots(rows.dst, rows.dst_place)


def _components(items: int, first: Int32, second: Int32) -> Int64:
    """A number for each item's class: that of its first item."""
    parent = list(range(items))

    def root(item: int) -> int:
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    for a, b in zip(first.tolist(), second.tolist(), strict=True):
        x, y = root(a), root(b)
        parent[max(x, y)] = min(x, y)
    return np.array([root(item) for item in range(items)], dtype=np.int64)


def _results(outputs: list[Int32], classes: _Classes) -> _Results:
    """Run the rows on sets of contributions and see what is complete in an output at the end."""
    cells, rows = classes.translation.cells, classes.rows
    named = _spots(cells.npu, cells.place)
    held: dict[int, tuple[int, int]] = {}  # class and contributions; no bits if spoilt
    for item, cell in enumerate(classes.cell.tolist()):
        held[int(named[cell])] = (int(classes.of[item]), 1 << int(classes.npu[item]))
    src, dst = _ends(rows)
    written = set()
    for read, write, adds in zip(src.tolist(), dst.tolist(), rows.reduce.tolist(), strict=True):
        written.add(write)
        if adds and write in held:
            (number, mine), (_, more) = held[write], held[read]
            held[write] = (number, 0 if mine & more or not mine or not more else mine | more)
        else:
            held[write] = held[read]
    found: _Results = [{} for _ in classes.whole]
    for gpu, row in enumerate(outputs):
        for cell in row.tolist():
            name = int(named[cell])
            if name in written:
                number, bits = held[name]
                if bits == classes.whole[number]:
                    found[number].setdefault(gpu, cell)
    return found


def _named_cells(bare: Cells, classes: _Classes, results: _Results) -> Cells:
    """The same cells, called by the chunks of the collective."""
    chunk = bare.chunk.copy()
    chunk[classes.cell] = classes.of
    names = bare.place.copy()
    names[classes.cell] = classes.of | place(Buffer.INPUT, 0)
    result, result_place = bare.result.copy(), bare.result_place.copy()
    for number, by_gpu in enumerate(results):
        for cell in by_gpu.values():
            if chunk[cell] >= 0:
                result[cell], result_place[cell] = number, place(Buffer.OUTPUT, number)
            else:
                names[cell] = place(Buffer.OUTPUT, number)
    return replace(bare, chunk=chunk, place=names, result=result, result_place=result_place)
