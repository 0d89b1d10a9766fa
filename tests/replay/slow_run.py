"""First come first served, slowly: a model to hold the simulator against, for single links.

It keeps lists of rows where the simulator keeps joins, and asks every waiting row at every event.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from weft.algorithm import Algorithm
from weft.cost import CostModel
from weft.topology import Topology

PS = 10**12


@dataclass
class _Cell:
    writer: int | None = None
    added: list[int] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)

    @property
    def value(self) -> set[int]:
        return {row for row in (self.writer, *self.added) if row is not None}


def waits_of(algorithm: Algorithm) -> list[set[int]]:
    """The earlier rows that each row waits for, of a table whose order is its meaning."""
    rows, chunks = algorithm.transfers, algorithm.chunks
    cells: dict[tuple[int, int], _Cell] = defaultdict(_Cell)
    waits: list[set[int]] = []
    for row, chunk in enumerate(rows.chunk.tolist()):
        reads = chunk if rows.src_place is None else int(rows.src_place[row])
        writes = chunk if rows.dst_place is None else int(rows.dst_place[row])
        source, target = cells[int(rows.src[row]), reads], cells[int(rows.dst[row]), writes]
        alike = not chunks.reduce[chunk]  # all copies at home are
        mine = set(source.value)
        if not (alike and writes == chunk):
            mine |= set(target.readers)
            mine |= target.value if not rows.reduce[row] else target.value - set(target.added)
        if rows.deps is not None and rows.dep_offsets is not None:
            mine |= set(rows.deps[rows.dep_offsets[row] : rows.dep_offsets[row + 1]].tolist())
        waits.append(mine)
        if not (alike and reads == chunk):
            source.readers.append(row)
        if rows.reduce[row]:
            target.added.append(row)
        elif target.writer is None or not (alike and writes == chunk):
            target.writer, target.added, target.readers = row, [], []
    return waits


@dataclass
class SlowRun:
    """Starts and ends of rows, each over one link or none, in picoseconds."""

    start: list[int]
    end: list[int]


def slow_run(
    algorithm: Algorithm,
    topology: Topology,
    link_of: list[int | None],
    cost: CostModel,
    reducer: int | None,
) -> SlowRun:
    rows, sizes = algorithm.transfers, algorithm.chunks.bytes
    waits = waits_of(algorithm)
    count = len(rows)
    start, end = [-1] * count, [-1] * count
    link_free: dict[int, int] = defaultdict(int)
    adder_free: dict[int, int] = defaultdict(int)
    arriving: dict[int, int] = {}  # rows under way whose part must still be added: when
    now = 0
    while min(end, default=0) < 0:
        moved = True
        while moved:
            moved = False
            for row in range(count):
                bytes_ = int(sizes[rows.chunk[row]])
                if arriving.get(row) == now:
                    npu = int(rows.dst[row])
                    assert reducer is not None
                    adder_free[npu] = max(now, adder_free[npu]) + -(-bytes_ * PS // reducer)
                    end[row] = adder_free[npu]
                    del arriving[row]
                    moved = True
                if start[row] >= 0 or any(end[w] < 0 or end[w] > now for w in waits[row]):
                    continue
                link = link_of[row]
                duration = held = 0
                start[row] = now
                if link is not None:
                    push = -(-bytes_ * PS // int(topology.bandwidth[link]))
                    alpha = int(topology.latency[link])
                    duration, held = push + alpha, push
                    if cost.latency_model == "blocking":
                        held += alpha
                    start[row] = max(now, link_free[link])
                    link_free[link] = start[row] + held
                if reducer is not None and rows.reduce[row]:
                    arriving[row] = start[row] + duration
                else:
                    end[row] = start[row] + duration
                moved = True
                break  # a row that takes no time may let an earlier one go first
        later = [time for time in (*end, *arriving.values()) if time > now]
        now = min(later, default=now)
    return SlowRun(start, end)
