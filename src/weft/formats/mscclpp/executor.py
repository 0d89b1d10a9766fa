"""What MSCCL++'s executor has room for, and the names plans use."""

from __future__ import annotations

from weft.algorithm import Buffer

MAX_OPERATIONS = 64
"""Operations of a thread block."""
MAX_CHANNELS = 16
"""Channels of a type in a thread block, and buffers of others that it reaches by that type."""
MAX_CHANNELS_AN_OPERATION = 8
"""And buffers of others on each side."""
MAX_BARRIERS = 16
"""Barriers of a GPU."""
MAX_SEMAPHORES_AN_OPERATION = 16
"""A GPU may have any number."""
MAX_OFFSET = 1 << 64
"""Offsets in buffers are 64-bit numbers of bytes; up to 0.9 they were of 32 bits."""
MAX_MIN_MESSAGE = (1 << 31) - 1
"""The loader reads the least message size into a signed 32-bit number."""

A_LANE = 3
"""Operations that a lane needs once at each end: consent and a last acknowledgement."""

ALIGNMENT = 16
"""Chunks begin at multiples of this many bytes: the kernels move 16 bytes at a time."""

MEMORY, PORT = "memory", "port"

BUFFERS = {Buffer.INPUT: "i", Buffer.OUTPUT: "o", Buffer.SCRATCH: "s"}
SIDES = {"i": "input_chunks", "o": "output_chunks", "s": "scratch_chunks"}
"""What a plan calls a buffer, and its length."""

COLLECTIVES = {
    "all-gather": "allgather",
    "all-reduce": "allreduce",
    "reduce-scatter": "reducescatter",
    "all-to-all": "alltoall",
    "broadcast": "broadcast",
}
"""Patterns that a plan names; others are called custom, and the reader needs a hint."""
