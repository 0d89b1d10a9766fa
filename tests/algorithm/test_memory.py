"""Algorithms in the buffers of a runtime: run there on symbolic data, they still do their job."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.strategies import group_collectives, networks
from weft.algorithm import Buffer
from weft.algorithm.memory import Memory, lay_out
from weft.collective.slots import input_slots, output_slots
from weft.errors import InputError

Cell = tuple[int, int, int]


def run(memory: Memory) -> dict[Cell, Counter[tuple[int, int, int]]]:
    """What each unit holds at the end: contributions (chunk, unit of it, rank), counted."""
    chunks = memory.collective.chunks
    ins = input_slots(chunks, int(memory.ranks.max()) + 1)
    held: dict[Cell, Counter[tuple[int, int, int]]] = {}
    for rank, npu in enumerate(memory.ranks.tolist()):
        at = 0
        for chunk in ins.of(npu).tolist():
            source = rank if chunks.reduce[chunk] else -1
            both = npu in chunks.members(chunks.post[chunk])
            ends_there = memory.in_place and both and not chunks.reduce[chunk]
            for unit in range(memory.units[chunk]):
                value = Counter({(chunk, unit, source): 1})
                if not ends_there:
                    held[rank, Buffer.INPUT, at] = value
                else:
                    start = result_slot(memory, npu, chunk)
                    held[rank, Buffer.OUTPUT, start + unit] = value
                at += 1
    rows = memory.transfers
    for row in range(len(rows)):
        for unit in range(memory.units[rows.chunk[row]]):
            src = (
                int(rows.src[row]),
                int(memory.src_buffer[row]),
                int(memory.src_slot[row]) + unit,
            )
            dst = (
                int(rows.dst[row]),
                int(memory.dst_buffer[row]),
                int(memory.dst_slot[row]) + unit,
            )
            assert src[2] < limit(memory, src)
            assert dst[2] < limit(memory, dst)
            held[dst] = held[dst] + held[src] if rows.reduce[row] else held[src]
    return held


def cell(rank: np.int32, buffer: np.int32, slot: np.int64) -> Cell:
    return int(rank), int(buffer), int(slot)


def limit(memory: Memory, cell: Cell) -> int:
    sizes = {
        Buffer.INPUT: memory.inputs,
        Buffer.OUTPUT: memory.outputs,
        Buffer.SCRATCH: memory.scratch,
    }
    return int(sizes[Buffer(cell[1])][cell[0]])


def result_slot(memory: Memory, npu: int, chunk: int) -> int:
    outs = output_slots(memory.collective.chunks, int(memory.ranks.max()) + 1).of(npu)
    return int(memory.units[outs[outs < chunk]].sum())


def check(memory: Memory) -> None:
    held = run(memory)
    chunks = memory.collective.chunks
    ins = input_slots(chunks, int(memory.ranks.max()) + 1)
    for chunk in range(len(chunks)):
        sources = chunks.members(chunks.pre[chunk]).tolist()
        for npu in chunks.members(chunks.post[chunk]).tolist():
            rank = memory.ranks.tolist().index(npu)
            buffer, start = Buffer.OUTPUT, result_slot(memory, npu, chunk)
            if memory.in_place and chunks.reduce[chunk] and npu in sources:
                mine = ins.of(npu)
                buffer, start = Buffer.INPUT, int(memory.units[mine[mine < chunk]].sum())
            for unit in range(memory.units[chunk]):
                ranks = [memory.ranks.tolist().index(source) for source in sources]
                wanted = ranks if chunks.reduce[chunk] else [-1]
                expected = Counter({(chunk, unit, source): 1 for source in wanted})
                assert held[rank, buffer, start + unit] == expected


@examples(60)
@given(st.data())
def test_results_lie_where_the_layout_says(data: st.DataObject) -> None:
    topology = data.draw(networks())
    collective = data.draw(group_collectives(topology))
    result = weft.synthesize(topology, collective, chunks=collective.chunks_per_share)
    memory = lay_out(result.algorithm)
    assume(memory.units.sum() < 4096)  # sizes without a common unit take long to run
    check(memory)


def test_relays_use_scratch_and_come_last() -> None:
    result = weft.synthesize("ring:6", "all-to-all", "3KiB", group=[4, 0, 2], chunks=1)
    memory = lay_out(result.algorithm)
    assert memory.ranks.tolist() == [4, 0, 2, 1, 3, 5]
    assert memory.inputs.tolist() == memory.outputs.tolist() == [3, 3, 3, 0, 0, 0]
    assert memory.scratch[:3].sum() == 0 < memory.scratch[3:].min()
    assert not memory.in_place
    check(memory)


def test_chunks_of_many_sizes_are_counted_in_units() -> None:
    matrix = np.array([[0, 48, 16], [32, 0, 0], [16, 16, 64]])
    result = weft.synthesize("ring:3", weft.all_to_allv([0, 1, 2], matrix), chunks=1)
    memory = lay_out(result.algorithm)
    assert sorted(memory.units.tolist()) == [1, 1, 1, 2, 3, 4]
    check(memory)


def test_one_collective_at_a_time() -> None:
    demands = [weft.Collective.of("all-gather", group, 64) for group in ([0, 1], [2, 3])]
    with pytest.raises(InputError, match="serves 2 collectives at once"):
        lay_out(weft.synthesize("ring:4", demands).algorithm)
