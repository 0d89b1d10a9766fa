"""Where a rank's rows read and write: in what the user gave, or in scratch that is used again.

What the user sends is only read. A place that is written lies in the output if the result is there
at the end, else in a slot of scratch; before it is first written, it is the user's input.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Buffer
from weft.algorithm.transfers import PLACE_BITS
from weft.collective import Chunks
from weft.errors import InputError
from weft.runtime.order import Share, read_places, written_places

Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

INPUT, OUTPUT, SCRATCH = 0, 1, 2
_NEVER = 1 << 62


@dataclass(frozen=True, eq=False)
class Places:
    """A kind of buffer and what is meant in it: a chunk, or a slot of scratch (int64)."""

    kind: Int64
    index: Int64

    def at(self, which: Int64) -> Places:
        return Places(self.kind[which], self.index[which])


@dataclass(frozen=True, eq=False)
class Layout:
    """The places of a rank's rows.

    Attributes
    ----------
    reads, writes
        Which rows read here, and which write here (bool).
    source, target
        Places read and written; meaningless for rows that do not (see `Places`).
    read_use, write_use
        What a use is counted as: whatever may lie in one piece of memory has one number; -1
        where nothing is ever written (int64).
    opens
        Rows that sum into a place for the first time: to what the user's input has (bool).
    fills
        Rows before which the input must be copied to what they add to, since others may come
        before them (int64).
    adds
        Rows that add to what is there (bool).
    finals
        Chunks of the result that lie elsewhere at the end: in which place, and which use it is.
    slots
        The chunks that each slot of scratch ever holds: pairs of a slot and a chunk (int64).
    """

    reads: Bools
    writes: Bools
    source: Places
    target: Places
    read_use: Int64
    write_use: Int64
    opens: Bools
    fills: Int64
    adds: Bools
    finals: tuple[Int64, Places, Int64]
    slots: tuple[Int64, Int64]


def held(chunks: Chunks, npu: int) -> tuple[Bools, Bools]:
    """Which chunks an NPU has at the start, and which it must have at the end."""
    member = np.zeros(len(chunks.set_offsets) - 1, dtype=np.bool_)
    found = np.flatnonzero(chunks.set_members == npu)
    member[np.searchsorted(chunks.set_offsets, found, side="right") - 1] = True
    return member[chunks.pre], member[chunks.post]


def lay_out(share: Share, chunks: Chunks, *, one_by_one: bool) -> Layout:
    """Give the places of a rank's rows a home; `one_by_one`: sums keep their order."""
    return _Layout(share, chunks, one_by_one=one_by_one).layout()


