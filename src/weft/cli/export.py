"""``weft export``: write what other tools run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weft.cli.inputs import InputOptions, input_options
from weft.cli.options import NetworkOptions, check_given, option, topology_option
from weft.cli.printing import json_option, say, say_json

if TYPE_CHECKING:
    from weft.export.astra_sim import Bundle
    from weft.progress import Tracker


@click.group()
def export() -> None:
    """Write an algorithm for another tool."""


@export.command("astra-sim")
@input_options("ALGO")
@option("-o, --output DIR", "The folder to write.", required=True)
@topology_option("The network, if ALGO was made for none: mesh:8x8, h100:4, or a file.")
@json_option
def astra_sim(source: InputOptions, output: str, network: NetworkOptions, as_json: bool) -> None:
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
    from weft.export.astra_sim import BUNDLE_NAME
    from weft.export.astra_sim import export as write

    check_given(output)
    check_replaceable(Path(output), BUNDLE_NAME)

    hints = source.hints()

    def work(report: Tracker) -> Bundle:
        algorithm = formats.read(source.path, hints, kind=source.kind).verified(report)
        topology = network.load_if_named()
        report.enter("writing")
        return write(algorithm, output, topology=topology, progress=report)

    bundle = progress.run("reading", work)
    if as_json:
        say_json(bundle.to_dict())
    else:
        _print(bundle)


def _print(bundle: Bundle) -> None:
    from weft.cli.tables import print_facts
    from weft.units import format_size, format_time

    others = {"congestion-unaware": bundle.unaware, "ns-3": bundle.ns3}
    times = {"planned time": bundle.planned_ns, "predicted time": bundle.predicted_ns}
    rows = [
        ("run with", f"{bundle.folder}/run.sh PATH/{bundle.binary}"),
        ("network", bundle.network),
        ("ranks", f"{bundle.ranks:,}"),
        ("messages", f"{bundle.messages:,}, {format_size(bundle.bytes)} of traces"),
        ("also for", ", ".join(filter(others.get, others)) or "no other backend"),
    ]
    rows += [(name, format_time(round(ns * 1000))) for name, ns in times.items() if ns is not None]
    print_facts(str(bundle.folder), rows)
    for note in bundle.notes:
        say(f"- {note}")
