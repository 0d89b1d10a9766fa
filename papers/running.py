"""Algorithms on ranks of this machine, beside MPI's own All-Reduce (MPICH, by mpi4py).

Contenders take turns, and medians count: ranks share the cores that there are.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import weft
from papers.report import Row, Setup, one_table
from weft.algorithm import Algorithm, Buffer, Transfers, place
from weft.collective import Collective
from weft.runtime import Communicator, local

RANKS, SIZE = 4, 1 << 26
ROUNDS, RUNS = 3, 9
HOPS = 1, 101, 401, 1001
TRANSPORTS = "shm", "tcp"
MPI = """
import time
import numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
mine = np.arange({count}, dtype=np.float32) % 97 + world.rank
sums, times = np.zeros_like(mine), []
for _ in range({runs} + 1):
    world.Barrier()
    began = time.monotonic()
    world.Allreduce(mine, sums)
    times.append(world.allreduce(time.monotonic() - began, MPI.MAX))
if world.rank == 0:
    print(*times[1:])
"""


def reduce(communicator: Communicator, algorithm: Algorithm) -> list[float]:
    """Seconds that each run took on this rank; the first does not count."""
    mine = np.full(SIZE // 4, communicator.rank + 1, dtype=np.float32)
    sums, times = np.zeros_like(mine), []
    for _ in range(RUNS + 1):
        communicator.barrier()
        began = time.monotonic()
        communicator.run(algorithm, mine, sums)
        times.append(time.monotonic() - began)
    assert (sums == RANKS * (RANKS + 1) / 2).all()
    return times[1:]


def hand_over(communicator: Communicator, algorithm: Algorithm) -> list[float]:
    """Seconds that each run of a chain of hops took on this rank."""
    mine, got, times = np.ones(1, dtype=np.float32), np.zeros(1, dtype=np.float32), []
    for _ in range(RUNS):
        communicator.barrier()
        began = time.monotonic()
        communicator.run(algorithm, mine if communicator.rank == 0 else None, got)
        times.append(time.monotonic() - began)
    assert got[0] == 1
    return times


def chain(hops: int) -> Algorithm:
    """Four bytes that go to and fro between two ranks."""
    src = (np.arange(hops) % 2).astype(np.int32)
    read, write = (np.full(hops, place(Buffer.SCRATCH, 0), dtype=np.int32) for _ in range(2))
    read[0] = write[-1] = 0
    none = np.zeros(hops, dtype=np.int32)
    rows = Transfers(none, src, 1 - src, none.astype(np.bool_), src_place=read, dst_place=write)
    return Algorithm((Collective.of("broadcast", [0, 1], 4),), rows)


def slowest(transport: str, ranks: int, work: Callable[..., list[float]], plan: Algorithm) -> float:
    """The median over runs of the slowest rank's seconds."""
    with local(ranks, transport) as started:
        found = started.run(work, plan)
    return statistics.median(map(max, zip(*found, strict=True)))


def by_mpi() -> float | None:
    """The same of MPI_Allreduce; None where mpi4py and mpiexec are not installed."""
    program = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    if program is None or find_spec("mpi4py") is None:
        return None
    code = MPI.format(count=SIZE // 4, runs=RUNS)
    said = subprocess.check_output([program, "-n", str(RANKS), sys.executable, "-c", code])
    return statistics.median(map(float, said.split()))


def large(_: object) -> Setup:
    """Rounds of all contenders, one after the other."""
    plan = weft.synthesize(f"fc:{RANKS}", "all-reduce", SIZE, chunks=1).algorithm

    def measure(number: int) -> Row:
        seconds = [slowest(transport, RANKS, reduce, plan) for transport in TRANSPORTS]
        mpi = by_mpi()
        ratios = [None if mpi is None else mpi / one for one in seconds]
        return (
            number,
            *(1e3 * one for one in seconds),
            None if mpi is None else 1e3 * mpi,
            *ratios,
        )

    title = f"All-Reduce of 64 MiB of f32 among {RANKS} local ranks, median of {RUNS} runs in ms"
    columns = ("round", *TRANSPORTS, "MPI_Allreduce", *(f"MPI over {one}" for one in TRANSPORTS))
    return one_table("large", title, columns, range(1, ROUNDS + 1), measure)


def steps(_: object) -> Setup:
    """What one more dependent message costs."""

    def measure(transport: str) -> Row:
        times = [1e6 * slowest(transport, 2, hand_over, chain(hops)) for hops in HOPS]
        return transport, *times, float(np.polyfit(HOPS, times, 1)[0])

    title = "Four bytes to and fro between two local ranks, us by number of dependent steps"
    columns = ("transport", *map(str, HOPS), "us a step")
    return one_table("steps", title, columns, TRANSPORTS, measure)


TABLES = {"large": large, "steps": steps}
