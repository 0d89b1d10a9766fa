"""The tables of ``weft show``."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from weft.algorithm import Activity
from weft.cli.printing import cell
from weft.cli.report import print_whole
from weft.collective import format_group
from weft.topology.links import titled
from weft.units import PS_PER_US, format_size, format_time

_MOST_GROUPS = 8
_MOST_LETTERS = 40


def print_facts(path: str, facts: dict[str, Any]) -> None:
    """Print what an algorithm is."""
    table = Table(title=cell(path), show_header=False)
    for name, value in _facts(facts):
        table.add_row(cell(name), cell(value))
    Console().print(table)


def _facts(facts: dict[str, Any]) -> list[tuple[str, str]]:
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
        rows.append(("stored", f"{format_size(facts['stored_bytes'])}, {each:.3g} B a transfer"))
    if facts["time_us"] is None:
        return [*rows, ("time", "none: it was made for no network")]
    models = f"{facts['latency_model']} α"
    models += f", {facts['switching']}" if facts["switches"] else ""
    return [*rows, ("time", f"{_time(facts['time_us'])} ({models})")]


def _time(microseconds: float) -> str:
    return format_time(round(microseconds * PS_PER_US))


def _demand(facts: dict[str, Any]) -> str:
    group = format_group(facts["members"])
    if len(group) > _MOST_LETTERS:
        group = f"{group[: group.rindex(',', 0, _MOST_LETTERS)]},..."
    root = "" if facts["root"] is None else f", root {facts['root']}"
    return (
        f"{facts['collective']} of {format_size(facts['size_bytes'])} among {facts['ranks']:,} "
        f"NPUs ({group}){root}, {facts['chunks']:,} chunk(s) a share, "
        f"of up to {format_size(facts['largest_chunk_bytes'])}"
    )


def _network(facts: dict[str, Any]) -> str:
    switches = f", {facts['switches']:,} switch(es)" if facts["switches"] else ""
    title = titled(facts["topology"], facts["changes"])
    return f"{title}: {facts['npus']:,} NPUs{switches}, {facts['links']:,} links"


def _form(facts: dict[str, Any]) -> str:
    rows = facts["rows"]
    if "rounds" in rows:
        return f"log of {rows['rounds']:,} rounds, one every {_time(rows['slot_us'])}"
    if "trees" in rows:
        period = _time(rows["period_us"])
        return f"the {rows['own_rows']:,} of {rows['trees']:,} trees, a chunk each {period}"
    if "own_rows" in rows:
        grid = "x".join(map(str, facts["dimensions"]))
        patch = f", and {rows['patch_rows']:,} after failures" if "patch_rows" in rows else ""
        return f"the {rows['own_rows']:,} of NPU 0's chunks, moved over the grid {grid}{patch}"
    return str(rows["form"])


def print_activity(activity: Activity, limit: int) -> None:
    """Print the first of an NPU's transfers, and what all of them come to."""
    facts = activity.to_dict(limit)
    timed = activity.rows.timed
    table = Table(title=cell(_title(facts)), box=box.SIMPLE_HEAD)
    times = ("start", "end") if timed else ()
    for name in (*times, "what", "chunk", "size", "peer", "how", "link"):
        table.add_column(name, justify="left" if name in ("what", "how", "link") else "right")
    for row in facts["listed"]:
        cells = [_time(row["start_us"]), _time(row["end_us"])] if timed else []
        cells += [row["what"], str(row["chunk"]), format_size(row["bytes"]), str(row["peer"])]
        cells += ["sum" if row["reduce"] else "copy", row["link_name"] or ""]
        table.add_row(*map(cell, cells))
    if facts["more"]:
        table.caption = cell(f"and {facts['more']:,} more: see --limit")
    print_whole(Console(), table)


def _title(facts: dict[str, Any]) -> str:
    sent = f"{facts['sends']:,} sends of {format_size(facts['sent_bytes'])}"
    received = f"{facts['receives']:,} receives of {format_size(facts['received_bytes'])}"
    busiest = ""
    if facts["busiest_link"] is not None:
        busiest = f"; busiest {facts['busiest_link']}, {format_size(facts['busiest_link_bytes'])}"
    return f"NPU {facts['npu']}: {sent}, {received}{busiest}"
