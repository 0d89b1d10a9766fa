"""Puts what the judge found into one sentence, with names and units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any

from weft._core import Violation
from weft._core import ViolationCode as Code
from weft.algorithm import Algorithm
from weft.algorithm.transfers import PLACE_BITS, Buffer
from weft.judge.verdict import Kind
from weft.units import format_time

Sentences = Mapping[Kind, Mapping[Any, str]]
"""A sentence for each code, by kind; in braces a field of the violation, or a fact."""
Facts = Mapping[str, Callable[[Any, Algorithm], object]]
"""What sentences name that is no field of a violation, but follows from it."""


def word(found: Any, algorithm: Algorithm, sentences: Sentences, facts: Facts) -> tuple[str, Kind]:
    """The sentence for a violation, and its kind."""
    kind, text = next((kind, of[found.code]) for kind, of in sentences.items() if found.code in of)
    names = [name for _, name, _, _ in Formatter().parse(text) if name]
    said = {
        name: facts[name](found, algorithm) if name in facts else getattr(found, name)
        for name in names
    }
    return text.format(**said), kind


def word_row(found: Violation, algorithm: Algorithm) -> tuple[str, Kind]:
    """The sentence for a violation in a table, and its kind."""
    text, kind = word(found, algorithm, _SENTENCES, _FACTS)
    if found.in_row_order and algorithm.timed:
        return f"if the rows run one after the other, {text}", "order"
    return text, kind


def time_beside(field: str, other: str) -> Callable[[Any, Algorithm], str]:
    """The fact that a field is this time, in words that differ from those for another."""

    def words(v: Any, _a: Algorithm) -> str:
        ps, text = getattr(v, field), format_time(getattr(v, field))
        return text if text != format_time(getattr(v, other)) else f"{ps}ps"

    return words


def _npus(_v: Violation, a: Algorithm) -> str:
    return f"NPUs are 0 to {a.topology.npus - 1}" if a.topology else "no NPU can have that number"


def _why_no_member(v: Violation, a: Algorithm) -> str:
    gone = a.topology is not None and v.npu in a.topology.removed
    return "it was removed" if gone else _npus(v, a)


def _place(number: int) -> str:
    return f"{Buffer(number >> PLACE_BITS).name}[{number & ((1 << PLACE_BITS) - 1)}]"


def _no_place(v: Violation, a: Algorithm) -> str:
    if v.other < 0:
        return f"place {v.other}, which is none"
    return f"{_place(v.other)}, but chunks are 0 to {len(a.chunks) - 1}"


def _source_place(v: Violation, a: Algorithm) -> str:
    places = a.transfers.src_place
    return "" if places is None else f" from {_place(int(places[v.row]))}"


def _ends(v: Violation, a: Algorithm) -> str:
    topology = a.require_timing().topology
    return f"{topology.src[v.link]}>{topology.dst[v.link]}"


def _comes_late(v: Violation, a: Algorithm) -> str:
    if v.in_row_order:
        return f"in row {v.row} but receives it only in row {v.other}"
    start, arrival = (time_beside(*pair)(v, a) for pair in (("time", "other"), ("other", "time")))
    return f"at {start} (row {v.row}) but receives it at {arrival}"


_FACTS: Facts = {
    "bytes": lambda v, a: a.chunks.bytes[v.chunk],
    "claimed": time_beside("other", "detail"),
    "comes_late": _comes_late,
    "demand": lambda v, a: next(demand.kind for demand in a.demands if v.npu in demand.group),
    "dst": lambda v, a: a.transfers.dst[v.row],
    "end": time_beside("detail", "time"),
    "ends": _ends,
    "last_chunk": lambda _v, a: len(a.chunks) - 1,
    "last_route": lambda _v, a: len(a.routes) - 1,
    "leads": lambda v, _a: (
        "crosses no link" if v.other < 0 else f"leads from {v.other} to {v.detail}"
    ),
    "no_place": _no_place,
    "npus": _npus,
    "place": _source_place,
    "right": time_beside("detail", "other"),
    "src": lambda v, a: a.transfers.src[v.row],
    "start": time_beside("time", "detail"),
    "switch": lambda v, a: a.require_timing().topology.node_name(v.other),
    "when": lambda v, _a: "" if v.in_row_order else f" at {format_time(v.time)}",
    "why_no_member": _why_no_member,
}

_SENTENCES: Sentences = {
    "structure": {
        Code.demand_npu: "the {demand} includes NPU {npu}, but {why_no_member}",
        Code.chunk_range: "row {row} moves chunk {other}, but chunks are 0 to {last_chunk}",
        Code.npu_range: "row {row} names NPU {other}, but {npus}",
        Code.npu_removed: "row {row} uses NPU {other}, which was removed",
        Code.place_range: "row {row} names {no_place}",
        Code.dep_offsets: "column 'dep_offsets' does not rise from 0 to the number of 'deps'",
        Code.routes_broken: "the table of routes is broken at route {other}: no such links",
    },
    "route": {
        Code.out_of_reach: "row {row} takes chunk {chunk} to NPU {other}, which is outside its "
        "group and must not relay",
        Code.route_range: "row {row} takes route {other}, but routes are 0 to {last_route}",
        Code.route_broken: "row {row} takes route {other}, whose links do not follow each other "
        "through switches",
        Code.route_ends: "row {row} goes from NPU {src} to NPU {dst}, but its route {leads}",
        Code.buffer_full: "row {row} sends the {bytes} B of chunk {chunk} through switch {switch}, "
        "which stores {detail} B and forwards whole chunks only",
    },
    "dependency": {
        Code.dep_range: "row {row} waits for row {other}, which is not an earlier row",
        Code.dep_late: "row {row} starts at {start} but waits for row {other}, which ends at {end}",
    },
    "time": {
        Code.negative_start: "row {row} starts at {other}ps, before the beginning",
        Code.duration: "row {row} ends at {claimed}; the cost model says {right}",
    },
    "link": {
        Code.link_taken: "link {link} ({ends}) is held by row {other} until {end} but row {row} "
        "takes it at {start}",
    },
    "precondition": {
        Code.never_held: "NPU {npu} sends chunk {chunk}{place}{when} (row {row}) but never has it",
        Code.wrong_chunk: "row {row} sends chunk {chunk}{place} on NPU {npu}, which holds chunk "
        "{other} then",
    },
    "causality": {
        Code.held_late: "NPU {npu} sends chunk {chunk}{place} {comes_late}",
    },
    "reduction": {
        Code.not_reduction: "row {row} adds up chunk {chunk}, which is not a reduction",
        Code.mixed: "row {row} adds chunk {chunk} to chunk {other} on NPU {npu}",
        Code.missing: "NPU {npu} ends chunk {chunk} without the contribution of NPU {other}",
        Code.twice: "NPU {npu} ends chunk {chunk} with the contribution of NPU {other} twice",
    },
    "postcondition": {
        Code.never_received: "NPU {npu} never receives chunk {chunk}",
        Code.wrong_at_end: "NPU {npu} ends with chunk {other} where chunk {chunk} belongs",
    },
}
