"""The tables of ``weft show``."""

from __future__ import annotations

from typing import Any

from weft.algorithm import Activity
from weft.cli.tables import Rows, print_rows, shown_cut, shown_group, shown_models, shown_time
from weft.topology.links import titled
from weft.units import format_size

_MOST_GROUPS = 8
_MOST_LETTERS = 40


def facts_of(facts: dict[str, Any]) -> Rows:
    """What an algorithm is."""
    groups = facts["groups"]
    rows = [("collective", _demand(group)) for group in groups[:_MOST_GROUPS]]
    if len(groups) > _MOST_GROUPS:
        rows.append(("", f"and {len(groups) - _MOST_GROUPS} more: see --json"))
    if facts["topology"] is not None:
        rows.append(("network", _network(facts)))
    if facts["method"] is not None:
        rows.append(("method", str(facts["method"])))
    rows += [("transfers", f"{facts['transfers']:,}"), ("rows", _form(facts))]
    if facts["stored_bytes"] is not None:
        each = facts["stored_bytes"] / max(facts["transfers"], 1)
        rows.append(("stored", f"{format_size(facts['stored_bytes'])}, {each:.3g} B per transfer"))
    if facts["time_us"] is None:
        return [*rows, ("time", "none: it was made for no network")]
    models = shown_models(facts["latency_model"], facts["switching"], facts["switches"])
    return [*rows, ("time", f"{shown_time(facts['time_us'])} ({models})")]


def _demand(facts: dict[str, Any]) -> str:
    group = shown_group(facts["members"], _MOST_LETTERS)
    root = "" if facts["root"] is None else f", root {facts['root']}"
    return (
        f"{facts['collective']} of {format_size(facts['size_bytes'])} among {facts['ranks']:,} "
        f"NPUs ({group}){root}, {shown_cut(facts['collective'], facts['chunks'])}, "
        f"of up to {format_size(facts['largest_chunk_bytes'])}"
    )


def _network(facts: dict[str, Any]) -> str:
    switches = f", {facts['switches']:,} switch(es)" if facts["switches"] else ""
    title = titled(facts["topology"], facts["changes"])
    return f"{title}: {facts['npus']:,} NPUs{switches}, {facts['links']:,} links"


def _form(facts: dict[str, Any]) -> str:
    rows = facts["rows"]
    if "rounds" in rows:
        return f"log of {rows['rounds']:,} rounds, one every {shown_time(rows['slot_us'])}"
    if "trees" in rows:
        period = shown_time(rows["period_us"])
        return f"the {rows['own_rows']:,} of {rows['trees']:,} trees, a chunk each {period}"
    if rows["form"].startswith("moves"):
        return f"{rows['own_rows']:,} moves, each of all NPUs at once"
    if "own_rows" in rows:
        grid = "x".join(map(str, facts["dimensions"]))
        patch = f", and {rows['patch_rows']:,} after failures" if "patch_rows" in rows else ""
        return f"the {rows['own_rows']:,} of NPU 0's chunks, moved over the grid {grid}{patch}"
    return str(rows["form"])


def print_activity(activity: Activity, limit: int) -> None:
    """Print the first of an NPU's transfers, and what all of them come to."""
    facts = activity.to_dict(limit)
    times = ("start", "end") if activity.rows.timed else ()
    rows = (
        (
            *(shown_time(row[f"{name}_us"]) for name in times),
            row["what"],
            row["chunk"],
            format_size(row["bytes"]),
            row["peer"],
            "sum" if row["reduce"] else "copy",
            row["link_name"] or "",
        )
        for row in facts["listed"]
    )
    names = (*times, "what", "chunk", "size", "peer", "how", "link")
    words = ("what", "how", "link")
    print_rows(_title(facts), names, rows, words=words, more=facts["more"], see="--limit")


def _title(facts: dict[str, Any]) -> str:
    sent = f"{facts['sends']:,} sends of {format_size(facts['sent_bytes'])}"
    received = f"{facts['receives']:,} receives of {format_size(facts['received_bytes'])}"
    busiest = ""
    if facts["busiest_link"] is not None:
        busiest = f"; busiest {facts['busiest_link']}, {format_size(facts['busiest_link_bytes'])}"
    return f"NPU {facts['npu']}: {sent}, {received}{busiest}"
