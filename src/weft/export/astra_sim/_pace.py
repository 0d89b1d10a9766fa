"""Keeping a plan's order on each link, where a simulator starts whatever is ready.

A send can be held back by a *gate*: a COMP of no duration, which ASTRA-sim charges 1 ns. The gate
of a send waits for what the send before it on the link waited for, so it is started 1 ns after
that one at the earliest, and links serve in order of start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.arrays import Bool, Int32, Int64
from weft.export.astra_sim._messages import Rows, running_max

# What a hop may be off the plan: floors of its arrival and its hold, a sum, a gate.
_DRIFT_PS = 4000


@dataclass(frozen=True, eq=False)
class Pace:
    """Which sends have gates, and after which other send each of those comes (-1: none)."""

    gate: Bool
    after: Int32


def paced(rows: Rows, queue: Int64, push: NDArray[np.float64] | None, small: Bool) -> Pace:
    """Gates for timed rows where the order in which data comes is not the plan's.

    Parameters
    ----------
    queue
        The link, as a number, that each row waits for.
    push
        How long each row holds it, in picoseconds, if the simulator's times are the plan's up to
        rounding; then a row that is ready clearly after the one before it needs no gate.
    small
        Rows that must not be the first thing to happen: they take less than 1 ns.
    """
    gate = small & rows.fresh & ~rows.local
    after = np.full(len(rows), -1, dtype=np.int32)
    if rows.start is None:
        return Pace(gate, after)
    sent = np.flatnonzero(~rows.local)
    order = sent[np.lexsort((sent, rows.start[sent], queue[sent]))]
    line = queue[order]
    follows = np.zeros(len(order), dtype=bool)
    follows[1:] = line[1:] == line[:-1]
    if push is not None and len(order):
        segment = np.cumsum(~follows) - 1
        latest = running_max(rows.ready[order], segment)
        before = np.concatenate([latest[:1], latest[:-1]])
        ready = rows.ready[order]
        drift = _DRIFT_PS * (2 + ready / max(float(push[order].min()), 1.0))
        follows &= ready <= before + drift
    held = order[follows]
    ahead = order[np.flatnonzero(follows) - 1]
    gate[held] = True
    after[held] = ahead
    if rows.dep_offsets is not None:  # what it waits for is more than its data
        gate[ahead[np.diff(rows.dep_offsets)[ahead] > 0]] = True
    return Pace(gate, after)
