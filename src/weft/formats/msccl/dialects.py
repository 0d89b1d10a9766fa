"""What the runtimes that load MSCCL-XML call things, and how much they load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PROTOCOLS = ("Simple", "LL", "LL128")
FEWER_PEERS = "take fewer chunks, or an algorithm in which a GPU talks to fewer others"
MAX_FUSED_SUMS = 16  # local sums into one place that are done at once


@dataclass(frozen=True)
class Dialect:
    """A runtime.

    Attributes
    ----------
    names
        What it calls the patterns it knows.
    custom
        What it calls any other; None if it takes none.
    steps
        Steps of a thread block, nops included.
    blocks
        Thread blocks of a GPU.
    """

    names: Mapping[str, str]
    custom: str | None
    steps: int
    blocks: int
    # What both have in common.
    peers: int = 32  # peers of a channel, to send to and to receive from
    channels: int = 32
    count: int = 71  # chunks of a step
    nodes: int = 4095  # elements of the file that are kept for one GPU
    gpus: int = 1024
    waited_for: int = 128  # thread blocks that others wait for: numbers of 8 bits with a sign
    slots: int = 1 << 15  # offsets of 16 bits with a sign


_BOTH = {
    "all-reduce": "allreduce",
    "all-gather": "allgather",
    "all-to-all": "alltoall",
    "broadcast": "broadcast",
    "reduce": "reduce",
}

DIALECTS = {
    "msccl": Dialect({**_BOTH, "reduce-scatter": "reduce_scatter"}, "custom", 256, 216),
    "rccl": Dialect(
        {**_BOTH, "reduce-scatter": "reducescatter", "gather": "gather", "scatter": "scatter"},
        None,
        64,
        64,
    ),
}
