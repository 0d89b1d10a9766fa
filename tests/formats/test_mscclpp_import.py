"""Plans are read: Weft's own come back as they were, others' are understood, wrong ones named."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mscclpp_checker import WrongPlanError
from mscclpp_jobs import check, chunks, export, gpu, jobs, operation, plan_of

import weft
from weft.algorithm import Algorithm
from weft.algorithm.memory import lay_out
from weft.collective import Move
from weft.errors import FormatError
from weft.formats import Hints, Imported, read, recognise

Plan = dict[str, Any]


def load(plan: Plan, folder: Path, hints: Hints | None = None) -> Imported:
    path = folder / "plan.json"
    path.write_text(json.dumps(plan))
    return read(path, hints or Hints(), kind="mscclpp")


def messages(algorithm: Algorithm) -> dict[tuple[int, ...], set[tuple[int, ...]]]:
    """Which messages feed each message: (from, to, chunk, how many such came before)."""
    memory = lay_out(algorithm)
    rows = memory.transfers
    held: dict[tuple[int, int, int], set[tuple[int, ...]]] = {}
    found: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for row in range(len(rows)):
        src, dst, chunk = int(rows.src[row]), int(rows.dst[row]), int(rows.chunk[row])
        moved = held.get((src, int(memory.src_buffer[row]), int(memory.src_slot[row])), set())
        if src != dst:
            count = 0
            while (src, dst, chunk, count) in found:
                count += 1
            found[src, dst, chunk, count] = moved
            moved = {(src, dst, chunk, count)}
        target = dst, int(memory.dst_buffer[row]), int(memory.dst_slot[row])
        held[target] = held.get(target, set()) | moved if rows.reduce[row] else moved
    return found


@settings(max_examples=50, deadline=None)
@given(algorithm=jobs(named=True), node=st.sampled_from([None, 1, 2]))
def test_what_was_written_comes_back(
    algorithm: Algorithm, node: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    collective = algorithm.demands[0]
    root = None if collective.root is None else collective.group.index(collective.root)
    hints = Hints(collective.kind, collective.size, group=range(collective.ranks), root=root)
    if len(collective.chunks) == 0:
        return
    back = load(export(algorithm, gpus_per_node=node), tmp_path_factory.mktemp("plan"), hints)
    again = back.verified()
    assert again.demands[0].kind == collective.kind
    assert again.demands[0].size == collective.size
    assert again.demands[0].chunks_per_share == collective.chunks_per_share
    assert messages(again) == messages(algorithm)


def test_patterns_of_ones_own_come_back_by_their_moves(tmp_path: Path) -> None:
    moves = [Move(32, (0,), (1, 2)), Move(16, (0, 2), (1,), reduce=True), Move(48, (2,), (0,))]
    result = weft.synthesize("ring:3", weft.custom([0, 1, 2], moves), chunks=1)
    plan = export(result.algorithm)
    back = load(plan, tmp_path, Hints(moves=moves)).verified()
    assert back.demands[0].size == result.algorithm.demands[0].size
    with pytest.raises(FormatError, match="calls its collective 'custom', which does not say"):
        load(plan, tmp_path)
    with pytest.raises(FormatError, match="take 7 chunks of 16 B from GPU 2, whose input has 4"):
        load(plan, tmp_path, Hints(moves=[*moves, Move(48, (2,), (0,))]))


def test_plans_are_recognised_by_what_is_in_them(tmp_path: Path) -> None:
    load(all_reduce(), tmp_path)
    assert recognise(tmp_path / "plan.json") == "mscclpp"


def all_reduce() -> Plan:
    """Two GPUs: each reads and adds its half, then puts the sum to the other."""
    gpus = []
    for me in (0, 1):
        other = 1 - me
        half = [chunks("i", 2 * me, 2)]
        ops = [
            operation("rlxsignal", kind="memory", ids=[0]),
            operation("rlxwait", kind="memory", ids=[0]),
            operation("nop"),
            operation(
                "rre", kind="memory", src=[*half, chunks(0, 2 * me, 2)], dst=half, reduce_op="sum"
            ),
            operation("nop"),
            operation("put", kind="memory", src=half, dst=[chunks(0, 2 * me, 2)]),
            operation("nop"),
            operation("signal", kind="memory", ids=[0]),
            operation("wait", kind="memory", ids=[0]),
        ]
        gpus.append(gpu(me, (4, 4, 0), [ops], [other], [(other, "i")]))
    return plan_of("allreduce", gpus)


def packets() -> Plan:
    """Two GPUs in packets, each chunk by a group of two thread blocks."""
    gpus = []
    for me in (0, 1):
        other, mine = 1 - me, [chunks("i", 0, 2)]
        group = [{"tb_id": part, "tbg_size": 2} for part in (0, 1)]
        blocks = [
            [
                operation("ppkt", kind="memory", src=mine, dst=[chunks(0, 0, 2)], tbg_info=part),
                operation("repkt", src=[*mine, chunks("s", 0, 2)], dst=mine, tbg_info=part),
            ]
            for part in group
        ]
        gpus.append(gpu(me, (2, 2, 2), blocks, [other], [(other, "s")]))
    return plan_of("allreduce", gpus, protocol="LL")


def send_recv() -> Plan:
    """Three GPUs in a ring, through ports, with a barrier and a semaphore between two blocks."""
    gpus = []
    for me in range(3):
        after, before = (me + 1) % 3, (me + 2) % 3
        sends = [
            operation("signal", kind="port", ids=[1]),
            operation("wait", kind="port", ids=[0]),
            operation("nop"),
            operation("pwsf", kind="port", ids=[0], src=[chunks("i", 0)], dst=[chunks(0, 0)]),
            operation("wait", kind="port", ids=[1]),
            operation("nop"),
            operation("sem_release", sems=[0]),
            operation("barrier", barrier_id=3, num_threadblocks=2),
        ]
        copies = [
            operation("sem_acquire", sems=[0]),
            operation("nop"),
            operation("copy", src=[chunks("s", 0)], dst=[chunks("o", 0)]),
            operation("barrier", barrier_id=3, num_threadblocks=2),
        ]
        blocks = [sends, copies]
        gpus.append(
            gpu(me, (1, 1, 1), blocks, [after, before], [(after, "s")], kind="port", semaphores=1)
        )
    return plan_of("sendrecv", gpus, inplace=False)


@pytest.mark.parametrize(
    ("plan", "kind", "size", "rows"),
    [
        (all_reduce(), "all-reduce", 4 << 20, 8),
        (packets(), "all-reduce", 2 << 20, 16),
        (send_recv(), "send-recv", 1 << 20, 6),
    ],
)
def test_handmade_plans(plan: Plan, kind: str, size: int, rows: int, tmp_path: Path) -> None:
    imported = load(plan, tmp_path)
    algorithm = imported.verified()
    assert (algorithm.demands[0].kind, algorithm.demands[0].size) == (kind, size)
    assert len(algorithm.transfers) == rows
    assert imported.origin is not None
    assert imported.origin(0).startswith("GPU 0, thread block 0, operation ")


def test_sizes_follow_the_plan_and_hints(tmp_path: Path) -> None:
    plan = all_reduce()
    plan |= {"min_message_size": 0, "max_message_size": 4096}
    assert load(plan, tmp_path).algorithm.demands[0].size == 4096
    assert load(plan, tmp_path, Hints(size=999)).algorithm.demands[0].size == 999


def without(plan: Plan, rank: int, block: int, op: int) -> Plan:
    plan = copy.deepcopy(plan)
    del plan["gpus"][rank]["threadblocks"][block]["ops"][op]
    return plan


def changed(plan: Plan, path: str, value: Any) -> Plan:
    plan = copy.deepcopy(plan)
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    at: Any = plan
    for step in way:
        at = at[step]
    at[last] = value
    return plan


OPS = "gpus.0.threadblocks.0.ops"
PIPELINE = operation("pipeline", iter_context={"unit_size": 1, "num_chunks": 1}, ops=[])
WRONG = {
    "missing signal": (
        without(all_reduce(), 1, 0, 7),
        "memory channel 0 from GPU 1 to GPU 0 is signalled 1 times and waited for 2 times",
    ),
    "missing sync after a wait": (
        without(send_recv(), 0, 1, 1),
        r"GPU 0, thread block 1, operation 1 reads s\[0\] of GPU 0, which holds nothing then",
    ),
    "missing sync before a signal": (
        without(all_reduce(), 0, 0, 6),
        "GPU 0, thread block 0, operation 5 and the user of GPU 1's result both use "
        r"i\[1\] of GPU 1, and nothing says which comes first",
    ),
    "wrong half": (
        changed(all_reduce(), f"{OPS}.3.src_buff.1.index", 0),
        None,  # adds what is there anyway
    ),
    "the other half": (
        changed(all_reduce(), f"{OPS}.5.dst_buff.0.index", 2),
        "both use",
    ),
    "unknown operation": (
        changed(all_reduce(), f"{OPS}.3.name", "rrre"),
        r"GPU 0, thread block 0, operation 3 \(rrre\): unknown operation 'rrre'; did you mean",
    ),
    "pipeline": (
        changed(all_reduce(), f"{OPS}.3", PIPELINE),
        r"operation 3 \(pipeline\): this operation runs its operations piece by piece",
    ),
    "switch": (changed(all_reduce(), f"{OPS}.3.name", "gstore"), "works in a switch"),
    "channel": (changed(all_reduce(), f"{OPS}.0.channel_ids", [1]), "memory channel 1 of 1"),
    "channel type": (
        changed(all_reduce(), f"{OPS}.0.channel_type", "pigeon"),
        "channel_type is 'pigeon'; expected memory or port",
    ),
    "index": (
        changed(all_reduce(), f"{OPS}.5.dst_buff.0.index", 3),
        r"destination 0 is i\[3:5\] of GPU 1, whose buffer has 4 chunks",
    ),
    "buffer": (
        changed(all_reduce(), f"{OPS}.5.dst_buff.0.buffer_id", 1),
        "destination 0 has buffer_id 1; the thread block reaches 1 buffers by memory channels",
    ),
    "size": (
        changed(all_reduce(), f"{OPS}.5.dst_buff.0.size", 1),
        "a source and its destination differ in size",
    ),
    "memory channels do not signal by themselves": (
        changed(all_reduce(), f"{OPS}.5.name", "pws"),
        "it puts and signals, which only port channels do",
    ),
    "no packets": (
        without(packets(), 1, 0, 0),
        "GPU 0, thread block 0, operation 1 waits for packets that nothing writes",
    ),
    "packets twice": (
        changed(packets(), "gpus.0.threadblocks.1.ops.0.tbg_info.tb_id", 0),
        "both write packets that GPU 1, thread block 0, operation 1 waits for",
    ),
    "semaphore": (
        without(send_recv(), 2, 0, 6),
        "semaphore 0 of GPU 2 is released 0 times and acquired 1 times",
    ),
    "barrier": (
        without(send_recv(), 2, 1, 3),
        "num_threadblocks is 2, and 1 meet at barrier 3",
    ),
    "output": (
        without(send_recv(), 1, 1, 2),
        r"the user of GPU 1's result reads o\[0\] of GPU 1, which holds nothing then",
    ),
    "protocol": (changed(all_reduce(), "protocol", "LL128"), "line 1: protocol is 'LL128'"),
    "collective": (
        changed(all_reduce(), "collective", "allgather"),
        "4 input and 4 output chunks are not those of all-gather among 2 GPUs",
    ),
    "huge": (
        changed(all_reduce(), "gpus.0.scratch_chunks", 1 << 30),
        "its buffers have 1073741840 chunks; Weft reads plans up to 2097152",
    ),
    "negative": (
        changed(all_reduce(), f"{OPS}.5.dst_buff.0.index", -1),
        "line 1: GPU 0: thread block 0: operation 5: destination 0: index is wrong: expected int",
    ),
    "no gpus": (changed(all_reduce(), "gpus", []), "the plan has no GPUs"),
    "ids": (changed(all_reduce(), "gpus.1.id", 0), "GPU 1 has id 0; ids count from 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_plans_are_named(name: str, tmp_path: Path) -> None:
    plan, sentence = WRONG[name]
    if sentence is None:
        load(plan, tmp_path)
        return
    with pytest.raises(FormatError, match=sentence) as error:
        load(plan, tmp_path).verified()
    assert str(error.value).startswith(str(tmp_path / "plan.json"))
    assert "\n" not in str(error.value)


def test_a_deadlock_is_named(tmp_path: Path) -> None:
    plan = all_reduce()
    for rank in (0, 1):
        ops = plan["gpus"][rank]["threadblocks"][0]["ops"]
        ops[0], ops[1] = ops[1], ops[0]
    with pytest.raises(FormatError, match=r"deadlock: GPU \d, thread block 0, operation \d must"):
        load(plan, tmp_path)


BASES = [
    weft.synthesize(*job, chunks=1).algorithm
    for job in (
        ("ring:3", "all-reduce", "1MiB"),
        ("ring:4", "all-gather", "1MiB"),
        ("line:3", "all-to-all", "1MiB"),
    )
]


@settings(max_examples=150, deadline=None)
@given(
    base=st.sampled_from(BASES),
    node=st.sampled_from([None, 1]),
    seed=st.integers(0, 10**6),
)
def test_what_is_accepted_runs(
    base: Algorithm, node: int | None, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    plan = export(base, gpus_per_node=node)
    mutate(plan, random.Random(seed))
    try:
        load(plan, tmp_path_factory.mktemp("plan")).verified()
    except FormatError:
        return
    check(base, plan, runs=2, launches=1)  # nothing is said of one run after another


def mutate(plan: Plan, rng: random.Random) -> None:
    """Break something, or not."""
    blocks = [block for gpu in plan["gpus"] for block in gpu["threadblocks"] if block["ops"]]
    ops = rng.choice(blocks)["ops"]
    at = rng.randrange(len(ops))
    way = rng.randrange(5)
    if way == 0:
        del ops[at]
    elif way == 1 and len(ops) > 1:
        other = rng.randrange(len(ops))
        ops[at], ops[other] = ops[other], ops[at]
    elif way == 2:
        ops.insert(at, copy.deepcopy(rng.choice(ops)))
    else:
        fields = [
            (record, key)
            for op in ops
            for record in (op, *op.get("src_buff", ()), *op.get("dst_buff", ()))
            for key in ("index", "type", "buffer_id", "name", "semaphore_ids")
            if key in record
        ]
        record, key = rng.choice(fields)
        others = [r[k] for r, k in fields if k == key]
        record[key] = copy.deepcopy(rng.choice([*others, *([0, 1] if key == "index" else [])]))


def test_most_mutants_are_refused(tmp_path: Path) -> None:
    refused = wrong = 0
    for seed in range(120):
        plan = export(BASES[seed % len(BASES)])
        mutate(plan, random.Random(seed))
        try:
            check(BASES[seed % len(BASES)], plan)
        except (WrongPlanError, KeyError, IndexError, ValueError, TypeError):
            wrong += 1
        try:
            load(plan, tmp_path).verified()
        except FormatError:
            refused += 1
    assert wrong > 60
    assert refused >= wrong * 9 // 10


@settings(max_examples=150, deadline=None)
@given(
    source=st.sampled_from([all_reduce(), packets(), send_recv()]),
    seed=st.integers(0, 10**9),
)
def test_anything_gets_an_answer(
    source: Plan, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng = random.Random(seed)
    plan = copy.deepcopy(source)
    for _ in range(rng.randint(1, 3)):
        scramble(plan, rng)
    text = json.dumps(plan)
    if rng.random() < 0.3:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(["", "{", "9" * 5000, '"', "\x00", "é"]) + text[at + 1 :]
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    path.write_text(text)
    try:
        read(path, kind="mscclpp").violation()
    except FormatError as error:
        assert str(error).startswith(str(path))  # noqa: PT017


def scramble(plan: Any, rng: random.Random) -> None:
    """Put a strange value somewhere."""
    strange = [None, -1, 0, 1, 2**31 - 1, 2**31, 10**30, 1.5, "", "i", [], {}, [[]], True, "memory"]
    at: Any = plan
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return
        key = rng.choice(keys)
        if not isinstance(at[key], dict | list) or not at[key] or rng.random() < 0.1:
            at[key] = rng.choice(strange)
            return
        at = at[key]
