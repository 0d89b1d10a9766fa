"""Lanes: no overlap in any of them, and no more of them than intervals that overlap."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weft.replay.lanes import lanes

INTERVALS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(1, 6)), max_size=40
)


@given(INTERVALS)
def test_lanes(intervals: list[tuple[int, int, int]]) -> None:
    group = np.array([g for g, _, _ in intervals], dtype=np.int32)
    start = np.array([s for _, s, _ in intervals], dtype=np.int64)
    end = start + np.array([length for _, _, length in intervals], dtype=np.int64)
    lane = lanes(group, start, end).tolist()
    for g in set(group.tolist()):
        own = sorted(
            (lane[i], int(start[i]), int(end[i])) for i in range(len(lane)) if group[i] == g
        )
        for (lane_a, _, end_a), (lane_b, start_b, _) in pairwise(own):
            assert lane_a != lane_b or end_a <= start_b
        open_at_once = max(sum(s <= t < e for _, s, e in own) for _, t, _ in own)
        assert {one for one, _, _ in own} == set(range(open_at_once))
