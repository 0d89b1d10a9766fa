"""How long `weft convert` takes to make Chakra traces of an algorithm in another format."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weft.algorithm import Algorithm, Transfers
from weft.collective import Collective
from weft.formats import FORMATS, write

PUBLISHED_MS = {16: 259, 32: 398, 64: 1485, 128: 7662}
"""From MSCCL-XML to Chakra traces, by NPUs; second hand."""


def ring_all_reduce(n: int) -> Algorithm:
    """Shares go round a ring twice: first as sums, then as results."""
    hop, src = (grid.reshape(-1) for grid in np.mgrid[0 : 2 * (n - 1), 0:n])
    chunk, dst = (src - hop) % n, (src + 1) % n
    chunk, src, dst = (column.astype(np.int32) for column in (chunk, src, dst))
    demand = Collective.of("all-reduce", range(n), n << 16)
    return Algorithm((demand,), Transfers(chunk, src, dst, hop < n - 1))


@dataclass(frozen=True)
class Converted:
    """Seconds of the quickest run of the command, and the bytes that it wrote."""

    npus: int
    transfers: int
    seconds: float
    written: int


def time_conversion(algorithm: Algorithm, kind: str = "msccl", repeats: int = 5) -> Converted:
    """Run the command on a file in a format, the start of the process included."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"algorithm{FORMATS[kind].suffix}"
        target = Path(folder) / "traces"
        write(algorithm, source, kind=kind)
        command = [sys.executable, "-c", "from weft.cli import main; main()", "convert"]
        best = float("inf")
        for _ in range(repeats):
            began = time.perf_counter()
            subprocess.run([*command, str(source), str(target)], check=True, capture_output=True)
            best = min(best, time.perf_counter() - began)
        written = sum(file.stat().st_size for file in target.iterdir())
    ranks = algorithm.demands[0].ranks
    return Converted(ranks, len(algorithm.transfers), best, written)
