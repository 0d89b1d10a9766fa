"""``weft run``: run an algorithm on real processes, check the data, and measure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.cli.demands import DemandOptions, run_options
from weft.cli.options import (
    NetworkOptions,
    method_option,
    option,
    search_options,
    topology_argument,
)
from weft.cli.printing import json_option, say_json, say_verdict
from weft.cli.running import Where, where_options
from weft.errors import InputError

if TYPE_CHECKING:
    from weft.runtime.bench import Measured


@click.command()
@topology_argument("ALGO|TOPOLOGY")
@run_options
@option("--from FORMAT", "The format of ALGO, instead of finding out.", name="kind")
@where_options
@option(
    "--dtype TYPE", "Of the elements: f16, bf16, f32, f64, i8 to i64, u8 to u64.", default="f32"
)
@option("--op OP", "For sums: sum, product, min, max, average.", default="sum")
@option("--iterations N", "Runs that are measured, for each size.", default=5)
@option("--warmups N", "Runs before those.", default=1)
@option("--in-place", "One buffer is input and output.", is_flag=True)
@option("--reproducible", "Add in the plan's order, for the same last bits.", is_flag=True)
@option(
    "--scale FACTOR",
    "Links have so much of the bandwidth planned with, and plans take so much longer: weft lab.",
    default=1.0,
    envvar="WEFT_SCALE",
)
@option("--trace FILE", "Write what happened over the plan, for Perfetto: a .json[.gz] file.")
@search_options
@method_option
@json_option
def run(
    network: NetworkOptions,
    demands: DemandOptions,
    where: Where,
    kind: str | None,
    trace: str | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Run an algorithm on real processes, check every element, and hold the time beside the plan.

    ALGO is a folder of Chakra execution traces, or a file in another format that Weft knows. Or an
    algorithm is synthesized: give a TOPOLOGY and a COLLECTIVE, as for weft synth. It is judged
    first. NPU r is rank r, a process of its own on this machine; with --rank this process is one
    of the ranks, on as many hosts as you like.

    Exit code 1 if any element is wrong, or if a rank fails.

    \b
    Examples:
      weft run traces
      weft run mesh:2x2 all-reduce --size 64MiB --transport tcp
      weft run ring:4 all-gather --sizes 1KiB:64MiB --dtype bf16 --trace run.json.gz
      weft run traces --rank 1 --ranks 4 --rendezvous node0:29500 --address node1
    """  # noqa: D301 - click reads the control character
    from weft.cli import progress
    from weft.cli.run_table import print_measured
    from weft.cli.running import Sources
    from weft.judge import WrongAlgorithmError
    from weft.runtime import RunError

    target = None if trace is None else _checked(trace)
    search = {name: how.pop(name) for name in _SEARCH}
    sources = Sources(network, demands, kind, search)
    try:
        measured = progress.run(
            "reading", lambda report: sources.measured(where, how, report, traced=bool(target))
        )
    except WrongAlgorithmError as error:
        if error.verdict is None:
            raise
        say_verdict(sources.title, error.verdict, as_json=as_json)
        raise click.exceptions.Exit(1) from None
    except RunError as error:
        raise failed(error) from None
    if not measured:
        return  # another rank prints
    if target is not None:
        _draw(measured, target)
    if as_json:
        say_json(
            {"path": sources.title, **where.to_dict(), "sizes": [m.to_dict() for m in measured]}
        )
    else:
        print_measured(sources.title, where, measured, target)
    if any(one.wrong for one in measured):
        raise click.exceptions.Exit(1)


_SEARCH = ("seed", "threads", "latency_model", "switching", "method")


def failed(error: Exception) -> click.exceptions.Exit:
    """A rank failed: that is no wrong input."""
    from weft.cli.printing import say_error

    say_error(str(error), 1)
    return click.exceptions.Exit(1)


def _draw(measured: list[Measured], target: Path) -> None:
    from weft.runtime.timeline import timeline_of

    timeline_of(measured[-1]).save(target)


def _checked(trace: str) -> Path:
    """The timeline's path; raise before the work if it cannot be written."""
    from weft.documents import check_new_file
    from weft.formats.perfetto import check_name

    if not trace:
        raise InputError("--trace is empty; give the file to write")
    target = Path(trace)
    check_name(target)
    check_new_file(target)
    return target
