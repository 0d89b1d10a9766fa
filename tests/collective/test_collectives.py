"""Collectives as chunks: cut to the byte, with the sets each pattern promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import NAMED
from weft.collective import MAX_CHUNKS, PATTERNS, Chunks, Collective
from weft.collective.chunks import cut
from weft.errors import InputError
from weft.units import MAX_BYTES

GROUPS = st.lists(st.integers(0, 30), min_size=1, max_size=9, unique=True)


SHARED = [name for name in NAMED if not PATTERNS[name].own_buffers]
OWN = [name for name in NAMED if PATTERNS[name].own_buffers]


@st.composite
def demands(draw: st.DrawFn, kinds: list[str] | None = None) -> Collective:
    kind = draw(st.sampled_from(kinds or NAMED))
    group = draw(GROUPS)
    root = draw(st.sampled_from([None, *group])) if PATTERNS[kind].rooted else None
    size = draw(st.one_of(st.integers(1, 60), st.integers(1, MAX_BYTES)))
    return Collective.of(kind, group, size, draw(st.integers(1, 5)), root, draw(st.integers(1, 64)))


@given(st.integers(1, MAX_BYTES), st.integers(1, 200), st.integers(1, 1 << 70))
def test_cutting_is_exact(size: int, pieces: int, alignment: int) -> None:
    marks = cut(size, pieces, alignment).tolist()
    assert (marks[0], marks[-1], len(marks)) == (0, size, pieces + 1)
    assert marks == sorted(marks)
    assert all(mark % alignment == 0 for mark in marks[:-1] if mark < size)
    blocks = -(-size // alignment)
    assert marks == [min(i * blocks // pieces * alignment, size) for i in range(pieces + 1)]
    lengths = np.diff(marks)
    assert lengths.max() - lengths.min() < 2 * alignment


@given(st.integers(1, 10**6), st.integers(1, 12), st.integers(1, 6), st.integers(1, 64))
def test_cutting_twice_is_cutting_once(size: int, n: int, k: int, alignment: int) -> None:
    once = cut(size, n * k, alignment)
    assert once[::k].tolist() == cut(size, n, alignment).tolist()


@given(demands(SHARED))
def test_chunks_cover_the_buffer(demand: Collective) -> None:
    chunks = demand.chunks
    assert chunks.bytes.min() > 0
    assert chunks.bytes.sum() == demand.size
    assert chunks.offset[0] == 0
    ends = chunks.offset + chunks.bytes
    assert ends[:-1].tolist() == chunks.offset[1:].tolist()
    assert ends[-1] == demand.size
    assert not (chunks.offset % demand.alignment).any()
    assert len(chunks) <= demand.part_count * demand.chunks_per_share


@given(demands(OWN))
def test_chunks_cover_every_senders_buffer(demand: Collective) -> None:
    chunks = demand.chunks
    last = demand.group[-1] if demand.kind == "pipeline" else None
    for npu in demand.group:
        mine = np.flatnonzero(chunks.set_members[chunks.set_offsets[chunks.pre]] == npu)
        ends = chunks.offset[mine] + chunks.bytes[mine]
        assert chunks.bytes[mine].sum() == (0 if npu == last else demand.size)
        assert ends[:-1].tolist() == chunks.offset[mine][1:].tolist()
        assert not (chunks.offset[mine] % demand.alignment).any()


@given(demands(OWN))
def test_who_sends_to_whom(demand: Collective) -> None:
    chunks, n = demand.chunks, demand.ranks
    rank = {npu: i for i, npu in enumerate(demand.group)}
    ends = {
        tuple(rank[int(chunks.members(side[chunk])[0])] for side in (chunks.pre, chunks.post))
        for chunk in range(len(chunks))
    }
    every = {
        "all-to-all": {(r, s) for r in range(n) for s in range(n)},
        "send-recv": {(r, (r + 1) % n) for r in range(n)},
        "pipeline": {(r, r + 1) for r in range(n - 1)},
        "neighbor-exchange": {(r, (r + step) % n) for r in range(n) for step in (-1, 1)},
    }[demand.kind]
    blocks = -(-demand.size // demand.alignment)  # of a buffer: too few leave some share empty
    assert ends == every if blocks >= n * demand.chunks_per_share else ends <= every


@given(demands(SHARED))
def test_pre_and_post(demand: Collective) -> None:
    everyone = sorted(demand.group)
    chunks = demand.chunks
    owners = _owners(demand)
    for chunk in range(len(chunks)):
        pre = chunks.members(chunks.pre[chunk]).tolist()
        post = chunks.members(chunks.post[chunk]).tolist()
        mine, root = [owners[chunk]], [demand.root]
        assert (pre, post) == {
            "all-gather": (mine, everyone),
            "reduce-scatter": (everyone, mine),
            "all-reduce": (everyone, everyone),
            "broadcast": (root, everyone),
            "reduce": (everyone, root),
            "gather": (mine, root),
            "scatter": (root, mine),
        }[demand.kind]
        assert chunks.reduce[chunk] == ("reduce" in demand.kind)


def _owners(demand: Collective) -> list[int]:
    """Whose share each chunk lies in, by rank."""
    marks = cut(demand.size, demand.ranks, demand.alignment)
    ranks = np.searchsorted(marks, demand.chunks.offset, side="right") - 1
    return [demand.group[rank] for rank in ranks]


@given(st.lists(demands(), min_size=1, max_size=4))
def test_global_numbers(several: list[Collective]) -> None:
    tables = [demand.chunks for demand in several]
    joined = Chunks.concatenate(tables)
    assert len(joined) == sum(map(len, tables))
    number = 0
    for table in tables:
        for chunk in range(len(table)):
            for side in ("pre", "post"):
                ours = joined.members(getattr(joined, side)[number])
                theirs = table.members(getattr(table, side)[chunk])
                assert ours.tolist() == theirs.tolist()
            assert joined.bytes[number] == table.bytes[chunk]
            assert joined.reduce[number] == table.reduce[chunk]
            assert (joined.reach[number] < 0) == (table.reach[chunk] < 0)
            number += 1


@given(demands())
def test_without_relays_chunks_stay_in_the_group(demand: Collective) -> None:
    bound = replace(demand, relay=False).chunks
    assert (demand.chunks.reach == -1).all()
    for chunk in range(len(bound)):
        assert bound.members(bound.reach[chunk]).tolist() == sorted(demand.group)
        for side in ("pre", "post"):
            with_relays = demand.chunks.members(getattr(demand.chunks, side)[chunk])
            assert bound.members(getattr(bound, side)[chunk]).tolist() == with_relays.tolist()


def test_the_root_is_the_first_by_default() -> None:
    assert Collective.of("broadcast", [5, 2], 10).root == 5
    assert Collective.of("all-gather", [5, 2], 10).root is None


USUAL = Collective.of("all-gather", range(4), 100)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "allgather"}, "did you mean 'all-gather'"),
        ({"kind": "xyz"}, "unknown collective 'xyz' (known: all-gather"),
        ({"group": ()}, "the group is empty"),
        ({"group": (1, 1)}, "distinct"),
        ({"group": (0, -1)}, "distinct"),
        ({"size": 0}, "size 0 B is out of range"),
        ({"size": -1}, "out of range"),
        ({"size": MAX_BYTES + 1}, "out of range"),
        ({"chunks_per_share": 0}, "0 chunks per share; expected 1"),
        ({"chunks_per_share": -3}, "-3 chunks"),
        ({"chunks_per_share": MAX_CHUNKS}, "chunks per share"),
        ({"alignment": 0}, "alignment 0 B"),
        ({"alignment": -16}, "alignment -16 B"),
        ({"root": 1}, "has no root"),
        ({"kind": "reduce", "root": 4}, "root 4 is not an NPU of the group"),
    ],
)
def test_wrong_demands(changes: dict, message: str) -> None:
    with pytest.raises(InputError) as caught:
        replace(USUAL, **changes)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        ("all-gather", 0.75),
        ("reduce-scatter", 0.75),
        ("all-reduce", 1.5),
        ("broadcast", 1),
        ("reduce", 1),
        ("gather", 0.75),
        ("scatter", 0.75),
    ],
)
def test_bus_factors(kind: str, factor: float) -> None:
    """As nccl-tests defines them, for four NPUs."""
    assert PATTERNS[kind].bus_factor(4) == factor
