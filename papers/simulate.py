"""Weft beside ASTRA-sim, which runs the same traces on the same network to the same nanosecond.

Its seconds are those of its congestion-aware backend on a two-core machine.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from papers.convert import quickest, ring
from papers.report import Row, Setup, one_table
from weft import _core

MEASURED_S = {("all-gather", 512): 26, ("all-reduce", 256): 23}
# What the kernel says of the process itself: getrusage also counts the one that started it.
RUN = """
import re, sys
from pathlib import Path
from weft.replay import simulate_astra_sim
def kilobytes(what):
    return int(re.search(what + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
before = kilobytes("VmRSS")
run = simulate_astra_sim(sys.argv[1], sys.argv[2])
assert run.finished
print(run.nodes, run.time // 1000, (kilobytes("VmHWM") - before) * 1024)
"""
NETWORK = "topology: [Ring]\nnpus_count: [{n}]\nbandwidth: [50]\nlatency: [500]\n"


def save_ring(kind: str, n: int, folder: Path) -> None:
    """Traces of a ring, without what Weft would add to them."""
    algorithm = ring(kind, n)
    plan = _core.ChakraPlan(n, algorithm.transfers.core, algorithm.chunks.bytes)
    folder.mkdir()
    for rank in range(n):
        trace = _core.write_chakra("0.0.4", [], plan.nodes(rank))
        (folder / f"ring.{rank}.et").write_bytes(trace)


def measure(case: tuple[str, int]) -> Row:
    """One ring, run by Weft."""
    kind, n = case
    said = []
    with tempfile.TemporaryDirectory() as name:
        traces, network = Path(name) / "traces", Path(name) / "network.yml"
        save_ring(kind, n, traces)
        network.write_text(NETWORK.format(n=n))
        command = [sys.executable, "-c", RUN, str(traces), str(network)]
        seconds = quickest(lambda: said.append(subprocess.check_output(command, text=True)))
    nodes, makespan, memory = map(int, said[-1].split())
    return f"{kind} ring", n, nodes, makespan, MEASURED_S.get(case), seconds, memory / nodes


def traces(_: object) -> Setup:
    """Rings of NPUs whose time in ASTRA-sim is known."""
    title = "A ring, 50 GB/s (2^30) and 500 ns, start of the process included; best of three"
    columns = ("what", "ranks", "nodes", "makespan ns", "ASTRA-sim s", "Weft s", "bytes per node")
    return one_table("traces", title, columns, MEASURED_S, measure)


TABLES = {"traces": traces}
