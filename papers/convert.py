"""Conversion to Chakra traces, beside the converter of the standard representation.

Its figures are published (IEEE Micro 45(2), 2025; arXiv 2408.11008) for MSCCL-XML to Chakra traces,
and second hand here; the bytes are those of a ring among 128 ranks.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from papers.figures import Lines
from papers.report import Experiment, Row, Setup, Table, one_table
from weft import _core, load
from weft.algorithm import Algorithm, Transfers
from weft.collective import Collective
from weft.formats import FORMATS, write

PUBLISHED_MS = {16: 259, 32: 398, 64: 1485, 128: 7662}
PUBLISHED_MB = {128: 470}
RING = "All-Reduce ring"
COMMAND = [sys.executable, "-c", "from weft.cli import main; main()", "convert"]


def ring(kind: str, n: int) -> Algorithm:
    """Shares of 64 KiB go round a ring; twice for All-Reduce, first as sums, then as results."""
    sums = kind == "all-reduce"
    step, src = (grid.reshape(-1) for grid in np.mgrid[0 : (n - 1) * (1 + sums), 0:n])
    return _algorithm(kind, n, (src - step) % n, src, (src + 1) % n, (step < n - 1) & sums)


def all_to_all(n: int) -> Algorithm:
    """Everybody sends to everybody else, the next one first."""
    shift, src = (grid.reshape(-1) for grid in np.mgrid[1:n, 0:n])
    dst = (src + shift) % n
    return _algorithm("all-to-all", n, src * n + dst, src, dst, np.zeros(len(src), dtype=np.bool_))


def _algorithm(kind: str, n: int, chunk, src, dst, reduce) -> Algorithm:
    columns = (column.astype(np.int32) for column in (chunk, src, dst))
    return Algorithm((Collective.of(kind, range(n), n << 16),), Transfers(*columns, reduce))


def quickest(work: Callable[[], object], repeats: int = 3) -> float:
    """Seconds of the quickest of some runs."""
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


def conversion(cases: Sequence[tuple[str, Algorithm, str]], repeats: int = 3) -> Setup:
    """An experiment: `weft convert` of algorithms in a format each, the process included."""

    def measure(case: tuple[str, Algorithm, str]) -> Row:
        what, algorithm, kind = case
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / f"algorithm{FORMATS[kind].suffix}"
            target = Path(folder) / "traces"
            write(algorithm, source, kind=kind)
            command = [*COMMAND, str(source), str(target)]
            ms = 1e3 * quickest(
                lambda: subprocess.run(command, check=True, capture_output=True), repeats
            )
            written = sum(file.stat().st_size for file in target.iterdir())
        npus = algorithm.demands[0].ranks
        published = PUBLISHED_MS[npus] if what == RING else None
        return (
            *(what, kind, npus, len(algorithm.transfers), published, ms),
            None if published is None else published / ms,
            PUBLISHED_MB.get(npus) if what == RING else None,
            written / 1e6,
        )

    def conclude(rows: Sequence[Row]) -> Experiment:
        columns = ("what", "from", "NPUs", "transfers", "published ms", "Weft ms")
        more = ("published over Weft", "published MB", "Weft MB")
        rings = [row for row in rows if row[:2] == (RING, "msccl")]
        return Experiment(
            "conversion",
            "From MSCCL-XML to Chakra",
            "A ring All-Reduce, by `weft convert`, which verifies it on the way; the start of the "
            f"process included, the quickest of {repeats} runs.",
            [Table("Conversion:", columns + more, rows)],
            Lines(
                "MSCCL-XML to Chakra",
                "NPUs",
                "ms",
                [row[2] for row in rings],
                {
                    "published (second hand)": [row[4] for row in rings],
                    "Weft": [row[5] for row in rings],
                },
            ),
        )

    return Setup(cases, measure, conclude)


def rings(counts: Sequence[int] = tuple(PUBLISHED_MS)) -> list[tuple[str, Algorithm, str]]:
    """The published conversions."""
    return [(RING, ring("all-reduce", n), "msccl") for n in counts]


def formats(_: object) -> Setup:
    """The published conversions, and others beside them."""
    cases = [*rings(), ("All-to-All", all_to_all(128), "msccl")]
    both = [(what, made, kind) for what, made, _ in cases for kind in ("msccl", "table")]
    return conversion(both, repeats=5)


def nodes(_: object) -> Setup:
    """Nodes per second, in and out."""
    title = "Nodes per second: written and read by the core, whole folders saved and loaded"
    columns = ("what", "nodes", "write M/s", "read M/s", "save M/s", "load M/s")
    return one_table("nodes", title, columns, (128, 512), _node_rates)


def _node_rates(ranks: int) -> Row:
    algorithm = ring("all-reduce", ranks)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "traces"
        saved = quickest(lambda: write(algorithm, folder))
        loaded = quickest(lambda: load(folder))
        files = [file.read_bytes() for file in folder.iterdir()]
    read = quickest(lambda: [_core.read_chakra(file) for file in files])
    graphs = [_core.read_chakra(file)[2] for file in files]
    written = quickest(lambda: [_core.write_chakra("0.0.4", [], graph) for graph in graphs])
    count = sum(map(len, graphs))
    rates = (count / seconds / 1e6 for seconds in (written, read, saved, loaded))
    return f"{RING}, {ranks} ranks", count, *rates


TABLES = {"formats": formats, "nodes": nodes}
