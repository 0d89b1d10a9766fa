"""``python -m papers NAME ...``: what others published, run again with Weft."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table

from papers import chunks, compare, convert, fabrics, lab, pccl, scale, simulate, standard, tacos
from papers.report import Experiment, Extent, Report, Setup, check_folder
from weft._core import Progress
from weft.cli import progress
from weft.cli.commands import run
from weft.cli.printing import cell, json_option, say, say_json
from weft.cli.tables import print_whole
from weft.errors import InputError, unknown_name

PAPERS = {module.PAPER.name: module.PAPER for module in (tacos, pccl, standard)}
SUITES = {
    "tacos": tacos,
    "pccl": pccl,
    "fabrics": fabrics,
    "convert": convert,
    "simulate": simulate,
    "chunks": chunks,
}
TABLES = {name: table for suite in SUITES.values() for name, table in suite.TABLES.items()}
PAGES = {
    "compare": compare.write,
    "compare-fabrics": compare.write_fabrics,
    "scale": scale.write,
    "lab": lab.write,
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name")
@click.argument("tables", nargs=-1)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    help="Write a paper's page into this folder, and its figures into DIR/figures.",
)
@click.option("--quick", is_flag=True, help="A paper with smaller sizes and networks: seconds.")
@click.option("--long", is_flag=True, help="Tables with what takes very long.")
@json_option
def main(
    name: str, tables: tuple[str, ...], output: str | None, quick: bool, long: bool, as_json: bool
) -> None:
    """Run the evaluation of a paper again, or print tables beside published figures.

    \b
    tacos      All-Reduce and All-Gather on ten networks beside classical algorithms, synthesis
               times, and a training step
    pccl       process groups, All-to-All at scale and irregular patterns, over Direct
    standard   one algorithm by several doors through Chakra to several simulators
    bench      all tables beside the published figures in a short form; those of a suite or by name
               in full: bench tacos pccl fabrics convert simulate chunks, bench meshes --long
    fabrics, convert, simulate, chunks    those suites
    compare    writes docs/comparison.md; compare-fabrics docs/comparison-fabrics.md
    scale      writes docs/scaling.md
    lab        writes docs/lab-figures.md; needs root
    """  # noqa: D301 - click reads the control character
    if output == "":
        raise InputError("--output is empty; give the folder to write to")
    if name in PAGES:
        PAGES[name]()
        return
    if name in PAPERS:
        folder = None if output is None else Path(output)
        verified = _evaluate(name, folder, quick=quick, as_json=as_json)
    elif name == "bench" or name in SUITES:
        wanted = tables if name == "bench" else (name, *tables)
        extent = Extent.LONG if long else Extent.USUAL if wanted else Extent.SHORT
        verified = _print_tables(wanted, extent, as_json=as_json)
    else:
        raise unknown_name("paper", name, {*PAPERS, *PAGES, *SUITES, "bench"})
    if not verified:
        raise click.exceptions.Exit(1)


def _evaluate(name: str, folder: Path | None, *, quick: bool, as_json: bool) -> bool:
    if folder is not None:
        check_folder(folder)
    paper = PAPERS[name]

    def work(shown: Progress) -> list[Experiment]:
        setups = paper.setups(quick)
        shown.begin(sum(len(setup.instances) for setup in setups))
        return [setup.run(shown.advance) for setup in setups]

    report = Report(paper, quick, progress.run(f"reproducing {name}", work))
    if folder is not None:
        report.save(folder)
    if as_json:
        say_json(report.to_dict())
    else:
        for experiment in report.experiments:
            _print(experiment)
        if folder is not None:
            say(f"written: {folder}/{report.page}")
    return report.verified


def _print_tables(names: Sequence[str], extent: Extent, *, as_json: bool) -> bool:
    known = {*SUITES, *TABLES}
    for name in names:
        if name not in known:
            raise unknown_name("table", name, known)
    found = []
    for suite, module in SUITES.items():
        tables = [n for n in module.TABLES if not names or {n, suite} & {*names}]
        if tables and not as_json:
            for line in (module.__doc__ or "").splitlines():
                say(line)
        for table in tables:
            setup: Setup = TABLES[table](extent)
            found.append(setup.run())
            if not as_json:
                _print(found[-1], digits=7)
    if as_json:
        say_json({"experiments": [one.to_dict() for one in found]})
    return all(one.verified for one in found)


def _print(experiment: Experiment, digits: int = 4) -> None:
    for table in experiment.tables:
        title = f"{experiment.title}. {table.title}".rstrip(":. ")
        shown = Table(title=cell(title), box=box.SIMPLE_HEAD)
        for i, column in enumerate(table.columns):
            numbers = all(isinstance(row[i], int | float | None) for row in table.rows)
            shown.add_column(cell(column), justify="right" if numbers else "left")
        for row in table.texts(digits):
            shown.add_row(*map(cell, row))
        print_whole(Console(), shown)


if __name__ == "__main__":
    sys.exit(run(main))
