"""The tables of ``weft simulate``: the run, its busiest links, and what decided its time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from weft.cli.report import print_groups, speed_rows
from weft.cli.tables import (
    Rows,
    both_ends,
    print_facts,
    print_rows,
    shown_models,
    shown_shares,
    shown_time,
)
from weft.engine import QUARTERS, Report
from weft.units import format_bandwidth, format_size, format_time

_MOST_LINKS = 10
_ORDERS = {"plan": "links in the planned order", "fifo": "links first come first served"}
_REASONS = {"start": "nothing", "data": "the step before", "adding": "adding before it"}


def print_run(report: Report, source: str, timeline: Path | None) -> None:
    """Print the figures for people."""
    figures = report.to_dict()
    rows = [*_times(report, figures["plan"]), *_uses(report), _path(report)]
    if timeline is not None:
        rows.append(("timeline in", str(timeline)))
    print_facts(f"{source} on {report.run.topology.title}", rows)
    print_groups(report.groups)
    if len(report.run.critical_path):
        _print_links(report)
        _print_steps(report, figures["critical_path"]["steps"])


def _times(report: Report, planned: dict[str, Any] | None) -> Rows:
    run = report.run
    models = shown_models(run.cost.latency_model, run.cost.switching, run.topology.switches)
    how = _ORDERS[run.order]
    if run.reducer is not None:
        how += f", NPUs add {format_bandwidth(float(run.reducer))}"
    return [
        ("time", f"{format_time(run.time)} ({models})"),
        ("run", f"{len(run.transfers):,} transfers, {how}"),
        *_plan(report, planned),
        *speed_rows(report),
    ]


def _plan(report: Report, figures: dict[str, Any] | None) -> Rows:
    """What was planned, and where the run is not that."""
    plan = report.plan
    if plan is None or figures is None:
        return []
    first = figures["first"]
    if first is None:
        return [("planned", f"{format_time(plan.planned)}, and all transfers start as planned")]
    over = ", ".join(report.run.topology.link_name(link) for link in first["route"])
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
            f"planned at {shown_time(first['planned_us'])}, "
            f"starts at {shown_time(first['start_us'])}",
        ),
    ]


def _uses(report: Report) -> Rows:
    use = report.links
    spans = [f"up to {QUARTERS[0]:.0%}"]
    spans += [f"{low:.0%} to {high:.0%}" for low, high in pairwise(QUARTERS)]
    counts = [f"{span}: {links:,}" for span, links in zip(spans, use.quarters, strict=True)]
    return [
        ("links held", f"{use.mean:.1%} of the time; from {use.least:.1%} to {use.most:.1%}"),
        ("how many links", f"idle: {use.idle:,}; {'; '.join(counts)}"),
    ]


def _path(report: Report) -> tuple[str, str]:
    path, time = report.path, max(report.run.time, 1)
    shares = (
        (path.moving / time, "moving data"),
        (path.latency / time, "latency"),
        (path.waiting / time, "waiting for links"),
        (path.adding / time, "adding"),
    )
    return "critical path", f"{len(report.run.critical_path):,} step(s): {shown_shares(shares)}"


def _print_links(report: Report) -> None:
    """The busiest links, and what the critical path did there."""
    use, path, network = report.links, report.path, report.run.topology
    rows = (
        (
            link,
            network.link_name(link),
            format_bandwidth(float(network.bandwidth[link])),
            format_time(int(use.busy[link])),
            f"{use.utilisation[link]:.1%}",
            format_size(int(use.bytes[link])),
            format_time(float(path.moving_on[link] + path.waiting_for[link])),
        )
        for link in use.busiest[:_MOST_LINKS].tolist()
    )
    names = ("link", "ends", "bandwidth", "busy", "utilisation", "carried", "on the path")
    print_rows("busiest links", names, rows, words=("ends",), more=len(use) - _MOST_LINKS)


def _print_steps(report: Report, steps: list[dict[str, Any]]) -> None:
    """The first and the last steps of the critical path."""

    def row(number: int, step: dict[str, Any] | None) -> tuple[object, ...]:
        if step is None:
            return ("", "...", "", "", "", f"{number:,} more")
        waited = _REASONS.get(step["cause"])
        return (
            number,
            step["chunk"],
            f"{step['src']} > {step['dst']}",
            shown_time(step["start_us"]),
            shown_time(step["end_us"]),
            waited or f"link {report.run.topology.link_name(step['link'])}",
        )

    names = ("step", "chunk", "from > to", "start", "end", "waited for")
    rows = (row(*one) for one in both_ends(steps))
    print_rows("critical path", names, rows, words=("from > to", "waited for"))
