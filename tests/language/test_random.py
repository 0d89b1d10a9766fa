"""Random programs, held against a slow interpreter that runs them line by line."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.algorithm.test_memory import check
from tests.examples import examples
from tests.strategies import NAMED
from weft.algorithm import Algorithm, Buffer
from weft.algorithm.memory import lay_out
from weft.algorithm.transfers import PLACE_BITS
from weft.collective import Collective, Move, all_reduce_of, custom
from weft.errors import InputError
from weft.language import Chunk, Program, program

WHOLE = ("all-reduce", "broadcast", "reduce")
Cell = tuple[int, str, int]
Value = tuple[int, Counter[int]]  # a chunk, and how often each rank's contribution is in it


@dataclass
class Slots:
    """Which chunks belong in which slots, in the words of a program."""

    collective: Collective
    in_place: bool
    inputs: list[list[int]] = field(default_factory=list)
    outputs: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        chunks = self.collective.chunks
        for npu in self.collective.group:
            for side, buffers in ((chunks.pre, self.inputs), (chunks.post, self.outputs)):
                buffers.append([c for c in range(len(chunks)) if npu in chunks.members(side[c])])

    @property
    def ranks(self) -> int:
        return self.collective.ranks

    def whole(self) -> bool:
        return self.in_place and self.collective.kind in WHOLE

    def of(self, rank: int, buffer: str) -> list[int]:
        """The chunks of a buffer, by slot."""
        if self.whole():
            return list(range(len(self.collective.chunks)))
        return (self.inputs if buffer == "input" else self.outputs)[rank]

    def cell(self, rank: int, buffer: str, slot: int) -> Cell:
        """The memory of a slot; in place, two slots may be the same."""
        if buffer == "scratch" or not self.in_place:
            return rank, buffer, slot
        if self.collective.pattern.own_buffers:
            return rank, "both", slot
        return rank, "home", self.of(rank, buffer)[slot]

    def start(self) -> dict[Cell, Value]:
        held = {}
        for rank in range(self.ranks):
            slots = self.of(rank, "input")
            for chunk in self.inputs[rank]:
                mine = rank if self.collective.chunks.reduce[chunk] else 0
                held[self.cell(rank, "input", slots.index(chunk))] = (chunk, Counter([mine]))
        return held

    def is_done(self, held: dict[Cell, Value], written: set[Cell]) -> bool:
        """Whether all results are in the output or, if nothing was put there, in the input."""
        chunks = self.collective.chunks
        for rank in range(self.ranks):
            for chunk in self.outputs[rank]:
                where = self.cell(rank, "output", self.of(rank, "output").index(chunk))
                if where not in written and chunk in self.inputs[rank]:
                    where = self.cell(rank, "input", self.of(rank, "input").index(chunk))
                givers = [r for r in range(self.ranks) if chunk in self.inputs[r]]
                full = Counter(givers if chunks.reduce[chunk] else [0])
                if held.get(where) != (chunk, full):
                    return False
        return True


def random_collective(rng: random.Random) -> Collective:
    group = rng.sample(range(9), rng.randint(1, 4))
    kind = rng.choice([*NAMED, "custom", "all-reduce"])
    if kind == "custom":
        ranks = range(len(group))
        moves = [
            Move(16, *(tuple(rng.sample(ranks, rng.randint(1, len(group)))) for _ in "ab"), summed)
            for summed in (False, True, True)
        ]
        return custom(group, moves, chunks_per_share=1)
    if kind == "all-reduce" and rng.random() < 0.5:
        return all_reduce_of(group, 1024, rng.randint(1, 5))
    if kind == "pipeline" and len(group) == 1:
        kind = "send-recv"
    return Collective.of(kind, group, 4096, rng.randint(1, 2))


class Interpreter:
    """Runs a program's operations as they come, and says what is wrong with each."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.held = slots.start()
        self.written: set[Cell] = set()
        self.age: dict[Cell, int] = {}
        self.now = 0

    def cells(self, rank: int, buffer: str, index: int, count: int) -> list[Cell]:
        return [self.slots.cell(rank, buffer, i) for i in range(index, index + count)]

    def fault(self, source: list[Cell], target: list[Cell], *, reduce: bool) -> str | None:
        if source == target:
            return "itself"
        if set(source) & set(target):
            return "overlap"
        for src, dst in zip(source, target, strict=True) if reduce else ():
            if self.held[src][0] != self.held[dst][0]:
                return "different"
            if not self.slots.collective.chunks.reduce[self.held[src][0]]:
                return "not summed"
            if self.held[src][1] & self.held[dst][1]:
                return "twice"
        return None

    def move(self, source: list[Cell], target: list[Cell], *, reduce: bool) -> None:
        self.now += 1
        for src, dst in zip(source, target, strict=True):
            chunk, parts = self.held[src]
            self.held[dst] = (chunk, self.held[dst][1] + parts if reduce else parts)
            self.written.add(dst)
            self.age[dst] = self.now


