"""The tables of ``weft simulate`` for traces: the run, its busiest links, what decided its time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weft import _core
from weft.cli.tables import (
    Rows,
    both_ends,
    print_facts,
    print_rows,
    shown_models,
    shown_shares,
    shown_time,
)
from weft.replay import Step, TraceRun
from weft.units import format_time

_MOST_STUCK = 5
_SHARES = {
    "compute_us": "computing",
    "transfer_us": "transferring",
    "waiting_for_links_us": "waiting for links",
}


def print_trace_run(run: TraceRun, timeline: Path | None) -> None:
    """Print the figures for people."""
    figures = run.to_dict()
    rows = _rows(run, figures)
    if timeline is not None:
        rows.append(("timeline in", str(timeline)))
    print_facts(run.title, rows)
    links = [
        (f"{link['src']} > {link['dst']}", shown_time(busy), f"{busy / run.time_us:.1%}")
        for link in figures["busiest_links"]
        if (busy := link["busy_us"])
    ]
    if links:
        print_rows("busiest links", ("ends", "busy", "utilisation"), links, words=("ends",))
    if run.critical_path:
        names = ("step", "rank", "node", "does", "start", "end", "waited for links")
        steps = (_step(*one) for one in both_ends(run.critical_path))
        print_rows("critical path", names, steps, words=("does",))


def _rows(run: TraceRun, figures: dict[str, Any]) -> Rows:
    path, time = figures["critical_path"], max(run.time_us, 1e-6)
    shares = shown_shares((path[name] / time, what) for name, what in _SHARES.items())
    first = int(run.finish[run.finish >= 0].min(initial=run.time))
    rows = [
        ("time", f"{format_time(run.time)} ({_model(run)})"),
        ("ranks", f"{run.ranks:,}, {run.nodes:,} nodes"),
        ("first rank to finish", format_time(first)),
        ("critical path", f"{len(path['steps']):,} step(s): {shares}"),
    ]
    if run.lowered is not None:
        count, algorithms = run.lowered["lowered_count"], len(run.lowered["algorithms"])
        rows.insert(2, ("collectives", f"{count:,}, by {algorithms} algorithm(s)"))
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
    return shown_models(run.cost.latency_model, run.cost.switching, switched)


def _step(number: int, step: Step | None) -> tuple[object, ...]:
    if step is None:
        return ("...", "", "", f"{number:,} more", "", "", "")
    toward = "from" if step.kind == "receive" else "to"
    return (
        number,
        step.rank,
        step.node,
        step.kind if step.peer is None else f"{step.kind} {toward} {step.peer}",
        format_time(step.start),
        format_time(step.end),
        format_time(step.waited) if step.waited else "",
    )
