"""Where rows read and write, in the buffers of a runtime: what exporters need."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.model import Algorithm
from weft.algorithm.transfers import PLACE_BITS, Buffer, Transfers, place
from weft.collective import Chunks, Collective
from weft.collective.slots import Slots, input_slots, output_slots
from weft.errors import InputError
from weft.ragged import offsets_of, owners

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]

_END = (1 << 63) - 1  # after all keys, so that a search always finds one


@dataclass(frozen=True, eq=False)
class Memory:
    """An algorithm of one collective, laid out in input, output and scratch buffers.

    Buffers are counted in units, the largest size of which all chunks are whole multiples (for
    collectives cut evenly a chunk is one unit, whatever the alignment leaves over).

    Attributes
    ----------
    collective
        What it does.
    ranks
        NPUs in the order of a runtime's ranks: the group in its order, then NPUs that only
        relay, ascending (int32).
    transfers
        The rows, untimed, with ranks for `src` and `dst`, and local copies added at the end where
        a result is still in the input. Rows keep their numbers. A row that adds to nothing, as at
        a relay, does not have `reduce` set here.
    in_place
        Whether input and output are one buffer.
    units
        Units of each chunk (int64).
    src_buffer, dst_buffer
        `Buffer` of what each row reads and writes: INPUT, OUTPUT or SCRATCH (int32).
    src_slot, dst_slot
        Its first unit there (int64).
    inputs, outputs, scratch
        Units of each rank's buffers (int64). In place, the buffer that the other is a part of
        has them all.
    """

    collective: Collective
    ranks: Int32
    transfers: Transfers
    in_place: bool
    units: Int64
    src_buffer: Int32
    src_slot: Int64
    dst_buffer: Int32
    dst_slot: Int64
    inputs: Int64
    outputs: Int64
    scratch: Int64

    @cached_property
    def cells(self) -> tuple[Int64, Int64]:
        """Numbers for the places that each row reads and writes, different on each rank."""
        rows = self.transfers
        reads = (rows.src.astype(np.int64) * 8 + self.src_buffer) << 40 | self.src_slot
        writes = (rows.dst.astype(np.int64) * 8 + self.dst_buffer) << 40 | self.dst_slot
        return reads, writes


def lay_out(algorithm: Algorithm, *, apart: bool = False) -> Memory:
    """Give every place a buffer and a slot.

    Parameters
    ----------
    apart
        Keep input and output apart, even if the algorithm could run in place.

    Raises
    ------
    InputError
        The algorithm serves several collectives, or its chunks have no common unit.
    """
    if len(algorithm.demands) != 1:
        raise InputError(
            f"the algorithm serves {len(algorithm.demands)} collectives at once; this format "
            "runs one, so export each group alone"
        )
    collective = algorithm.demands[0]
    return _Layout(collective, algorithm.chunks, algorithm.transfers, apart=apart).memory()


def writers(memory: Memory) -> Int64:
    """The row that wrote what each row reads; -1 if none did."""
    count = len(memory.transfers)
    # A row reads before it writes: of all uses of a cell in order, the last writing so far.
    turn = np.concatenate([2 * np.arange(count), 2 * np.arange(count) + 1])
    cell = np.concatenate(memory.cells)
    by = np.lexsort((turn, cell))
    writer = np.where(turn[by] % 2 == 1, np.arange(2 * count), -1)
    latest = np.maximum.accumulate(writer)
    same = (latest >= 0) & (cell[by][latest] == cell[by])
    causes = np.full(count, -1, dtype=np.int64)
    reads = turn[by] % 2 == 0
    causes[turn[by][reads] // 2] = np.where(same, turn[by][latest] // 2, -1)[reads]
    return causes


class _Layout:
    def __init__(
        self, collective: Collective, chunks: Chunks, rows: Transfers, *, apart: bool
    ) -> None:
        self.collective, self.chunks = collective, chunks
        self.ranks = _ranks(collective, rows)
        self.units = _units(collective, chunks)
        npus = int(self.ranks.max()) + 1
        self.inputs = _Side(input_slots(chunks, npus), self.units)
        self.outputs = _Side(output_slots(chunks, npus), self.units)
        places = [
            np.ascontiguousarray(rows.chunk if named is None else named, dtype=np.int64)
            for named in (rows.src_place, rows.dst_place)
        ]
        buffers = np.concatenate(places) >> PLACE_BITS
        at_home = not np.isin(buffers, (Buffer.INPUT, Buffer.OUTPUT)).any()
        self.in_place = at_home and not collective.pattern.own_buffers and not apart
        self.rows = self._with_copies(rows, *places)

    def memory(self) -> Memory:
        rows = self.rows
        assert rows.src_place is not None
        assert rows.dst_place is not None
        npu = np.concatenate([rows.src, rows.dst]).astype(np.int64)
        keys, cell = np.unique(
            npu << 32 | np.concatenate([rows.src_place, rows.dst_place]), return_inverse=True
        )
        held = np.tile(self.units[rows.chunk], 2)
        buffer, slot, scratch, full = self._resolve(keys, cell, held)
        read, written = np.split(cell, 2)
        places = (buffer[read], slot[read], buffer[written], slot[written])
        totals = (self.inputs.totals, self.outputs.totals, scratch)
        lengths = (total[self.ranks] for total in totals)
        rank_of = np.zeros(int(self.ranks.max()) + 1, dtype=np.int32)
        rank_of[self.ranks] = np.arange(len(self.ranks), dtype=np.int32)
        sums = _real_sums(rows.reduce, written, full)
        rows = replace(rows, src=rank_of[rows.src], dst=rank_of[rows.dst], reduce=sums)
        return Memory(
            self.collective, self.ranks, rows, self.in_place, self.units, *places, *lengths
        )

    def _with_copies(self, rows: Transfers, reads: Int64, writes: Int64) -> Transfers:
        """The rows, and a copy for each result that would be left in the input."""
        npu, chunk = self.inputs.npu, self.inputs.chunk
        stays = self.outputs.has(npu, chunk)
        if self.in_place:
            stays[:] = False
        written = np.unique(rows.dst.astype(np.int64) << 32 | writes)
        stays &= ~np.isin(npu << 32 | place(Buffer.OUTPUT, 0) | chunk, written)
        npu, chunk = npu[stays].astype(np.int32), chunk[stays].astype(np.int32)
        home = bool((reads >> PLACE_BITS == Buffer.HOME).all())
        source = chunk if home else chunk | np.int32(place(Buffer.INPUT, 0))
        offsets = rows.dep_offsets
        if offsets is not None:
            offsets = np.concatenate([offsets, np.full(len(npu), offsets[-1])])
        return Transfers(
            np.concatenate([rows.chunk, chunk]),
            np.concatenate([rows.src, npu]),
            np.concatenate([rows.dst, npu]),
            np.concatenate([rows.reduce, np.zeros(len(npu), dtype=np.bool_)]),
            src_place=np.concatenate([reads.astype(np.int32), source]),
            dst_place=np.concatenate([writes.astype(np.int32), chunk | place(Buffer.OUTPUT, 0)]),
            dep_offsets=offsets,
            deps=rows.deps,
        )

    def _resolve(
        self, keys: Int64, cell: Int64, held: Int64
    ) -> tuple[Int32, Int64, Int64, NDArray[np.bool_]]:
        """Buffer and first unit of each cell; scratch of each NPU; what is full at the start."""
        npu, named = keys >> 32, keys & 0xFFFFFFFF
        kind, index = named >> PLACE_BITS, named & ((1 << PLACE_BITS) - 1)
        known = kind != Buffer.SCRATCH
        chunk = np.where(known, index, 0)
        has = known & (kind != Buffer.OUTPUT) & self.inputs.has(npu, chunk)
        wants = known & (kind != Buffer.INPUT) & self.outputs.has(npu, chunk)
        # A home that is both keeps sums where the contributions are, copies where they end.
        as_input = has & ~(wants & self.in_place & ~self.chunks.reduce[chunk])
        as_output = wants & ~as_input
        buffer = np.select([as_input, as_output], [Buffer.INPUT, Buffer.OUTPUT], Buffer.SCRATCH)
        slot = np.zeros(len(keys), dtype=np.int64)
        slot[as_input] = self.inputs.start(npu[as_input], chunk[as_input])
        slot[as_output] = self.outputs.start(npu[as_output], chunk[as_output])
        loose = np.flatnonzero(buffer == Buffer.SCRATCH)
        length = np.zeros(len(keys), dtype=np.int64)
        np.maximum.at(length, cell, held)
        slot[loose], scratch = _pack(npu[loose], length[loose], int(self.ranks.max()) + 1)
        return buffer.astype(np.int32), slot, scratch, has


class _Side:
    """The input or the output of every NPU, searchable by NPU and chunk."""

    def __init__(self, slots: Slots, units: Int64) -> None:
        self.npu = owners(slots.counts)
        self.chunk = slots.chunk.astype(np.int64)
        self._keys = np.append(self.npu << 32 | self.chunk, _END)
        before = offsets_of(units[slots.chunk])
        self._start = before[:-1] - before[slots.offsets[self.npu]]
        self.totals: Int64 = before[slots.offsets[1:]] - before[slots.offsets[:-1]]

    def has(self, npu: Int64, chunk: Int64) -> NDArray[np.bool_]:
        key = npu << 32 | chunk
        there: NDArray[np.bool_] = self._keys[np.searchsorted(self._keys, key)] == key
        return there

    def start(self, npu: Int64, chunk: Int64) -> Int64:
        start: Int64 = self._start[np.searchsorted(self._keys, npu << 32 | chunk)]
        return start


def _ranks(collective: Collective, rows: Transfers) -> Int32:
    relays = np.setdiff1d(np.concatenate([rows.src, rows.dst]), collective.group)
    return np.concatenate([np.array(collective.group), relays]).astype(np.int32)


def _units(collective: Collective, chunks: Chunks) -> Int64:
    """How many units each chunk has; even cuts differ by their alignment, which runtimes redo."""
    even = collective.parts is None or collective.pattern.any_cut
    sizes = np.ones_like(chunks.bytes) if even else chunks.bytes
    units: Int64 = sizes // np.gcd.reduce(sizes)
    return units


def _real_sums(
    reduce: NDArray[np.bool_], cell: Int64, full: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Whether each row really adds: the first to come to an empty cell does not."""
    cells, first = np.unique(cell, return_index=True)
    real = reduce.copy()
    real[first[~full[cells]]] = False
    return real


def _pack(npu: Int64, length: Int64, npus: int) -> tuple[Int64, Int64]:
    """First unit of each scratch cell, one after the other on each NPU (ascending), and totals."""
    before = offsets_of(length)
    first = np.searchsorted(npu, np.arange(npus + 1))
    totals = before[first[1:]] - before[first[:-1]]
    return before[:-1] - before[first[npu]], totals
