"""Tables of runs: what was measured, beside the plan; and what a rank does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft.cli.printing import say
from weft.cli.tables import print_rows, shown_time
from weft.units import format_bandwidth, format_size

if TYPE_CHECKING:
    from weft.cli.running import Where
    from weft.runtime.bench import Measured
    from weft.runtime.program import Program

_COLUMNS = ("size", "count", "type", "op", "planned", "measured", "algbw", "busbw", "wrong")
_KINDS = {"shm": "shared memory", "tcp": "TCP", "mpi": "MPI"}


def print_measured(
    title: str, where: Where, measured: list[Measured], timeline: Path | None
) -> None:
    """Print the figures for people."""
    ranks, runs = len(measured[0].parts), measured[0].job.iterations
    rows = [_row(one) for one in measured]
    words = f"{title}: {ranks} ranks over {_KINDS[where.kind]}, median of {runs}"
    print_rows(words, _COLUMNS, rows, words=("type", "op"))
    if timeline is not None:
        say(f"timeline in {timeline}")


def _row(one: Measured) -> list[str]:
    planned = one.planned_us
    return [
        format_size(one.bytes),
        ",".join(map(str, dict.fromkeys(one.job.counts))),
        one.job.dtype,
        one.job.op,
        "-" if planned is None else shown_time(planned),
        shown_time(one.median * 1e6),
        format_bandwidth(one.bandwidth),
        format_bandwidth(one.bus_bandwidth),
        str(one.wrong),
    ]


def print_program(program: Program, limit: int) -> None:
    """Print the first rows of what an NPU does in a run."""
    facts = program.to_dict(limit)
    rows = (
        (at, _row_number(program, at), step["does"], step["waits_for"])
        for at, step in enumerate(facts["steps"])
    )
    title = (
        f"NPU {program.npu}: {len(program):,} steps, {facts['scratch_slots']:,} slots of scratch"
    )
    names = ("step", "row", "does", "waits for")
    print_rows(title, names, rows, words=names[2:], more=facts["more"], see="--limit")


def _row_number(program: Program, step: int) -> str:
    """Which row of the algorithm it is; none for copies that were added."""
    number = int(program.number[step])
    return "" if number < 0 else str(number)
