"""Writes algorithms as MSCCL++ execution plans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import numpy as np

from weft.algorithm import Algorithm, Buffer
from weft.algorithm.memory import Memory, lay_out
from weft.documents import new_file
from weft.errors import InputError
from weft.formats.mscclpp.block_count import beginning, room_for, too_many
from weft.formats.mscclpp.blocks import Block, Gpu, Lane, Step, arrange, needs_acknowledgement
from weft.formats.mscclpp.executor import (
    ALIGNMENT,
    BUFFERS,
    COLLECTIVES,
    MAX_CHANNELS_AN_OPERATION,
    MAX_MIN_MESSAGE,
    MAX_OFFSET,
    MAX_OPERATIONS,
    MAX_SEMAPHORES_AN_OPERATION,
    MEMORY,
    PORT,
    SIDES,
)
from weft.formats.mscclpp.hazards import Hazards, find_hazards
from weft.formats.mscclpp.switching import gpus_of
from weft.quoting import quoted

Record = dict[str, Any]

MOST_BLOCKS = 108
"""Streaming multiprocessors of an A100; each runs one thread block of 1024 threads."""


def save(
    algorithm: Algorithm,
    path: Path,
    *,
    name: str | None = None,
    gpus_per_node: int | None = None,
    threads: int = 1024,
    thread_blocks: int = MOST_BLOCKS,
    min_size: int = 0,
    max_size: int | None = None,
    max_offset: int = MAX_OFFSET,
) -> None:
    """Write `algorithm` as an execution plan for MSCCL++'s executor, protocol Simple.

    Parameters
    ----------
    name
        What the runtime calls the plan; by default one that no other plan has.
    gpus_per_node
        NPUs of different nodes talk through port channels; by default all are in one node and
        use memory channels.
    threads
        Threads of a thread block.
    thread_blocks
        How many thread blocks a GPU runs at once.
    min_size, max_size
        For which message sizes the runtime may use the plan (All-Gather: the output, otherwise
        the input); by default for all in which offsets fit.
    max_offset
        Offsets in buffers stay below so many bytes: 4 GiB for MSCCL++ 0.9 and older.

    Raises
    ------
    InputError
        The algorithm does not fit in a plan, or an option makes no sense.
    """
    _check_options(name, gpus_per_node, threads, thread_blocks)
    memory = lay_out(algorithm)
    _check_whole(memory)
    plan = plan_of(algorithm, memory, gpus_per_node, thread_blocks)
    plan["num_threads_per_block"] = threads
    plan["min_message_size"], plan["max_message_size"] = _sizes(
        plan, min_size, max_size, max_offset
    )
    if name is None:
        mark = crc32(msgspec.json.encode(plan))
        name = f"weft_{plan['collective']}_{len(memory.ranks)}_{mark:08x}"
    data = msgspec.json.encode({"name": name, **plan})
    new_file(path, msgspec.json.format(data, indent=1) + b"\n")


def plan_of(
    algorithm: Algorithm, memory: Memory, gpus_per_node: int | None, thread_blocks: int
) -> Record:
    """The plan without what the user names."""
    npus = memory.ranks.tolist()

    def kind_of(one: int, other: int) -> str:
        near = gpus_per_node is None or npus[one] // gpus_per_node == npus[other] // gpus_per_node
        return MEMORY if near else PORT

    near = all(kind_of(0, other) == MEMORY for other in range(len(npus)))
    switched = gpus_of(algorithm, memory, thread_blocks) if near else None
    relays = len(memory.ranks) > memory.collective.ranks
    kind = "custom" if relays else COLLECTIVES.get(memory.collective.kind, "custom")
    # All give buffers of the same size, even who only relays: from it they tell a chunk's size.
    chunks = {
        "input_chunks": max(int(memory.inputs.max()), 1),
        "output_chunks": max(int(memory.outputs.max()), 1),
    }
    if switched is None:
        ports = gpus_per_node is not None
        hazards, gpus = _arranged(memory, kind_of, thread_blocks, ports=ports)
        plan = _Plan(memory, hazards)
        records = [plan.gpu(rank, gpu, chunks) for rank, gpu in enumerate(gpus)]
    else:
        records = [{**gpu, **chunks, "scratch_chunks": 0} for gpu in switched]
    return {
        "collective": kind,
        "protocol": "Simple",
        "inplace": memory.in_place,
        "reuse_resources": False,
        "gpus": records,
        "use_double_scratch_buffer": False,
        "buffer_alignment": ALIGNMENT,
    }


def _arranged(
    memory: Memory, kind_of: Callable[[int, int], str], thread_blocks: int, *, ports: bool
) -> tuple[Hazards, list[Gpu]]:
    """Thread blocks for all rows.

    What cannot fit is found by counting. Then only so many rows are arranged as might, to say
    how many would.
    """
    for together in (1, MAX_CHANNELS_AN_OPERATION):
        part = room_for(memory, thread_blocks, together, ports=ports)
        if part == 1:
            break
    tried, streams = memory, len(memory.ranks)
    if part < 1:
        tried, streams = beginning(memory, part), max(1, min(streams, thread_blocks // 8))
    hazards = find_hazards(tried)
    gpus, rows = arrange(tried, hazards, kind_of, thread_blocks, streams, together)
    if rows < len(memory.transfers):
        raise too_many(memory, thread_blocks, rows / len(memory.transfers))
    return hazards, gpus


class _Plan:
    """Puts thread blocks into the words of a plan."""

    def __init__(self, memory: Memory, hazards: Hazards) -> None:
        self.hazards = hazards
        rows = memory.transfers
        self.dst, self.reduce = rows.dst.tolist(), rows.reduce.tolist()
        self.size = memory.units[rows.chunk].tolist()
        self.source = _places(memory.src_buffer, memory.src_slot)
        self.target = _places(memory.dst_buffer, memory.dst_slot)
        self.scratch = memory.scratch.tolist()
        self.landing = list(self.target)  # where the sender puts it
        for row, (src, dst) in enumerate(zip(rows.src.tolist(), self.dst, strict=True)):
            if src != dst and not hazards.direct[row]:
                self.landing[row] = (BUFFERS[Buffer.SCRATCH], self.scratch[dst])
                self.scratch[dst] += self.size[row]

    def gpu(self, rank: int, gpu: Gpu, chunks: Record) -> Record:
        remote: dict[tuple[int, str, str], int] = {}
        blocks = [_Writer(self, block, remote).record() for block in gpu.blocks]
        idle: Record = {"id": 0, "ops": [{"name": "nop"}], "channels": [], "remote_buffer_refs": []}
        return {
            "id": rank,
            **chunks,
            "scratch_chunks": self.scratch[rank],
            "threadblocks": blocks or [idle],  # a kernel has at least one
            "channels": [
                {"channel_type": kind, "connected_to": peers}
                for kind, peers in sorted(gpu.channels.items())
            ],
            "remote_buffers": [
                {"rank": peer, "type": buffer, "access_channel_types": [kind]}
                for peer, buffer, kind in remote
            ],
            "semaphores": [{"init_value": 0} for _ in gpu.semaphores],
        }


class _Writer:
    """Writes one thread block.

    Only some threads wait, signal, acquire and release, and all of them move data; `nop` is where
    they wait for each other. So one stands wherever something has to come after what was done.
    """

    def __init__(self, plan: _Plan, block: Block, remote: dict[tuple[int, str, str], int]) -> None:
        self.plan, self.block, self.remote = plan, block, remote
        self.ops: list[Record] = []
        self.apart = False  # whether threads may have come differently far
        self.channels: dict[str, dict[int, int]] = {}  # those of the GPU, by place in the block
        self.buffers: dict[str, dict[int, int]] = {}

    def record(self) -> Record:
        self._consent()
        for step in self.block.steps:
            self._many("sem_acquire", step.acquires)
            if step.lane is None:
                self._move(step.rows[0], self.plan.source[step.rows[0]])
            elif step.sends:
                self._send(step, step.lane)
            else:
                self._receive(step.rows, step.lane)
            self._many("sem_release", step.releases)
        if len(self.ops) > MAX_OPERATIONS:
            raise InputError(
                f"GPU {self.block.gpu}, thread block {self.block.number} would have "
                f"{len(self.ops)} operations, and there is room for {MAX_OPERATIONS}; cut the "
                "collective in fewer chunks"
            )
        return {
            "id": self.block.number,
            "ops": self.ops,
            "channels": [
                {"channel_type": kind, "channel_ids": list(ids)}
                for kind, ids in self.channels.items()
            ],
            "remote_buffer_refs": [
                {"access_channel_type": kind, "remote_buffer_ids": list(ids)}
                for kind, ids in self.buffers.items()
            ],
        }

    def _consent(self) -> None:
        """Tell the senders that this GPU's buffers may be written."""
        for kind in (MEMORY, PORT):
            lanes = [lane for lane in self.block.lanes if lane.receiver is self.block]
            ids = [self._channel(lane) for lane in lanes if lane.kind == kind]
            for at in range(0, len(ids), MAX_CHANNELS_AN_OPERATION):
                self._signal(kind, ids[at : at + MAX_CHANNELS_AN_OPERATION])

    def _send(self, step: Step, lane: Lane) -> None:
        rows, channel = step.rows, self._channel(lane)
        if lane.rows[0] == rows[0]:
            self._wait(lane.kind, channel)
        one = lane.kind == PORT and len(rows) == 1  # a port can put and signal at once
        record: Record = {
            "name": "pws" if one else "put",
            "src_buff": [self._place(self.plan.source[row], row) for row in rows],
            "dst_buff": [self._landing(row, lane) for row in rows],
            "channel_type": lane.kind,
        }
        if lane.kind == PORT:
            record["channel_ids"] = [channel] * len(rows)
        self._together()
        self.ops.append(record)
        self.apart = not one
        if not one:
            self._signal(lane.kind, [channel])
        if needs_acknowledgement(lane, rows, self.plan.hazards):
            self._wait(lane.kind, channel)

    def _receive(self, rows: list[int], lane: Lane) -> None:
        channel = self._channel(lane)
        self._wait(lane.kind, channel)
        for row in rows:
            if not self.plan.hazards.direct[row]:
                self._move(row, self.plan.landing[row])
        if needs_acknowledgement(lane, rows, self.plan.hazards):
            self._signal(lane.kind, [channel])

    def _move(self, row: int, source: tuple[str, int]) -> None:
        """Copy to a row's target, or add to it, on this GPU."""
        self._together()
        target, moved = self._place(self.plan.target[row], row), self._place(source, row)
        record: Record = {"name": "copy", "src_buff": [moved], "dst_buff": [target]}
        if self.plan.reduce[row]:
            record |= {"name": "re", "src_buff": [target, moved], "reduce_op": "sum"}
        self.ops.append(record)
        self.apart = True

    def _together(self) -> None:
        if self.apart:
            self.ops.append({"name": "nop"})
            self.apart = False

    def _wait(self, kind: str, channel: int) -> None:
        self.ops.append({"name": "wait", "channel_ids": [channel], "channel_type": kind})
        self.apart = True

    def _signal(self, kind: str, channels: list[int]) -> None:
        self._together()
        self.ops.append({"name": "signal", "channel_ids": channels, "channel_type": kind})

    def _many(self, name: str, semaphores: list[int]) -> None:
        """Acquire or release semaphores."""
        if semaphores and name == "sem_release":
            self._together()
        for at in range(0, len(semaphores), MAX_SEMAPHORES_AN_OPERATION):
            some = semaphores[at : at + MAX_SEMAPHORES_AN_OPERATION]
            self.ops.append({"name": name, "semaphore_ids": some})
            self.apart = name == "sem_acquire"

    def _landing(self, row: int, lane: Lane) -> Record:
        buffer, index = self.plan.landing[row]
        number = self._buffer(self.plan.dst[row], buffer, lane.kind)
        return {"buffer_id": number, "index": index, "size": self.plan.size[row]}

    def _place(self, place: tuple[str, int], row: int) -> Record:
        return {"type": place[0], "index": place[1], "size": self.plan.size[row]}

    def _channel(self, lane: Lane) -> int:
        """The number of a lane's channel in this thread block."""
        ids = self.channels.setdefault(lane.kind, {})
        return ids.setdefault(lane.numbers[lane.receiver is self.block], len(ids))

    def _buffer(self, peer: int, buffer: str, kind: str) -> int:
        """The number of a peer's buffer in this thread block."""
        number = self.remote.setdefault((peer, buffer, kind), len(self.remote))
        ids = self.buffers.setdefault(kind, {})
        return ids.setdefault(number, len(ids))


