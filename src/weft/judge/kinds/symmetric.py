"""Judges symmetric rows by those of one NPU's chunks, and by the translations."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import COLUMN_TYPES, Algorithm, Routes, SymmetricRows, Transfers
from weft.collective import Chunks, Collective
from weft.collective.chunks import Sets, singles
from weft.judge.kinds import Progress, judges
from weft.judge.orbits import NotAlikeError, Orbits, find_orbits
from weft.judge.sizes import judge_sizes
from weft.judge.table import LISTED, judge_table, malformed_column
from weft.judge.translations import apart
from weft.judge.verdict import Verdict
from weft.ragged import offsets_of
from weft.units import format_time

_KINDS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")
_COLUMNS = ("chunk", "src", "dst", "reduce", "start")

Numbers = NDArray[np.int64]


@judges(SymmetricRows)
def judge_symmetric(
    algorithm: Algorithm, rows: SymmetricRows, _progress: Progress = None
) -> Verdict:
    """Judge one NPU's chunks, and that translations of them never collide.

    That the network translates onto itself is found from its links. Then the rows of NPU 0's
    chunks are judged as an algorithm of their own, in which each chunk is as long as the longest
    that a translation makes of it. Moved by t they are right for NPU t's chunks: links move to
    links of the same speed, and a shorter chunk only ends sooner, which `judge_sizes` finds to be
    harmless. What is left is that rows of different NPUs' chunks may meet on a link. If rows a and
    b do, moved by s and t, their links are of one orbit. If a is b, the orbit's link at one NPU is
    the same for s and t, so s is t, and it is one row. If not, both hold links of that orbit at one
    time before they are moved as well: that none do is checked, for all sizes that their chunks
    may have.
    """
    topology = algorithm.require_timing().topology
    wrong = _unfit(algorithm, rows) or _malformed(algorithm, rows)
    if wrong is not None:
        return Verdict(False, wrong, "structure")
    try:
        orbits = find_orbits(topology)
    except NotAlikeError as why:
        text = f"{topology.name} is not vertex-transitive: {why}"
        return Verdict(False, text, "structure")
    way = orbits.way_of[apart(topology.dimensions, rows.src, rows.dst)]
    for row in np.flatnonzero(way < 0)[:1].tolist():
        text = f"row {row} goes from NPU {rows.src[row]} to NPU {rows.dst[row]}, but no link does"
        return Verdict(False, f"{text}, nor is there a switch between them", "route", row)
    times = _times(algorithm, orbits)
    own = _one_npus(algorithm, rows, orbits, way, times)
    verdict = judge_table(own)
    if verdict and len(rows) > LISTED:
        verdict = judge_sizes(own.transfers, algorithm.demands[0], rows.npus)
    if not verdict:
        text = f"of NPU 0's chunks: {verdict.violation}"
        return Verdict(False, text, verdict.kind, verdict.row, verdict.chunk, verdict.npu)
    met = _meeting(algorithm, rows, orbits, way, times)
    if met is not None:
        return met
    if len(rows) > LISTED:
        return verdict
    verdict = judge_table(algorithm)
    text = f"moved to all NPUs: {verdict.violation}"
    return verdict if verdict else Verdict(False, text, verdict.kind, verdict.row)


def _unfit(algorithm: Algorithm, rows: SymmetricRows) -> str | None:
    """Why symmetric rows cannot be what serves this collective on this network, if so."""
    topology, demand = algorithm.require_timing().topology, algorithm.demands[0]
    if demand.kind not in _KINDS or demand.parts is not None:
        return f"symmetric rows serve {', '.join(_KINDS)} in equal shares, not this {demand.kind}"
    if demand.group != tuple(range(topology.npus)) or rows.npus != topology.npus:
        return f"symmetric rows serve all NPUs of {topology.name}, in ascending order"
    if demand.smallest_chunk == 0:
        return "symmetric rows need chunks that are not empty"
    return None


def _malformed(algorithm: Algorithm, rows: SymmetricRows) -> str | None:
    """What is wrong with the columns and the numbers in them, if anything."""
    demand = algorithm.demands[0]
    for name in _COLUMNS:
        column, expected = getattr(rows, name), COLUMN_TYPES[name]
        if (wrong := malformed_column(name, column, expected, len(rows.chunk))) is not None:
            return wrong
    shares = rows.npus if demand.kind == "all-to-all" else 1
    limits = {"chunk": shares * demand.chunks_per_share, "src": rows.npus, "dst": rows.npus}
    for name, limit in limits.items():
        column = getattr(rows, name)
        for row in np.flatnonzero((column < 0) | (column >= limit))[:1].tolist():
            return f"row {row} has {name} {column[row]}; expected 0 to {limit - 1}"
    return None


@dataclass(frozen=True, eq=False)
class _Times:
    """What hops cost, by piece of a share: the longest of all chunks that are that piece.

    Attributes
    ----------
    duration
        By piece and way.
    begin, end
        By piece and place in `Orbits.ways`: when the first of them takes the link there, and when
        the last leaves it, counted from the start of the hop.
    """

    duration: Numbers
    begin: Numbers
    end: Numbers


def _times(algorithm: Algorithm, orbits: Orbits) -> _Times:
    demand, timing = algorithm.demands[0], algorithm.require_timing()
    topology, cost = timing.topology, timing.cost
    pieces = demand.chunks_per_share
    sizes, kind = np.unique(demand.piece_bytes, return_inverse=True)
    # All links of an orbit are alike: those at NPU 0 stand for them.
    links = orbits.links[orbits.ways, 0]
    speeds = (topology.bandwidth[links], topology.latency[links])
    duration = np.zeros((pieces, len(orbits.offsets) - 1), dtype=np.int64)
    end = np.zeros((pieces, len(links)), dtype=np.int64)
    begin = np.full_like(end, np.iinfo(np.int64).max)
    for number, size in enumerate(sizes.tolist()):
        of = (kind.reshape(-1, pieces) == number).any(axis=0)
        takes, offset, length = _core.hop_times(cost.core, *speeds, orbits.offsets, size)
        duration[of] = np.maximum(duration[of], takes)
        begin[of] = np.minimum(begin[of], offset)
        end[of] = np.maximum(end[of], offset + length)
    return _Times(duration, begin, end)


def _one_npus(
    algorithm: Algorithm,
    rows: SymmetricRows,
    orbits: Orbits,
    way: NDArray[np.int32],
    times: _Times,
) -> Algorithm:
    """The rows of NPU 0's chunks as an algorithm of their own."""
    pieces = algorithm.demands[0].chunks_per_share
    _, _, links = orbits.crossed(way, rows.src, rows.dst)
    counts = np.diff(orbits.offsets)[way]
    transfers = Transfers(
        rows.chunk,
        rows.src,
        rows.dst,
        rows.reduce,
        np.arange(len(way), dtype=np.int32),
        rows.start,
        rows.start + times.duration[rows.chunk % pieces, way],
    )
    routes = Routes(offsets_of(counts), links)
    demand = _one_npus_demand(algorithm.demands[0])
    return Algorithm((demand,), transfers, replace(algorithm.require_timing(), routes=routes))


