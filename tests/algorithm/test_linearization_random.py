"""Random programs of thread blocks, held against all that brute force can say about them."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from weft.algorithm import Algorithm, Buffer, Cells, Linearized, Program, cells_of, linearize
from weft.collective import Collective, Move, all_reduce_of, custom
from weft.errors import InputError
from weft.judge import verify

Value = tuple[int, Counter[int]]  # the chunk a cell is said to hold, and the first cells summed


class Words:
    def event(self, event: int) -> str:
        return f"e{event}"

    def cell(self, cell: int) -> str:
        return f"c{cell}"


@dataclass
class Case:
    collective: Collective
    program: Program
    in_place: bool

    @property
    def cells(self) -> Cells:
        return self.program.cells

    @property
    def actions(self) -> int:
        return len(self.program.src)

    def uses(self) -> list[tuple[int, int, bool]]:
        """(event, cell, whether it writes) of all events that use memory."""
        p = self.program
        reads = [(2 * a, int(p.src[a]), False) for a in range(self.actions)]
        return reads + [(2 * a + 1, int(p.dst[a]), True) for a in range(self.actions)]

    def edges(self) -> list[tuple[int, int]]:
        """All that is sure: the two halves of actions, chains, edges."""
        p = self.program
        pairs = [(2 * a, 2 * a + 1) for a in range(self.actions)]
        for c in range(len(p.chain_offsets) - 1):
            chain = p.chain_events[p.chain_offsets[c] : p.chain_offsets[c + 1]].tolist()
            pairs += pairwise(chain)
        return pairs + list(zip(p.edge_from.tolist(), p.edge_to.tolist(), strict=True))


def collectives(rng: random.Random) -> Collective:
    kind = rng.choice(["all-reduce", "all-to-all", "all-gather", "custom"])
    if kind == "all-reduce":
        return all_reduce_of(range(2), 64, 2)
    if kind == "custom":
        # In place, chunks that stay on their NPU move to other slots: full ones, or an empty one.
        moves = [Move(16, (0, 1), (1,), True), Move(16, (0,), (1, 0)), Move(16, (1,), (0,))]
        fewer = [Move(16, (1,), (0,)), Move(16, (0,), (0, 1))]
        return custom(range(2), rng.choice([moves, fewer]))
    return Collective.of(kind, range(rng.choice([2, 3])), 96)


def random_case(rng: random.Random) -> Case:
    collective, in_place = collectives(rng), rng.random() < 0.6
    n = collective.ranks
    cells = cells_of(
        collective, n, in_place=in_place, inputs=[0] * n, outputs=[0] * n, scratch=[1] * n
    )
    actions, order = random_actions(rng, collective, cells)
    loose = rng.choice([0, 0, 2])
    for event in range(2 * len(actions), 2 * len(actions) + loose):
        order.insert(rng.randrange(len(order) + 1), event)
    chains = random_chains(rng, order)
    pairs = random_edges(rng, order, actions)
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    program = Program(
        cells,
        np.array([a[0] for a in actions], dtype=np.int32),
        np.array([a[1] for a in actions], dtype=np.int32),
        np.array([a[2] for a in actions], dtype=np.bool_),
        2 * len(actions) + loose,
        np.cumsum([0, *map(len, chains)]).astype(np.int64),
        np.array([event for chain in chains for event in chain], dtype=np.int64),
        np.ascontiguousarray(columns[:, 0]),
        np.ascontiguousarray(columns[:, 1]),
        np.array([rng.random() < 0.3 for _ in pairs], dtype=np.bool_),
    )
    return Case(collective, program, in_place)


def random_actions(
    rng: random.Random, collective: Collective, cells: Cells
) -> tuple[list[tuple[int, int, bool]], list[int]]:
    """Actions, and one order of their events in which they mostly read what is there."""
    full = {cell for cell, chunk in enumerate(cells.chunk.tolist()) if chunk >= 0}
    planned = plain_actions(collective, cells)[:9] if rng.random() < 0.7 else []
    wanted = len(planned) + rng.choice([0, 1, 2, 6] if planned else [1, 4, 7])
    haste = rng.choice([0.3, 0.5, 1.0])  # how soon actions write after they have read
    actions: list[tuple[int, int, bool]] = []
    order: list[int] = []
    flying: list[int] = []
    while len(actions) < wanted or flying:
        if len(actions) < wanted and (not flying or rng.random() > haste):
            order.append(2 * len(actions))
            flying.append(len(actions))
            if len(actions) < len(planned) and rng.random() < 0.98:
                actions.append(planned[len(actions)])
            else:
                actions.append(random_action(rng, full, len(cells.npu)))
        else:
            action = flying.pop(rng.randrange(len(flying)))
            full.add(actions[action][1])
            order.append(2 * action + 1)
    return actions, order


def random_action(rng: random.Random, full: set[int], cells: int) -> tuple[int, int, bool]:
    source = rng.randrange(cells) if rng.random() < 0.04 else rng.choice(sorted(full))
    target = rng.randrange(cells)
    return source, target, target in full and rng.random() < 0.4


def plain_actions(collective: Collective, cells: Cells) -> list[tuple[int, int, bool]]:
    """One after the other they do the job, but in place they may overwrite what is still needed."""
    chunks, at = collective.chunks, slots(collective, cells)
    actions = []
    for chunk in range(len(chunks)):
        first, *others = chunks.members(chunks.pre[chunk]).tolist()
        source = at[first, Buffer.INPUT, chunk]
        if chunks.reduce[chunk]:
            actions += [(at[npu, Buffer.INPUT, chunk], source, True) for npu in others]
        for npu in chunks.members(chunks.post[chunk]).tolist():
            if (target := at[npu, Buffer.OUTPUT, chunk]) != source:
                actions.append((source, target, False))
    return actions


def slots(collective: Collective, cells: Cells) -> dict[tuple[int, Buffer, int], int]:
    """The cell of each NPU's chunks in its input and output."""
    chunks, at = collective.chunks, {}
    for side, buffer in ((chunks.pre, Buffer.INPUT), (chunks.post, Buffer.OUTPUT)):
        for npu in range(collective.ranks):
            own = [c for c in range(len(chunks)) if npu in chunks.members(side[c])]
            for slot, chunk in enumerate(own):
                at[npu, buffer, chunk] = cells.find(npu, buffer, slot)
    return at


