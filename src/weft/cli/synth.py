"""``weft synth``: synthesize, verify and bound an algorithm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from weft.cli.demands import DemandOptions, demand_options
from weft.cli.options import (
    NetworkOptions,
    alignment_option,
    method_option,
    search_options,
    topology_argument,
)
from weft.cli.printing import json_option, say, say_json

if TYPE_CHECKING:
    from pathlib import Path

    from weft.collective import Plan
    from weft.progress import Tracker
    from weft.result import Result


class _Synth(click.Command):
    """Names the collectives in its own help only: that import would slow down all others."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from weft.collective import PATTERNS

        self.help = (self.help or "").replace("PATTERNS", ", ".join(PATTERNS))
        super().format_help_text(ctx, formatter)


@click.command(cls=_Synth)
@topology_argument("TOPOLOGY")
@demand_options
@search_options
@click.option("--trials", default=1, help="Seeds to try; the best is kept.")
@alignment_option
@method_option
@click.option(
    "-o",
    "--output",
    metavar="DIR|FILE",
    help="Save as a folder of Chakra execution traces, or in the format that the suffix names: "
    ".weft (a compact store), .xml (MSCCL-XML), .csv, .json (a table).",
)
@json_option
def synth(
    network: NetworkOptions,
    demands: DemandOptions,
    alignment: str,
    output: str | None,
    as_json: bool,
    **search: Any,
) -> None:
    """Synthesize the algorithm for COLLECTIVE on TOPOLOGY; verify it; bound it.

    TOPOLOGY is a spec such as mesh:8x8, torus:4x4x4, ring:4*fc:8*switch:4, leaf-spine:8x4x2, a
    machine such as dgx1, h100:4, tpuv4:4x4x4, or a topology file. Switches that copy or have
    small buffers: dgx2,multicast,buffer=1MiB.

    COLLECTIVE is one of PATTERNS.

    It runs among all NPUs, or among those of --group; with several groups, or those of --parallel
    and --along, in all of them at once. --plan runs different collectives at once.

    \b
    Examples:
      weft synth mesh:8x8 all-reduce --size 1GiB --bandwidth 50GB/s --latency 0.5us
      weft synth mesh:8x8 all-gather --size 64MiB --group 0-7 --group 8-15
      weft synth h100:8 all-reduce --size 64MiB --parallel tp=8,dp=8 --along dp
      weft synth torus:4x4 all-to-all --size 16MiB --chunks 2
      weft synth mesh:3x3 all-to-allv --group 0-2 --matrix sizes.csv
      weft synth ring:4 permutation --to 1,0,3,2 --size 1MiB
      weft synth mesh:4x4 custom --pattern moves.yaml
      weft synth mesh:8x8 --plan groups.yaml
      weft synth mesh:100x100 all-gather --size 10GiB --chunks 1 -o all-gather.weft
    """  # noqa: D301 - click reads the control character
    from weft.cli import progress
    from weft.synthesis import synthesize
    from weft.units import parse_size

    target = None if output is None else _Output(output)
    align = parse_size(alignment)

    def work(report: Tracker) -> Result:
        topology = network.load()
        plan = demands.load(topology, align)
        if target is not None:
            target.check_demands(plan)
        result = synthesize(
            topology,
            plan.collectives,
            chunks=plan.chunks,
            progress=report,
            scratch=None if target is None else target.folder,
            **search,
        )
        if target is not None:
            report.enter("writing")
            result.save(target.path)
        return result

    result = progress.run("reading", work)
    stored = None if target is None else target.bytes()
    if as_json:
        say_json(result.to_dict() | {"output": output, "stored_bytes": stored})
    else:
        from weft.cli.report import print_tables  # after the work: brings tables and colours

        print_tables(result, output, stored)
        if target is not None and target.format.namesakes:
            say(target.format.described(target.path))
    if not result.verified:
        raise click.exceptions.Exit(1)


class _Output:
    """Where the algorithm is saved; what cannot work is said before the work, not after it."""

    def __init__(self, said: str) -> None:
        from pathlib import Path

        from weft.errors import InputError
        from weft.formats import format_for

        if not said:
            raise InputError("--output is empty; give the folder or the file to write")
        self.path = Path(said)
        self.format = format_for(self.path)
        self.format.check_target(self.path)

    @property
    def folder(self) -> Path:
        """The folder in which it comes to lie."""
        from weft.documents import link_target

        return link_target(self.path).parent

    def check_demands(self, plan: Plan) -> None:
        """Raise if the format surely cannot hold what these collectives take."""
        from dataclasses import replace

        pairs = zip(plan.collectives, plan.chunks, strict=True)
        self.format.check_demands([replace(one, chunks_per_share=cut or 1) for one, cut in pairs])

    def bytes(self) -> int:
        """How many were written."""
        from weft.formats.conversion import size_of

        return size_of(self.path)
