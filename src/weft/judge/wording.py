"""Puts what the judge found into one sentence, with names and units."""

from __future__ import annotations

from collections.abc import Callable

from weft._core import Violation, ViolationCode
from weft.algorithm import Algorithm
from weft.algorithm.transfers import PLACE_BITS, Buffer
from weft.judge.verdict import Kind
from weft.units import format_time

Words = Callable[[Violation, Algorithm], str]


def word(found: Violation, algorithm: Algorithm) -> tuple[str, Kind]:
    """The sentence for a violation, and its kind."""
    kind, words = _WORDS[found.code]
    text = words(found, algorithm)
    if found.in_row_order and algorithm.timed:
        return f"if the rows run one after the other, {text}", "order"
    return text, kind


def differing_times(first_ps: int, second_ps: int) -> tuple[str, str]:
    """Two times that differ, in words that differ too."""
    first, second = format_time(first_ps), format_time(second_ps)
    return (first, second) if first != second else (f"{first_ps}ps", f"{second_ps}ps")


def _npus(algorithm: Algorithm) -> str:
    topology = algorithm.topology
    return f"NPUs are 0 to {topology.npus - 1}" if topology else "no NPU can have that number"


def _demand_npu(v: Violation, a: Algorithm) -> str:
    kind = next(demand.kind for demand in a.demands if v.npu in demand.group)
    gone = a.topology is not None and v.npu in a.topology.removed
    return f"the {kind} includes NPU {v.npu}, but {'it was removed' if gone else _npus(a)}"


def _chunk_range(v: Violation, a: Algorithm) -> str:
    return f"row {v.row} moves chunk {v.other}, but chunks are 0 to {len(a.chunks) - 1}"


def _place_range(v: Violation, a: Algorithm) -> str:
    if v.other < 0:
        return f"row {v.row} names place {v.other}, which is none"
    buffer, index = Buffer(v.other >> PLACE_BITS).name, v.other & ((1 << PLACE_BITS) - 1)
    return f"row {v.row} names {buffer}[{index}], but chunks are 0 to {len(a.chunks) - 1}"


def _route_ends(v: Violation, a: Algorithm) -> str:
    src, dst = a.transfers.src[v.row], a.transfers.dst[v.row]
    leads = "crosses no link" if v.other < 0 else f"leads from {v.other} to {v.detail}"
    return f"row {v.row} goes from NPU {src} to NPU {dst}, but its route {leads}"


def _route_range(v: Violation, a: Algorithm) -> str:
    count = len(a.routes)
    return f"row {v.row} takes route {v.other}, but routes are 0 to {count - 1}"


def _buffer_full(v: Violation, a: Algorithm) -> str:
    switch = f"switch s{v.other - a.topology.npus}" if a.topology else f"node {v.other}"
    return (
        f"row {v.row} sends the {a.chunks.bytes[v.chunk]} B of chunk {v.chunk} through {switch}, "
        f"which stores {v.detail} B and forwards whole chunks only"
    )


def _duration(v: Violation, _a: Algorithm) -> str:
    claimed, right = differing_times(v.other, v.detail)
    return f"row {v.row} ends at {claimed}; the cost model says {right}"


def _dep_late(v: Violation, _a: Algorithm) -> str:
    start, end = differing_times(v.time, v.detail)
    return f"row {v.row} starts at {start} but waits for row {v.other}, which ends at {end}"


def _link_taken(v: Violation, a: Algorithm) -> str:
    until, begin = differing_times(v.detail, v.time)
    ends = f" ({a.topology.src[v.link]}>{a.topology.dst[v.link]})" if a.topology else ""
    return (
        f"link {v.link}{ends} is held by row {v.other} until {until} "
        f"but row {v.row} takes it at {begin}"
    )


def _never_held(v: Violation, a: Algorithm) -> str:
    when = f" at {format_time(v.time)}" if not v.in_row_order else ""
    where = _source_place(v, a)
    return f"NPU {v.npu} sends chunk {v.chunk}{where}{when} (row {v.row}) but never has it"


