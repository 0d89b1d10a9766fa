"""Weft beside the converter of the standard representation for collective algorithms.

Its figures are published (IEEE Micro 45(2), 2025; arXiv 2408.11008) for MSCCL-XML to Chakra traces,
and second hand here; the bytes are those of a ring among 128 ranks.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.tables import Extent, Row, Table
from weft import _core
from weft.algorithm import Algorithm, Transfers
from weft.collective import Collective
from weft.reproduce.conversion import PUBLISHED_MS, ring_all_reduce, time_conversion

PUBLISHED_BYTES = {128: "470 MB"}


def all_to_all(n: int) -> Algorithm:
    """Everybody sends to everybody else, the next one first."""
    shift, src = (grid.reshape(-1) for grid in np.mgrid[1:n, 0:n])
    dst = (src + shift) % n
    columns = (column.astype(np.int32) for column in (src * n + dst, src, dst))
    demand = Collective.of("all-to-all", range(n), n << 16)
    return Algorithm((demand,), Transfers(*columns, np.zeros(len(src), dtype=np.bool_)))


def convert(_: Extent) -> Iterator[Row]:
    """To Chakra traces by `weft convert`, the start of the process included; best of five."""
    yield "what", "from", "ranks", "transfers", "published", "Weft ms", "published size", "Weft MB"
    cases = [("All-Reduce ring", ring_all_reduce(n)) for n in PUBLISHED_MS]
    for what, algorithm in (*cases, ("All-to-All", all_to_all(128))):
        for kind in ("msccl", "table"):
            found = time_conversion(algorithm, kind)
            ring = what == cases[0][0]
            yield (
                what,
                kind,
                str(found.npus),
                f"{found.transfers:,}",
                f"{PUBLISHED_MS[found.npus]} ms" if ring else "-",
                f"{found.seconds * 1e3:.0f}",
                PUBLISHED_BYTES.get(found.npus, "-") if ring else "-",
                f"{found.written / 1e6:.2f}",
            )


def nodes(_: Extent) -> Iterator[Row]:
    """Nodes per second: written and read by the core, and whole folders saved and loaded."""
    yield "what", "nodes", "write M/s", "read M/s", "save M/s", "load M/s"
    for what, algorithm in (
        ("All-Reduce ring, 128 ranks", ring_all_reduce(128)),
        ("All-Reduce ring, 512 ranks", ring_all_reduce(512)),
    ):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "traces"
            save = _seconds(lambda: algorithm.save(folder))  # noqa: B023 - called at once
            load = _seconds(lambda: _load(folder))  # noqa: B023
            files = [file.read_bytes() for file in folder.iterdir()]
        read = _seconds(lambda: [_core.read_chakra(file) for file in files])  # noqa: B023
        ranks = [_core.read_chakra(file)[2] for file in files]
        written = _seconds(lambda: [_core.write_chakra("0.0.4", [], r) for r in ranks])  # noqa: B023
        count = sum(map(len, ranks))
        rates = (f"{count / seconds / 1e6:.2f}" for seconds in (written, read, save, load))
        yield what, f"{count:,}", *rates


def _load(folder: Path) -> None:
    from weft import load

    load(folder)


def _seconds(work) -> float:
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


TABLES: dict[str, Table] = {"formats": convert, "nodes": nodes}