def random_chains(rng: random.Random, order: list[int]) -> list[list[int]]:
    chains: list[list[int]] = [[] for _ in range(rng.randint(0, 4))]
    for event in order:
        if chains and rng.random() < 0.8:
            rng.choice(chains).append(event)
    return chains


def random_edges(
    rng: random.Random, order: list[int], actions: list[tuple[int, int, bool]]
) -> list[tuple[int, int]]:
    """Most conflicts in the order, a few more edges, and sometimes one that goes back."""
    kept = rng.choice([1.0, 1.0, 0.9, 0.5])
    pairs = []
    for at, later in enumerate(order):
        for earlier in order[:at]:
            if max(earlier, later) >= 2 * len(actions):
                wanted = rng.random() < 0.2
            else:
                cells = [actions[e // 2][e % 2] for e in (earlier, later)]
                conflict = cells[0] == cells[1] and (earlier % 2 or later % 2)
                wanted = rng.random() < (kept if conflict else 0.05)
            if wanted:
                pairs.append((earlier, later))
    if rng.random() < 0.08 and len(order) > 1:
        first, second = sorted(rng.sample(range(len(order)), 2))
        pairs.append((order[second], order[first]))
    rng.shuffle(pairs)
    return pairs


def closure(count: int, pairs: list[tuple[int, int]]) -> np.ndarray:
    """``closure[a, b]``: a comes before b."""
    before = np.zeros((count, count), dtype=np.bool_)
    for first, second in pairs:
        before[first, second] = True
    for middle in range(count):
        before |= before[:, middle, None] & before[None, middle]
    return before


def races(case: Case, before: np.ndarray) -> set[tuple[int, int, int]]:
    uses = case.uses()
    return {
        (x, y, cell)
        for x, cell, writes in uses
        for y, other, also in uses
        if cell == other and x != y and (writes or also) and not (before[x, y] or before[y, x])
    }


def first_value(cells: Cells, cell: int) -> Value | None:
    chunk = int(cells.chunk[cell])
    return (chunk, Counter([cell])) if chunk >= 0 else None


def run(case: Case, before: np.ndarray, rng: random.Random) -> list[Value | None] | int:
    """What all cells hold at the end of some run; the event, if one finds its cell empty."""
    p = case.program
    held = [first_value(case.cells, cell) for cell in range(len(case.cells.npu))]
    flying: dict[int, Value] = {}
    left = list(range(p.events))
    while left:
        event = rng.choice([e for e in left if not any(before[other, e] for other in left)])
        left.remove(event)
        action, writes = divmod(event, 2)
        if action >= case.actions:
            continue
        if not writes:
            value = held[p.src[action]]
            if value is None:
                return event
            flying[action] = value
            continue
        target, brought = int(p.dst[action]), flying[action]
        if p.reduce[action]:
            there = held[target]
            if there is None:
                return event
            brought = (there[0], there[1] + brought[1])
        held[target] = brought
    return held


class Names:
    """Rows by the cells they use; places that no cell has are those of detours."""

    def __init__(self, case: Case) -> None:
        cells = case.cells
        self.cells = cells
        self._of: dict[tuple[int, int], int] = {}
        for names in (cells.place, cells.result_place):
            for cell, name in enumerate(names.tolist()):
                if name >= 0:
                    self._of[int(cells.npu[cell]), name] = cell

    def of(self, npu: int, name: int) -> int:
        return self._of.setdefault((npu, name), len(self._of) + len(self.cells.npu))


def places(linear: Linearized) -> list[tuple[int, int, int, int]]:
    """(src, its place, dst, its place) of each row."""
    t = linear.transfers
    reads = t.chunk if t.src_place is None else t.src_place
    writes = t.chunk if t.dst_place is None else t.dst_place
    return list(zip(t.src.tolist(), reads.tolist(), t.dst.tolist(), writes.tolist(), strict=True))


def run_rows(case: Case, linear: Linearized) -> list[Value | None]:
    """What all cells hold after the rows, each under the name it was last written by."""
    cells = case.cells
    held: dict[tuple[int, int], Value | None] = {}
    name = cells.place.tolist()
    for cell in range(len(name)):
        held[int(cells.npu[cell]), name[cell]] = first_value(cells, cell)
    names = Names(case)
    for row, (src, read, dst, written) in enumerate(places(linear)):
        value = held[src, read]
        assert value is not None
        assert value[0] == linear.transfers.chunk[row]
        if linear.transfers.reduce[row]:
            there = held[dst, written]
            value = (there[0], there[1] + value[1])
        held[dst, written] = value
        if (cell := names.of(dst, written)) < len(name):
            name[cell] = written
    return [held[int(cells.npu[cell]), name[cell]] for cell in range(len(name))]


def results_are_right(case: Case, held: list[Value | None]) -> bool:
    """Whether every result is where it belongs: in the output or, if that is empty, the input."""
    chunks, at = case.collective.chunks, slots(case.collective, case.cells)
    for chunk in range(len(chunks)):
        givers = chunks.members(chunks.pre[chunk]).tolist()
        sources = [at[npu, Buffer.INPUT, chunk] for npu in givers]
        for npu in chunks.members(chunks.post[chunk]).tolist():
            value = held[at[npu, Buffer.OUTPUT, chunk]]
            if value is None and npu in givers:
                value = held[at[npu, Buffer.INPUT, chunk]]
            if value is None or value[0] != chunk:
                return False
            if chunks.reduce[chunk] and value[1] != Counter(sources):
                return False
    return True


def mixes(case: Case, linear: Linearized) -> bool:
    """Whether some row adds to another chunk, or adds up what is no sum."""
    t = linear.transfers
    return bool(
        (t.reduce & ((linear.before != t.chunk) | ~case.collective.chunks.reduce[t.chunk])).any()
    )


def check_order(case: Case, linear: Linearized) -> None:
    """Data flow and dependencies order all rows that must be, and no dependency is needless."""
    names, t = Names(case), linear.transfers
    count = len(t)
    writer: dict[int, int] = {}
    flow, uses = [], []
    for row, (src, read, dst, written) in enumerate(places(linear)):
        if linear.action[row] < 0:
            continue  # nothing moves: the cell has this name, too
        source, target = names.of(src, read), names.of(dst, written)
        flow += [(writer[source], row)] if source in writer else []
        flow += [(writer[target], row)] if t.reduce[row] and target in writer else []
        uses += [(row, source, False), (row, target, True)]
        writer[target] = row
    deps = []
    if t.deps is not None:
        deps = [
            (int(dep), row)
            for row in range(count)
            for dep in t.deps[t.dep_offsets[row] : t.dep_offsets[row + 1]]
        ]
    flows, ordered = closure(count, flow), closure(count, flow + deps)
    assert len(set(deps)) == len(deps)
    assert all(dep < row and not flows[dep, row] for dep, row in deps)
    for x, cell, writes in uses:
        for y, other, also in uses:
            if x < y and cell == other and (writes or also):
                assert ordered[x, y], (x, y)
    check_wishes(case, linear, ordered)


def check_wishes(case: Case, linear: Linearized, ordered: np.ndarray) -> None:
    p, rows = case.program, linear.action.tolist()
    first = {action: rows.index(action) for action in rows}
    last = {action: row for row, action in enumerate(rows)}
    for earlier, later, wished in zip(p.edge_from, p.edge_to, p.wished, strict=True):
        a, b = int(earlier) // 2, int(later) // 2
        # A wish to come after a mere read says nothing of the row, which may end much later.
        if not wished or max(a, b) >= case.actions or a == b or earlier % 2 == 0:
            continue
        assert ordered[last[a], last[b] if later % 2 else first[b]], (a, b)


def check_fault(case: Case, sentence: str, before: np.ndarray) -> None:
    """A program that is refused is refused for what is wrong with it."""
    if before.diagonal().any():
        assert sentence.startswith("deadlock")
        named = [int(e) for e in re.findall(r"e(\d+)", sentence)]
        assert all(before[e, e] for e in named)
        return
    if found := re.fullmatch(r"e(\d+) reads c(\d+), which holds nothing then", sentence):
        event, cell = int(found[1]), int(found[2])
        assert case.cells.chunk[cell] < 0
        assert not any(w and c == cell and before[e, event] for e, c, w in case.uses())
        return
    found = re.fullmatch(r"e(\d+) and e(\d+) both use c(\d+), and nothing says .*", sentence)
    assert found, sentence
    assert tuple(map(int, found.groups())) in races(case, before)


@examples(400)
@given(seed=st.integers(0, 2**32 - 1))
def test_weaving_against_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    case = random_case(rng)
    before = closure(case.program.events, case.edges())
    cyclic = bool(before.diagonal().any())
    racy = not cyclic and bool(races(case, before))
    ended = None if cyclic else run(case, before, rng)
    try:
        linear = linearize(case.program, Words())
    except InputError as error:
        assert cyclic or racy or isinstance(ended, int)
        check_fault(case, str(error), before)
        return
    assert not cyclic
    assert not racy
    assert run_rows(case, linear) == ended
    assert set(linear.action.tolist()) - {-1} == set(range(case.actions))
    check_order(case, linear)
    right = results_are_right(case, ended) and not mixes(case, linear)
    assert not (right and (linear.action < 0).any())
    assert bool(verify(Algorithm((case.collective,), linear.transfers))) == right
