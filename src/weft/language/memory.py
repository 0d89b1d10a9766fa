"""What every slot of every rank holds while a program is written, and what was done so far."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from operator import index as whole
from typing import NamedTuple

from weft.algorithm import Buffer, Cells, cells_of
from weft.algorithm.transfers import PLACE_BITS
from weft.collective import Collective
from weft.errors import InputError, unknown_name
from weft.language.lines import Line, spelled, wrong
from weft.quoting import brief

BUFFERS = {buffer.name.lower(): buffer for buffer in (Buffer.INPUT, Buffer.OUTPUT, Buffer.SCRATCH)}
# A move: cell read, cell written, whether it adds, moves on the longest way to it by data and reuse
# of cells, and the line that says so.
Move = tuple[int, int, bool, int, Line]
_START = -1  # the move that wrote what is there from the start


class Run(NamedTuple):
    """Cells one after the other in a buffer."""

    rank: int
    buffer: str
    first: int
    cells: list[int]

    def __str__(self) -> str:
        return f"{self.buffer}[{_slots(self.first, len(self.cells))}] of rank {self.rank}"

    def one(self, at: int) -> str:
        """One of its slots, in words."""
        return f"{self.buffer}[{self.first + at}] of rank {self.rank}"


@dataclass(slots=True)
class _State:
    """What a cell holds now, and how deep those are that wrote it and read it."""

    chunk: int = -1
    parts: int = 0  # of a sum: the ranks whose contributions are in it, as bits
    writer: int = _START  # the move that wrote what is there
    written: int = 0
    read: int = 0


class Memory:
    """The buffers of all ranks."""

    def __init__(self, collective: Collective, *, in_place: bool) -> None:
        self.group = collective.group
        npus = max(self.group) + 1
        nothing = [0] * npus
        self._cells = cells_of(
            collective, npus, in_place=in_place, inputs=nothing, outputs=nothing, scratch=nothing
        )
        self.moves: list[Move] = []  # in the order of the program
        self.waits: list[tuple[int, int]] = []  # (earlier, later) moves, as the author wished
        self._buffers = {
            name: [self._cells.slots[buffer][npu].tolist() for npu in self.group]
            for name, buffer in BUFFERS.items()
            if buffer != Buffer.SCRATCH
        }
        # (rank, slot) to cell, in the order in which they were first named
        self._scratch: dict[tuple[int, int], int] = {}
        chunks = collective.chunks
        self._sums: list[bool] = chunks.reduce.tolist()
        self._bytes: list[int] = chunks.bytes.tolist()
        self._room = _room(collective, self._cells)
        rank_of = {npu: rank for rank, npu in enumerate(self.group)}
        self._states = [
            _State(chunk, 1 << rank_of[npu] if chunk >= 0 and self._sums[chunk] else 0)
            for npu, chunk in zip(self._cells.npu.tolist(), self._cells.chunk.tolist(), strict=True)
        ]

    def find(self, rank: int, buffer: str, index: int, count: int, *, full: bool) -> Run:
        """The cells of a run of slots, which must hold something if `full`.

        Scratch is as long as it is written.
        """
        try:
            rank, index, count = whole(rank), whole(index), whole(count)
        except TypeError:
            found = f"{brief(repr(rank))}, {brief(repr(index))} and {brief(repr(count))}"
            raise wrong(f"rank, index and count are whole numbers, not {found}") from None
        if not 0 <= rank < len(self.group):
            raise wrong(f"rank {rank} is not in the group; ranks are 0 to {len(self.group) - 1}")
        if not isinstance(buffer, str) or buffer not in BUFFERS:
            raise wrong(str(unknown_name("buffer", str(buffer), BUFFERS)))
        if count < 1:
            raise wrong(f"a run has 1 chunk or more, not {count}")
        if buffer == "scratch":
            if not 0 <= index <= (1 << PLACE_BITS) - count:
                raise wrong(f"scratch[{index}] is out of range")
            cells = [self._scratch_cell(rank, slot, full) for slot in range(index, index + count)]
        else:
            slots = self._buffers[buffer][rank]
            if not 0 <= index <= len(slots) - count:
                raise wrong(_out_of_range(buffer, rank, index, count, len(slots)))
            cells = slots[index : index + count]
        run = Run(rank, buffer, index, cells)
        for at, cell in enumerate(cells if full else ()):
            if self._states[cell].chunk < 0:
                raise wrong(f"{run.one(at)} holds nothing yet")
        return run

    def _scratch_cell(self, rank: int, slot: int, full: bool) -> int:
        if (rank, slot) not in self._scratch:
            if full:
                raise wrong(f"scratch[{slot}] of rank {rank} holds nothing yet")
            self._scratch[rank, slot] = len(self._states)
            self._states.append(_State())
        return self._scratch[rank, slot]

    def check_fresh(self, run: Run, made: int) -> None:
        """Raise if a slot was written by one of the moves from `made` on."""
        for at, cell in enumerate(run.cells):
            writer = self._states[cell].writer
            if writer >= made:
                raise wrong(
                    f"this reference to {run.one(at)} is stale: {spelled(self.moves[writer][-1])} "
                    "wrote something else there; use the reference that operation gave, or ask for "
                    "the chunk anew"
                )

    def add(self, source: Run, target: Run, *, reduce: bool, after: list[Run], line: Line) -> None:
        """Copy or add all cells of a run to those of another."""
        self._check_apart(source, target)
        if reduce:
            self._check_sums(source, target)
        elif self._room is not None:
            self._check_room(source, target, self._room)
        least = self._wait(after, len(source.cells)) if after else 0
        for src, dst in zip(source.cells, target.cells, strict=True):
            self._put(src, dst, reduce, least, line)

    def _wait(self, after: list[Run], count: int) -> int:
        """Make the next moves wait for what wrote some runs; the depth of those."""
        before = [self._states[cell] for run in after for cell in run.cells]
        later = range(len(self.moves), len(self.moves) + count)
        self.waits += product(sorted({state.writer for state in before} - {_START}), later)
        return max(state.written for state in before)

    def _put(self, src: int, dst: int, reduce: bool, least: int, line: Line) -> None:
        source, target = self._states[src], self._states[dst]
        depth = 1 + max(source.written, target.written, target.read, least)
        target.chunk = source.chunk
        target.parts = source.parts | (target.parts if reduce else 0)
        target.writer, target.written = len(self.moves), depth
        source.read = max(source.read, depth)
        self.moves.append((src, dst, reduce, depth, line))

    def _check_apart(self, source: Run, target: Run) -> None:
        if source.rank != target.rank or set(source.cells).isdisjoint(target.cells):
            return
        if source.cells == target.cells:
            raise wrong(f"{source} is copied or added to itself")
        raise wrong(f"{source} and {target} overlap")

    def _check_sums(self, source: Run, target: Run) -> None:
        for at, (src, dst) in enumerate(zip(source.cells, target.cells, strict=True)):
            more, there = self._states[src], self._states[dst]
            if more.chunk != there.chunk:
                raise wrong(
                    f"{source.one(at)} holds chunk {more.chunk} and {target.one(at)} chunk "
                    f"{there.chunk}: different chunks cannot be added"
                )
            if not self._sums[more.chunk]:
                raise wrong(f"{source.one(at)} holds chunk {more.chunk}, which is not summed")
            if both := more.parts & there.parts:
                raise wrong(
                    f"{source.one(at)} and {target.one(at)} both contain the contribution of rank "
                    f"{both.bit_length() - 1}, which would count twice"
                )

    def _check_room(self, source: Run, target: Run, room: list[int]) -> None:
        for at, (src, dst) in enumerate(zip(source.cells, target.cells, strict=True)):
            size = self._bytes[self._states[src].chunk]
            if dst < len(room) and size > room[dst]:
                raise wrong(
                    f"{source.one(at)} has {size} B, which do not fit in the {room[dst]} B of "
                    f"{target.one(at)}"
                )

    def last_line(self, run: Run) -> Line | None:
        """The line that wrote a run last; None if it is as it was at the start."""
        move = max(self._states[cell].writer for cell in run.cells)
        return self.moves[move][-1] if move != _START else None

    def event(self, event: int) -> str:
        """The line of a move that reads (``2 * move``) or writes, in words."""
        return spelled(self.moves[event // 2][-1])

    def cell(self, cell: int) -> str:
        return f"cell {cell}"

    def cells(self) -> Cells:
        """All cells, with those of scratch that were named."""
        npus = [self.group[rank] for rank, _ in self._scratch]
        return self._cells.with_scratch(npus, [slot for _, slot in self._scratch])


def _slots(index: int, count: int) -> str:
    return f"{index}:{index + count}" if count > 1 else f"{index}"


def _out_of_range(buffer: str, rank: int, index: int, count: int, length: int) -> str:
    has = f"has slots 0 to {length - 1}" if length else "has no slots"
    return f"{buffer}[{_slots(index, count)}] is out of range: the {buffer} of rank {rank} {has}"


def _room(collective: Collective, cells: Cells) -> list[int] | None:
    """Bytes of each cell, where parts may differ in size; None if all chunks are cut alike."""
    if collective.parts is None or collective.pattern.any_cut:
        return None
    sizes = collective.chunks.bytes
    room = sizes[cells.place & ((1 << PLACE_BITS) - 1)]
    both = (cells.chunk >= 0) & (cells.result >= 0)
    if (sizes[cells.chunk[both]] != sizes[cells.result[both]]).any():
        raise InputError(
            f"{collective.kind}: what a rank has at the start and what it has at the end differ in "
            "size slot by slot, so it cannot be done in place"
        )
    return list(map(int, room))