SENTENCES = {
    "empty": "holds nothing yet",
    "stale": "is stale",
    "itself": "to itself",
    "overlap": "overlap",
    "different": "different chunks cannot be added",
    "not summed": "which is not summed",
    "twice": "would count twice",
}


def random_run(rng: random.Random, slots: Slots) -> tuple[int, str, int, int]:
    rank = rng.randrange(slots.ranks)
    buffer = rng.choice(["input", "input", "output", "scratch"])
    length = 3 if buffer == "scratch" else len(slots.of(rank, buffer))
    if length == 0:
        buffer, length = "scratch", 3
    count = rng.choice([1, 1, 1, rng.randint(1, length)])
    return rank, buffer, rng.randint(0, length - count), count


def step(
    rng: random.Random, p: Program, model: Interpreter, known: list[tuple[Chunk, int]]
) -> None:
    """One operation on chunks known or asked for: both refuse it alike, or both do it."""
    slots = model.slots
    if known and rng.random() < 0.6:
        chunk, age = rng.choice(known)
    else:
        run = random_run(rng, slots)
        if any(cell not in model.held for cell in model.cells(*run)):
            return expect("empty", lambda: p.chunk(*run))
        chunk, age = p.chunk(*run), model.now
        known.append((chunk, age))
    source = model.cells(chunk.rank, chunk.buffer, chunk.index, chunk.count)
    rank, buffer, index, _ = random_run(rng, slots)
    length = 9 if buffer == "scratch" else len(slots.of(rank, buffer))
    if index + chunk.count > length:
        return None
    target = model.cells(rank, buffer, index, chunk.count)
    reduce = rng.random() < 0.5 and all(cell in model.held for cell in target)
    fault = model.fault(source, target, reduce=reduce)
    if any(model.age.get(cell, 0) > age for cell in source):
        fault = "stale"

    def act() -> Chunk:
        if reduce:
            return p.chunk(rank, buffer, index, chunk.count).reduce(chunk)
        return chunk.copy(rank, buffer, index)

    if fault is not None:
        return expect(fault, act)
    known.append((act(), model.now + 1))
    return model.move(source, target, reduce=reduce)


def expect(fault: str, act: Callable[[], object]) -> None:
    with pytest.raises(InputError, match=SENTENCES[fault]) as error:
        act()
    assert re.match(r"\S*test_random.py:\d+: ", str(error.value))


@examples(150)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_operations(seed: int) -> None:
    rng = random.Random(seed)
    slots = Slots(random_collective(rng), rng.random() < 0.5)
    p, model = program(slots.collective, in_place=slots.in_place), Interpreter(slots)
    known: list[tuple[Chunk, int]] = []
    for _ in range(rng.randint(0, 25)):
        step(rng, p, model, known)
    if slots.is_done(model.held, model.written):
        replay(rng, slots, p.algorithm())
    else:
        with pytest.raises(InputError, match="is wrong at the end: NPU"):
            p.algorithm()