def _places(buffer: np.ndarray, slot: np.ndarray) -> list[tuple[str, int]]:
    names = (BUFFERS[Buffer(number)] for number in buffer.tolist())
    return list(zip(names, slot.tolist(), strict=True))


def _sizes(plan: Record, least: int, most: int | None, max_offset: int) -> tuple[int, int]:
    """For which message sizes the plan is right: offsets must fit."""
    if not 1 <= max_offset <= MAX_OFFSET:
        raise InputError(f"offsets below {max_offset} B; expected 1 to {MAX_OFFSET}")
    largest = max(gpu[side] for gpu in plan["gpus"] for side in SIDES.values())
    side = "output_chunks" if plan["collective"] == "allgather" else "input_chunks"
    message = plan["gpus"][0][side]
    limit = (max_offset - 1) // (largest * ALIGNMENT) * ALIGNMENT * message
    if limit == 0:
        raise InputError(
            f"a buffer of {largest} chunks of {ALIGNMENT} B is beyond the {max_offset} B that "
            "offsets reach; cut the collective in fewer chunks"
        )
    most = limit if most is None else most
    if not 0 <= least <= min(most, MAX_MIN_MESSAGE) or most > limit:
        raise InputError(
            f"message sizes from {least} B to {most} B; a plan needs 0 B or more, in order, the "
            f"least at most {MAX_MIN_MESSAGE} B and the greatest at most {limit} B, where the "
            f"offsets of its largest buffer end at {max_offset} B"
        )
    return least, most


def _check_whole(memory: Memory) -> None:
    """A plan is for messages of any size, so the chunks of a tiny one must not be missing."""
    collective = memory.collective
    if collective.parts is not None and not collective.pattern.any_cut:
        return
    shares = collective.pattern.shares(collective.ranks)
    if collective.parts is not None:
        shares = len(collective.parts)
    wanted = shares * collective.chunks_per_share
    if wanted * collective.alignment > collective.size:
        raise InputError(
            f"{collective.kind} of {collective.size} B may have empty chunks; synthesize it for "
            f"{wanted * collective.alignment} B or more, or cut it in fewer chunks"
        )


def _check_options(
    name: str | None, gpus_per_node: int | None, threads: int, thread_blocks: int
) -> None:
    if name is not None and not (name.strip() and name.isprintable()):
        raise InputError(f"the name is {quoted(name)}; expected some that can be printed")
    if gpus_per_node is not None and gpus_per_node < 1:
        raise InputError(f"{gpus_per_node} GPUs per node; expected 1 or more")
    if not 32 <= threads <= 1024:
        raise InputError(f"{threads} threads a thread block; expected 32 to 1024")
    if thread_blocks < 1:
        raise InputError(f"{thread_blocks} thread blocks at once; expected 1 or more")
