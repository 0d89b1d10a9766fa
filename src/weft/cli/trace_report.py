"""The tables of ``weft simulate`` for traces: the run, its busiest links, what decided its time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from weft import _core
from weft.cli.printing import cell
from weft.cli.report import print_whole
from weft.replay import TraceRun
from weft.units import PS_PER_US, format_time

_MOST_STUCK = 5
_MOST_STEPS = 4  # at either end of the path


def print_trace_run(run: TraceRun, timeline: Path | None) -> None:
    """Print the figures for people."""
    figures = run.to_dict()
    table = Table(title=cell(f"{run.where} on {run.network}"), show_header=False)
    for row in _rows(run, figures):
        table.add_row(*map(cell, row))
    if timeline is not None:
        table.add_row(cell("timeline in"), cell(str(timeline)))
    console = Console()
    console.print(table)
    if figures["busiest_links"]:
        print_whole(console, _link_table(figures["busiest_links"], run.time))
    if figures["critical_path"]["steps"]:
        print_whole(console, _step_table(run))


def _rows(run: TraceRun, figures: dict[str, Any]) -> list[tuple[str, str]]:
    path, time = figures["critical_path"], max(run.time_us, 1e-6)
    shares = [
        f"{path[name] / time:.1%} {what}"
        for name, what in (
            ("compute_us", "computing"),
            ("transfer_us", "transferring"),
            ("waiting_for_links_us", "waiting for links"),
        )
        if path[name]
    ]
    rows = [
        ("time", f"{format_time(run.time)} ({_model(run)})"),
        ("ranks", f"{run.ranks:,}, {run.nodes:,} nodes"),
        (
            "first rank to finish",
            format_time(int(run.finish[run.finish >= 0].min(initial=run.time))),
        ),
        (
            "critical path",
            f"{len(path['steps']):,} step(s): {', '.join(shares) or 'nothing moves'}",
        ),
    ]
    if run.lowered is not None:
        lowered = run.lowered
        rows.insert(
            2,
            (
                "collectives",
                f"{lowered['lowered_count']:,}, by {len(lowered['algorithms'])} algorithm(s)",
            ),
        )
    if not run.finished:
        rows.append(("NEVER ENDS", f"{run.unfinished:,} of {run.nodes:,} nodes"))
        rows += [("", str(one)) for one in run.stuck[:_MOST_STUCK]]
    return rows


def _model(run: TraceRun) -> str:
    """Under which rules it ran: ASTRA-sim's, or the choices of Weft's cost model."""
    if run.cost is None:
        exact = _core.orders_as_astra_sim
        return f"as {run.model}" + ("" if exact else "; not built with libstdc++, ties may differ")
    switched = (run.links.dst >= run.npus).any()
    return f"{run.cost.latency_model} α" + (f", {run.cost.switching}" if switched else "")


def _link_table(links: list[dict[str, Any]], time: int) -> Table:
    table = Table(title=cell("busiest links"), box=box.SIMPLE_HEAD)
    for name in ("ends", "busy", "utilisation"):
        table.add_column(name, justify="left" if name == "ends" else "right")
    for link in links:
        busy = link["busy_us"] * PS_PER_US
        ends = f"{link['src']} > {link['dst']}"
        cells = (ends, format_time(busy), f"{busy / time:.1%}")
        table.add_row(*map(cell, cells))
    return table


def _step_table(run: TraceRun) -> Table:
    """The first and the last steps of the critical path."""
    table = Table(title=cell("critical path"), box=box.SIMPLE_HEAD)
    for name in ("step", "rank", "node", "does", "start", "end", "waited for links"):
        table.add_column(name, justify="left" if name == "does" else "right")
    steps = run.critical_path
    cut = len(steps) > 2 * _MOST_STEPS + 1
    for number, step in enumerate(steps):
        if cut and number == _MOST_STEPS:
            more = len(steps) - 2 * _MOST_STEPS
            table.add_row("...", "", "", f"{more:,} more", "", "", "")
        if cut and _MOST_STEPS <= number < len(steps) - _MOST_STEPS:
            continue
        toward = "from" if step.kind == "receive" else "to"
        does = step.kind if step.peer is None else f"{step.kind} {toward} {step.peer}"
        cells = (
            str(number + 1),
            str(step.rank),
            str(step.node),
            does,
            format_time(step.start),
            format_time(step.end),
            format_time(step.waited) if step.waited else "",
        )
        table.add_row(*map(cell, cells))
    return table
