"""Programs become rows: in order, with chunks, and races and deadlocks are found."""

from __future__ import annotations

import numpy as np
import pytest

from weft.algorithm import Algorithm, Buffer, Program, cells_of, linearize
from weft.collective import Collective, Move, all_reduce_of, custom
from weft.errors import InputError
from weft.judge import verify


class Words:
    def event(self, event: int) -> str:
        return f"action {event // 2}" if event < 100 else f"event {event}"

    def cell(self, cell: int) -> str:
        return f"cell {cell}"


def program(cells, actions, chains, edges=(), events=None, wished=None):
    """Actions are (src cell, dst cell, reduce); chains lists of events."""
    src, dst, reduce = zip(*actions, strict=True)
    ends = np.cumsum([0, *map(len, chains)])
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return Program(
        cells,
        np.array(src, dtype=np.int32),
        np.array(dst, dtype=np.int32),
        np.array(reduce, dtype=np.bool_),
        2 * len(actions) if events is None else events,
        ends.astype(np.int64),
        np.array([event for chain in chains for event in chain], dtype=np.int64),
        np.ascontiguousarray(pairs[:, 0]),
        np.ascontiguousarray(pairs[:, 1]),
        np.full(len(pairs), bool(wished)),
    )


def all_to_all(*, in_place: bool):
    collective = Collective.of("all-to-all", [0, 1], 64)
    cells = cells_of(
        collective, 2, in_place=in_place, inputs=[2, 2], outputs=[2, 2], scratch=[0, 0]
    )
    return collective, cells


def test_an_exchange_in_place_takes_a_detour() -> None:
    collective, cells = all_to_all(in_place=True)
    a = cells.find(0, Buffer.INPUT, 1)
    b = cells.find(1, Buffer.INPUT, 0)
    assert a == cells.find(0, Buffer.OUTPUT, 1)
    # Each NPU sends, then receives.
    linear = linearize(program(cells, [(a, b, False), (b, a, False)], [[0, 3], [2, 1]]), Words())
    assert len(linear.transfers) == 3
    assert sorted(linear.action.tolist()) == [0, 1, 1]
    assert verify(Algorithm((collective,), linear.transfers))


def test_an_exchange_between_buffers_needs_none() -> None:
    collective, cells = all_to_all(in_place=False)
    moves = [
        (cells.find(p, Buffer.INPUT, q), cells.find(q, Buffer.OUTPUT, p), False)
        for p in (0, 1)
        for q in (0, 1)
    ]
    linear = linearize(program(cells, moves, []), Words())
    assert len(linear.transfers) == 4
    assert linear.transfers.deps is None
    assert verify(Algorithm((collective,), linear.transfers))


def test_deadlock_is_named() -> None:
    _, cells = all_to_all(in_place=True)
    a, b = cells.find(0, Buffer.INPUT, 1), cells.find(1, Buffer.INPUT, 0)
    # Each NPU receives before it sends.
    with pytest.raises(InputError, match="deadlock: action 0 must come before action 1, which"):
        linearize(program(cells, [(a, b, False), (b, a, False)], [[3, 0], [1, 2]]), Words())


def reduction():
    """NPU 1 adds its chunk to NPU 0's, which sends the sum back."""
    collective = all_reduce_of([0, 1], 64, 1)
    cells = cells_of(collective, 2, in_place=True, inputs=[1, 1], outputs=[0, 0], scratch=[1, 0])
    a, b = cells.find(0, Buffer.INPUT, 0), cells.find(1, Buffer.INPUT, 0)
    return collective, cells, [(b, a, True), (a, b, False)]


def test_order_by_a_chain_or_an_edge_is_enough() -> None:
    collective, cells, moves = reduction()
    for chains, edges in (([[1, 2], [0, 3]], ()), ([[0, 3]], [(1, 2)])):
        linear = linearize(program(cells, moves, chains, edges), Words())
        assert linear.transfers.src_place is None
        assert verify(Algorithm((collective,), linear.transfers))


def test_a_race_is_named() -> None:
    _, cells, moves = reduction()
    with pytest.raises(InputError, match=r"action 1 and action 0 both use cell \d+, and nothing"):
        linearize(program(cells, moves, [[0, 3]]), Words())


def test_an_empty_cell_is_named() -> None:
    _, cells, _ = reduction()
    empty = cells.find(0, Buffer.SCRATCH, 0)
    with pytest.raises(InputError, match="action 0 reads cell 0, which holds nothing then"):
        linearize(program(cells, [(empty, cells.find(1, Buffer.INPUT, 0), False)], []), Words())
    with pytest.raises(InputError, match="action 0 reads cell 0, which holds nothing then"):
        linearize(program(cells, [(cells.find(1, Buffer.INPUT, 0), empty, True)], []), Words())


