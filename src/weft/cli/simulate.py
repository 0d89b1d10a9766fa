"""``weft simulate``: run an algorithm or traces on a network and say what decides the time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from weft.cli.inputs import InputOptions, input_options
from weft.cli.options import NetworkOptions, given, option, topology_option
from weft.cli.printing import json_option, say_json, say_verdict
from weft.cli.trace_runs import TraceOptions, are_traces, check_options, run_traces, trace_options
from weft.errors import InputError


@click.command()
@input_options("PATH")
@topology_option("Run it on this network; by default an algorithm's own.")
@option(
    "--order plan|fifo",
    "Links carry rows in the planned order, or first come first served. By default as planned "
    "where there is a plan for the network.",
)
@option("--reducer RATE", "How fast an NPU adds: 100GB/s. By default in no time.")
@option(
    "--latency-model pipelined|blocking",
    "Whether α occupies the link; by default as the algorithm has it, or pipelined.",
)
@option(
    "--switching cut-through|store-and-forward",
    "How a hop crosses switches; by default as the algorithm has it, or cut-through.",
)
@trace_options
@option("--trace FILE", "Write a timeline for Perfetto: a .json or .json.gz file.")
@json_option
def simulate(
    source: InputOptions,
    network: NetworkOptions,
    traces: TraceOptions,
    trace: str | None,
    as_json: bool,
    **how: str | None,
) -> None:
    """Run an algorithm or a workload on a network, and report what decides its time.

    PATH is an algorithm: a folder of Chakra execution traces that Weft wrote, or a file in another
    format that it knows. It runs on its own network, or on that of --topology. It is judged first:
    exit code 1 and the violation if it is wrong.

    Or PATH has Chakra execution traces of others, such as a workload: they run as they are on the
    network of --topology, their collectives synthesized for it; exit code 1 if they never end. With
    --collective they are read as an algorithm.

    \b
    Examples:
      weft simulate traces
      weft simulate traces --order fifo --reducer 200GB/s --trace timeline.json.gz
      weft simulate allreduce.xml --topology h100:2
      weft simulate traces --topology mesh:8x8 --without-link 27-28 --json
      weft simulate step --topology mesh:4x4
      weft simulate bundle/algorithm --astra-sim bundle/network.yml
    """  # noqa: D301 - click reads the control character
    from weft.api import simulate as run
    from weft.cli import progress
    from weft.cli.run_report import print_run
    from weft.cli.trace_report import print_trace_run
    from weft.engine import Report
    from weft.judge import WrongAlgorithmError
    from weft.progress import Tracker
    from weft.replay import TraceRun, timeline_of, trace_timeline_of

    target = None if trace is None else _checked(trace, source.path)
    as_traces = are_traces(source, traces)
    if as_traces:
        check_options(source, network, traces, how)
    elif given(traces):
        raise InputError(f"{given(traces)[0]} is for traces, but {source.path} is an algorithm")

    def work(report: Tracker) -> Report | TraceRun:
        if as_traces:
            return run_traces(source, network, traces, how, report)
        asked: dict[str, Any] = {"hints": source.hints(), "kind": source.kind, **how}
        return run(source.path, network.load_if_named(), progress=report, **asked)

    try:
        done = progress.run("simulating", work)
    except WrongAlgorithmError as error:
        if error.verdict is None:
            raise
        say_verdict(source.path, error.verdict, as_json=as_json)
        raise click.exceptions.Exit(1) from None
    if target is not None:
        drawn = timeline_of(done.run) if isinstance(done, Report) else trace_timeline_of(done)
        drawn.save(target)  # in the main thread, so that an interrupt reaches it
    if as_json:
        say_json({"path": source.path, **done.to_dict()})
    elif isinstance(done, Report):
        print_run(done, source.path, target)
    else:
        print_trace_run(done, target)
    if not isinstance(done, Report) and not done.finished:
        raise click.exceptions.Exit(1)


def _checked(trace: str, source: str) -> Path:
    """The timeline's path; raise before the work if it cannot be written."""
    import os

    from weft.documents import check_new_file
    from weft.formats.perfetto import check_name

    target = Path(trace)
    check_name(target)
    check_new_file(target)
    # Unlike resolve() this does not mind a loop of symbolic links.
    place, read = Path(os.path.realpath(target)), Path(os.path.realpath(source))
    if read == place or read in place.parents:
        raise InputError(f"{trace} is, or lies in, what is read; choose another place")
    return target
