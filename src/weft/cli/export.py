"""``weft export``: write what other tools run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weft.cli.inputs import InputOptions, input_options
from weft.cli.options import NetworkOptions, optional_topology
from weft.cli.printing import cell, json_option, say, say_json

if TYPE_CHECKING:
    from weft.export.astra_sim import Bundle
    from weft.progress import Tracker


@click.group()
def export() -> None:
    """Write an algorithm for another tool."""


@export.command("astra-sim")
@input_options("ALGO")
@click.option("-o", "--output", required=True, metavar="DIR", help="The folder to write.")
@optional_topology("The network, if ALGO was made for none: mesh:8x8, h100:4, or a file.")
@json_option
def astra_sim(
    source: InputOptions, output: str, network: NetworkOptions | None, as_json: bool
) -> None:
    """Write all that a run of ASTRA-sim needs for ALGO, an algorithm in any format Weft reads.

    DIR gets traces, a workload that calls the algorithm once, configurations, and run.sh, which
    runs them and checks that every rank finishes.

    \b
    Example:
      weft synth torus:4x4 all-reduce --size 64MiB --bandwidth 50GiB/s --latency 0.5us -o traces
      weft export astra-sim traces -o bundle
      bundle/run.sh PATH/AstraSim_Analytical_Congestion_Aware
    """  # noqa: D301 - click reads the control character
    from pathlib import Path

    from weft import formats
    from weft.cli import progress
    from weft.documents import check_replaceable
    from weft.errors import InputError
    from weft.export.astra_sim import BUNDLE_NAME
    from weft.export.astra_sim import export as write

    if not output:
        raise InputError("--output is empty; give the folder to write")
    check_replaceable(Path(output), BUNDLE_NAME)

    hints = source.hints()

    def work(report: Tracker) -> Bundle:
        algorithm = formats.read(source.path, hints, kind=source.kind).verified(report)
        topology = None if network is None else network.load()
        report.enter("writing")
        return write(algorithm, output, topology=topology, progress=report)

    bundle = progress.run("reading", work)
    if as_json:
        say_json(bundle.to_dict())
    else:
        _print(bundle)


def _print(bundle: Bundle) -> None:
    from rich.console import Console
    from rich.table import Table

    from weft.units import format_size, format_time

    table = Table(title=cell(bundle.folder), show_header=False)
    for row in (
        ("run with", f"{bundle.folder}/run.sh PATH/{bundle.binary}"),
        ("network", bundle.network),
        ("ranks", f"{bundle.ranks:,}"),
        ("messages", f"{bundle.messages:,}, {format_size(bundle.bytes)} of traces"),
        ("also for", ", ".join(_others(bundle)) or "no other backend"),
    ):
        table.add_row(*map(cell, row))
    for name, time in (("planned", bundle.planned_ns), ("predicted", bundle.predicted_ns)):
        if time is not None:
            table.add_row(cell(f"{name} time"), cell(format_time(round(time * 1000))))
    console = Console()
    console.print(table)
    for note in bundle.notes:
        say(f"- {note}")


def _others(bundle: Bundle) -> list[str]:
    unaware = ["congestion-unaware"] if bundle.unaware else []
    return unaware + (["ns-3"] if bundle.ns3 else [])
