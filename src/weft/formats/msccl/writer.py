"""Writes MSCCL-XML."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from weft.algorithm import Algorithm
from weft.algorithm.cells import WHOLE
from weft.algorithm.memory import Memory, lay_out
from weft.documents import new_file
from weft.errors import InputError, unknown_name
from weft.formats.msccl.blocks import Block, assign_channels
from weft.formats.msccl.capacity import Messages, check_room
from weft.formats.msccl.deadlock import running_blocks
from weft.formats.msccl.dialects import DIALECTS, FEWER_PEERS, PROTOCOLS, Dialect
from weft.formats.msccl.fusion import spread
from weft.formats.msccl.heading import heading_of, name_of
from weft.formats.msccl.merging import merged
from weft.formats.msccl.moves import Move, Order, moves_of, order_of
from weft.formats.msccl.numbering import Numbered, check_limits, numbered, texts


def write(
    algorithm: Algorithm,
    path: Path,
    *,
    dialect: str = "msccl",
    protocol: str = "Simple",
    name: str | None = None,
) -> None:
    """Write an algorithm for one of the runtimes in `DIALECTS`.

    Raises
    ------
    InputError
        The runtime does not know the collective, or a limit of it is exceeded.
    FormatError
        The file cannot be written.
    """
    if dialect not in DIALECTS:
        raise unknown_name("dialect", dialect, DIALECTS)
    if protocol not in PROTOCOLS:
        raise unknown_name("protocol", protocol, PROTOCOLS)
    runtime = DIALECTS[dialect]
    memory = _memory(algorithm, dialect)
    heading = heading_of(memory, dialect, protocol, name)
    check_room(memory, runtime, dialect)
    moves = moves_of(memory, runtime.count, algorithm.transfers)
    order = order_of(moves, memory.transfers)
    together = merged(moves, order, runtime.count)
    if len(together) < len(moves):
        moves, order = together, order_of(together, memory.transfers)
    gpus, channels = _gpus(moves, order, len(memory.ranks), runtime)
    check_limits(gpus, runtime, dialect, memory, Messages.of(moves, len(gpus)))
    lines = [heading.start(channels)]
    for number, gpu in enumerate(gpus):
        lines += [heading.gpu(number, gpu.scratch), *texts(gpu), "  </gpu>"]
    if order.dropped:
        lines.append(f"  <!-- {order.dropped} waits for what ends on another GPU are left out -->")
    new_file(path, "\n".join([*lines, "</algo>", ""]).encode())


def _memory(algorithm: Algorithm, dialect: str) -> Memory:
    """The buffers; in place only if the runtime takes the same slots for input and output.

    Of a collective that it does not know by name, it knows no rank's part of a larger buffer.
    """
    memory = lay_out(algorithm)
    unknown = name_of(memory, dialect) == DIALECTS[dialect].custom
    if memory.in_place and unknown and memory.collective.kind not in WHOLE:
        return lay_out(algorithm, apart=True)
    return memory


def _gpus(
    moves: list[Move], order: Order, count: int, dialect: Dialect
) -> tuple[list[Numbered], int]:
    """The blocks of each GPU, and how many channels they use.

    Where blocks would get too long, the messages between two GPUs are spread over several
    connections, which are on channels of their own.
    """
    lengths = Counter((move.src, move.dst) for move in moves if not move.local)
    lanes = min(max(1, -(-max(lengths.values(), default=0) // dialect.steps)), dialect.channels)
    found: list[Numbered] = []
    channels = 0
    while True:
        blocks = running_blocks(moves, order, spread(moves, lanes), dialect.blocks)
        if not assign_channels(blocks, dialect):
            if not found:
                raise InputError(
                    f"the connections between GPUs need more than {dialect.channels} channels of "
                    f"{dialect.peers} peers; {FEWER_PEERS}"
                )
            return found, channels
        by_gpu: list[list[Block]] = [[] for _ in range(count)]
        for block in blocks:
            by_gpu[block.gpu].append(block)
        found = [numbered(each, order) for each in by_gpu]
        channels = 1 + max((block.channel for block in blocks), default=0)
        steps = max((len(lines) for gpu in found for lines in gpu.lines), default=0)
        too_many = max(map(len, by_gpu)) > dialect.blocks
        if steps <= dialect.steps or too_many or lanes == dialect.channels:
            return found, channels
        # With twice as many lanes, blocks are half as long at best.
        lanes = min(-(-lanes * steps // dialect.steps), dialect.channels)
