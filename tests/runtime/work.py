"""What ranks do in tests: a module of its own, since every rank loads it."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import numpy as np

from weft.algorithm import Algorithm
from weft.errors import WeftError
from weft.runtime import Communicator, Programs, RunError
from weft.runtime.bench import Job, work

Said = tuple[str, str, int, bool]


def endless(
    communicator: Communicator, plan: Algorithm, victim: int, after_s: float, number: int
) -> Said:
    """Run until something is wrong; one rank sends itself a signal meanwhile."""
    if communicator.rank == victim:

        def end() -> None:
            time.sleep(after_s)
            os.kill(os.getpid(), number)

        threading.Thread(target=end, daemon=True).start()
    array = np.full(1 << 16, communicator.rank + 1, dtype=np.float32)
    while True:
        out = np.zeros_like(array)
        try:
            communicator.run(plan, array, out)
        except RunError as error:
            return type(error).__name__, str(error), error.peer, communicator.usable
        assert (out == 10).all()


def odd_one(communicator: Communicator, odd: int, plans: list[Algorithm], how: Any) -> Said:
    mine = how if communicator.rank == odd else {}
    plan = plans[mine.get("plan", 0)]
    array = np.ones(mine.get("count", 64), dtype=mine.get("dtype", "float32"))
    try:
        communicator.run(plan, array, op=mine.get("op", "sum"))
    except RunError as error:
        return type(error).__name__, str(error), error.peer, communicator.usable
    return "", "", -1, True


def two_ways(communicator: Communicator, plan: Algorithm, other: Algorithm) -> str:
    """Both plans have been agreed on; then one rank takes the other."""
    array = np.ones(64, dtype=np.float32)
    for one in (plan, other):
        communicator.run(one, array)
    try:
        communicator.run(plan if communicator.rank else other, array)
    except RunError as error:
        return type(error).__name__
    return ""


def wrong_buffer(communicator: Communicator, plan: Algorithm) -> str:
    size = 63 if communicator.rank == 1 else 64
    try:
        communicator.run(plan, np.ones(64, dtype=np.float32), np.ones(size, dtype=np.float32))
    except WeftError as error:
        return str(error)
    return ""


def run_jobs(communicator: Communicator, jobs: list[Job], name: str) -> list[int]:
    """Elements that were wrong in each job, each on as many ranks as it needs."""
    found = []
    for number, job in enumerate(jobs):
        size = Programs(job.algorithm).npus
        if communicator.rank >= size:
            found.append(0)
            continue
        make = Communicator.tcp if number % 2 else Communicator.shared_memory
        with make(communicator.rank, size, f"unix:@{name}-{number}", timeout_s=60) as ranks:
            found.append(work(ranks, job).wrong)
    return found


def of_groups(communicator: Communicator, algorithm: Algorithm) -> list[list[float]]:
    """Two groups that share NPU 1, and a relay; rank 3 takes no part."""
    rank = communicator.rank
    array = np.full(6, rank + 1, dtype=np.float64)
    sends = {0: [array, None], 1: [array, array.copy()], 2: [None, array]}.get(rank)
    for length in (4, 6):  # who takes no part is told each time
        parts = [one if one is None else one[:length] for one in sends or (None, None)]
        outs = [None if one is None else np.zeros(length) for one in parts]
        communicator.run(algorithm, parts, outs)
    return [[] if one is None else one.tolist() for one in outs]


def counts(communicator: Communicator, gather: Algorithm, scatter: Algorithm) -> list[list[int]]:
    """Lengths are told from the arrays, as far as they say it."""
    rank = communicator.rank
    found = []
    share = np.full(3, rank, dtype=np.int64)
    whole = np.zeros(12, dtype=np.int64)
    communicator.run(gather, share, whole)
    found.append(whole.tolist())
    root = np.arange(10, dtype=np.int64) if rank == 0 else None
    mine = np.zeros([2, 3, 2, 3][rank], dtype=np.int64)
    communicator.run(scatter, root, mine, count=10)
    found.append(mine.tolist())
    return found


def summed(communicator: Communicator, algorithm: Algorithm, turns: int) -> list[bytes]:
    """Sums of floats whose last bits depend on the order, several times."""
    rng = np.random.default_rng(communicator.rank)
    array = rng.standard_normal(5000).astype(np.float32)
    found = []
    for _ in range(turns):
        out = np.zeros_like(array)
        communicator.run(algorithm, array, out, reproducible=True)
        found.append(out.tobytes())
    return found


def refused(communicator: Communicator, case: str, algorithm: Algorithm) -> str:
    """What is said of a wrong call; all ranks make it."""
    good = np.zeros(8, dtype=np.float32)
    readonly = good.copy()
    readonly.flags.writeable = False
    calls: dict[str, tuple[Any, ...]] = {
        "op": (algorithm, good, None, "mean"),
        "dtype": (algorithm, good.astype(np.complex64)),
        "types": (algorithm, good, good.astype(np.float64)),
        "list": (algorithm, good, [0.0] * 8),
        "strided": (algorithm, np.zeros((8, 2), dtype=np.float32)[:, 0]),
        "readonly": (algorithm, readonly),
        "lengths": (algorithm, good, np.zeros(9, dtype=np.float32)),
        "plan": ("ring:4", good),
    }
    try:
        communicator.run(*calls[case])
    except WeftError as error:
        return str(error)
    return ""


def traced(communicator: Communicator, algorithm: Algorithm, count: int) -> list[tuple[int, int]]:
    """When each row began and ended."""
    array = np.ones(count, dtype=np.float32)
    times = communicator.run(algorithm, array, trace=True)
    assert times is not None
    return list(zip(times.begin.tolist(), times.end.tolist(), strict=True))
