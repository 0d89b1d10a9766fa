"""``weft lower``: replace a workload's collectives by synthesized algorithms."""

from __future__ import annotations

from typing import Any

import click

from weft.cli.options import (
    NetworkOptions,
    check_given,
    method_option,
    option,
    search_options,
    topology_option,
)
from weft.cli.printing import json_option, say_json


@click.command()
@click.argument("workload", metavar="WORKLOAD")
@option("-o, --output DIR", "The folder to write.", required=True)
@topology_option("The network: mesh:8x8, a file.", required=True)
@option(
    "--comm-group FILE",
    "Process groups as JSON; by default comm_group.json beside the traces, if it is there.",
)
@option("--only NAME,...", "Lower only these: all-reduce,all-gather.")
@option("--min-size SIZE", "Lower nothing that is smaller.", default="0")
@option("--chunks K", "Chunks each rank's share is cut in; auto by default.")
@option("--no-relay", "Ranks outside a group must not pass chunks on.", is_flag=True)
@option("--apart", "Synthesize each group alone, not with those that do the same.", is_flag=True)
@method_option
@search_options
@json_option
def lower(
    workload: str,
    output: str,
    network: NetworkOptions,
    only: str | None,
    chunks: str | None,
    no_relay: bool,
    apart: bool,
    as_json: bool,
    **search: Any,
) -> None:
    """Replace the collectives of WORKLOAD by algorithms synthesized for the network.

    WORKLOAD is a folder of Chakra traces, one per rank (NAME.0.et, NAME.1.et, ...), or the prefix
    of their paths. Rank r is the r-th NPU. All other nodes stay as they are, byte for byte.

    \b
    Examples:
      weft workload transformer -o step --npus 16 --tp 4
      weft lower step -o lowered --topology mesh:4x4
      weft lower step -o lowered --topology h100:2 --only all-reduce --min-size 1MiB
    """  # noqa: D301 - click reads the control character
    from pathlib import Path

    from weft.cli import progress
    from weft.cli.report import print_lowering
    from weft.collective import parse_chunks
    from weft.progress import Tracker
    from weft.workload import Lowering, load_workload
    from weft.workload import lower as lower_workload
    from weft.workload.splicing import check_output

    check_given(output)

    def work(report: Tracker) -> Lowering:
        traces = load_workload(workload)
        check_output(traces, Path(output))
        lowering = lower_workload(
            traces,
            network.load(),
            chunks=None if chunks is None else parse_chunks(chunks),
            only=() if only is None else [name.strip() for name in only.split(",")],
            relay=not no_relay,
            together=not apart,
            progress=report,
            **search,
        )
        report.begin_step("writing")
        lowering.save(output)
        return lowering

    lowering = progress.run("reading", work)
    if as_json:
        say_json(lowering.to_dict() | {"output": output})
    else:
        print_lowering(lowering, output)
