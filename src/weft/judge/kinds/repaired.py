"""Judges symmetric rows that lost some links, and the patches that make up for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import (
    Algorithm,
    RepairedExchange,
    RepairedRows,
    Routes,
    SymmetricRows,
    Timing,
    Transfers,
)
from weft.algorithm.repaired import Patched
from weft.collective import Chunks, Collective
from weft.collective.chunks import singles
from weft.judge.kinds import Progress, judges
from weft.judge.kinds.symmetric import judge_symmetric
from weft.judge.table import LISTED, judge_table, link_at_removed, malformed_column
from weft.judge.translations import apart, moved
from weft.judge.verdict import Verdict
from weft.topology.durations import of_rows, over_links
from weft.topology.links import links_between
from weft.topology.model import Topology

Numbers = NDArray[np.int64]
P = TypeVar("P", bound=Patched)


@judges(RepairedRows)
def judge_repaired(algorithm: Algorithm, rows: RepairedRows, _progress: Progress = None) -> Verdict:
    """Judge the base on the whole network, then that the patch brings what is lost, and how.

    All is judged as if every chunk were as long as the longest: shorter ones only end sooner. The
    same rows run backwards over links of the same speeds are right if these are.
    """
    wrong = _malformed_gather(rows, algorithm.demands[0], algorithm.require_timing().topology)
    return _judged(algorithm, rows, wrong, "all-gather", _judge_gather)


@judges(RepairedExchange)
def judge_repaired_exchange(
    algorithm: Algorithm, rows: RepairedExchange, _progress: Progress = None
) -> Verdict:
    """Judge the base on the whole network; then the patch, as what brings the chunks lost in it.

    The base is judged as if every chunk were as long as the longest: shorter ones only end sooner.
    A chunk that is not lost has all its rows in the base, and nothing of the patch is before the
    end of that, so each can be judged alone.
    """
    wrong = _malformed_exchange(rows, algorithm.demands[0], algorithm.require_timing().topology)
    return _judged(algorithm, rows, wrong, "all-to-all", _judge_exchange)


def _judged(
    algorithm: Algorithm,
    rows: P,
    malformed: str | None,
    kind: str,
    judge_patch: Callable[[Algorithm, P, int], Verdict],
) -> Verdict:
    """Judge the base, of chunks as long as the longest, and the patch, which begins after that."""
    if malformed is not None:
        return Verdict(False, malformed, "structure")
    demand, timing = algorithm.demands[0], algorithm.require_timing()
    whole = timing.topology.require_whole()
    pieces, longest = demand.chunks_per_share, demand.largest_chunk
    size = longest * pieces * whole.npus
    full = Collective(kind, tuple(range(whole.npus)), size, pieces, None, longest)
    base = Algorithm((full,), rows.base, Timing(whole, timing.cost))
    verdict = judge_symmetric(base, rows.base)
    if not verdict:
        return Verdict(False, f"of the whole network: {verdict.violation}", verdict.kind)
    # The base has been judged: every row of it goes over a link.
    link = links_between(whole, rows.base.src, rows.base.dst)
    end = int((rows.base.start + over_links(whole, longest)[link]).max())
    verdict = judge_patch(algorithm, rows, end)
    return judge_table(algorithm) if verdict and len(rows) <= LISTED else verdict


def _malformed_gather(rows: RepairedRows, demand: Collective, topology: Topology) -> str | None:
    if (
        demand.kind not in ("all-gather", "reduce-scatter", "all-reduce")
        or demand.parts is not None
    ):
        return f"repaired rows are of all-gather, reduce-scatter or all-reduce, not {demand.kind}"
    if demand.group != tuple(topology.members.tolist()) or demand.smallest_chunk == 0:
        return "repaired rows are of all NPUs that are left, in order, and of chunks with bytes"
    if rows.both != (demand.kind == "all-reduce"):
        return "repaired rows are twice as many for an all-reduce, and only then"
    if not len(rows.base.start) or rows.base.start[0] != 0:
        return "repaired rows have a base that starts at 0"
    wrong = _malformed_patch(rows, demand, topology, np.int32) or _unlike_before(topology)
    if wrong is None and demand.kind != "all-gather":
        kept = _keys(topology)
        turned = kept[[1, 0, 2, 3]]
        if len(np.unique(np.concatenate([kept, turned], axis=1), axis=1).T) != topology.links:
            return f"links without a reverse link; {demand.kind} needs them to run backwards"
    return wrong


def _malformed_exchange(
    rows: RepairedExchange, demand: Collective, topology: Topology
) -> str | None:
    if demand.kind != "all-to-all" or demand.parts is not None:
        return f"a repaired exchange is an all-to-all in equal shares, not this {demand.kind}"
    if demand.group != tuple(topology.members.tolist()) or demand.smallest_chunk == 0:
        return "a repaired exchange is of all NPUs that are left, in order, in chunks with bytes"
    return _malformed_patch(rows, demand, topology, np.int64) or _unlike_before(topology)


def _malformed_patch(
    rows: Patched, demand: Collective, topology: Topology, chunk_type: type[np.generic]
) -> str | None:
    """What is wrong with the columns of the patch and the numbers in them, if anything."""
    for name, column, kind, end in (
        ("chunk", rows.chunk, chunk_type, demand.chunk_count),
        ("link", rows.link, np.int32, topology.links),
        ("start", rows.start, np.int64, 1 << 62),
    ):
        if (wrong := malformed_column(name, column, kind)) is not None:
            return f"{wrong}, in the patch"
        if len(column) != len(rows.chunk) or not len(column):
            return "the patch has no rows, or columns that differ in length"
        if not 0 <= int(column.min()) <= int(column.max()) < end:
            return f"column '{name}' of the patch has a value outside 0 to {end - 1}"
    return None


def _unlike_before(topology: Topology) -> str | None:
    """Why a network is not a network without switches that lost some links, if so."""
    whole = topology.whole
    if whole is None or whole.switches or whole.npus != topology.npus:
        return "repaired rows need a network without switches, and what it was before failures"
    if whole.dimensions != topology.dimensions:
        return "the network had another grid before failures"
    kept, before = _keys(topology), _keys(whole)
    if len(np.unique(before[:2], axis=1).T) != whole.links:
        return "repaired rows need a network without parallel links"
    if len(np.unique(np.concatenate([kept, before], axis=1), axis=1).T) != whole.links:
        return "the network has links that it had not before failures"
    failed = whole.links - topology.links
    if not 0 < failed < len(topology.members):
        return f"{failed} links failed; expected fewer than NPUs, and at least one"
    return link_at_removed(topology)


def _keys(topology: Topology) -> Numbers:
    """Ends and speeds of each link."""
    return np.stack(topology.columns).astype(np.int64)


def _lost_deliveries(base: SymmetricRows, topology: Topology, pieces: int) -> Numbers | None:
    """(chunk of the collective) · npus + NPU for all that the base does not bring, ascending.

    Follows the rows in their order: what a row does not bring, for the chunks of which NPUs, is
    what its source has not got, and what would cross a link that failed. None if an NPU gets a
    piece twice.
    """
    npus, grid = topology.npus, topology.dimensions
    sources = _failed_sources(topology)
    steps = apart(grid, base.src, base.dst).tolist()
    nobody = np.empty(0, dtype=np.int64)
    lacking: dict[int, Numbers] = {}  # owners of which an NPU at this place has not got the piece
    got = set(range(0, pieces * npus, npus))
    found = []
    for piece, src, dst, step in zip(
        base.chunk.tolist(), base.src.tolist(), base.dst.tolist(), steps, strict=True
    ):
        if piece * npus + dst in got:
            return None
        got.add(piece * npus + dst)
        owners = lacking.get(piece * npus + src, nobody)
        if step in sources:
            owners = np.union1d(
                owners, apart(grid, np.full(len(sources[step]), src), sources[step])
            )
        if len(owners):
            lacking[piece * npus + dst] = owners
            at = moved(grid, np.full(len(owners), dst), owners)
            found.append(np.stack([owners, np.full(len(owners), piece), at]))
    owner, piece, npu = np.concatenate([np.empty((3, 0), dtype=np.int64), *found], axis=1)
    rank = topology.ranks
    left = (rank[owner] >= 0) & (rank[npu] >= 0)
    return np.sort(((rank[owner] * pieces + piece) * npus + npu)[left])


def _failed_sources(topology: Topology) -> dict[int, Numbers]:
    """Where links that failed began, by how far they led."""
    whole = topology.require_whole()
    failed = np.flatnonzero(links_between(topology, whole.src, whole.dst) < 0)
    src = whole.src[failed].astype(np.int64)
    steps = apart(topology.dimensions, src, whole.dst[failed])
    return {int(step): src[steps == step] for step in np.unique(steps)}


def _judge_gather(algorithm: Algorithm, rows: RepairedRows, begin: int) -> Verdict:
    """Whether the patch brings just what is lost, over free links, from where it is."""
    demand, timing = algorithm.demands[0], algorithm.require_timing()
    topology, longest = timing.topology, demand.largest_chunk
    lost = _lost_deliveries(rows.base, topology, demand.chunks_per_share)
    if lost is None:
        return Verdict(False, "of the whole network: a chunk comes to an NPU twice", "structure")
    npus, count = topology.npus, len(rows.chunk)
    # Of each piece, those who are gone would have got it in one row each.
    of_gone = len(np.unique(rows.base.chunk)) * (npus - len(topology.members))
    expected = len(topology.members) * (len(rows.base.chunk) - of_gone)
    if rows.count != expected:
        return Verdict(False, f"{rows.count} rows; expected {expected}", "structure")
    push = _core.serialization(longest, topology.bandwidth)
    taken = push + topology.latency
    hold = taken if timing.cost.latency_model == "blocking" else push
    chunk = rows.chunk.astype(np.int64)
    brought = chunk * npus + topology.dst[rows.link]
    if not np.array_equal(np.sort(brought), lost):
        return Verdict(False, "the patch does not bring just what is lost", "postcondition")
    if int(rows.start.min()) < begin:
        return Verdict(False, "the patch starts before the base ends", "link")
    order = np.lexsort((rows.start, rows.link))
    link, start = rows.link[order], rows.start[order]
    met = (link[1:] == link[:-1]) & (start[1:] < start[:-1] + hold[link[:-1]])
    for i in np.flatnonzero(met)[:1].tolist():
        name = topology.link_name(int(link[i]))
        return Verdict(False, f"two rows of the patch hold link {name} at once", "link")
    place = np.argsort(brought)
    read = chunk * npus + topology.src[rows.link]
    found = np.minimum(np.searchsorted(brought[place], read), count - 1)
    late = (brought[place][found] == read) & (
        (rows.start + taken[rows.link])[place][found] > rows.start
    )
    for i in np.flatnonzero(late)[:1].tolist():
        text = f"NPU {topology.src[rows.link[i]]} sends chunk {rows.chunk[i]} before it has it"
        return Verdict(False, f"{text} (row {i} of the patch)", "causality", i)
    return Verdict(True)


def _lost_chunks(base: SymmetricRows, topology: Topology) -> tuple[Numbers, Numbers]:
    """The chunks of which some row would cross a link that failed.

    Each once: the NPU that has it, and which of NPU 0's chunks it is moved from.
    """
    grid, own = topology.dimensions, int(base.chunk.max(initial=0)) + 1
    steps = apart(grid, base.src, base.dst)
    found = [np.empty(0, dtype=np.int64)]
    for step, failed in _failed_sources(topology).items():
        mine = np.flatnonzero(steps == step)
        src = np.repeat(base.src[mine], len(failed))
        owner = apart(grid, src, np.tile(failed, len(mine)))
        found.append(owner * own + np.repeat(base.chunk[mine], len(failed)))
    owner, chunk = np.divmod(np.unique(np.concatenate(found)), own)
    return owner, chunk


def _judge_exchange(algorithm: Algorithm, rows: RepairedExchange, begin: int) -> Verdict:
    """Judge the patch as an algorithm of its own, for the lost chunks whose ends are both left."""
    demand, topology = algorithm.demands[0], algorithm.require_timing().topology
    source, chunk = _lost_chunks(rows.base, topology)
    dropped = int(np.bincount(rows.base.chunk)[chunk].sum())
    expected = len(rows.base.chunk) * topology.npus - dropped + len(rows.chunk)
    if rows.count != expected:
        return Verdict(False, f"{rows.count} rows; expected {expected}", "structure")
    if int(rows.start.min()) < begin:
        return Verdict(False, "the patch starts before the base ends", "link")
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
