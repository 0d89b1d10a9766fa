"""Judges a symmetric All-to-All that lost some links, and the patch that makes up for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm, RepairedExchange, Routes, SymmetricRows, Transfers
from weft.algorithm.durations import of_rows
from weft.collective import Chunks, Collective
from weft.collective.chunks import singles
from weft.judge.kinds import Progress, judges
from weft.judge.kinds.repaired import (
    end_of_base,
    failed_sources,
    judge_base,
    malformed_patch,
    unlike_before,
)
from weft.judge.table import LISTED, judge_table
from weft.judge.translations import apart, moved
from weft.judge.verdict import Verdict
from weft.topology.model import Topology

Numbers = NDArray[np.int64]


@judges(RepairedExchange)
def judge_repaired_exchange(
    algorithm: Algorithm, rows: RepairedExchange, _progress: Progress = None
) -> Verdict:
    """Judge the base on the whole network; then the patch, as what brings the chunks lost in it.

    The base is judged as if every chunk were as long as the longest: shorter ones only end sooner.
    A chunk that is not lost has all its rows in the base, and nothing of the patch is before the
    end of that, so each can be judged alone.
    """
    demand, topology = algorithm.demands[0], algorithm.require_timing().topology
    wrong = _malformed(rows, demand, topology)
    if wrong is not None:
        return Verdict(False, wrong, "structure")
    whole = topology.require_whole()
    pieces, longest = demand.chunks_per_share, demand.largest_chunk
    verdict = judge_base(algorithm, rows.base, "all-to-all")
    if not verdict:
        return verdict
    source, chunk = _lost(rows.base, topology)
    dropped = int(np.bincount(rows.base.chunk, minlength=whole.npus * pieces)[chunk].sum())
    expected = len(rows.base.chunk) * whole.npus - dropped + len(rows.chunk)
    if rows.count != expected:
        return Verdict(False, f"{rows.count} rows; expected {expected}", "structure")
    begin = end_of_base(rows.base, whole, longest)
    if int(rows.start.min()) < begin:
        return Verdict(False, "the patch starts before the base ends", "link")
    verdict = _judge_patch(algorithm, rows, source, chunk, begin)
    if verdict and len(rows) <= LISTED:
        return judge_table(algorithm)
    return verdict


def _malformed(rows: RepairedExchange, demand: Collective, topology: Topology) -> str | None:
    if demand.kind != "all-to-all" or demand.parts is not None:
        return f"a repaired exchange is an all-to-all in equal shares, not this {demand.kind}"
    if demand.group != tuple(topology.members.tolist()) or demand.smallest_chunk == 0:
        return "a repaired exchange is of all NPUs that are left, in order, in chunks with bytes"
    return malformed_patch(rows, demand, topology, np.int64) or unlike_before(topology)


def _lost(base: SymmetricRows, topology: Topology) -> tuple[Numbers, Numbers]:
    """The chunks of which some row would cross a link that failed.

    Each once: the NPU that has it, and which of NPU 0's chunks it is moved from.
    """
    grid, own = topology.dimensions, int(base.chunk.max(initial=0)) + 1
    steps = apart(grid, base.src, base.dst)
    found = [np.empty(0, dtype=np.int64)]
    for step, failed in failed_sources(topology).items():
        mine = np.flatnonzero(steps == step)
        src = np.repeat(base.src[mine], len(failed))
        owner = apart(grid, src, np.tile(failed, len(mine)))
        found.append(owner * own + np.repeat(base.chunk[mine], len(failed)))
    owner, chunk = np.divmod(np.unique(np.concatenate(found)), own)
    return owner, chunk


def _judge_patch(
    algorithm: Algorithm, rows: RepairedExchange, source: Numbers, chunk: Numbers, begin: int
) -> Verdict:
    """Judge the patch as an algorithm of its own, for the lost chunks whose ends are both left."""
    demand, topology = algorithm.demands[0], algorithm.require_timing().topology
    share, piece = np.divmod(chunk, demand.chunks_per_share)
    target = moved(topology.dimensions, share, source)
    rank = topology.ranks
    left = (rank[source] >= 0) & (rank[target] >= 0)
    source, target, piece = source[left], target[left], piece[left]
    place = rank[target] * demand.chunks_per_share + piece
    number = rank[source] * (demand.ranks * demand.chunks_per_share) + place
    order = np.argsort(number)
    which = np.searchsorted(number[order], rows.chunk)
    known = np.append(number[order], -1)[which] == rows.chunk
    for row in np.flatnonzero(~known)[:1].tolist():
        text = f"row {row} of the patch brings chunk {rows.chunk[row]}, which is not lost"
        return Verdict(False, text, "postcondition")
    sizes = demand.piece_bytes[place[order]]
    parts = Chunks.build(
        sizes,
        np.cumsum(sizes) - sizes,
        rank[source[order]].astype(np.int32),
        rank[target[order]].astype(np.int32),
        singles(topology.members),
        reduce=False,
    )
    pairs = Collective("custom", demand.group, parts.largest_buffer(), alignment=1, parts=parts)
    start, link = rows.start - begin, rows.link
    transfers = Transfers(
        which.astype(np.int32),
        topology.src[link],
        topology.dst[link],
        np.zeros(len(which), dtype=np.bool_),
        link,
        start,
        start + of_rows(topology, sizes, which, link),
    )
    timing = replace(algorithm.require_timing(), routes=Routes.of_links(topology.links))
    verdict = judge_table(Algorithm((pairs,), transfers, timing))
    text = f"of the patch: {verdict.violation}"
    return verdict if verdict else Verdict(False, text, verdict.kind, verdict.row)
