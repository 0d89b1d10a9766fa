"""How many thread blocks an algorithm needs at least: found before anything is arranged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.memory import Memory, writers
from weft.errors import InputError
from weft.formats.mscclpp.executor import A_LANE, MAX_OPERATIONS

Int64 = NDArray[np.int64]

_SURELY = 0.85  # of the chunks that would fit if the last were no more work than the first


def too_many(memory: Memory, most: int, fits: float) -> InputError:
    """What to say if only a part of all rows fits in the thread blocks that run at once."""
    collective = memory.collective
    now = collective.chunks_per_share
    fit = max(int(now * fits * _SURELY), int(now * fits >= 1))
    if collective.parts is not None:
        advice = "cut the collective in fewer chunks"
    elif fit:
        advice = f"cut a share in {fit} chunk{'s' * (fit > 1)} or fewer (it has {now})"
    else:
        advice = f"1 chunk per share (it has {now}) would be too many, so take fewer GPUs"
    return InputError(
        f"a GPU would need more than the {most} thread blocks of {MAX_OPERATIONS} operations that "
        f"it runs at once; {advice}"
    )


def room_for(memory: Memory, most_blocks: int, together: int, *, ports: bool) -> float:
    """The part of all rows that has room at most, if so many go together; 1 if all may have."""
    operations = _operations(memory, writers(memory), together, put=3 if ports else 4)
    return min(1.0, most_blocks * MAX_OPERATIONS / max(1, int(operations.max())))


def beginning(memory: Memory, part: float) -> Memory:
    """The first rows only, and nothing of what they wait for."""
    count = int(len(memory.transfers) * part)
    names = ("src_buffer", "src_slot", "dst_buffer", "dst_slot")
    columns = {name: getattr(memory, name)[:count] for name in names}
    return replace(memory, transfers=memory.transfers.selected(np.arange(count)), **columns)


def _operations(memory: Memory, causes: Int64, together: int, put: int) -> Int64:
    """Operations of each GPU for which blocks must have room, if so many rows go together.

    A put takes some, a wait stands for all rows it is for, sums have an operation each. Who reads
    what came acquires a semaphore, which is released there once. Each end of a lane has some.
    """
    rows, gpus = memory.transfers, len(memory.ranks)
    remote = rows.src != rows.dst
    used = np.unique(causes[causes >= 0])
    first = _firsts(memory, causes, together)
    lanes = np.unique(rows.src[remote].astype(np.int64) * gpus + rows.dst[remote])

    def counted(npu: NDArray[np.int32] | Int64) -> Int64:
        return np.bincount(npu, minlength=gpus)

    return (
        put * counted(rows.src[first])
        + counted(rows.dst[first])
        + counted(rows.dst[rows.reduce | ~remote])
        + counted(rows.src[causes >= 0])
        + 2 * counted(rows.dst[used])
        + A_LANE * (counted(lanes // gpus) + counted(lanes % gpus))
    )


def _firsts(memory: Memory, causes: Int64, together: int) -> list[int]:
    """The first rows of those that go together: all must be ready when the first is."""
    rows = memory.transfers
    src, dst, buffer = rows.src.tolist(), rows.dst.tolist(), memory.src_buffer.tolist()
    latest: dict[tuple[int, int], tuple[int, int]] = {}  # first row of a lane, and how many
    found = []
    for row, cause in enumerate(causes.tolist()):
        lane = src[row], dst[row]
        if lane[0] == lane[1]:
            continue
        first, count = latest.get(lane, (-1, together))
        if count < together and cause < first and buffer[first] == buffer[row]:
            latest[lane] = first, count + 1
        else:
            latest[lane] = row, 1
            found.append(row)
    return found
