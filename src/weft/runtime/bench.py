"""Measured runs: buffers filled, every element checked, times beside the plan's."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm
from weft.errors import InputError, unknown_name
from weft.progress import Tracker
from weft.runtime.buffers import OPS, TYPES, fit, is_at_home
from weft.runtime.communicator import Communicator
from weft.runtime.cutting import Cut
from weft.runtime.launch import local
from weft.runtime.program import Programs
from weft.runtime.reference import Data

_CLOCK = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, eq=False)
class Job:
    """What every rank does for one line of the table.

    Attributes
    ----------
    algorithm
        What runs.
    counts
        For each of its collectives, elements of the largest buffer on a rank.
    dtype, op, reproducible
        As for `Communicator.run`.
    iterations, warmups
        Runs that are measured, and those before.
    in_place
        Whether one buffer is input and output.
    traced
        Whether the times of all rows of the last run are wanted.
    scale
        What bandwidths are of those planned with.
    """

    algorithm: Algorithm
    counts: tuple[int, ...]
    dtype: str = "f32"
    op: str = "sum"
    iterations: int = 5
    warmups: int = 1
    reproducible: bool = False
    in_place: bool = False
    traced: bool = False
    scale: float = 1.0


class Part(msgspec.Struct, frozen=True):
    """What one rank found.

    Attributes
    ----------
    seconds
        Of each run.
    wrong
        Elements that were not as they must be after the last one.
    clock
        Which clock the rank has: on one machine it is the same.
    began
        When the last run began, in nanoseconds of that clock.
    begin, end
        Of each row of the rank's program in the last run, as columns of int64; empty if not traced.
    """

    seconds: list[float]
    wrong: int
    clock: str
    began: int
    begin: bytes = b""
    end: bytes = b""


@dataclass(frozen=True, eq=False)
class Measured:
    """One line of the table: what all ranks found together."""

    job: Job
    parts: list[Part]

    @property
    def seconds(self) -> list[float]:
        """Of each run, how long the slowest rank took."""
        return [max(each) for each in zip(*(part.seconds for part in self.parts), strict=True)]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def wrong(self) -> int:
        return sum(part.wrong for part in self.parts)

    @property
    def bytes(self) -> int:
        """Of the largest buffer on a rank."""
        return max(self.job.counts) * TYPES[self.job.dtype][1].itemsize

    @property
    def bandwidth(self) -> float:
        """Bytes of the largest buffer over the time, per second."""
        return self.bytes / self.median if self.median else 0.0

    @property
    def bus_bandwidth(self) -> float:
        """The same as nccl-tests weighs it, of the collective that has most."""
        demand = self.job.algorithm.demands[int(np.argmax(self.job.counts))]
        return self.bandwidth * demand.pattern.bus_factor(demand.ranks)

    @property
    def planned_us(self) -> float | None:
        """What the plan says; None if it is for other sizes, or has no times."""
        algorithm = self.job.algorithm
        width = TYPES[self.job.dtype][1].itemsize
        sizes = [count * width for count in self.job.counts]
        same = sizes == [demand.size for demand in algorithm.demands]
        return algorithm.time_us / self.job.scale if algorithm.timed and same else None

    def to_dict(self) -> dict[str, Any]:
        """The figures, for machines."""
        return {
            "size_bytes": self.bytes,
            "counts": list(self.job.counts),
            "dtype": self.job.dtype,
            "op": self.job.op,
            "in_place": self.job.in_place,
            "planned_us": self.planned_us,
            "measured_us": self.median * 1e6,
            "each": [{"took_us": 1e6 * one} for one in self.seconds],
            "algbw_GBps": self.bandwidth / 1e9,
            "busbw_GBps": self.bus_bandwidth / 1e9,
            "wrong": self.wrong,
        }


class _Buffers:
    """The arrays of a rank in one collective, and what must be in them after a run."""

    def __init__(self, job: Job, at: int, npu: int) -> None:
        demand = job.algorithm.demands[at]
        sides = Cut(job.algorithm, job.counts).sides(npu)
        shares = is_at_home(job.algorithm) and not demand.pattern.own_buffers
        self._fit = fit(sides, at, shares=shares)
        self.there = npu in demand.group
        self.send: NDArray[Any] | None = None
        self.receive: NDArray[Any] | None = None
        if not self.there:
            return
        data, rank = Data(demand, job.counts[at], job.dtype, job.op), demand.group.index(npu)
        self._given, self._wanted = data.send(rank, self._fit.input), data.received(rank)
        dtype = TYPES[job.dtype][1]
        self.send = np.zeros(self._fit.both if job.in_place else self._fit.input, dtype=dtype)
        if not job.in_place:
            self.receive = np.zeros(self._fit.output, dtype=dtype)

    def fill(self) -> None:
        """Put the input in its place, and rubbish elsewhere: nothing of the run before counts."""
        for array in (self.send, self.receive):
            if array is not None:
                array.view(np.uint8)[:] = 0xA5
        if self.send is not None:
            first = 0 if self.receive is not None else self._fit.input_at
            self.send[first : first + self._fit.input] = self._given

    def wrong(self) -> int:
        """How many elements are not what they must be; the input must be as it was."""
        if self.send is None:
            return 0
        if self.receive is not None:
            return _differences(self.receive, self._wanted) + _differences(self.send, self._given)
        first = self._fit.output_at
        return _differences(self.send[first : first + self._fit.output], self._wanted)


def work(communicator: Communicator, job: Job) -> Part:
    """What a rank does of a job."""
    programs = Programs(job.algorithm, reproducible=job.reproducible)
    sides = [_Buffers(job, at, communicator.rank) for at in range(len(job.algorithm.demands))]
    sends, receives = [one.send for one in sides], [one.receive for one in sides]
    seconds, times, began = [], None, 0
    for turn in range(job.warmups + job.iterations):
        last = turn == job.warmups + job.iterations - 1
        for one in sides:
            one.fill()
        communicator.barrier()
        began = time.monotonic_ns()
        times = communicator.run(
            programs,
            sends if len(sends) > 1 else sends[0],
            None if job.in_place else receives if len(receives) > 1 else receives[0],
            job.op,
            dtype=job.dtype,
            count=list(job.counts),
            trace=job.traced and last,
        )
        if turn >= job.warmups:
            seconds.append((time.monotonic_ns() - began) / 1e9)
    wrong = sum(one.wrong() for one in sides)
    traces = () if times is None else (times.begin.tobytes(), times.end.tobytes())
    return Part(seconds, wrong, _CLOCK.read_text(), began, *traces)


def jobs_of(
    plans: Sequence[Algorithm], sizes: Sequence[int] | None, *, dtype: str, op: str, **how: Any
) -> list[Job]:
    """A job for each algorithm; or, if there are sizes, for the only one at each of them.

    Sizes are rounded down to whole elements.
    """
    if dtype not in TYPES:
        raise unknown_name("dtype", dtype, TYPES)
    if op not in OPS:
        raise unknown_name("op", op, OPS)
    for name, least in (("iterations", 1), ("warmups", 0)):
        if how[name] < least:
            raise InputError(f"{name} is {how[name]}; expected {least} or more")
    width = TYPES[dtype][1].itemsize
    pairs = (
        [(plan, [demand.size for demand in plan.demands]) for plan in plans]
        if sizes is None
        else [(plans[0], [size] * len(plans[0].demands)) for size in sizes]
    )
    return [
        Job(plan, tuple(size // width for size in each), dtype, op, **how) for plan, each in pairs
    ]


def measured_locally(
    jobs: Sequence[Job], ranks: int, transport: str, timeout_s: float, report: Tracker
) -> list[Measured]:
    """Run jobs on ranks of this machine, which are started for it."""
    report.enter("starting ranks")
    with local(ranks, transport, timeout_s=timeout_s) as group:
        found = []
        report.enter("running")
        report.begin(len(jobs))
        for job in jobs:
            found.append(Measured(job, group.run(work, job)))
            report.advance()
    return found


def measured_by(communicator: Communicator, jobs: Sequence[Job], report: Tracker) -> list[Measured]:
    """The same by ranks that are there; rank 0 gets what all found, the others nothing."""
    found = []
    report.enter("running")
    report.begin(len(jobs))
    for job in jobs:
        parts = communicator.exchange(msgspec.msgpack.encode(work(communicator, job)))
        if communicator.rank == 0:
            found.append(Measured(job, [msgspec.msgpack.decode(part, type=Part) for part in parts]))
        report.advance()
    return found


def _differences(found: NDArray[Any], right: NDArray[Any]) -> int:
    """How many elements are not what they must be."""
    if len(found) != len(right):
        return max(len(found), len(right))
    return int(np.count_nonzero(found != right))
