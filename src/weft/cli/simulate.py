"""``weft simulate``: run an algorithm on a network and say what decides its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weft.cli.inputs import InputOptions, input_options
from weft.cli.options import NetworkOptions, optional_topology

if TYPE_CHECKING:
    from pathlib import Path

    from weft._core import Progress
    from weft.cost import CostModel
    from weft.simulate import Report
    from weft.verify import Verdict


@click.command()
@input_options("ALGORITHM")
@optional_topology("Run it on this network instead of its own.")
@click.option(
    "--order",
    metavar="plan|fifo",
    help="Links carry rows in the planned order, or first come first served. By default as planned "
    "where there is a plan for the network.",
)
@click.option(
    "--reducer", metavar="RATE", help="How fast an NPU adds: 100GB/s. By default in no time."
)
@click.option(
    "--latency-model",
    metavar="pipelined|blocking",
    help="Whether α occupies the link; by default as the algorithm has it, or pipelined.",
)
@click.option(
    "--switching",
    metavar="cut-through|store-and-forward",
    help="How a hop crosses switches; by default as the algorithm has it, or cut-through.",
)
@click.option(
    "--trace", metavar="FILE", help="Write a timeline for Perfetto: a .json or .json.gz file."
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def simulate(
    source: InputOptions,
    network: NetworkOptions | None,
    order: str | None,
    reducer: str | None,
    latency_model: str | None,
    switching: str | None,
    trace: str | None,
    as_json: bool,
) -> None:
    """Run ALGORITHM on its network, or on another, and report what decides its time.

    ALGORITHM is a folder of Chakra execution traces, or a file in another format that Weft knows.
    It is judged first: exit code 1 and the violation if it is wrong.

    \b
    Examples:
      weft simulate traces
      weft simulate traces --order fifo --reducer 200GB/s --trace timeline.json.gz
      weft simulate allreduce.xml --topology h100:2
      weft simulate traces --topology mesh:8x8 --without-link 27-28 --json
    """  # noqa: D301 - click reads the control character
    from weft.cli import progress
    from weft.formats import read
    from weft.simulate import Report, timeline_of
    from weft.simulate import simulate as run_on
    from weft.units import parse_bandwidth

    target = None if trace is None else _checked(trace, source.path)
    hints, rate = source.hints(), None if reducer is None else parse_bandwidth(reducer)

    def work(_report: Progress) -> Report | Verdict:
        topology = None if network is None else network.load()
        imported = read(source.path, hints, kind=source.kind)
        verdict = imported.judged()
        if not verdict:
            return verdict
        algorithm = imported.algorithm
        cost = _cost(algorithm.cost, latency_model, switching)
        return Report.of(
            run_on(algorithm, topology, cost, order=order, reducer=rate)  # type: ignore[arg-type]
        )

    report = progress.run("simulating", work)
    if not isinstance(report, Report):
        click.echo(f"{source.path}: {report.violation}")
        raise click.exceptions.Exit(1)
    if target is not None:
        timeline_of(report.run).save(target)  # here, so that an interrupt reaches it
    if as_json:
        import json

        click.echo(json.dumps(report.to_dict(), indent=2))
    else:
        from weft.cli.run_report import print_run

        print_run(report, source.path, trace)


def _cost(
    own: CostModel | None, latency_model: str | None, switching: str | None
) -> CostModel | None:
    """The cost model, with what the command line says instead of the algorithm's own."""
    from weft.cost import CostModel

    if latency_model is None and switching is None:
        return own
    own = own or CostModel()
    return CostModel(
        latency_model or own.latency_model,  # type: ignore[arg-type]  # checked by CostModel
        switching or own.switching,  # type: ignore[arg-type]
    )


def _checked(trace: str, source: str) -> Path:
    """The timeline's path; raise before the work if it cannot be written."""
    from pathlib import Path

    from weft.errors import FormatError, InputError
    from weft.formats.perfetto import check_name

    target = Path(trace)
    check_name(target)
    try:
        place, read = target.resolve(), Path(source).resolve()
        if not place.parent.is_dir():
            raise FormatError(f"cannot write {trace}: there is no folder {place.parent}")
        if place.is_dir():
            raise FormatError(f"cannot write {trace}: it is a folder, not a file")
    except OSError as error:
        raise FormatError(f"cannot write {trace}: {error.strerror}") from None
    except (RuntimeError, ValueError) as error:  # a loop of symbolic links, a null character
        raise FormatError(f"cannot write {trace}: {error}") from None
    if read == place or read in place.parents:
        raise InputError(f"{trace} is, or lies in, what is read; choose another place")
    return target
