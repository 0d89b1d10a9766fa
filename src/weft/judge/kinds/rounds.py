"""Judges a log of rounds as it is read."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft._core import RoundCode as Code
from weft._core import RoundViolation
from weft.algorithm import Algorithm, RoundLog
from weft.judge.kinds import Progress, judges
from weft.judge.table import link_at_removed
from weft.judge.verdict import Verdict
from weft.judge.wording import Facts, Sentences, time_beside, word
from weft.memory import check_fits
from weft.topology.model import Topology
from weft.units import CLOCK_PS, format_time

_BYTES_A_CORE = 128 << 20  # of bits at once, as in cpp/judge/rounds.cpp
_KINDS = ("all-gather", "reduce-scatter", "all-reduce")


@judges(RoundLog)
def judge_rounds(algorithm: Algorithm, rows: RoundLog, progress: Progress = None) -> Verdict:
    """Replay the rounds; see `weft.verify`."""
    demand, timing = algorithm.demands[0], algorithm.require_timing()
    topology, cost = timing.topology, timing.cost
    if (wrong := _unfit(algorithm, rows) or _malformed(rows)) is not None:
        return Verdict(False, wrong, "structure")
    chunks = demand.chunks
    sums = demand.kind != "all-gather"
    check_fits(
        f"judging the {demand.kind} of {len(chunks):,} chunks",
        min(topology.npus * len(chunks) // 8, (os.cpu_count() or 1) * _BYTES_A_CORE)
        + 64 * (topology.links + len(chunks)),
    )
    with rows.reading() as log:
        found = _core.judge_rounds(
            topology.core,
            cost.core,
            _core.RoundRecord(log, rows.offsets, rows.slot, rows.count),
            _core.RoundParts(
                bytes=chunks.bytes,
                owner=_owners(algorithm),
                present=(topology.ranks >= 0).astype(np.uint8),
                has_reverse=_has_reverse(topology) if sums else np.zeros(0, dtype=np.uint8),
            ),
            sums=sums,
            spreads=demand.kind != "reduce-scatter",
            progress=progress or _core.Progress(),
        )
    if found is None:
        return Verdict(True)
    text, kind = word(found, algorithm, _SENTENCES, _FACTS)
    chunk, npu = (None if number < 0 else number for number in (found.chunk, found.npu))
    return Verdict(False, text, kind, chunk=chunk, npu=npu)


def _unfit(algorithm: Algorithm, rows: RoundLog) -> str | None:
    """Why a log cannot be what serves this collective on this network, if so."""
    topology, demand = algorithm.require_timing().topology, algorithm.demands[0]
    if demand.kind not in _KINDS:
        return f"a log of rounds serves {', '.join(_KINDS)}, not {demand.kind}"
    if topology.switches:
        return f"a log of rounds is for networks without switches; {topology.name} has some"
    if sorted(demand.group) != topology.members.tolist():
        return f"a log of rounds serves all NPUs of {topology.name}, but the group is another"
    if rows.phases != 1 + (demand.kind == "all-reduce"):
        return f"a log of rounds of {demand.kind} is not run {rows.phases} times"
    if (wrong := link_at_removed(topology)) is not None:
        return wrong
    push = _core.serialization(demand.largest_chunk, topology.bandwidth)
    longest = int(push.max(initial=0)) + int(topology.latency.max(initial=0))
    if rows.slot < 1 or 2 * (rows.rounds * rows.slot + longest) >= CLOCK_PS:
        return f"{rows.rounds} rounds of {rows.slot}ps: expected 1ps or more, within the clock"
    return None


def _malformed(rows: RoundLog) -> str | None:
    columns: list[tuple[str, NDArray[Any], type]] = [("offsets", rows.offsets, np.int64)]
    if isinstance(rows.log, np.ndarray):
        columns.append(("log", rows.log, np.uint8))
    for name, column, expected in columns:
        if column.dtype != expected or column.ndim != 1 or not column.flags.c_contiguous:
            return f"'{name}' is not a plain column of {np.dtype(expected)}"
    return None


def _owners(algorithm: Algorithm) -> NDArray[np.int32]:
    """Where each chunk starts or is summed; -1 in an All-Reduce, which leaves it open."""
    chunks, kind = algorithm.demands[0].chunks, algorithm.demands[0].kind
    if kind == "all-reduce":
        return np.full(len(chunks), -1, dtype=np.int32)
    sets = chunks.pre if kind == "all-gather" else chunks.post
    return chunks.set_members[chunks.set_offsets[sets]]


def _has_reverse(topology: Topology) -> NDArray[np.uint8]:
    """Whether each link has a reverse of its own; of parallel ones the i-th has the i-th."""
    speeds = np.stack([topology.bandwidth, topology.latency])
    kinds, kind = np.unique(speeds, axis=1, return_inverse=True)
    src, dst = topology.src.astype(np.int64), topology.dst.astype(np.int64)
    there = (src * topology.nodes + dst) * kinds.shape[1] + kind.reshape(-1)
    back = (dst * topology.nodes + src) * kinds.shape[1] + kind.reshape(-1)
    order = np.argsort(there, kind="stable")
    ordered = there[order]
    place = np.empty(len(there), dtype=np.int64)
    place[order] = np.arange(len(there)) - np.searchsorted(ordered, ordered)
    reverse_links = np.searchsorted(ordered, back, side="right") - np.searchsorted(ordered, back)
    has_reverse: NDArray[np.uint8] = (place < reverse_links).astype(np.uint8)
    return has_reverse


def _link(v: RoundViolation, a: Algorithm) -> str:
    name = a.require_timing().topology.link_name(v.link)
    return f"link {v.link} ({name}) in round {v.round}"


_FACTS: Facts = {
    "claimed": lambda _v, a: a.rows.count if isinstance(a.rows, RoundLog) else 0,
    "end": time_beside("until", "time"),
    "last_chunk": lambda _v, a: len(a.demands[0].chunks) - 1,
    "link": _link,
    "start": time_beside("time", "until"),
    "when": lambda v, _a: f"{format_time(v.time)} (round {v.round})",
}

_SENTENCES: Sentences = {
    "structure": {
        Code.offsets: "'offsets' does not rise from 0 to the length of the log: see round {round}",
        Code.length: "round {round} of the log does not have the {other} B that its bitmap says",
        Code.beyond: "round {round} of the log uses links that are not there",
        Code.count: "the log claims {claimed} entries and has {other}",
        Code.chunk_range: "{link} carries chunk {chunk}, but chunks are 0 to {last_chunk}",
    },
    "route": {
        Code.no_reverse: "{link} is run backwards, but no link of its speed leads back",
    },
    "link": {
        Code.link_taken: "{link} is taken at {start}, but round {other} holds it until {end}",
    },
    "precondition": {
        Code.never_held: "NPU {npu} sends chunk {chunk} at {when} but never has it",
    },
    "causality": {
        Code.held_late: "NPU {npu} sends chunk {chunk} at {start} (round {round}) but receives it "
        "at {end}",
    },
    "reduction": {
        Code.owner_sends: "NPU {npu} sends its sum of chunk {chunk} at {when}, but the sum belongs "
        "there",
        Code.sent_twice: "NPU {npu} sends its partial sum of chunk {chunk} twice, in rounds "
        "{other} and {round}",
        Code.lost: "{link}, backwards, brings NPU {npu} a partial sum of chunk {chunk}, which it "
        "never sends on",
        Code.sent_early: "NPU {npu} sends its partial sum of chunk {chunk} at {start}, but {link}, "
        "backwards, brings it another at {end}",
        Code.never_sent: "the sum of chunk {chunk} lacks the contribution of NPU {npu}",
    },
    "postcondition": {
        Code.never_received: "NPU {npu} never receives chunk {chunk}",
    },
}