class _Layout:
    def __init__(self, share: Share, chunks: Chunks, *, one_by_one: bool) -> None:
        self.share, self.chunks, self.one_by_one = share, chunks, one_by_one
        rows = share.rows
        self.reads, self.writes = rows.src == share.npu, rows.dst == share.npu
        self.chunk = rows.chunk.astype(np.int64)
        self.count = len(rows)
        named = np.concatenate([read_places(rows), written_places(rows)])
        used = np.concatenate([self.reads, self.writes])
        cells, of_use = np.unique(named[used], return_inverse=True)
        cell = np.full(2 * self.count, -1, dtype=np.int64)
        cell[used] = of_use.reshape(-1)
        self.read_cell, self.write_cell = cell[: self.count], cell[self.count :]
        self.kind, self.index = cells >> PLACE_BITS, cells & ((1 << PLACE_BITS) - 1)
        self.cells = len(cells)

    def layout(self) -> Layout:
        full, result = self._find_results()
        first_write = self._first(self.write_cell)
        place, slots = self._homes(result, first_write)
        uses = np.where(place.kind == INPUT, -1, np.arange(self.cells + 1))
        scratch = place.kind == SCRATCH
        uses[scratch] = self.cells + 1 + place.index[scratch]
        turn = np.arange(self.count)
        early = self.reads & (turn <= first_write[self.read_cell])
        lost = early & ~full[self.read_cell]
        if lost.any():
            raise self._lost(int(np.flatnonzero(lost)[0]))
        source = place.at(self.read_cell)
        kind = np.where(early, INPUT, source.kind)
        # What is read from the input does not mind what happens to a slot.
        read_use = np.where(early & (source.kind == SCRATCH), -1, uses[self.read_cell])
        read_use[~self.reads] = -1
        write_use = np.where(self.writes, uses[self.write_cell], -1)
        opens = self.writes & (turn == first_write[self.write_cell])
        adds = self.writes & self.share.rows.reduce & (~opens | full[self.write_cell])
        opens &= adds
        fills = self._fills(np.flatnonzero(opens))
        opens[fills] = False
        return Layout(
            self.reads,
            self.writes,
            Places(kind, np.where(early, self.index[self.read_cell], source.index)),
            place.at(self.write_cell),
            read_use,
            write_use,
            opens,
            fills,
            adds,
            self._finals(result, place, uses),
            slots,
        )

    def _lost(self, row: int) -> InputError:
        rows = self.share.rows
        return InputError(
            f"NPU {self.share.npu} sends chunk {int(rows.chunk[row])} to NPU "
            f"{int(rows.dst[row])} and does not have it then"
        )

    def _first(self, cell: Int64) -> Int64:
        """The first row that uses each cell; far away if none does."""
        first = np.full(self.cells + 1, _NEVER, dtype=np.int64)  # one more, for -1
        used = np.flatnonzero(cell >= 0)
        np.minimum.at(first, cell[used], used)
        return first

    def _find_results(self) -> tuple[Bools, Int64]:
        """Which cells hold something at first; and the cell of each chunk's result, or -1."""
        has, self.wants = held(self.chunks, self.share.npu)
        known = self.kind != Buffer.SCRATCH
        chunk = np.where(known, self.index, 0)
        self.has = has
        full = known & (self.kind != Buffer.OUTPUT) & has[chunk]
        written = np.zeros(self.cells, dtype=np.bool_)
        written[self.write_cell[self.writes]] = True
        result = np.full(len(self.chunks), -1, dtype=np.int64)
        # The result is in the output if it was ever written, else where it is at home.
        for kind in (Buffer.HOME, Buffer.INPUT, Buffer.OUTPUT):
            there = np.flatnonzero(written & (self.kind == kind))
            result[self.index[there]] = there
        result[~self.wants] = -1
        self.written = written
        return np.append(full, False), result

    def _homes(self, result: Int64, first_write: Int64) -> tuple[Places, tuple[Int64, Int64]]:
        """The place of each cell once it is written, and what each slot of scratch is for."""
        foreign = np.zeros(self.cells, dtype=np.bool_)  # ever holds another chunk than its own
        mine = self.writes
        other = self.chunk[mine] != self.index[self.write_cell[mine]]
        foreign[self.write_cell[mine][other]] = True
        kind = np.full(self.cells, INPUT, dtype=np.int64)
        kind[self.written] = SCRATCH
        home = result[result >= 0]
        kind[home[~foreign[home]]] = OUTPUT
        index = self.index.copy()
        loose = np.flatnonzero(kind == SCRATCH)
        slot = self._slots(loose, first_write)
        index[loose] = slot
        slot_of = np.full(self.cells, -1, dtype=np.int64)
        slot_of[loose] = slot
        into = slot_of[self.write_cell[mine]]
        pairs = np.unique(np.stack([into, self.chunk[mine]], axis=1)[into >= 0], axis=0)
        # One more, for -1: rows that read or write nothing here.
        return Places(np.append(kind, INPUT), np.append(index, 0)), (pairs[:, 0], pairs[:, 1])

    def _slots(self, loose: Int64, first_write: Int64) -> Int64:
        """A slot for each of these cells; one that is no longer needed is used again."""
        rows, count = self.share.rows, self.count
        turn = np.arange(count)
        last = np.full(self.cells + 1, -1, dtype=np.int64)
        np.maximum.at(last, self.read_cell, turn)
        np.maximum.at(last, self.write_cell, turn)
        sizes = self.chunks.bytes[rows.chunk]
        size = np.zeros(self.cells + 1, dtype=np.int64)
        np.maximum.at(size, self.write_cell, sizes)
        begin = turn if rows.start is None else rows.start
        end = turn if rows.end is None else rows.end
        result_cells = set(loose[self.kind[loose] != Buffer.SCRATCH].tolist())
        free: dict[int, list[tuple[int, int, int]]] = {}  # by size: when, after which row, slot
        found = np.zeros(len(loose), dtype=np.int64)
        slots = 0
        by_turn = np.argsort(first_write[loose], kind="stable")
        for at in by_turn.tolist():
            cell = int(loose[at])
            row = int(first_write[cell])
            room = free.setdefault(int(size[cell]).bit_length(), [])
            if room and room[0][0] <= begin[row] and room[0][1] < row:
                slot = heapq.heappop(room)[2]
            else:
                slot, slots = slots, slots + 1
            found[at] = slot
            after = int(last[cell])
            if not (cell in result_cells and self._is_result(cell)):
                heapq.heappush(room, (int(end[after]), after, slot))
        return found

    def _is_result(self, cell: int) -> bool:
        """Whether the cell must be kept to the end, for a result that is copied from it."""
        return bool(self.wants[self.index[cell]])

    def _fills(self, opening: Int64) -> Int64:
        """Of rows that are the first to add to the input, those beside which others add too."""
        if self.one_by_one or not len(opening):
            return opening[:0]
        next_fixed = np.full(self.cells + 1, _NEVER, dtype=np.int64)
        turn = np.arange(self.count)
        # The first row after the opening one that reads the cell or overwrites it.
        first = self._first(self.write_cell)
        for cell, which in (
            (self.read_cell, self.reads),
            (self.write_cell, self.writes & ~self.share.rows.reduce),
        ):
            later = which & (turn > first[cell])
            np.minimum.at(next_fixed, cell[later], turn[later])
        adding = self.writes & self.share.rows.reduce
        among = np.zeros(self.cells + 1, dtype=np.int64)
        early = adding & (turn <= next_fixed[self.write_cell])
        np.add.at(among, self.write_cell[early], 1)
        return opening[among[self.write_cell[opening]] > 1]

    def _finals(self, result: Int64, place: Places, uses: Int64) -> tuple[Int64, Places, Int64]:
        wanted = np.flatnonzero(self.wants)
        cell = result[wanted]
        lies = np.where(cell >= 0, place.kind[cell], INPUT)
        missing = wanted[(cell < 0) & ~self.has[wanted]]
        if len(missing):
            raise InputError(
                f"NPU {self.share.npu} never gets chunk {int(missing[0])}, which it must have"
            )
        copied = lies != OUTPUT
        wanted, cell, lies = wanted[copied], cell[copied], lies[copied]
        index = np.where(cell >= 0, place.index[cell], wanted)
        return wanted, Places(lies, index), np.where(cell >= 0, uses[cell], -1)
