"""``weft convert``: from any format to any other."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from weft.cli.inputs import MOST_NPUS, InputOptions, input_options
from weft.cli.printing import json_option, say, say_json

if TYPE_CHECKING:
    from weft.api import Converted
    from weft.progress import Tracker


@click.command()
@input_options("IN")
@click.argument("output", metavar="OUT")
@click.option("--to", metavar="FORMAT", help="Format of OUT, instead of what its ending asks for.")
@click.option(
    "--ranks", metavar="NPUS", help="For chakra: write the traces of these NPUs only, 0-3,17."
)
@click.option("--name", metavar="TEXT", help="For formats that name the algorithm.")
@click.option("--dialect", metavar="NAME", help="For msccl: msccl (the default) or rccl.")
@click.option("--protocol", metavar="NAME", help="For msccl: Simple (the default), LL or LL128.")
@click.option(
    "--gpus-per-node",
    type=int,
    metavar="N",
    help="For mscclpp: beyond a node, ports are used; by default there is one node.",
)
@click.option(
    "--threads", type=int, metavar="N", help="For mscclpp: threads of a thread block, 1024."
)
@click.option(
    "--thread-blocks",
    type=int,
    metavar="N",
    help="For mscclpp: thread blocks that a GPU runs at once, 108.",
)
@click.option("--min-size", metavar="SIZE", help="For mscclpp: the least message it is used for.")
@click.option("--max-size", metavar="SIZE", help="For mscclpp: the greatest.")
@click.option(
    "--max-offset",
    metavar="SIZE",
    help="For mscclpp: offsets in buffers stay below this; 4GiB for MSCCL++ 0.9 and older.",
)
@json_option
def convert(
    source: InputOptions,
    output: str,
    to: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Convert the algorithm in IN to OUT; it is verified on the way, and refused if it is wrong.

    IN is recognised by what is in it. OUT is a folder of Chakra execution traces, or a file whose
    ending names the format: .weft (a compact store), .xml (msccl), .json, .csv; an MSCCL++ plan
    needs --to mscclpp. Traces that do not come from Weft need --collective.

    \b
    Examples:
      weft convert allreduce.xml traces
      weft convert traces allreduce.xml --dialect rccl
      weft convert traces plan.json --to mscclpp --gpus-per-node 8
      weft convert all-gather.weft traces --ranks 0-3,17
      weft convert ring/ag_ring traces --collective all-gather
      weft convert rows.csv traces --collective all-reduce --size 64MiB --chunks 2
    """  # noqa: D301 - click reads the control character
    from weft.api import convert as run
    from weft.cli import progress
    from weft.collective import parse_group
    from weft.units import parse_size

    began = time.perf_counter()
    given = {name: value for name, value in options.items() if value is not None}
    for name in given.keys() & {"min_size", "max_size", "max_offset"}:
        given[name] = parse_size(given[name])
    if "ranks" in given:
        given["ranks"] = parse_group(given["ranks"], MOST_NPUS)
    hints = source.hints()

    def work(report: Tracker) -> Converted:
        return run(
            source.path,
            output,
            read_as=source.kind,
            write_as=to,
            hints=hints,
            options=given,
            progress=report,
        )

    done = progress.run("reading", work)
    seconds = time.perf_counter() - began
    if as_json:
        paths = {"path": source.path, "output": output}
        say_json({**paths, **done.to_dict(), "conversion_s": seconds})
        return
    some = f"{len(given['ranks'])} of " if "ranks" in given else ""
    say(
        f"{source.path} ({done.source_format}) -> {output} ({done.target_format}): "
        f"{some}{done.ranks} ranks, {len(done.algorithm):,} transfers, verified; "
        f"{done.stored_bytes:,} B in {seconds:.2f} s"
    )
