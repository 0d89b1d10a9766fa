"""``weft reproduce``: the evaluations of papers, run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weft.cli.printing import cell, json_option, say, say_json

if TYPE_CHECKING:
    from pathlib import Path

    from weft._core import Progress
    from weft.reproduce import Report


@click.command()
@click.argument("name", metavar="tacos|pccl|standard")
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    help="Write a page into this folder, and its figures into DIR/figures; needs weft[plot].",
)
@click.option("--quick", is_flag=True, help="Smaller sizes and networks: seconds, not minutes.")
@json_option
def reproduce(name: str, output: str | None, quick: bool, as_json: bool) -> None:
    """Run the evaluation of a paper again, as far as it is known, and print what came out.

    tacos: All-Reduce and All-Gather on ten networks beside classical algorithms, synthesis times,
    and a training step. pccl: process groups, All-to-All at scale and irregular patterns, over
    Direct. standard: one algorithm by several doors through Chakra to several simulators.

    \b
    Examples:
      weft reproduce tacos -o docs
      weft reproduce standard --quick
    """  # noqa: D301 - click reads the control character
    from pathlib import Path

    from weft import reproduce as papers
    from weft.cli import progress
    from weft.errors import InputError

    if output == "":
        raise InputError("--output is empty; give the folder to write to")
    folder = None if output is None else Path(output)

    def work(report: Progress) -> Report:
        return papers.reproduce(name, folder, quick=quick, progress=report)

    report = progress.run(f"reproducing {name}", work)
    if as_json:
        say_json(report.to_dict())
    else:
        _print(report, folder)
    if not report.verified:
        raise click.exceptions.Exit(1)


def _print(report: Report, folder: Path | None) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from weft.cli.report import print_whole

    for experiment in report.experiments:
        for table in experiment.tables:
            shown = Table(
                title=cell(f"{experiment.title}. {table.title.rstrip(':')}"), box=box.SIMPLE_HEAD
            )
            for i, column in enumerate(table.columns):
                numbers = all(isinstance(row[i], int | float | None) for row in table.rows)
                shown.add_column(cell(column), justify="right" if numbers else "left")
            for row in table.texts():
                shown.add_row(*map(cell, row))
            print_whole(Console(), shown)
    if folder is not None:
        say(f"written: {folder}/{report.page}")
