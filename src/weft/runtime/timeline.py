"""What happened in a run over what was planned, as a timeline."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.formats.perfetto import Timeline
from weft.replay.lanes import lanes
from weft.runtime.bench import Measured
from weft.runtime.buffers import TYPES
from weft.runtime.cutting import Cut
from weft.runtime.program import Programs, What

Int64 = NDArray[np.int64]

_PS_PER_NS = 1000
_WORDS = {What.SEND: "sends", What.RECEIVE: "receives", What.LOCAL: "copies and adds"}


class _Tracks:
    """Slices as they are found, each in a lane of its track where they overlap."""

    def __init__(self) -> None:
        self.names: list[tuple[str, str]] = []
        self.track: list[Int64] = []
        self.start: list[Int64] = []
        self.duration: list[Int64] = []
        self.label: list[str] = []
        self.bytes: list[Int64] = []

    def add(
        self, heading: str, name: str, start: Int64, end: Int64, labels: list[str], size: Int64
    ) -> None:
        end = np.maximum(end, start + 1)
        lane = lanes(np.zeros(len(start), dtype=np.int32), start, end)
        count = int(lane.max(initial=-1)) + 1
        first = len(self.names)
        self.names += [(heading, name if at == 0 else f"{name} ({at + 1})") for at in range(count)]
        self.track.append(first + lane)
        self.start.append(start)
        self.duration.append(end - start)
        self.label += labels
        self.bytes.append(size)

    def timeline(self) -> Timeline:
        def joined(parts: list[Int64]) -> Int64:
            return np.concatenate([np.zeros(0, dtype=np.int64), *parts]).astype(np.int64)

        return Timeline(
            self.names,
            joined(self.track).astype(np.int32),
            joined(self.start),
            joined(self.duration),
            self.label,
            joined(self.bytes),
            np.empty((0, 2), dtype=np.int64),
        )


def timeline_of(measured: Measured) -> Timeline:
    """The last run of a job, rank by rank, and under it the plan, if it has times.

    Ranks on one machine share a clock. On several, the beginning of the run is the same for all.
    """
    job, parts = measured.job, measured.parts
    programs = Programs(job.algorithm, reproducible=job.reproducible)
    lengths = Cut(job.algorithm, job.counts).lengths * TYPES[job.dtype][1].itemsize
    common = len({part.clock for part in parts}) == 1
    zero = min(part.began for part in parts)
    tracks = _Tracks()
    for npu, part in enumerate(parts):
        program = programs.of(npu)
        origin = zero if common else part.began
        begin, end = (
            (np.frombuffer(column, dtype=np.int64) - origin) * _PS_PER_NS
            for column in (part.begin, part.end)
        )
        for what, word in _WORDS.items():
            rows = np.flatnonzero(program.what == what)
            if not len(rows):
                continue
            labels = [program.described(row) for row in rows.tolist()]
            size = lengths[program.chunk[rows]]
            heading = f"NPU {npu}"
            tracks.add(heading, word, begin[rows], end[rows], labels, size)
            if program.start is not None and program.end is not None and what != What.LOCAL:
                planned = program.start[rows], program.end[rows]
                tracks.add(heading, f"{word} as planned", *planned, labels, size)
    return tracks.timeline()
