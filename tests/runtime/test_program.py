"""Programs of ranks, run by a machine that is as slow and as late as it may be."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.runtime.machine import Machine, StuckError, check
from tests.strategies import group_collectives, networks
from weft.algorithm import Algorithm, Buffer, Transfers, place
from weft.collective import Collective
from weft.errors import InputError
from weft.runtime import Program, Programs
from weft.runtime.cutting import Cut
from weft.runtime.program import What

COUNTS = st.one_of(st.integers(0, 9), st.integers(10, 300))


def bare(algorithm: Algorithm) -> Algorithm:
    """The same without times, as if read from a file that has none."""
    rows = replace(algorithm.transfers, route=None, start=None, end=None)
    return Algorithm(algorithm.demands, rows)


@examples(60)
@given(st.data())
def test_all_get_what_they_must_have(data: st.DataObject) -> None:
    network = data.draw(networks())
    demands = data.draw(st.lists(group_collectives(network), min_size=1, max_size=2))
    algorithm = weft.synthesize(network, demands, chunks=1).algorithm
    if data.draw(st.booleans()):
        algorithm = bare(algorithm)
    programs = Programs(algorithm, reproducible=data.draw(st.booleans()))
    counts = data.draw(st.lists(COUNTS, min_size=len(demands), max_size=len(demands)))
    own = any(demand.pattern.own_buffers or demand.parts for demand in demands)
    in_place = not own and data.draw(st.booleans())
    check(
        programs,
        counts,
        data.draw(st.integers(0, 1 << 30)),
        room=data.draw(st.integers(0, 3)),
        in_place=in_place,
    )


def steps(program: Program) -> list[tuple[int, int, int]]:
    return list(
        zip(program.what.tolist(), program.peer.tolist(), program.chunk.tolist(), strict=True)
    )


@pytest.mark.parametrize(
    ("spec", "collective"),
    [
        ("torus:4x4", "all-to-all"),
        ("mesh:5x5", "all-gather"),
        ("torus:3x3", "all-reduce"),
        ("ring:8", "reduce-scatter"),
    ],
)
def test_compact_rows_give_the_programs_of_their_table(spec: str, collective: str) -> None:
    compact = weft.synthesize(spec, collective, "64KiB").algorithm
    table = replace(
        compact,
        rows=compact.transfers,
        timing=replace(compact.require_timing(), routes=compact.routes),
    )
    one, other = Programs(compact), Programs(table)
    for npu in range(one.npus):
        assert steps(one.of(npu)) == steps(other.of(npu))
    check(one, [129], 1)


def relayed(hops: int) -> Algorithm:
    """Chunk after chunk over one relay, by hand."""
    demand = Collective.of("broadcast", [0, 2], 16 * hops, hops)
    chunk = np.repeat(np.arange(hops), 2).astype(np.int32)
    src = np.tile([0, 1], hops).astype(np.int32)
    return Algorithm((demand,), Transfers(chunk, src, src + 1, np.zeros(2 * hops, dtype=np.bool_)))


def test_a_relay_uses_its_scratch_again() -> None:
    programs = Programs(relayed(40))
    relay = programs.of(1)
    assert relay.slot.max() == 0  # one slot for all chunks
    check(programs, [1000], 3)
    assert Cut(programs.algorithm, [1000]).fit(relay).scratch <= 64


def test_an_exchange_by_way_of_scratch() -> None:
    """Two NPUs swap what they have in a place that both write, and add it after."""
    away = place(Buffer.SCRATCH, 0)
    columns = {
        "chunk": [0, 0, 0, 0],
        "src": [0, 1, 0, 1],
        "dst": [1, 0, 0, 1],
        "reduce": [False, False, True, True],
        "src_place": [0, 0, away, away],
        "dst_place": [away, away, 0, 0],
    }
    rows = Transfers(
        **{
            name: np.array(values, dtype=bool if name == "reduce" else np.int32)
            for name, values in columns.items()
        }
    )
    demand = Collective.of("all-reduce", [0, 1], 4)
    assert len(demand.chunks) == 1
    whole = Algorithm((demand,), rows)
    assert weft.verify(whole)
    for in_place in (False, True):
        check(Programs(whole), [7], 5, in_place=in_place)


def test_what_is_not_there_is_not_sent() -> None:
    demand = Collective.of("broadcast", [0, 1, 2], 16)
    one, two = np.array([1], dtype=np.int32), np.array([2], dtype=np.int32)
    rows = Transfers(np.zeros(1, np.int32), one, two, np.zeros(1, np.bool_))
    with pytest.raises(InputError, match="NPU 1 sends chunk 0 to NPU 2 and does not have it"):
        Programs(Algorithm((demand,), rows)).of(1)
    with pytest.raises(InputError, match="NPU 1 never gets chunk 0"):
        Programs(Algorithm((demand,), rows.selected(np.array([], dtype=int)))).of(1)


SUMMED = weft.synthesize("mesh:3x3", "all-reduce", "2KiB", chunks=2).algorithm


def summed_at_a_relay() -> Algorithm:
    """NPU 2, which takes no part, adds what 0 and 1 send to each other, and hands it to 3."""
    demand = Collective.of("reduce", [3, 0, 1], 4)
    src, dst = np.array([0, 1, 2], dtype=np.int32), np.array([2, 2, 3], dtype=np.int32)
    return Algorithm((demand,), Transfers(np.zeros(3, np.int32), src, dst, np.ones(3, np.bool_)))


@pytest.mark.parametrize(
    ("column", "algorithm"),
    [
        ("read_after", SUMMED),
        ("written_after", summed_at_a_relay()),
        ("free_after", relayed(4)),
        ("free_after", SUMMED),
    ],
)
def test_no_wait_may_be_left_out(column: str, algorithm: Algorithm) -> None:
    """With less to wait for, some timing gives wrong data."""
    programs = Programs(algorithm)
    for npu in range(programs.npus):
        program = programs.of(npu)
        counts = np.maximum(getattr(program, column) - 1, 0)
        programs._made[npu] = replace(program, **{column: counts.astype(np.int32)})

    def run_often() -> None:
        for seed in range(30):
            check(programs, [90], seed, room=3)

    with pytest.raises((AssertionError, StuckError)):
        run_often()


@pytest.mark.parametrize("change", ["swapped", "lost", "elsewhere", "copied"])
def test_changed_programs_are_wrong(change: str) -> None:
    programs = Programs(SUMMED)
    program = programs.of(4)
    receives = np.flatnonzero(program.what == What.RECEIVE)
    peers = program.peer[receives]
    same = receives[peers == peers[0]]
    rows = np.arange(len(program))
    if change == "swapped":
        rows[same[[0, 1]]] = same[[1, 0]]
        changed = replace(program, chunk=program.chunk[rows], to_index=program.to_index[rows])
    elif change == "lost":
        changed = replace(program, read_after=program.read_after + 1)
    elif change == "elsewhere":
        to = program.to_index.copy()
        to[same[0]] = to[same[-1]]
        changed = replace(program, to_index=to)
    else:
        changed = replace(program, combines=np.zeros(len(program), dtype=np.bool_))
    programs._made[4] = changed
    with pytest.raises((AssertionError, StuckError)):
        check(programs, [90], 0)


def test_the_digest_tells_algorithms_apart() -> None:
    rows = SUMMED.transfers
    digest = Programs(SUMMED).digest
    assert Programs(replace(SUMMED)).digest == digest
    assert Programs(SUMMED, reproducible=True).digest != digest
    for field in fields(rows):
        column = getattr(rows, field.name)
        if column is None or field.name in ("dep_offsets", "deps"):
            continue
        other = column.copy()
        other[-1] = not other[-1] if field.name == "reduce" else other[-1] + 1
        changed = replace(SUMMED, rows=replace(rows, **{field.name: other}))
        assert Programs(changed).digest != digest, field.name


def test_a_machine_finds_a_deadlock() -> None:
    """Two NPUs that each receive before they send what the other waits for."""
    programs = Programs(weft.synthesize("ring:2", "all-gather", "64B").algorithm)
    for npu in range(2):
        program = programs.of(npu)
        cells = np.where(program.what == What.SEND, 0, program.read_cell).astype(np.int32)
        after = np.where(program.what == What.SEND, 1, program.read_after).astype(np.int32)
        programs._made[npu] = replace(program, read_cell=cells, read_after=after)
    with pytest.raises(StuckError):
        check(programs, [8], 0)
    assert Machine([], 0, 0).run() is None
