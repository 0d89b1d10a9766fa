"""In how many pieces chunks are cut to read a plan."""

from __future__ import annotations

import math
from dataclasses import dataclass

from weft.errors import InputError
from weft.formats.mscclpp.schema import Plan

MAX_CELLS = 1 << 22
"""Chunks of all buffers of all GPUs; a plan has thousands, and groups of blocks cut them finer."""
MAX_MOVES = 1 << 21
"""Chunks that all operations read and write."""


@dataclass(frozen=True)
class Cut:
    """In how many pieces every chunk is cut, and for how many bytes it is taken in pipelines.

    How many rounds a pipeline makes depends on the size of a message. A chunk is taken for twice
    the bytes that the largest round moves, so that there are two rounds at least.
    """

    fineness: int
    chunk: int

    def pieces(self, unit: int) -> int:
        """So many pieces are a round."""
        return unit * self.fineness // self.chunk


def cut_of(plan: Plan) -> Cut:
    """Pieces of which groups of thread blocks, and rounds of pipelines, move whole ones.

    Raises
    ------
    InputError
        There would be too many.
    """
    groups, units, used = {1}, set(), 0
    for gpu in plan.gpus:
        for block in gpu.threadblocks:
            for operation in block.operations():
                for place in operation.src_buff + operation.dst_buff:
                    used += place.size * (1 if place.switch_channel_id is None else len(plan.gpus))
                if operation.tbg_info is not None:
                    groups.add(max(operation.tbg_info.tbg_size, 1))
                rounds = operation.iter_context
                if rounds is not None:
                    units.add(max(rounds.unit_size, 1))
                    used += rounds.num_chunks * len(operation.ops)
    chunk = 2 * max(units, default=1)
    cut = Cut(math.lcm(*groups, chunk // math.gcd(*units) if units else 1), chunk)
    cells = sum(gpu.input_chunks + gpu.output_chunks + gpu.scratch_chunks for gpu in plan.gpus)
    for count, most, what in (
        (cells, MAX_CELLS, "its buffers have"),
        (used, MAX_MOVES, "its operations use"),
    ):
        if count * cut.fineness > most:
            why = f", each cut in {cut.fineness} for groups of thread blocks and pipelines"
            raise InputError(
                f"{what} {count} chunks{why if cut.fineness > 1 else ''}; Weft reads plans up to "
                f"{most}"
            )
    return cut
