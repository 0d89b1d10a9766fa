"""``weft synth``: synthesize, verify and bound an algorithm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.cli.demands import DemandOptions, demand_options
from weft.cli.options import (
    NetworkOptions,
    alignment_option,
    check_given,
    method_option,
    option,
    search_options,
    topology_argument,
)
from weft.cli.printing import json_option, say, say_json

if TYPE_CHECKING:
    from weft.formats import Format
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
@option("--trials", "Seeds to try; the best is kept.", default=1)
@alignment_option
@method_option
@option(
    "-o, --output DIR|FILE",
    "Save as a folder of Chakra execution traces, or in the format that the suffix names: "
    ".weft (a compact store), .xml (MSCCL-XML), .csv, .json (a table).",
)
@option(
    "-v, --verbose",
    "Also print which planners were tried, what each gave, and what it cost.",
    is_flag=True,
)
@json_option
def synth(
    network: NetworkOptions,
    demands: DemandOptions,
    alignment: str,
    output: str | None,
    verbose: bool,
    as_json: bool,
    **search: Any,
) -> None:
    """Synthesize the algorithm for COLLECTIVE on TOPOLOGY; verify it; bound it.

    TOPOLOGY is a spec such as mesh:8x8, torus:4x4x4, ring:4*fc:8*switch:4, leaf-spine:8x4x2, a
    machine such as dgx1, h100:4, tpuv4:4x4x4, or a topology file. Switches that copy, add or have
    small buffers: dgx2,multicast,adding,buffer=1MiB; h100:4,plain only forwards.

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
    from weft.documents import link_target
    from weft.synthesis import chunked, cost_of_plain, plain_for, synthesize
    from weft.units import parse_size

    check_given(output, what="folder or the file")
    target = None if output is None else Path(output)
    kind = None if target is None else _format(target)
    align = parse_size(alignment)

    notes: list[str] = []

    def work(report: Tracker) -> Result:
        topology = whole = network.load()
        notes.extend(topology.notes)
        why = ""
        if kind is not None and kind.in_switches is None:
            topology, why = plain_for(f"files in the format {kind.name}", whole)
        plan = demands.load(topology, align)
        if kind is not None:
            kind.check_demands(chunked(plan.collectives, plan.chunks)[0])
        result = synthesize(
            topology,
            plan.collectives,
            chunks=plan.chunks,
            progress=report,
            scratch=None if target is None else link_target(target).parent,
            **search,
        )
        if why:
            most = cost_of_plain(whole, result.algorithm)
            notes.append(f"{why}: at most x{most:.2f} of what any algorithm takes with them")
        if target is not None:
            report.enter("writing")
            result.save(target)
        return result

    result = progress.run("reading", work)
    stored = None if target is None else _stored(target)
    if as_json:
        said = {"notes": notes} if notes else {}
        say_json(result.to_dict() | {"output": output, "stored_bytes": stored} | said)
    else:
        # After the work: brings tables and colours.
        from weft.cli.report import print_attempts, print_tables

        print_tables(result, output, stored)
        if verbose:
            print_attempts(result)
        for note in notes:
            say(note)
        if kind is not None and kind.namesakes:
            say(kind.described(target or ""))
    if not result.verified:
        raise click.exceptions.Exit(1)


def _format(target: Path) -> Format:
    """The format to write; what cannot work is said before the work, not after it."""
    from weft.formats import format_for  # many modules, and not always needed

    kind = format_for(target)
    kind.check_target(target)
    return kind


def _stored(target: Path) -> int:
    from weft.formats.conversion import size_of

    return size_of(target)
