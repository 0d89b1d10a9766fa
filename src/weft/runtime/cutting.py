"""Programs for buffers of a given length: the plan's chunks cut anew, in elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm
from weft.collective import Collective
from weft.collective.chunks import cut
from weft.ragged import offsets_of
from weft.runtime.layout import INPUT, OUTPUT, SCRATCH, held
from weft.runtime.program import Program

Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

_LINE = 64  # elements at which slots of scratch begin: no two share a cache line


def lengths_of_chunks(collective: Collective, count: int) -> Int64:
    """Elements of each chunk if the largest buffer of an NPU has so many; some may be empty.

    Shares of patterns known by name are as even as can be. What is listed keeps its proportions.
    """
    chunks, k = collective.chunks, collective.chunks_per_share
    if collective.parts is None:
        real = np.flatnonzero(collective.piece_bytes)
        sizes = np.diff(cut(count, len(real), 1))
        return np.tile(sizes, len(chunks) // max(len(sizes), 1))
    if collective.pattern.any_cut:  # parts of one buffer
        ends = _scaled(chunks.offset + chunks.bytes, count, collective.size)
        return ends - _scaled(chunks.offset, count, collective.size)
    parts = collective.parts
    whole = _scaled(parts.bytes, count, collective.size)
    first = offsets_of(np.array([_pieces(int(size), k, collective) for size in parts.bytes]))
    found = [
        np.diff(cut(int(size), int(pieces), 1))
        for size, pieces in zip(whole, np.diff(first), strict=True)
    ]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _pieces(size: int, k: int, collective: Collective) -> int:
    """In how many chunks that are not empty a part is cut."""
    return int(np.count_nonzero(np.diff(cut(size, k, collective.alignment))))


def _scaled(sizes: Int64, count: int, size: int) -> Int64:
    """The same shares of `count` elements as these are of `size` bytes."""
    whole, rest = divmod(count, size)
    if rest == 0:
        return sizes * whole
    return np.array([int(one) * count // size for one in sizes.tolist()], dtype=np.int64)


class Cut:
    """The chunks of an algorithm for buffers of given lengths.

    Parameters
    ----------
    counts
        For each demand: elements of the largest buffer that an NPU has in it.
    """

    def __init__(self, algorithm: Algorithm, counts: Sequence[int]) -> None:
        self.algorithm, self.counts = algorithm, tuple(counts)
        pairs = zip(algorithm.demands, counts, strict=True)
        tables = [lengths_of_chunks(demand, count) for demand, count in pairs]
        self.lengths: Int64 = np.concatenate(tables)
        self._demand = np.repeat(np.arange(len(tables)), [len(table) for table in tables])

    def sides(self, npu: int) -> Sides:
        """The input and output buffers of an NPU."""
        has, wants = held(self.algorithm.chunks, npu)
        demands = len(self.counts)
        return Sides(
            *_places(has, self.lengths, self._demand, demands),
            *_places(wants, self.lengths, self._demand, demands),
            self._demand,
            has & wants,
            self.lengths,
        )

    def fit(self, program: Program, lanes: NDArray[np.int32] | None = None) -> Fitted:
        """A program for these lengths, over these `lanes` of a transport."""
        sides = self.sides(program.npu)
        slots = int(program.slot.max(initial=-1)) + 1
        sizes = np.zeros(slots, dtype=np.int64)
        np.maximum.at(sizes, program.slot, self.lengths[program.slot_chunk])
        slot_starts = offsets_of(-(-sizes // _LINE) * _LINE)
        first = {INPUT: sides.input_start, OUTPUT: sides.output_start, SCRATCH: slot_starts[:-1]}
        scratch = 2 * len(self.counts)

        def resolved(kind: Int64, index: Int64) -> tuple[NDArray[np.int32], Int64]:
            buffer = np.full(len(kind), scratch, dtype=np.int32)
            offset = np.zeros(len(kind), dtype=np.int64)
            for which, starts in first.items():
                there = kind == which
                offset[there] = starts[index[there]]
                if which != SCRATCH:
                    buffer[there] = 2 * self._demand[index[there]] + which
            return buffer, offset

        steps = {}
        for name in ("from", "base", "to"):
            index = np.maximum(getattr(program, f"{name}_index"), 0)
            steps[name] = resolved(getattr(program, f"{name}_kind"), index)
        return Fitted(
            program,
            program.peer if lanes is None else lanes,
            sides,
            int(slot_starts[-1]),
            self.lengths[program.chunk],
            *steps["from"],
            *steps["base"],
            *steps["to"],
        )


def _places(
    there: Bools, lengths: Int64, demand: Int64, demands: int
) -> tuple[Int64, tuple[int, ...]]:
    """Where each chunk begins in its demand's buffer, and the length of each buffer."""
    taken = np.where(there, lengths, 0)
    ends = np.cumsum(taken)
    totals = np.bincount(demand, weights=None, minlength=demands)
    before = offsets_of(totals)
    base = np.concatenate([[0], ends])[before]
    starts = ends - taken - base[demand]
    return starts, tuple(np.diff(base).tolist())


@dataclass(frozen=True, eq=False)
class Sides:
    """The input and output of one NPU: chunks one after the other, in order of their numbers.

    Attributes
    ----------
    input_start, output_start
        The first element of each chunk there (int64).
    inputs, outputs
        Elements of the buffers, for each demand.
    demand
        The demand of each chunk (int64).
    both
        Chunks that are in both (bool).
    lengths
        Elements of each chunk (int64).
    """

    input_start: Int64
    inputs: tuple[int, ...]
    output_start: Int64
    outputs: tuple[int, ...]
    demand: Int64
    both: Bools
    lengths: Int64

    def shift(self, demand: int) -> int | None:
        """How far the output's first element is from the input's in one buffer for both.

        0 where they have no chunk in common; None if no shift serves all that they have.
        """
        common = np.flatnonzero(self.both & (self.demand == demand))
        shifts = np.unique(self.input_start[common] - self.output_start[common])
        return int(shifts[0]) if len(shifts) == 1 else None if len(shifts) else 0


@dataclass(frozen=True, eq=False)
class Fitted:
    """A program for buffers of given lengths, all offsets in elements.

    Buffers are, for each demand, its input and its output; the last is scratch.
    """

    program: Program
    lanes: NDArray[np.int32]
    sides: Sides
    scratch: int
    length: Int64
    from_buffer: NDArray[np.int32]
    from_offset: Int64
    base_buffer: NDArray[np.int32]
    base_offset: Int64
    to_buffer: NDArray[np.int32]
    to_offset: Int64

    @cached_property
    def core(self) -> _core.Steps:
        """The program for the core."""
        program = self.program
        return _core.Steps(
            what=program.what,
            peer=self.lanes,
            queue=program.queue,
            from_buffer=self.from_buffer,
            base_buffer=self.base_buffer,
            to_buffer=self.to_buffer,
            from_=self.from_offset,
            base=self.base_offset,
            to=self.to_offset,
            length=self.length,
            combines=program.combines,
            read_cell=program.read_cell,
            write_cell=program.write_cell,
            read_after=program.read_after,
            written_after=program.written_after,
            free_after=program.free_after,
            after_offsets=program.after_offsets,
            after=program.after,
        )
