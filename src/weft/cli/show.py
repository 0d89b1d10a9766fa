"""``weft show``: what an algorithm is, and what an NPU does in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.cli.inputs import InputOptions, input_options
from weft.cli.options import option
from weft.cli.printing import json_option, say_json

if TYPE_CHECKING:
    from weft.runtime.program import Program


@click.command()
@input_options("ALGO")
@option(
    "--npu N",
    "Also what this NPU sends and receives; may be repeated.",
    name="npus",
    type=int,
    multiple=True,
)
@option("--limit", "Transfers to list for an NPU.", default=40)
@option(
    "--program",
    "With --npu: what the NPU does when it is run, in which memory, and what each step waits for.",
    is_flag=True,
)
@json_option
def show(
    source: InputOptions, npus: tuple[int, ...], limit: int, program: bool, as_json: bool
) -> None:
    """Say what the algorithm in ALGO is and, with --npu, what an NPU sends and receives in it.

    ALGO is a folder of Chakra execution traces, or a file in another format that Weft knows. It is
    not judged: see weft verify. Compact stores of any size are shown at once.

    \b
    Examples:
      weft show traces
      weft show all-gather.weft --npu 0 --npu 123 --limit 10
      weft show algorithm.json --npu 3 --json
      weft show traces --npu 3 --program
    """  # noqa: D301 - click reads the control character
    from weft.algorithm import Activity, described
    from weft.api import load
    from weft.cli import progress
    from weft.documents import naming
    from weft.errors import InputError
    from weft.formats.conversion import size_of
    from weft.progress import Tracker

    if limit < 0:
        raise InputError(f"--limit is {limit}; expected 0 or more")
    if program and not npus:
        raise InputError("--program goes with --npu, which says whose")
    hints = source.hints()
    programs: list[Program] = []

    def work(report: Tracker) -> tuple[dict[str, Any], list[Activity]]:
        algorithm = load(source.path, hints, kind=source.kind, progress=report)
        # None where only the beginning of the files' names is given.
        stored = size_of(Path(source.path)) if Path(source.path).exists() else None
        with naming(Path(source.path)):
            facts = described(algorithm) | {"stored_bytes": stored}
        if program:
            from weft.runtime import Programs  # seldom asked for

            made = Programs(algorithm)
            programs.extend(made.of(npu) for npu in npus)
        return facts, [Activity.of(algorithm, npu) for npu in npus]

    facts, activities = progress.run("reading", work)
    if as_json:
        shown = [activity.to_dict(limit) for activity in activities]
        also = {"programs": [one.to_dict(limit) for one in programs]} if program else {}
        say_json({"path": source.path, **facts, "activities": shown, **also})
    else:
        from weft.cli.activity_report import facts_of, print_activity
        from weft.cli.tables import print_facts

        print_facts(source.path, facts_of(facts))
        if programs:
            from weft.cli.run_table import print_program

            for one in programs:
                print_program(one, limit)
        for activity in () if programs else activities:
            print_activity(activity, limit)