def _one_npus_demand(demand: Collective) -> Collective:
    """NPU 0's part of a collective, each piece as long as the longest of its number."""
    pieces, npus = demand.chunks_per_share, demand.ranks
    longest = demand.piece_bytes.reshape(-1, pieces).max(axis=0)
    everybody = Sets(np.array([0, 1, 1 + npus]), np.r_[0, demand.group].astype(np.int32))
    alone, all_ = np.zeros(pieces, dtype=np.int32), np.ones(pieces, dtype=np.int32)
    if demand.kind == "all-to-all":
        ends = np.repeat(np.arange(npus, dtype=np.int32), pieces)
        sizes, sets, pre, post = np.tile(longest, npus), singles(demand.group), 0 * ends, ends
    else:
        sizes, sets = longest, everybody
        pre = alone if demand.kind == "all-gather" else all_
        post = alone if demand.kind == "reduce-scatter" else all_
    summed = demand.kind in ("reduce-scatter", "all-reduce")
    parts = Chunks.build(sizes, np.cumsum(sizes) - sizes, pre, post, sets, reduce=summed)
    return Collective("custom", demand.group, parts.largest_buffer(), alignment=1, parts=parts)


def _meeting(
    algorithm: Algorithm,
    rows: SymmetricRows,
    orbits: Orbits,
    way: NDArray[np.int32],
    times: _Times,
) -> Verdict | None:
    """Two rows that hold links of one orbit at the same time, if there are."""
    topology = algorithm.require_timing().topology
    row, place, link = orbits.crossed(way, rows.src, rows.dst)
    piece = rows.chunk[row] % algorithm.demands[0].chunks_per_share
    begin = rows.start[row] + times.begin[piece, place]
    end = rows.start[row] + times.end[piece, place]
    orbit = orbits.ways[place]
    order = np.lexsort((row, begin, orbit))
    # Where each is over when the next begins, all are apart.
    early = begin[order[1:]] < end[order[:-1]]
    early &= orbit[order[1:]] == orbit[order[:-1]]
    for i in np.flatnonzero(early)[:1]:
        one, two = order[i], order[i + 1]
        names = [topology.link_name(int(link[at])) for at in (one, two)]
        return Verdict(
            False,
            f"moved to other NPUs, rows {row[one]} and {row[two]} meet: they hold links of one "
            f"direction ({names[0]} and {names[1]}), one until {format_time(int(end[one]))}, the "
            f"other from {format_time(int(begin[two]))} on",
            "link",
            int(row[two]),
        )
    return None
