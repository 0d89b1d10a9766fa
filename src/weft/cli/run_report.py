"""The tables of ``weft simulate``: the run, its busiest links, and what decided its time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from weft.cli.printing import cell
from weft.cli.report import group_table, print_whole
from weft.engine import QUARTERS, Report
from weft.units import PS_PER_US, format_bandwidth, format_size, format_time

_MOST_LINKS = 10
_MOST_STEPS = 4  # at either end of the path
_ORDERS = {"plan": "links in the planned order", "fifo": "links first come first served"}


def print_run(report: Report, source: str, timeline: Path | None) -> None:
    """Print the figures for people."""
    figures = report.to_dict()
    table = Table(title=cell(f"{source} on {report.run.topology.title}"), show_header=False)
    rows = [*_times(report, figures["plan"]), *_uses(report), *_path(report)]
    if timeline is not None:
        rows.append(("timeline in", str(timeline)))
    for row in rows:
        table.add_row(*map(cell, row))
    console = Console()
    console.print(table)
    if len(report.groups) > 1:
        print_whole(console, group_table(report.groups))
    if len(report.run.critical_path):
        print_whole(console, _link_table(report))
        print_whole(console, _step_table(report, figures["critical_path"]["steps"]))


def _times(report: Report, planned: dict[str, Any] | None) -> list[tuple[str, str]]:
    run, bound = report.run, report.bound
    models = f"{run.cost.latency_model} α" + (
        f", {run.cost.switching}" if run.topology.switches else ""
    )
    how = _ORDERS[run.order]
    if run.reducer is not None:
        how += f", NPUs add {format_bandwidth(float(run.reducer))}"
    slowest = " in the slowest group" if len(report.groups) > 1 else ""
    return [
        ("time", f"{format_time(run.time)} ({models})"),
        ("run", f"{len(run.transfers):,} transfers, {how}"),
        *_plan(report, planned),
        ("algorithm bandwidth", f"{report.algbw_GBps:.4g} GB/s{slowest}"),
        ("bus bandwidth", f"{report.busbw_GBps:.4g} GB/s{slowest}"),
        (
            "lower bound",
            f"{format_time(bound.time)} ({bound.kind}); {format_time(bound.ideal)} with any chunks",
        ),
        ("efficiency", f"{report.efficiency:.2%} of the lower bound's speed"),
    ]


def _plan(report: Report, figures: dict[str, Any] | None) -> list[tuple[str, str]]:
    """What was planned, and where the run is not that."""
    plan = report.plan
    if plan is None or figures is None:
        return []
    first = figures["first"]
    if first is None:
        return [("planned", f"{format_time(plan.planned)}, and all transfers start as planned")]
    network = report.run.topology
    over = ", ".join(network.link_name(link) for link in first["route"])
    moved = [
        f"{count:,} start {word}, by up to {format_time(most)}"
        for count, word, most in (
            (plan.earlier, "earlier", plan.most_earlier),
            (plan.later, "later", plan.most_later),
        )
        if count
    ]
    return [
        ("planned", f"{format_time(plan.planned)}; {' and '.join(moved)}"),
        (
            "first to differ",
            f"chunk {first['chunk']}, {first['src']} > {first['dst']} over {over or 'no link'}: "
            f"planned at {format_time(first['planned_us'] * PS_PER_US)}, "
            f"starts at {format_time(first['start_us'] * PS_PER_US)}",
        ),
    ]


def _uses(report: Report) -> list[tuple[str, str]]:
    use = report.links
    spans = [f"up to {QUARTERS[0]:.0%}"]
    spans += [f"{low:.0%} to {high:.0%}" for low, high in pairwise(QUARTERS)]
    counts = [f"{span}: {links:,}" for span, links in zip(spans, use.quarters, strict=True)]
    return [
        ("links held", f"{use.mean:.1%} of the time; from {use.least:.1%} to {use.most:.1%}"),
        ("how many links", f"idle: {use.idle:,}; {'; '.join(counts)}"),
    ]


def _path(report: Report) -> list[tuple[str, str]]:
    path, time = report.path, max(report.run.time, 1)
    shares = [
        f"{share / time:.1%} {what}"
        for share, what in (
            (path.moving, "moving data"),
            (path.latency, "latency"),
            (path.waiting, "waiting for links"),
            (path.adding, "adding"),
        )
        if share
    ]
    steps = len(report.run.critical_path)
    return [("critical path", f"{steps:,} step(s): " + (", ".join(shares) or "nothing moves"))]


def _link_table(report: Report) -> Table:
    """The busiest links, and what the critical path did there."""
    table = Table(title=cell("busiest links"), box=box.SIMPLE_HEAD)
    for name in ("link", "ends", "bandwidth", "busy", "utilisation", "carried", "on the path"):
        table.add_column(name, justify="left" if name == "ends" else "right")
    use, path, network = report.links, report.path, report.run.topology
    for link in use.busiest[:_MOST_LINKS].tolist():
        cells = (
            str(link),
            network.link_name(link),
            format_bandwidth(float(network.bandwidth[link])),
            format_time(int(use.busy[link])),
            f"{use.utilisation[link]:.1%}",
            format_size(int(use.bytes[link])),
            format_time(float(path.moving_on[link] + path.waiting_for[link])),
        )
        table.add_row(*map(cell, cells))
    if len(use) > _MOST_LINKS:
        table.caption = cell(f"and {len(use) - _MOST_LINKS:,} more: see --json")
    return table


def _step_table(report: Report, steps: list[dict[str, Any]]) -> Table:
    """The first and the last steps of the critical path."""
    table = Table(title=cell("critical path"), box=box.SIMPLE_HEAD)
    for name in ("step", "chunk", "from > to", "start", "end", "waited for"):
        table.add_column(name, justify="left" if name in ("from > to", "waited for") else "right")
    cut = len(steps) > 2 * _MOST_STEPS + 1
    for number, step in enumerate(steps):
        if cut and number == _MOST_STEPS:
            table.add_row("", "...", "", "", "", f"{len(steps) - 2 * _MOST_STEPS:,} more")
        if cut and _MOST_STEPS <= number < len(steps) - _MOST_STEPS:
            continue
        cells = (
            str(number + 1),
            str(step["chunk"]),
            f"{step['src']} > {step['dst']}",
            format_time(step["start_us"] * PS_PER_US),
            format_time(step["end_us"] * PS_PER_US),
            _reason(report, step),
        )
        table.add_row(*map(cell, cells))
    return table


def _reason(report: Report, step: dict[str, Any]) -> str:
    if step["cause"] == "link":
        return f"link {report.run.topology.link_name(step['link'])}"
    reasons = {"start": "nothing", "data": "the step before", "adding": "adding before it"}
    return reasons[step["cause"]]