def replay(rng: random.Random, slots: Slots, algorithm: Algorithm) -> None:
    """Run the rows in any order that data flow and dependencies leave open, and as exported."""
    t = algorithm.transfers
    rank_of = {npu: rank for rank, npu in enumerate(slots.collective.group)}

    def cell(npu: int, place: int) -> Cell:
        rank, buffer, index = rank_of[npu], Buffer(place >> PLACE_BITS), place % (1 << PLACE_BITS)
        if buffer == Buffer.SCRATCH:
            return rank, "scratch", index
        if buffer == Buffer.HOME:
            return rank, "home", index
        name = buffer.name.lower()
        return slots.cell(rank, name, slots.of(rank, name).index(index))

    rows = []
    writer: dict[Cell, int] = {}
    for row in range(len(t)):
        chunk = int(t.chunk[row])
        src = cell(int(t.src[row]), chunk if t.src_place is None else int(t.src_place[row]))
        dst = cell(int(t.dst[row]), chunk if t.dst_place is None else int(t.dst_place[row]))
        causes = {writer[c] for c in ([src, dst] if t.reduce[row] else [src]) if c in writer}
        if t.deps is not None:
            causes |= set(t.deps[t.dep_offsets[row] : t.dep_offsets[row + 1]].tolist())
        rows.append((src, dst, causes))
        writer[dst] = row
    held, left = slots.start(), list(range(len(t)))
    while left:
        row = rng.choice([r for r in left if not rows[r][2].intersection(left)])
        left.remove(row)
        src, dst, _ = rows[row]
        chunk, parts = held[src]
        assert chunk == t.chunk[row]
        held[dst] = (chunk, held[dst][1] + parts if t.reduce[row] else parts)
    assert slots.is_done(held, set(writer))
    check(lay_out(algorithm))


def plain_operations(rng: random.Random, slots: Slots) -> list[list[tuple]]:
    """For each chunk a list of (from, to, reduce) that sums it up and hands it out at random."""
    chunks, plans = slots.collective.chunks, []
    for chunk in range(len(chunks)):
        givers = [r for r in range(slots.ranks) if chunk in slots.inputs[r]]
        takers = [r for r in range(slots.ranks) if chunk in slots.outputs[r]]
        rng.shuffle(givers)
        plan = []
        have = [(r, "input", slots.of(r, "input").index(chunk)) for r in givers]
        while chunks.reduce[chunk] and len(have) > 1:
            source, target = have.pop(), rng.choice(have[:-1] or have)
            if rng.random() < 0.3:
                stop = (rng.randrange(slots.ranks), "scratch", 100 + chunk)
                plan.append((source, stop, False))
                source = stop
            plan.append((source, target, True))
        if slots.in_place and slots.collective.pattern.own_buffers:
            # Out of the way first: its place may be another's.
            stop = (rng.randrange(slots.ranks), "scratch", 200 + chunk)
            plan.append((have[0], stop, False))
            have = [stop]
        plans.append((plan, have, chunk, takers))
    first = [plan for plan, *_ in plans]
    return [first, [hand_out(rng, slots, *rest) for _, *rest in plans]]


def hand_out(rng: random.Random, slots: Slots, have: list, chunk: int, takers: list[int]) -> list:
    plan = []
    rng.shuffle(takers)
    for taker in takers:
        target = (taker, "output", slots.of(taker, "output").index(chunk))
        source = rng.choice(have)
        if slots.cell(*source) != slots.cell(*target):
            plan.append((source, target, False))
            have = [*have, target]
    return plan


def interleaved(rng: random.Random, plans: list[list]) -> list:
    left = [list(plan) for plan in plans if plan]
    mixed = []
    while left:
        plan = rng.choice(left)
        mixed.append(plan.pop(0))
        left = [plan for plan in left if plan]
    return mixed


@examples(100)
@given(seed=st.integers(0, 2**32 - 1))
def test_right_programs(seed: int) -> None:
    rng = random.Random(seed)
    slots = Slots(random_collective(rng), rng.random() < 0.5)
    p = program(slots.collective, in_place=slots.in_place)
    moved, made = 0, []
    for phase in plain_operations(rng, slots):
        for source, target, reduce in interleaved(rng, phase):
            after = rng.sample(made, rng.randint(0, min(2, len(made)))) if moved % 5 == 0 else []
            if reduce:
                p.chunk(*target).reduce(p.chunk(*source), after=fresh(p, after))
            else:
                p.chunk(*source).copy(*target, after=fresh(p, after))
            made.append(target)
            moved += 1
    algorithm = p.algorithm()
    assert p.algorithm() is algorithm
    assert len(algorithm.transfers) == moved
    replay(rng, slots, algorithm)


def fresh(p: Program, places: list[tuple]) -> list[Chunk]:
    return [p.chunk(*place) for place in places]
