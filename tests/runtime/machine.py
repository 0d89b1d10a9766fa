"""A machine that runs programs of ranks in Python, as badly as it is allowed to.

Messages are taken when it pleases; nothing is buffered, or something; what is being written is
poison until it is there. A row reads at its very end and writes at its very beginning.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm
from weft.runtime.cutting import Cut, Fitted
from weft.runtime.program import Programs, What

Numbers = NDArray[np.int64]
POISON = 0x5555_5555_5555


class StuckError(Exception):
    """No rank can go on."""


@dataclass
class Rank:
    fitted: Fitted
    buffers: list[Numbers]
    queues: dict[tuple[str, int], deque[int]] = field(default_factory=dict)
    begun: set[int] = field(default_factory=set)
    over: set[int] = field(default_factory=set)
    written: dict[int, int] = field(default_factory=dict)
    was_read: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        program = self.fitted.program
        for row in range(len(program)):
            what = What(int(program.what[row]))
            number = {
                What.SEND: int(program.queue[row]),
                What.RECEIVE: int(program.peer[row]),
                What.LOCAL: 0,
            }[what]
            self.queues.setdefault((what.name, number), deque()).append(row)

    def may_read(self, row: int) -> bool:
        p = self.fitted.program
        cell = int(p.read_cell[row])
        after = p.after[p.after_offsets[row] : p.after_offsets[row + 1]]
        if not self.over.issuperset(after.tolist()):
            return False
        return cell < 0 or self.written.get(cell, 0) >= p.read_after[row]

    def may_write(self, row: int) -> bool:
        p = self.fitted.program
        cell = int(p.write_cell[row])
        return cell < 0 or (
            self.written.get(cell, 0) >= p.written_after[row]
            and self.was_read.get(cell, 0) >= p.free_after[row]
        )

    def piece(self, side: str, row: int) -> Numbers:
        buffer = int(getattr(self.fitted, f"{side}_buffer")[row])
        first = int(getattr(self.fitted, f"{side}_offset")[row])
        length = int(self.fitted.length[row])
        assert first + length <= len(self.buffers[buffer])
        return self.buffers[buffer][first : first + length]

    def open(self, row: int) -> None:
        self.begun.add(row)
        if not self.fitted.program.combines[row]:
            self.piece("to", row)[:] = POISON

    def put(self, row: int, value: Numbers) -> None:
        if self.fitted.program.combines[row]:
            self.piece("to", row)[:] = self.piece("base", row) + value
        else:
            self.piece("to", row)[:] = value

    def end(self, row: int) -> None:
        p = self.fitted.program
        for cell, counts in ((p.read_cell, self.was_read), (p.write_cell, self.written)):
            at = int(cell[row])
            if at >= 0:
                counts[at] = counts.get(at, 0) + 1
        self.over.add(row)


class Machine:
    """Ranks and what is under way between them: at most `room` messages a pair."""

    def __init__(self, ranks: list[Rank], seed: int, room: int) -> None:
        self.ranks, self.random, self.room = ranks, random.Random(seed), room
        self.flying: dict[tuple[int, int], deque[Numbers]] = {}

    def run(self) -> None:
        """Do what can be done in random order until all is done."""
        while any(queue for rank in self.ranks for queue in rank.queues.values()):
            choices = [
                (me, key)
                for me, rank in enumerate(self.ranks)
                for key in rank.queues
                if rank.queues[key]
            ]
            self.random.shuffle(choices)
            if not any(self.step(me, key) for me, key in choices):
                raise StuckError
        assert not any(self.flying.values())

    def step(self, me: int, key: tuple[str, int]) -> bool:
        rank = self.ranks[me]
        row = rank.queues[key][0]
        kind = key[0]
        if row not in rank.begun:
            if kind != "RECEIVE" and not rank.may_read(row):
                return False
            if kind != "SEND" and not rank.may_write(row):
                return False
            if kind == "SEND" or (kind == "LOCAL" and same(rank, row)):
                rank.begun.add(row)
            else:
                value = rank.piece("from", row).copy() if kind == "LOCAL" else None
                rank.open(row)
                if value is not None:
                    rank.put(row, value)
            return True
        peer = int(rank.fitted.program.peer[row])
        if kind == "SEND":
            line = self.flying.setdefault((me, peer), deque())
            other = self.ranks[peer].queues.get(("RECEIVE", me))
            waits = bool(other) and other[0] in self.ranks[peer].begun and not line
            if len(line) >= self.room and not waits:
                return False
            line.append(rank.piece("from", row).copy())
        elif kind == "RECEIVE":
            line = self.flying.setdefault((peer, me), deque())
            if not line:
                return False
            value = line.popleft()
            assert len(value) == rank.fitted.length[row]
            rank.put(row, value)
        rank.end(row)
        rank.queues[key].popleft()
        return True


def same(rank: Rank, row: int) -> bool:
    """Whether a local copy stays where it is, as it does where input and output are one."""
    return np.shares_memory(rank.piece("from", row), rank.piece("to", row))


def expected(
    algorithm: Algorithm, cut: Cut, inputs: dict[tuple[int, int], Numbers]
) -> dict[tuple[int, int], Numbers]:
    """What must be in the output of each (rank, demand): told from the chunks alone."""
    chunks = algorithm.chunks
    found: dict[tuple[int, int], list[Numbers]] = {}
    owners: dict[tuple[int, int], int] = {}
    firsts = np.cumsum([0] + [len(demand.chunks) for demand in algorithm.demands])
    parts: dict[tuple[int, int], Numbers] = {}
    for chunk in range(len(chunks)):
        demand = int(np.searchsorted(firsts, chunk, side="right") - 1)
        length = int(cut.lengths[chunk])
        for npu in chunks.members(chunks.pre[chunk]).tolist():
            at = owners.get((npu, demand), 0)
            parts[npu, chunk] = inputs[npu, demand][at : at + length]
            owners[npu, demand] = at + length
    for chunk in range(len(chunks)):
        demand = int(np.searchsorted(firsts, chunk, side="right") - 1)
        sources = [parts[npu, chunk] for npu in chunks.members(chunks.pre[chunk]).tolist()]
        value: Any = sum(sources) if chunks.reduce[chunk] else sources[0]
        for npu in chunks.members(chunks.post[chunk]).tolist():
            found.setdefault((npu, demand), []).append(value)
    return {key: np.concatenate(values) for key, values in found.items()}


def check(
    programs: Programs, counts: list[int], seed: int, *, room: int = 0, in_place: bool = False
) -> None:
    """Run an algorithm with random numbers; raise unless all outputs are right."""
    algorithm = programs.algorithm
    cut = Cut(algorithm, counts)
    inputs: dict[tuple[int, int], Numbers] = {}
    ranks = []
    for npu in range(programs.npus):
        fitted = cut.fit(programs.of(npu))
        sides = fitted.sides
        buffers = []
        for demand in range(len(counts)):
            sent = values(algorithm, cut, npu, demand, seed)
            inputs[npu, demand] = sent.copy()
            shift = sides.shift(demand) if in_place else None
            if shift is None:
                buffers += [sent, np.full(sides.outputs[demand], -1)]
                continue
            first, begin = max(0, -shift), max(0, shift)
            size = max(first + len(sent), begin + sides.outputs[demand])
            both = np.full(size, -1)
            both[first : first + len(sent)] = sent
            buffers += [
                both[first : first + len(sent)],
                both[begin : begin + sides.outputs[demand]],
            ]
        buffers.append(np.full(fitted.scratch, POISON))
        ranks.append(Rank(fitted, buffers))
    wanted = expected(algorithm, cut, inputs)
    Machine(ranks, seed, room).run()
    for (npu, demand), value in wanted.items():
        assert np.array_equal(ranks[npu].buffers[2 * demand + 1], value)
    if not in_place:
        for (npu, demand), value in inputs.items():
            assert np.array_equal(ranks[npu].buffers[2 * demand], value)


def values(algorithm: Algorithm, cut: Cut, npu: int, demand: int, seed: int) -> Numbers:
    """An input: contributions of its own, but what is only copied is the same wherever it is."""
    sides = cut.sides(npu)
    sent = np.zeros(sides.inputs[demand], dtype=np.int64)
    chunks = algorithm.chunks
    for chunk in np.flatnonzero(sides.demand == demand).tolist():
        if npu in chunks.members(chunks.pre[chunk]).tolist():
            first, length = int(sides.input_start[chunk]), int(cut.lengths[chunk])
            rng = np.random.default_rng([seed, chunk, npu if chunks.reduce[chunk] else 0])
            sent[first : first + length] = rng.integers(0, 1 << 40, length)
    return sent