def _held_late(v: Violation, a: Algorithm) -> str:
    where = _source_place(v, a)
    if v.in_row_order:
        return (
            f"NPU {v.npu} sends chunk {v.chunk}{where} in row {v.row} "
            f"but receives it only in row {v.other}"
        )
    start, arrival = differing_times(v.time, v.other)
    return (
        f"NPU {v.npu} sends chunk {v.chunk}{where} at {start} (row {v.row}) "
        f"but receives it at {arrival}"
    )


def _source_place(v: Violation, a: Algorithm) -> str:
    places = a.transfers.src_place
    if places is None:
        return ""
    number = int(places[v.row])
    return f" from {Buffer(number >> PLACE_BITS).name}[{number & ((1 << PLACE_BITS) - 1)}]"


def _wrong_chunk(v: Violation, a: Algorithm) -> str:
    return (
        f"row {v.row} sends chunk {v.chunk}{_source_place(v, a)} on NPU {v.npu}, "
        f"which holds chunk {v.other} then"
    )


_WORDS: dict[ViolationCode, tuple[Kind, Words]] = {
    ViolationCode.demand_npu: ("structure", _demand_npu),
    ViolationCode.chunk_range: ("structure", _chunk_range),
    ViolationCode.npu_range: (
        "structure",
        lambda v, a: f"row {v.row} names NPU {v.other}, but {_npus(a)}",
    ),
    ViolationCode.npu_removed: (
        "structure",
        lambda v, _a: f"row {v.row} uses NPU {v.other}, which was removed",
    ),
    ViolationCode.out_of_reach: (
        "route",
        lambda v, _a: (
            f"row {v.row} takes chunk {v.chunk} to NPU {v.other}, which is outside its group and "
            "must not relay"
        ),
    ),
    ViolationCode.place_range: ("structure", _place_range),
    ViolationCode.not_reduction: (
        "reduction",
        lambda v, _a: f"row {v.row} adds up chunk {v.chunk}, which is not a reduction",
    ),
    ViolationCode.dep_range: (
        "dependency",
        lambda v, _a: f"row {v.row} waits for row {v.other}, which is not an earlier row",
    ),
    ViolationCode.dep_offsets: (
        "structure",
        lambda _v, _a: "column 'dep_offsets' does not rise from 0 to the number of 'deps'",
    ),
    ViolationCode.routes_broken: (
        "structure",
        lambda v, _a: f"the table of routes is broken at route {v.other}: no such links",
    ),
    ViolationCode.route_range: ("route", _route_range),
    ViolationCode.route_broken: (
        "route",
        lambda v, _a: (
            f"row {v.row} takes route {v.other}, whose links do not follow each other "
            "through switches"
        ),
    ),
    ViolationCode.route_ends: ("route", _route_ends),
    ViolationCode.buffer_full: ("route", _buffer_full),
    ViolationCode.negative_start: (
        "time",
        lambda v, _a: f"row {v.row} starts at {v.other}ps, before the beginning",
    ),
    ViolationCode.duration: ("time", _duration),
    ViolationCode.dep_late: ("dependency", _dep_late),
    ViolationCode.link_taken: ("link", _link_taken),
    ViolationCode.never_held: ("precondition", _never_held),
    ViolationCode.held_late: ("causality", _held_late),
    ViolationCode.wrong_chunk: ("precondition", _wrong_chunk),
    ViolationCode.mixed: (
        "reduction",
        lambda v, _a: f"row {v.row} adds chunk {v.chunk} to chunk {v.other} on NPU {v.npu}",
    ),
    ViolationCode.never_received: (
        "postcondition",
        lambda v, _a: f"NPU {v.npu} never receives chunk {v.chunk}",
    ),
    ViolationCode.wrong_at_end: (
        "postcondition",
        lambda v, _a: f"NPU {v.npu} ends with chunk {v.other} where chunk {v.chunk} belongs",
    ),
    ViolationCode.missing: (
        "reduction",
        lambda v, _a: f"NPU {v.npu} ends chunk {v.chunk} without the contribution of NPU {v.other}",
    ),
    ViolationCode.twice: (
        "reduction",
        lambda v, _a: (
            f"NPU {v.npu} ends chunk {v.chunk} with the contribution of NPU {v.other} twice"
        ),
    ),
}
