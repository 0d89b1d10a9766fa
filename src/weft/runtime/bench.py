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
from weft.runtime.buffers import OPS, TYPES
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
            "bytes": self.bytes,
            "counts": list(self.job.counts),
            "type": self.job.dtype,
            "op": self.job.op,
            "planned_us": self.planned_us,
            "measured_us": self.median * 1e6,
            "runs_us": [1e6 * one for one in self.seconds],
            "algbw_gb_s": self.bandwidth / 1e9,
            "busbw_gb_s": self.bus_bandwidth / 1e9,
            "wrong": self.wrong,
        }


def work(communicator: Communicator, job: Job) -> Part:
    """What a rank does of a job."""
    me, algorithm = communicator.rank, job.algorithm
    programs = Programs(algorithm, reproducible=job.reproducible)
    sides = Cut(algorithm, job.counts).sides(me)
    sends: list[NDArray[Any] | None] = []
    receives: list[NDArray[Any] | None] = []
    wanted: list[NDArray[Any] | None] = []
    for at, (demand, count) in enumerate(zip(algorithm.demands, job.counts, strict=True)):
        if me not in demand.group:
            sends, receives, wanted = [*sends, None], [*receives, None], [*wanted, None]
            continue
        data = Data(demand, count, job.dtype, job.op)
        rank = demand.group.index(me)
        sends.append(data.send(rank, sides.inputs[at]))
        receives.append(np.zeros(sides.outputs[at], dtype=TYPES[job.dtype][1]))
        wanted.append(data.received(rank))
    given = [None if one is None else one.copy() for one in sends]
    seconds, times, began = [], None, 0
    for turn in range(job.warmups + job.iterations):
        last = turn == job.warmups + job.iterations - 1
        for one in receives:
            if one is not None:
                one.view(np.uint8)[:] = 0xA5  # nothing of the run before counts
        communicator.barrier()
        began = time.monotonic_ns()
        times = communicator.run(
            programs,
            sends if len(sends) > 1 else sends[0],
            receives if len(receives) > 1 else receives[0],
            job.op,
            dtype=job.dtype,
            count=list(job.counts),
            trace=job.traced and last,
        )
        if turn >= job.warmups:
            seconds.append((time.monotonic_ns() - began) / 1e9)
    wrong = sum(
        differences(one, right)
        for one, right in (*zip(receives, wanted, strict=True), *zip(sends, given, strict=True))
        if one is not None and right is not None
    )
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


def differences(found: NDArray[Any], right: NDArray[Any]) -> int:
    """How many elements are not what they must be."""
    if len(found) != len(right):
        return max(len(found), len(right))
    return int(np.count_nonzero(found != right))
