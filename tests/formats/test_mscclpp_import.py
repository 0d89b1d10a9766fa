"""Plans are read: Weft's own come back as they were, others' are understood, wrong ones named."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mscclpp_handmade import (
    Plan,
    added_and_sent,
    all_reduce,
    chunks,
    fetched,
    one_adds,
    operation,
    packets,
    passed_on,
    pipelined,
    send_recv,
)
from mscclpp_jobs import export, jobs
from tests.examples import examples

import weft
from weft.algorithm import Algorithm
from weft.algorithm.memory import lay_out
from weft.collective import Move
from weft.errors import FormatError
from weft.formats import Hints, Imported, read, recognise


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


@examples(50)
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
        load(plan, tmp_path, Hints(group=[2, 1, 0]))
    with pytest.raises(FormatError, match="take 7 chunks of 16 B from GPU 2, whose input has 4"):
        load(plan, tmp_path, Hints(moves=[*moves, Move(48, (2,), (0,))]))


def test_a_pattern_that_is_not_named_is_derived(tmp_path: Path) -> None:
    """From what moves; what comes out is judged like any other."""
    plan = export(weft.synthesize("ring:3", "reduce-scatter", "3KiB", chunks=1).algorithm)
    for name in ("test", "custom", "", None):
        plan["collective"] = name
        if name is None:
            del plan["collective"]
        back = load(plan, tmp_path).verified()
        chunks_ = back.demands[0].chunks
        assert back.provenance["collective"] == "derived from what the plan does"
        assert chunks_.reduce.all()
        assert [chunks_.members(number).tolist() for number in chunks_.pre] == [[0, 1, 2]] * 3
        assert [chunks_.members(number).tolist() for number in chunks_.post] == [[0], [1], [2]]
    said = load(plan, tmp_path, Hints("reduce-scatter")).verified()
    assert said.demands[0].kind == "reduce-scatter"


def test_what_no_collective_does_is_said(tmp_path: Path) -> None:
    plan = all_reduce()
    plan["collective"] = "test"
    load(plan, tmp_path).verified()
    ops = plan["gpus"][0]["threadblocks"][0]["ops"]
    ops[3] = operation("re", src=[chunks("i", 0), chunks("i", 1)], dst=[chunks("i", 0)])
    with pytest.raises(FormatError, match="is added to another slot of the same input"):
        load(plan, tmp_path)
    for gpu_ in plan["gpus"]:
        gpu_["threadblocks"][0]["ops"] = [operation("nop")]
    with pytest.raises(FormatError, match="moves nothing, so that its pattern is unknown"):
        load(plan, tmp_path)


def test_pipelines_run_round_by_round(tmp_path: Path) -> None:
    algorithm = load(pipelined(), tmp_path).verified()
    assert algorithm.demands[0].kind == "all-gather"
    assert algorithm.demands[0].chunks_per_share == 4  # two chunks, two rounds each
    assert len(algorithm.transfers) == 2 * 4 * 2
    # Where one pipeline's rounds are half as large, they are twice as many: no common signals.
    plan = pipelined()
    plan["gpus"][0]["threadblocks"][0]["ops"][0]["iter_context"]["unit_size"] //= 2
    with pytest.raises(FormatError, match="signalled 8 times and waited for 4 times"):
        load(plan, tmp_path)


def test_a_race_between_rounds_is_seen(tmp_path: Path) -> None:
    plan = pipelined()
    for gpu_ in plan["gpus"]:
        del gpu_["threadblocks"][0]["ops"][0]["ops"][1]  # signals may overtake the put
    with pytest.raises(FormatError, match=r"holds nothing then|nothing says which comes first"):
        load(plan, tmp_path)


def test_plans_are_recognised_by_what_is_in_them(tmp_path: Path) -> None:
    load(all_reduce(), tmp_path)
    assert recognise(tmp_path / "plan.json") == "mscclpp"


@pytest.mark.parametrize(
    ("plan", "kind", "size", "rows"),
    [
        (all_reduce(), "all-reduce", 4 << 20, 8),
        (packets(), "all-reduce", 2 << 20, 16),
        (send_recv(), "send-recv", 1 << 20, 6),
        (one_adds(), "all-reduce", 2 << 20, 4),
        (fetched(), "all-gather", 2 << 20, 4),
        (passed_on(), "broadcast", 1 << 20, 4),
        (added_and_sent(), "all-reduce", 1 << 20, 6),
    ],
)
def test_handmade_plans(plan: Plan, kind: str, size: int, rows: int, tmp_path: Path) -> None:
    imported = load(plan, tmp_path)
    algorithm = imported.verified()
    assert (algorithm.demands[0].kind, algorithm.demands[0].size) == (kind, size)
    assert len(algorithm.transfers) == rows
    assert imported.origin is not None
    assert imported.origin(0).startswith("GPU ")


def test_sizes_follow_the_plan_and_hints(tmp_path: Path) -> None:
    plan = all_reduce()
    plan |= {"min_message_size": 0, "max_message_size": 4096}
    assert load(plan, tmp_path).algorithm.demands[0].size == 4096
    assert load(plan, tmp_path, Hints(size=999)).algorithm.demands[0].size == 999


def test_sizes_below_the_alignment_leave_no_chunk_empty(tmp_path: Path) -> None:
    assert load(all_reduce(), tmp_path, Hints(size=7)).verified().chunks.bytes.sum() == 7
    with pytest.raises(FormatError, match="has 4 chunks, but 3 B is less than 1 B each"):
        load(all_reduce(), tmp_path, Hints(size=3))
    with pytest.raises(FormatError, match="cuts a share in 2 chunks, not 5"):
        load(all_reduce(), tmp_path, Hints(chunks=5))


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
OVERWRITES = operation(
    "get", kind="memory", ids=[0], src=[chunks(0, 0, 2)], dst=[chunks("i", 0, 2)]
)
PIPE = "gpus.0.threadblocks.0.ops.0"
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
    "the wrong half is added": (
        changed(all_reduce(), f"{OPS}.3.src_buff.1.index", 2),
        "GPU 0, thread block 0, operation 3 and GPU 1, thread block 0, operation 3 both use",
    ),
    "overwritten, not added": (changed(all_reduce(), f"{OPS}.3", OVERWRITES), "contribution"),
    "the other half": (
        changed(all_reduce(), f"{OPS}.5.dst_buff.0.index", 2),
        "both use",
    ),
    "unknown operation": (
        changed(all_reduce(), f"{OPS}.3.name", "rrre"),
        r"GPU 0, thread block 0, operation 3 \(rrre\): unknown operation 'rrre'; did you mean",
    ),
    "pipeline without rounds": (
        changed(pipelined(), f"{PIPE}.iter_context", None),
        r"operation 0 \(pipeline\): it has no iter_context with a unit_size above 0",
    ),
    "pipeline in a pipeline": (
        changed(pipelined(), f"{PIPE}.ops.1", pipelined()["gpus"][0]["threadblocks"][1]["ops"][0]),
        r"operation 0 \(pipeline\): pipeline: it is in a pipeline itself",
    ),
    "pipeline longer than its data": (
        changed(pipelined(), f"{PIPE}.ops.0.src_buff.0.size", 1),
        r"operation 0 \(pipeline\): put: source 0 has 1 chunks, fewer than its pipeline",
    ),
    "pipeline of groups": (
        changed(pipelined(), f"{PIPE}.ops.0.tbg_info", {"tb_id": 0, "tbg_size": 2}),
        "put: source 0 is of a group of thread blocks or of packets, in a pipeline",
    ),
    "pipeline without end": (
        changed(pipelined(), f"{PIPE}.iter_context.num_chunks", (1 << 31) - 1),
        r"its operations use \d+ chunks, each cut in 2 for groups of thread blocks and pipelines",
    ),
    "switch in a pipeline": (
        changed(pipelined(), f"{PIPE}.ops.0.name", "gstore"),
        r"gstore: destination 0 has switch_channel_id None; the thread block has 0 switch",
    ),
    "switch": (changed(all_reduce(), f"{OPS}.3.name", "glre"), "executor does not run this"),
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
    "kinds of sums": (
        changed(all_reduce(), f"{OPS}.3.reduce_op", "max"),
        r"GPU 1, .* operation 3 \(rre\): reduce_op is sum, but max in operations before",
    ),
    "protocol": (changed(all_reduce(), "protocol", "LL128"), "line 1: protocol is 'LL128'"),
    "collective": (
        changed(all_reduce(), "collective", "allgather"),
        "4 input and 4 output chunks are not those of all-gather among 2 GPUs",
    ),
    "huge": (
        changed(all_reduce(), "gpus.0.scratch_chunks", 1 << 30),
        "its buffers have 1073741840 chunks; Weft reads plans up to 4194304",
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
