"""Weft beside ASTRA-sim, which runs the same traces on the same network to the same nanosecond.

Its seconds are those of its congestion-aware backend on a two-core machine.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.tables import Extent, Row, Table
from weft import _core
from weft.algorithm import Transfers
from weft.collective import Collective
from weft.formats.chakra._columns import planned

MEASURED_S = {("all-gather", 512): "26", ("all-reduce", 256): "23"}
REPEATS = 3
# What the kernel says of the process itself: getrusage also counts the one that started it.
RUN = """
import re, sys
from pathlib import Path
from weft.simulate import simulate_astra_sim
def kilobytes(what):
    return int(re.search(what + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
before = kilobytes("VmRSS")
run = simulate_astra_sim(sys.argv[1], sys.argv[2])
assert run.finished
print(run.nodes, run.time // 1000, (kilobytes("VmHWM") - before) * 1024)
"""
NETWORK = "topology: [Ring]\nnpus_count: [{n}]\nbandwidth: [50]\nlatency: [500]\n"


def save_ring(kind: str, n: int, folder: Path) -> None:
    """Traces of a collective in which shares of 64 KiB go round a ring; twice for All-Reduce."""
    steps = (n - 1) * (2 if kind == "all-reduce" else 1)
    step, src = (grid.reshape(-1) for grid in np.mgrid[0:steps, 0:n])
    columns = (c.astype(np.int32) for c in ((src - step) % n, src, (src + 1) % n))
    rows = Transfers(*columns, (step < n - 1) & (kind == "all-reduce"))
    plan = planned(rows, Collective.of(kind, range(n), n << 16).chunks, n)
    folder.mkdir()
    for rank in range(n):
        trace = _core.write_chakra("0.0.4", [], plan.nodes(rank))
        (folder / f"ring.{rank}.et").write_bytes(trace)


def traces(_: Extent) -> Iterator[Row]:
    """A ring of NPUs, 50 GB/s (2^30) and 500 ns, start of the process included; best of three."""
    yield "what", "ranks", "nodes", "makespan ns", "ASTRA-sim s", "Weft s", "bytes a node"
    for (kind, n), measured in MEASURED_S.items():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            save_ring(kind, n, folder / "traces")
            (folder / "network.yml").write_text(NETWORK.format(n=n))
            best, (nodes, makespan, memory) = _timed(folder)
        yield (
            f"{kind} ring",
            str(n),
            f"{nodes:,}",
            f"{makespan:,}",
            measured,
            f"{best:.2f}",
            f"{memory / nodes:.0f}",
        )


def _timed(folder: Path) -> tuple[float, list[int]]:
    """Seconds of the quickest run, and what it printed."""
    command = [sys.executable, "-c", RUN, str(folder / "traces"), str(folder / "network.yml")]
    best = float("inf")
    for _ in range(REPEATS):
        began = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        best = min(best, time.perf_counter() - began)
    return best, [int(word) for word in done.stdout.split()]


TABLES: dict[str, Table] = {"traces": traces}
