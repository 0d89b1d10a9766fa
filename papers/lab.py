"""How far real runs are from their plans: algorithms, MPI and gloo on emulated networks.

Every row is `weft lab --compare` in a process of its own. It takes half an hour, needs root, and
what else the machine does counts: so each row says how busy it was.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "lab-figures.md"
MAIN = "from weft.cli import main; main()"
COLLECTIVES = ("all-reduce", "all-gather", "all-to-all")
NETWORKS = (
    ("mesh:3x3",),
    ("mesh:4x4",),
    ("torus:4x4",),
    ("ring:4*fc:2", "half"),
    ("switch:8",),
    ("mesh:4x4", "--without-link", "5-6"),
)
AGAINST = ("mesh:3x3", "mesh:4x4", "torus:4x4")
RATES = {"8MiB": ("50Mbit/s", "25Mbit/s"), "32MiB": ("100Mbit/s", "50Mbit/s")}
LATENCY = "50us"
PLAN_HEADINGS = (
    *("network", "collective", "size", "links", "planned ms", "measured ms", "over plan"),
    *("all runs ms", "late ms", "burst", "drops", "cores busy", "with the lab"),
)
HEADINGS = ("network", "who", "algorithm", "ranks", "measured ms", "over plan", "all runs ms")
TEXT = """# Figures of the lab

Planned and measured times of collectives on emulated networks ([how](lab.md)): medians of five
runs, after one that does not count. `python -m papers lab` writes this page.

Measured on {machine}. Plans count {latency} of α a link, {alpha}.

{plans}

All-Reduce of 8 MiB at 50 Mbit/s beside MPI and gloo, each with its best algorithm and the best of
three orders of ranks:

{contest}
"""


@dataclass(frozen=True)
class Row:
    """What one lab said."""

    network: str
    size: str
    rate: str
    figures: dict[str, Any]


def lab(network: tuple[str, ...], collective: str, size: str, who: str) -> Row:
    """Run one comparison."""
    rate, half = RATES[size]
    spec, *more = network
    if more == ["half"]:
        rate, more = f"{half},{rate}", []
    words = ["lab", spec, *more, "--bandwidth", rate, "--latency", LATENCY, "--json"]
    words += ["--compare", collective, "--size", size, "--with", who]
    done = subprocess.run([sys.executable, "-c", MAIN, *words], capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"weft {' '.join(words)}: {done.stdout.decode()}{done.stderr.decode()}")
    name = " ".join([spec, *more])
    print(name, collective, size, who, flush=True)
    return Row(name, size, rate, json.loads(done.stdout))


def write() -> None:
    """Measure everything, and write the page."""
    plans = [
        lab(network, collective, size, "weft")
        for size in RATES
        for collective in COLLECTIVES
        for network in NETWORKS
    ]
    contest = [lab((spec,), "all-reduce", "8MiB", "weft,mpi,gloo") for spec in AGAINST]
    emulated = all(row.figures["alpha_emulated"] for row in plans)
    text = TEXT.format(
        machine=f"{os.cpu_count()} cores ({platform.machine()}, Linux {platform.release()})",
        latency=LATENCY,
        alpha="which is emulated" if emulated else "which this kernel cannot emulate",
        plans=table(PLAN_HEADINGS, (line for row in plans for line in plan_lines(row))),
        contest=table(HEADINGS, (line for row in contest for line in contest_lines(row))),
    )
    PAGE.write_text(text)


def plan_lines(row: Row) -> Iterator[tuple[str, ...]]:
    """A line for Weft."""
    for one in row.figures["contenders"]:
        yield (
            row.network,
            row.figures["collective"],
            row.size,
            row.rate.replace(",", " and "),
            f"{row.figures['planned_us'] / 1e3:.0f}",
            *times(one),
            f"{statistics.median(one['late_us']) / 1e3:.0f}",
            f"{one['burst_share']:.2%}",
            str(sum(link["drops"] for link in one["per_link"])),
            f"{one['cpu_share']:.0%}",
            f"{one['lab_cpu_share']:.0%}",
        )


def contest_lines(row: Row) -> Iterator[tuple[str, ...]]:
    """A line for each who ran."""
    for one in row.figures["contenders"]:
        who = (row.network, one["contender"], one["algorithm"], one["rank_order"])
        yield (*who, *times(one))


def times(one: dict[str, Any]) -> tuple[str, str, str]:
    """The median, alone and over the plan, and all runs."""
    runs = " ".join(f"{run / 1e3:.0f}" for run in one["runs_us"])
    return f"{one['measured_us'] / 1e3:.0f}", f"{one['over_plan']:.3f}", runs


def table(headings: tuple[str, ...], lines: Iterator[tuple[str, ...]]) -> str:
    """In Markdown."""
    rows = [headings, tuple("---" for _ in headings), *lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
