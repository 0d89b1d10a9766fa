"""What a plan file says, as typed records; fields that move no data are left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from weft.documents import Document, PlacedError, Words, explain, load_json
from weft.quoting import quoted

# None of these can be in a circle, and plans have a million of them: `gc=False` saves the search.
Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]


class Place(msgspec.Struct, gc=False):
    """Chunks of a buffer: of this GPU's (`type`), another's (`buffer_id`), or all in a switch."""

    index: Count
    size: Count
    type: str | None = None
    buffer_id: Count | None = None
    switch_channel_id: Count | None = None


class GroupInfo(msgspec.Struct, gc=False):
    """Which part of an operation's data a thread block moves."""

    tb_id: Count
    tbg_size: Count


class Rounds(msgspec.Struct, gc=False):
    """How a pipeline goes through chunks: so many bytes of each operation a round."""

    unit_size: Count
    num_chunks: Count


class Operation(msgspec.Struct, gc=False):
    """An operation of a thread block; a pipeline has others in it."""

    name: str
    channel_type: str | None = None
    channel_ids: list[Count] = []
    src_buff: list[Place] = []
    dst_buff: list[Place] = []
    tbg_info: GroupInfo | None = None
    barrier_id: Count | None = None
    num_threadblocks: Count | None = None
    semaphore_ids: list[Count] = []
    reduce_op: str = "sum"
    iter_context: Rounds | None = None
    ops: list[Operation] = []


class BlockChannels(msgspec.Struct, gc=False):
    """Channels of the GPU that a thread block uses, in the order of its own numbers."""

    channel_type: str
    channel_ids: list[Count] = []


class BlockBuffers(msgspec.Struct, gc=False):
    """Buffers of others that a thread block uses, in the order of its own numbers."""

    access_channel_type: str
    remote_buffer_ids: list[Count] = []


class Block(msgspec.Struct, gc=False):
    """A thread block."""

    id: Count
    ops: list[Operation]
    channels: list[BlockChannels] = []
    remote_buffer_refs: list[BlockBuffers] = []

    def operations(self) -> Iterator[Operation]:
        """Its operations, those in pipelines included."""
        for operation in self.ops:
            yield operation
            yield from operation.ops


class RankGroup(msgspec.Struct, gc=False):
    """GPUs that a switch joins."""

    ranks: list[Count]


class Channel(msgspec.Struct, gc=False):
    """Channels of one type, one for each peer named, or for each group in a switch."""

    channel_type: str
    connected_to: list[Count] = []
    buffer_type: str = ""
    rank_groups: list[RankGroup] = []


class RemoteBuffer(msgspec.Struct, gc=False):
    """A buffer of another GPU."""

    rank: Count
    type: str
    access_channel_types: list[str] = []


class Semaphore(msgspec.Struct, gc=False):
    """A semaphore between thread blocks of a GPU."""

    init_value: Count = 0


class GpuPlan(msgspec.Struct, gc=False):
    """What one GPU does."""

    id: Count
    input_chunks: Count
    output_chunks: Count
    scratch_chunks: Count
    threadblocks: list[Block]
    channels: list[Channel] = []
    remote_buffers: list[RemoteBuffer] = []
    semaphores: list[Semaphore] = []


class Plan(msgspec.Struct, gc=False):
    """A whole plan."""

    protocol: str
    inplace: bool
    gpus: list[GpuPlan]
    name: str = ""
    collective: str = ""
    min_message_size: int = 0
    max_message_size: int = (1 << 64) - 1


WORDS = Words(
    items={
        "gpus": "GPU",
        "threadblocks": "thread block",
        "ops": "operation",
        "src_buff": "source",
        "dst_buff": "destination",
    }
)


def parse(document: Document) -> Plan:
    """The records of a file; raises PlacedError."""
    try:
        plan = msgspec.json.decode(document.data, type=Plan)
    except msgspec.ValidationError as error:
        raise explain(error, WORDS) from None
    except (msgspec.DecodeError, RecursionError):
        load_json(document.data)  # says what is wrong with it
        raise
    if plan.protocol not in ("Simple", "LL"):
        protocol = quoted(plan.protocol)
        raise PlacedError(f"protocol is {protocol}; expected Simple or LL", ["protocol"])
    if not plan.gpus:
        raise PlacedError("the plan has no GPUs", ["gpus"])
    for rank, gpu in enumerate(plan.gpus):
        if gpu.id != rank:
            raise PlacedError(f"GPU {rank} has id {gpu.id}; ids count from 0", ["gpus", rank])
        for at, block in enumerate(gpu.threadblocks):
            if block.id != at:
                raise PlacedError(
                    f"GPU {rank}: thread block {at} has id {block.id}; ids count from 0",
                    ["gpus", rank, "threadblocks", at],
                )
    return plan
