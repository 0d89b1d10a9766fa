"""Whether sums that are right for chunks of the longest size are right for shorter ones.

A shorter chunk arrives sooner. Of copies of one chunk that is harmless; of sums it is not: what
arrives late, after a partial sum was sent, would with a shorter chunk be part of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Transfers
from weft.collective import Collective
from weft.judge.verdict import Verdict

Numbers = NDArray[np.int64]


def judge_sizes(rows: Transfers, demand: Collective, npus: int) -> Verdict:
    """Judge that no order of reading and writing depends on how long chunks are.

    `rows` are right if all chunks are as long as the longest. They stay right if no NPU sends a
    chunk, or has it replaced, while another row brings it: then nothing that is shortened can pass
    something else. Sums may arrive at the same time: they commute.
    """
    times = rows.require_times()
    if not rows.reduce.any() or demand.smallest_chunk == demand.largest_chunk:
        return Verdict(True)
    count = len(rows)
    row = np.tile(np.arange(count), 2)
    at = rows.chunk[row].astype(np.int64) * npus + np.concatenate([rows.src, rows.dst])
    writes, when = np.arange(2 * count) >= count, times.start[row]
    order = np.lexsort((writes, when, at))  # reads first: what starts at that time comes later
    row, at, writes, when = row[order], at[order], writes[order], when[order]
    adds = rows.reduce[row]
    place = np.cumsum(np.diff(at, prepend=-1) != 0)
    end = np.where(writes, times.end[row], 0)
    waits_for = np.where(
        writes & adds, _latest_before(np.where(adds, 0, end), place), _latest_before(end, place)
    )
    for bad in np.flatnonzero(when < waits_for)[:1].tolist():
        chunk, npu = divmod(int(at[bad]), npus)
        does = "writes" if writes[bad] else "sends"
        text = f"row {row[bad]} {does} chunk {chunk} at NPU {npu} while another row brings it there"
        text += ", and chunks differ in size: which comes first is not sure"
        return Verdict(False, text, "order", int(row[bad]))
    return Verdict(True)


def _latest_before(end: Numbers, place: Numbers) -> Numbers:
    """The latest of the ends before each that have the same place; 0 if there are none."""
    times, rank = np.unique(end, return_inverse=True)
    latest = np.maximum.accumulate(place * len(times) + rank)
    before, number = np.divmod(np.append(0, latest[:-1]), len(times))
    return np.where(before == place, times[number], 0)