def test_reuse_of_scratch_becomes_a_dependency() -> None:
    collective = Collective.of("all-to-all", [0, 1, 2], 3 * 16)
    cells = cells_of(
        collective, 3, in_place=False, inputs=[3] * 3, outputs=[3] * 3, scratch=[0, 0, 1]
    )
    slot = cells.find(2, Buffer.SCRATCH, 0)
    moves = []
    for p, q in ((0, 1), (1, 0)):  # both by way of NPU 2's one slot
        moves += [(cells.find(p, Buffer.INPUT, q), slot, False)]
        moves += [(slot, cells.find(q, Buffer.OUTPUT, p), False)]
    moves += [
        (cells.find(p, Buffer.INPUT, q), cells.find(q, Buffer.OUTPUT, p), False)
        for p in range(3)
        for q in range(3)
        if (p, q) not in ((0, 1), (1, 0))
    ]
    linear = linearize(program(cells, moves, [[1, 2, 5, 6]]), Words())
    rows = {int(action): row for row, action in enumerate(linear.action)}
    assert linear.transfers.deps.tolist() == [rows[1]]
    assert np.flatnonzero(np.diff(linear.transfers.dep_offsets)).tolist() == [rows[2]]
    assert verify(Algorithm((collective,), linear.transfers))


def test_a_wish_is_kept() -> None:
    collective, cells = all_to_all(in_place=False)
    moves = [
        (cells.find(p, Buffer.INPUT, q), cells.find(q, Buffer.OUTPUT, p), False)
        for p in (0, 1)
        for q in (0, 1)
    ]
    linear = linearize(program(cells, moves, [], [(3, 4)], wished=True), Words())
    rows = {int(action): row for row, action in enumerate(linear.action)}
    assert linear.transfers.deps.tolist() == [rows[1]]
    assert rows[1] < rows[2]
    assert verify(Algorithm((collective,), linear.transfers))


def test_a_wish_is_kept_by_a_detour() -> None:
    _, cells = all_to_all(in_place=True)
    a, b = cells.find(0, Buffer.INPUT, 1), cells.find(1, Buffer.INPUT, 0)
    own = cells.find(0, Buffer.INPUT, 0), cells.find(1, Buffer.INPUT, 1)
    # Action 1 reads before action 2 runs and writes after it, which it need not but wants to.
    moves = [(a, b, False), (b, a, False), (*own, False)]
    linear = linearize(program(cells, moves, [[0, 3], [2, 1]], [(5, 3)], wished=True), Words())
    rows = linear.action.tolist()
    last = len(rows) - 1 - rows[::-1].index(1)
    offsets = linear.transfers.dep_offsets
    assert rows.count(1) == 2
    assert rows.index(2) in linear.transfers.deps[offsets[last] : offsets[last + 1]]


def test_a_result_that_is_overwritten_is_none() -> None:
    collective, cells = all_to_all(in_place=True)
    a, b = cells.find(0, Buffer.INPUT, 1), cells.find(1, Buffer.INPUT, 0)
    other = cells.find(0, Buffer.INPUT, 0)
    moves = [(a, b, False), (b, a, False), (other, a, False)]
    linear = linearize(program(cells, moves, [[0, 3, 4, 5], [2, 1]]), Words())
    verdict = verify(Algorithm((collective,), linear.transfers))
    assert verdict.violation == "NPU 0 ends with chunk 0 where chunk 2 belongs"


# In place NPU 0 keeps a chunk, which belongs in another slot in the end: an empty one, or a full
# one. Moves, and what brings everything there, from (NPU, slot) to (NPU, slot), that chunk last.
TO_AN_EMPTY_SLOT = (
    [Move(16, (1,), (0,)), Move(16, (0,), (0, 1))],
    [((0, 0), (1, 0)), ((1, 0), (0, 0)), ((0, 0), (0, 1))],
)
TO_A_FULL_SLOT = (
    [Move(16, (0,), (1,)), Move(16, (0,), (0,)), Move(16, (1,), (0,))],
    [((0, 0), (1, 0)), ((1, 0), (0, 1)), ((0, 1), (0, 0))],
)


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize(("moves", "copies"), [TO_AN_EMPTY_SLOT, TO_A_FULL_SLOT])
def test_a_chunk_that_stays_on_its_npu_must_go_to_its_slot(moves, copies, moved: bool) -> None:
    collective = custom([0, 1], moves)
    cells = cells_of(collective, 2, in_place=True, inputs=[2, 1], outputs=[2, 1], scratch=[0, 0])
    actions = [
        (cells.find(src, Buffer.INPUT, from_slot), cells.find(dst, Buffer.OUTPUT, to_slot), False)
        for (src, from_slot), (dst, to_slot) in (copies if moved else copies[:-1])
    ]
    events = range(2 * len(actions))
    linear = linearize(program(cells, actions, [[*events[::2], *events[1::2]]]), Words())
    assert bool(verify(Algorithm((collective,), linear.transfers))) == moved
