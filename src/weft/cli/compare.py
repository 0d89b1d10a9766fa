"""``weft compare``: Weft beside classical algorithms, size by size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from weft.cli.demands import DemandOptions, swept_options
from weft.cli.options import (
    NetworkOptions,
    alignment_option,
    check_given,
    option,
    search_options,
    topology_argument,
)
from weft.cli.printing import json_option, say_json
from weft.errors import InputError


class _Compare(click.Command):
    """A command whose help lists what there is to compare with."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from weft.planners import PLANNERS

        super().format_options(ctx, formatter)
        beside = [(name, one.summary) for name, one in PLANNERS.items() if one.beside]
        with formatter.section("Classical algorithms"):
            formatter.write_dl(beside)


@click.command(cls=_Compare)
@topology_argument("TOPOLOGY")
@swept_options
@option(
    "--against NAME|FILE,...",
    "Classical algorithms to compare with, and files with your own; by default all classical "
    "ones that know COLLECTIVE.",
)
@search_options
@alignment_option
@option("--busbw", "Print bus bandwidths in GB/s instead of times.", is_flag=True)
@option("--csv FILE", "Write a line for each size and algorithm.", name="table")
@option("--plot FILE", "Draw bus bandwidth over size, as .svg, .png or .pdf (weft[plot]).")
@json_option
def compare(
    network: NetworkOptions,
    demands: DemandOptions,
    against: str | None,
    alignment: str,
    busbw: bool,
    table: str | None,
    plot: str | None,
    as_json: bool,
    **search: Any,
) -> None:
    """Compare Weft's algorithm for COLLECTIVE on TOPOLOGY with classical ones, at several sizes.

    Each chooses its own number of chunks, is verified, and is held against the lower bound.
    Where Weft's answer is a classical algorithm, or a classical one is faster, that is said.

    With several groups at once, "alone" is what becomes of them if each is synthesized as if it
    had the network to itself and all then run, first come first served.

    \b
    Examples:
      weft compare mesh:8x8 all-reduce
      weft compare dgx1 all-gather --sizes 1KiB:1GiB:2 --plot dgx1.svg --csv dgx1.csv
      weft compare torus:4x4 all-to-all --sizes 64KiB,16MiB --against direct --busbw
      weft compare mesh:8x8 all-gather --sizes 64MiB --parallel tp=8,dp=8 --along tp
      weft compare mesh:8x8 --plan groups.yaml --json
      weft compare h100:2 all-reduce --sizes 1MiB,1GiB --against ring,mine.xml
    """  # noqa: D301 - click reads the control character
    from weft.cli import progress
    from weft.cli.comparison import print_comparison
    from weft.comparison import Comparison
    from weft.comparison import compare as run
    from weft.comparison.files import csv_of, picture_of
    from weft.documents import new_file
    from weft.progress import Tracker
    from weft.units import parse_size

    _check_files(table, plot)
    align = parse_size(alignment)
    names = None if against is None else [name.strip() for name in against.split(",")]

    def work(report: Tracker) -> Comparison:
        topology = network.load()
        plans = demands.sweep(topology, align)
        return run(topology, plans, against=names, progress=report, **search)

    comparison = progress.run("comparing", work)
    files = {table: csv_of(comparison)} if table is not None else {}
    if plot is not None:
        files[plot] = picture_of(comparison, Path(plot).suffix)
    for path, data in files.items():
        new_file(Path(path), data)
    if as_json:
        say_json(comparison.to_dict())
    else:
        print_comparison(comparison, list(files), busbw=busbw)
    if not comparison.verified:
        raise click.exceptions.Exit(1)


def _check_files(table: str | None, plot: str | None) -> None:
    """Say that a file cannot be written before the work, not after it."""
    from weft.comparison.files import check_picture
    from weft.documents import check_new_file

    check_given(table, "--csv", "file")
    check_given(plot, "--plot", "file")
    if table is not None and plot is not None and Path(table) == Path(plot):
        raise InputError(f"--csv and --plot both name {table}")
    if table is not None:
        check_new_file(Path(table))
    if plot is not None:
        check_picture(Path(plot))
