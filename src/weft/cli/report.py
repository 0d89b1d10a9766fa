"""The tables of ``weft synth`` and ``weft lower``: the whole, then a row per group or algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.cli.printing import say
from weft.cli.tables import (
    Rows,
    has_shares,
    print_facts,
    print_rows,
    shown_cut,
    shown_group,
    shown_models,
    shown_time,
)
from weft.collective import Collective
from weft.display import named
from weft.figures import Grouped, GroupResult
from weft.result import Result
from weft.topology.links import titled
from weft.units import format_size, format_time

if TYPE_CHECKING:
    from weft.workload import Lowering

_MOST_GROUPS = 32
_MOST_LETTERS = 24


def print_tables(result: Result, output: str | None, stored: int | None) -> None:
    """Print the figures for people; `stored` says how many bytes were saved in `output`."""
    rows = _rows(result)
    if output is not None and stored is not None:
        count = len(result.algorithm)
        each = f", {stored / count:.3g} B per transfer" if count else ""
        rows.append(("saved in", f"{output} ({format_size(stored)}{each})"))
    kinds = [demand.kind for demand in result.algorithm.demands]
    print_facts(f"{named(kinds)} on {result.topology.title}", rows)
    print_groups(result.groups)


def print_attempts(result: Result) -> None:
    """Print every planner's turn: what it gave, and what that cost."""
    least = result.algorithm.time
    print_rows(
        "planners",
        ("method", "chunks", "time", "of the best", "seconds", "note"),
        (
            (
                attempt.method,
                "" if attempt.chunks is None else f"{attempt.chunks:,}",
                "" if attempt.time is None else format_time(attempt.time),
                "" if attempt.time is None else f"x{attempt.time / max(least, 1):.3f}",
                f"{attempt.seconds:.3f}" if attempt.seconds else "",
                attempt.note,
            )
            for attempt in result.tried
        ),
        words=("method", "note"),
    )


def print_lowering(lowering: Lowering, output: str) -> None:
    """Print what became of a workload's collectives."""
    figures = lowering.to_dict()
    algorithms = figures["algorithms"]
    rows = [
        ("ranks", str(figures["ranks"])),
        ("collectives", f"{figures['lowered_count']:,} of {figures['collective_count']:,} lowered"),
        *((f"{count:,} kept", reason) for reason, count in figures["kept"].items()),
        ("algorithms", f"{len(algorithms)}, each synthesized once and verified"),
    ]
    if figures["trace_count"] > figures["ranks"]:
        rows.append(("traces", f"{figures['trace_count']}, since NPUs without one relay"))
    print_facts(f"{output}: lowered for {titled(figures['topology'], figures['changes'])}", rows)
    if algorithms:
        print_rows(
            "algorithms",
            ("collective", "groups", "comm_size", "uses", "time", "lower bound", "efficiency"),
            map(_algorithm_row, algorithms[:_MOST_GROUPS]),
            words=("collective", "groups"),
            more=len(algorithms) - _MOST_GROUPS,
        )
    for note in lowering.notes:
        say(note)


def _algorithm_row(figures: dict[str, Any]) -> tuple[str, ...]:
    groups = figures["groups"]
    more = f" and {len(groups) - 1} more" if len(groups) > 1 else ""
    return (
        figures["collective"],
        _shortened(groups[0]["members"]) + more,
        format_size(figures["comm_size_bytes"]),
        f"{figures['uses']:,}",
        shown_time(figures["time_us"]),
        shown_time(figures["lower_bound_us"]),
        f"{figures['efficiency']:.2%}",
    )


def _rows(result: Result) -> Rows:
    figures = result.to_dict()
    models = shown_models(figures["latency_model"], figures["switching"], result.topology.switches)
    return [
        *_demand_rows(result),
        ("time", f"{format_time(result.algorithm.time)} ({models})"),
        *speed_rows(result),
        ("transfers", f"{len(result.algorithm):,}"),
        ("synthesis", f"{result.synthesis_s:.3f} s ({figures['method']}, seed {figures['seed']})"),
        ("verified", "yes" if result.verified else f"NO: {result.verdict.violation}"),
    ]


def speed_rows(done: Grouped) -> Rows:
    """Bandwidths, and how near the lower bound they are."""
    slowest = " in the slowest group" if len(done.groups) > 1 else ""
    together = " (all groups)" if slowest else ""
    bound = done.bound
    kind = f"({bound.kind}); {format_time(bound.ideal)} with any chunks"
    return [
        ("algorithm bandwidth", f"{done.algbw_GBps:.4g} GB/s{slowest}"),
        ("bus bandwidth", f"{done.busbw_GBps:.4g} GB/s{slowest}"),
        ("lower bound", f"{format_time(bound.time)} {kind}"),
        ("efficiency", f"{done.efficiency:.2%} of the lower bound's speed{together}"),
    ]


def _demand_rows(result: Result) -> Rows:
    """What was asked for, where there is one group; several have rows of their own."""
    if len(result.groups) > 1:
        return []
    demand = result.collective
    cut = shown_cut(demand.kind, demand.chunks_per_share)
    if not has_shares(demand.kind):
        up_to = "up to " * (demand.smallest_chunk < demand.largest_chunk)
        cut = f"{cut} of {up_to}{format_size(demand.largest_chunk)}"
    if demand.pattern.any_cut and demand.parts is not None:  # in fewer chunks than NPUs
        cut = f"{len(demand.chunks)} chunk(s)"
    rows = [("size", f"{format_size(demand.size)} in {cut}")]
    if demand.group != tuple(result.topology.members.tolist()):
        rows.insert(0, ("group", _members(demand)))
    return rows


def print_groups(groups: Sequence[GroupResult]) -> None:
    """Print a row per group, if there are several.

    A group's own bound is no measure of it here: all others run at the same time.
    """
    if len(groups) > 1:
        print_rows(
            "groups",
            ("NPUs", "collective", "size", "chunks", "time", "bound alone on the network"),
            map(_group_row, groups[:_MOST_GROUPS]),
            words=("NPUs", "collective"),
            more=len(groups) - _MOST_GROUPS,
        )


def _group_row(group: GroupResult) -> tuple[str, ...]:
    demand = group.collective
    return (
        _members(demand),
        demand.kind,
        format_size(demand.size),
        str(demand.chunks_per_share),
        format_time(group.time),
        format_time(group.bound.time),
    )


def _members(demand: Collective) -> str:
    return _shortened(demand.group) + ("" if demand.relay else ", no relays")


def _shortened(group: Sequence[int]) -> str:
    text = shown_group(group, _MOST_LETTERS)
    return f"{text} ({len(group)})" if text.endswith("...") else text
