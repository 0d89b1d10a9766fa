"""Intervals that overlap, in lanes in which they do not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def lanes(
    group: NDArray[np.int32], start: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.int64]:
    """A lane for each interval, from 0 on in each group; there are as few as can be.

    Intervals are half open, and none is empty. One that starts takes the lane that was left last,
    or a new one where none is free. So it takes its lane from the end that last brought the
    number of open intervals down to where this start brings it up again.
    """
    count = len(start)
    order = np.lexsort(  # ends before starts, so that lanes are free when they are left
        (
            np.repeat([1, 0], count),
            np.concatenate([start, end]),
            np.tile(group, 2),
        )
    )
    starts = order < count
    change = np.where(starts, 1, -1)
    level = np.cumsum(change) - starts  # open intervals but for the one that starts or ends
    # On one level of one group a start and its end, or another's, take turns.
    turns = np.lexsort((np.arange(2 * count), level, np.tile(group, 2)[order]))
    event, of_level, starts = order[turns], level[turns], starts[turns]
    interval = event % max(count, 1)
    of_group = group[interval]
    again = np.zeros(2 * count, dtype=np.bool_)
    again[1:] = (of_level[1:] == of_level[:-1]) & (of_group[1:] == of_group[:-1])
    again &= starts
    lane_of = np.arange(count)  # the interval that this one has its lane from
    lane_of[interval[again]] = interval[np.flatnonzero(again) - 1]
    while (lane_of != (further := lane_of[lane_of])).any():
        lane_of = further
    first = np.zeros(count, dtype=np.int64)
    first[interval[starts]] = of_level[starts]
    return first[lane_of]
