"""How time and memory grow: All-Gather on meshes and tori, and what symmetry adds to it.

Every row is `weft synth` in a process of its own, which synthesizes, verifies, bounds and stores;
then `weft verify` in another, which judges what is in the store. Chunks of 1 MiB, one per NPU
(one per pair in All-to-All), links of 50 GiB/s and 0.5 us.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import weft
from weft.units import format_size

PAGE = Path(__file__).parent.parent / "docs" / "scaling.md"
CHUNK = 1 << 20
MAIN = "from weft.cli import main; main()"
HEADINGS = (
    "network",
    "NPUs",
    "collective",
    "method",
    "α",
    "transfers",
    "synthesis s",
    "all of `weft synth` s",
    "peak",
    "stored",
    "B per transfer",
    "`weft verify` s",
    "peak",
    "of the bound",
)


@dataclass(frozen=True)
class Case:
    """One run; those of one family are fitted together, those of none not at all."""

    family: str
    spec: str
    collective: str = "all-gather"
    method: str = "auto"
    model: str = "blocking"


@dataclass(frozen=True)
class Outcome:
    """What a command printed, how long it took, and the most memory it held."""

    figures: dict[str, object]
    seconds: float
    cpu: float
    peak: int


def cases() -> Iterator[Case]:
    """From small to large in each family."""
    squares = ("32x32", "64x64", "100x100", "200x200")
    for sizes in squares:
        yield Case("mesh, rounds", f"mesh:{sizes}", method="rounds")
    for sizes in squares[:-1]:
        yield Case("torus, rounds", f"torus:{sizes}", method="rounds")
    for sizes in (*squares, "16x16x16", "32x32x32", "64x64x64", "100x100x100"):
        yield Case("torus, symmetric", f"torus:{sizes}")
    for sizes in ("8x8x8", "16x16x16", "32x32x32"):
        yield Case("torus, symmetric All-to-All", f"torus:{sizes}", "all-to-all")
    for spec in ("mesh:100x100", "mesh:200x200", "torus:32x32x32"):
        yield Case("", spec, "all-reduce")
    for spec in ("mesh:100x100", "mesh:200x200", "torus:32x32x32", "torus:100x100x100"):
        yield Case("", spec, model="pipelined")
    yield Case("", "torus:32x32x32", "all-to-all", model="pipelined")


def run(*arguments: str) -> Outcome:
    """One command of Weft in a process of its own."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen([sys.executable, "-c", MAIN, *arguments], stdout=said)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        said.seek(0)
        text = said.read()
    if child.returncode:
        raise SystemExit(f"weft {' '.join(arguments)} ended with exit code {child.returncode}")
    cpu = used.ru_utime + used.ru_stime
    return Outcome(json.loads(text), seconds, cpu, used.ru_maxrss * 1024)


def measured(case: Case, folder: Path) -> tuple[tuple[str, ...], tuple[int, float]]:
    """The row of a case; and how many NPUs, in how many seconds of synthesis."""
    npus = math.prod(map(int, case.spec.partition(":")[2].split("x")))
    store = folder / "algorithm.weft"
    made = run(
        *("synth", case.spec, case.collective, "--size", f"{npus * CHUNK}B", "--chunks", "1"),
        *("--bandwidth", "50GiB/s", "--latency", "0.5us", "--latency-model", case.model),
        *("--method", case.method, "-o", str(store), "--json"),
    )
    judged = run("verify", str(store), "--json")
    figures, stored = made.figures, store.stat().st_size
    store.unlink()
    transfers, synthesis = int(str(figures["transfers"])), float(str(figures["synthesis_s"]))
    right = figures["verified"] and judged.figures["verified"]
    row = (
        case.spec,
        f"{npus:,}",
        case.collective,
        str(figures["method"]),
        case.model,
        f"{transfers:,}",
        f"{synthesis:.3g}",
        f"{made.seconds:.3g}",
        format_size(made.peak >> 20 << 20),
        format_size(stored >> 10 << 10),
        f"{stored / transfers:.2g}",
        f"{judged.seconds:.3g}",
        format_size(judged.peak >> 20 << 20),
        f"x{1 / float(str(figures['efficiency'])):.4f}" if right else "WRONG",
    )
    return row, (npus, synthesis)


def exponent(points: list[tuple[int, float]]) -> float:
    """The slope of log seconds over log NPUs, by least squares."""
    pairs = [(math.log(npus), math.log(seconds)) for npus, seconds in points]
    x, y = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    return sum((a - x) * (b - y) for a, b in pairs) / sum((a - x) ** 2 for a, _ in pairs)


def machine() -> str:
    """What the figures were measured on."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    name = model[1] if model else platform.machine()
    return (
        f"{os.cpu_count()} cores of {name}, {memory / 2**30:.0f} GiB of memory, "
        f"{platform.system()} {platform.release().partition('-')[0]}, "
        f"Python {platform.python_version()}, Weft {weft.__version__}"
    )


def write() -> None:
    """Measure, print each row when it is there, and write the page of the documentation."""
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    print("\n".join(lines), flush=True)
    points: dict[str, list[tuple[int, float]]] = {}
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for case in cases():
            row, point = measured(case, Path(folder))
            points.setdefault(case.family, []).append(point)
            lines.append("| " + " | ".join(row) + " |")
            print(lines[-1], flush=True)
    growth = [
        f"| {family} | n^{exponent(those):.2f} |" for family, those in points.items() if family
    ]
    print("\n".join(growth))
    fits = ["| family | seconds of synthesis grow as |", "|---|---|", *growth]
    about = (__doc__ or "").partition("\n\n")
    parts = (
        "# Scaling",
        "Written by `make bench-scale`. " + about[0] + "\n\n" + about[2].strip(),
        f"Measured on {machine()}. Peaks are resident memory, mapped files included.",
        "\n".join(lines),
        "\n".join(fits),
    )
    PAGE.write_text("\n\n".join(parts) + "\n")
