"""The tables of ``weft synth`` and ``weft lower``: the whole, then one row a group or algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

from weft.cli.printing import cell
from weft.collective import Collective, format_group
from weft.figures import GroupResult
from weft.result import Result
from weft.topology.links import titled
from weft.units import PS_PER_US, format_size, format_time

if TYPE_CHECKING:
    from weft.workload import Lowering

_MOST_GROUPS = 32
_MOST_LETTERS = 24
_WIDEST = 200


def print_tables(result: Result, output: str | None, stored: int | None) -> None:
    """Print the figures for people; `stored` says how many bytes were saved in `output`."""
    table = Table(title=cell(_title(result)), show_header=False)
    for name, value in _rows(result):
        table.add_row(cell(name), cell(value))
    if output is not None and stored is not None:
        each = (
            f", {stored / len(result.algorithm):.3g} B a transfer" if len(result.algorithm) else ""
        )
        table.add_row(cell("saved in"), cell(f"{output} ({format_size(stored)}{each})"))
    console = Console()
    console.print(table)
    if len(result.groups) > 1:
        print_whole(console, group_table(result.groups))


def print_lowering(lowering: Lowering, output: str) -> None:
    """Print what became of a workload's collectives."""
    figures = lowering.to_dict()
    title = titled(figures["topology"], figures["changes"])
    table = Table(title=cell(f"{output}: lowered for {title}"), show_header=False)
    algorithms = figures["algorithms"]
    rows = [
        ("ranks", str(figures["ranks"])),
        ("collectives", f"{figures['lowered_count']:,} of {figures['collective_count']:,} lowered"),
        *((f"{count:,} kept", reason) for reason, count in figures["kept"].items()),
        ("algorithms", f"{len(algorithms)}, each synthesized once and verified"),
    ]
    if figures["trace_count"] > figures["ranks"]:
        rows.append(("traces", f"{figures['trace_count']}, since NPUs without one relay"))
    for row in rows:
        table.add_row(*map(cell, row))
    console = Console()
    console.print(table)
    if algorithms:
        print_whole(console, _algorithm_table(algorithms))


def _algorithm_table(algorithms: list[dict[str, Any]]) -> Table:
    table = Table(title=cell("algorithms"), box=box.SIMPLE_HEAD)
    names = ("collective", "groups", "comm_size", "uses", "time", "lower bound", "efficiency")
    for name in names:
        table.add_column(name, justify="left" if name in ("collective", "groups") else "right")
    for figures in algorithms[:_MOST_GROUPS]:
        groups = figures["groups"]
        more = f" and {len(groups) - 1} more" if len(groups) > 1 else ""
        cells = (
            figures["collective"],
            shortened(groups[0]["members"]) + more,
            format_size(figures["comm_size_bytes"]),
            f"{figures['uses']:,}",
            format_time(figures["time_us"] * PS_PER_US),
            format_time(figures["lower_bound_us"] * PS_PER_US),
            f"{figures['efficiency']:.2%}",
        )
        table.add_row(*map(cell, cells))
    if len(algorithms) > _MOST_GROUPS:
        table.caption = cell(f"and {len(algorithms) - _MOST_GROUPS} more: see --json")
    return table


def print_whole(console: Console, table: Table) -> None:
    """Print a table as wide as it is: cells cut short would be worse than lines that wrap."""
    wide = console.measure(table, options=console.options.update(max_width=_WIDEST)).maximum
    Console(width=max(console.width, wide)).print(table)


def _title(result: Result) -> str:
    demands = result.algorithm.demands
    kinds = list(dict.fromkeys(demand.kind for demand in demands))
    if len(kinds) > 1:
        what = f"{len(demands)} collectives"
    else:
        what = kinds[0] + (f" in {len(demands)} groups" if len(demands) > 1 else "")
    return f"{what} on {result.topology.title}"


def _rows(result: Result) -> list[tuple[str, str]]:
    figures = result.to_dict()
    ideal = f"; {format_time(result.bound.ideal)} with any chunks"
    models = f"{figures['latency_model']} α" + (
        f", {figures['switching']}" if result.topology.switches else ""
    )
    slowest = " in the slowest group" if len(result.groups) > 1 else ""
    verified = "yes" if result.verified else f"NO: {result.verdict.violation}"
    return [
        *_demand_rows(result),
        ("time", f"{format_time(result.algorithm.time)} ({models})"),
        ("algorithm bandwidth", f"{result.algbw_GBps:.4g} GB/s{slowest}"),
        ("bus bandwidth", f"{result.busbw_GBps:.4g} GB/s{slowest}"),
        ("lower bound", f"{format_time(result.bound.time)} ({result.bound.kind})" + ideal),
        ("efficiency", f"{result.efficiency:.2%} of the lower bound's speed"),
        ("transfers", f"{len(result.algorithm):,}"),
        ("synthesis", f"{result.synthesis_s:.3f} s ({figures['method']}, seed {figures['seed']})"),
        ("verified", verified),
    ]


def _demand_rows(result: Result) -> list[tuple[str, str]]:
    """What was asked for, where there is one group; several have rows of their own."""
    if len(result.groups) > 1:
        return []
    demand = result.collective
    cut = f"{demand.chunks_per_share} chunk(s) a share"
    if demand.pattern.any_cut and demand.parts is not None:  # in fewer chunks than NPUs
        cut = f"{len(demand.chunks)} chunk(s)"
    rows = [("size", f"{format_size(demand.size)} in {cut}")]
    if demand.group != tuple(result.topology.members.tolist()):
        rows.insert(0, ("group", _members(demand)))
    return rows


def group_table(groups: tuple[GroupResult, ...]) -> Table:
    table = Table(title=cell("groups"), box=box.SIMPLE_HEAD)
    for name in ("NPUs", "collective", "size", "chunks", "time", "lower bound", "efficiency"):
        table.add_column(name, justify="left" if name in ("NPUs", "collective") else "right")
    for group in groups[:_MOST_GROUPS]:
        demand = group.collective
        cells = (
            _members(demand),
            demand.kind,
            format_size(demand.size),
            str(demand.chunks_per_share),
            format_time(group.time),
            format_time(group.bound.time),
            f"{group.efficiency:.2%}",
        )
        table.add_row(*map(cell, cells))
    if len(groups) > _MOST_GROUPS:
        table.caption = cell(f"and {len(groups) - _MOST_GROUPS} more: see --json")
    return table


def _members(demand: Collective) -> str:
    return shortened(demand.group) + ("" if demand.relay else ", no relays")


def shortened(group: Sequence[int]) -> str:
    text = format_group(group)
    if len(text) > _MOST_LETTERS:  # no item alone is that long
        text = f"{text[: text.rindex(',', 0, _MOST_LETTERS)]},... ({len(group)})"
    return text
