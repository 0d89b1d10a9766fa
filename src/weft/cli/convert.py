"""``weft convert``: from any format to any other."""

from __future__ import annotations

import time
from typing import Any

import click

from weft.cli.inputs import InputOptions, input_options
from weft.cli.options import option
from weft.cli.printing import json_option, say, say_json


class _Convert(click.Command):
    """Has a flag for each option of a format; to load those would slow down all other commands."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        from weft.formats import FORMATS
        from weft.formats.format import flag

        takers: dict[str, list[str]] = {}
        for kind in FORMATS.values():
            for name in kind.options:
                takers.setdefault(name, []).append(kind.name)
        flags: list[click.Parameter] = []
        for name, kinds in takers.items():
            option = FORMATS[kinds[0]].options[name]
            words = f"For {', '.join(kinds)}: {option.help}."
            number = int if option.parse is int else str
            flags.append(
                click.Option([flag(name)], type=number, metavar=option.metavar, help=words)
            )
        own = super().get_params(ctx)
        return [*own[:-2], *flags, *own[-2:]]  # before --json and --help


@click.command(cls=_Convert)
@input_options("IN")
@click.argument("output", metavar="OUT")
@option("--to FORMAT", "Format of OUT, instead of what its suffix asks for.")
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
    suffix names the format: .weft (a compact store), .xml (msccl), .csv, .json (a table; an
    MSCCL++ plan needs --to mscclpp). Traces that do not come from Weft need --collective.

    \b
    Examples:
      weft convert allreduce.xml traces
      weft convert traces allreduce.xml --dialect rccl
      weft convert traces plan.json --to mscclpp --gpus-per-node 8
      weft convert all-gather.weft traces --ranks 0-3,17
      weft convert ring/ag_ring traces --collective all-gather
      weft convert rows.csv traces --collective all-reduce --size 64MiB --chunks 2
    """  # noqa: D301 - click reads the control character
    from pathlib import Path

    from weft.api import convert as run
    from weft.cli import progress
    from weft.formats import format_for

    began = time.perf_counter()
    target = format_for(Path(output), to)
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    target.check_options(given)
    given = {name: target.options[name].parse(value) for name, value in given.items()}
    how: dict[str, Any] = {"read_as": source.kind, "write_as": to, "hints": source.hints()}
    how["options"] = given
    done = progress.run("reading", lambda report: run(source.path, output, progress=report, **how))
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
    for note in done.notes:
        say(note)
    if to is None and target.namesakes:
        say(target.described(output))
