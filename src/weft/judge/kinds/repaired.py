"""Judges a symmetric All-Gather that lost some links, and the patch that makes up for them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, RepairedRows, SymmetricRows, Timing
from weft.algorithm.durations import over_links
from weft.algorithm.repaired import Patched
from weft.collective import Collective
from weft.cost import CostModel
from weft.judge.kinds import Progress, judges
from weft.judge.kinds.symmetric import judge_symmetric
from weft.judge.table import LISTED, judge_table, link_at_removed, malformed_column
from weft.judge.translations import apart, moved
from weft.judge.verdict import Verdict
from weft.topology.links import links_between
from weft.topology.model import Topology

Numbers = NDArray[np.int64]


@judges(RepairedRows)
def judge_repaired(algorithm: Algorithm, rows: RepairedRows, _progress: Progress = None) -> Verdict:
    """Judge the base on the whole network, then that the patch brings what is lost, and how.

    All is judged as if every chunk were as long as the longest: shorter ones only end sooner. The
    same rows run backwards over links of the same speeds are right if these are.
    """
    demand, timing = algorithm.demands[0], algorithm.require_timing()
    topology, cost = timing.topology, timing.cost
    wrong = _malformed(rows, demand, topology)
    if wrong is not None:
        return Verdict(False, wrong, "structure")
    pieces, longest = demand.chunks_per_share, demand.largest_chunk
    verdict = judge_base(algorithm, rows.base, "all-gather")
    if not verdict:
        return verdict
    lost = _lost(rows.base, topology, pieces)
    if lost is None:
        return Verdict(False, "of the whole network: a chunk comes to an NPU twice", "structure")
    begin = end_of_base(rows.base, topology.require_whole(), longest)
    verdict = _judge_patch(rows, topology, cost, longest, lost, begin)
    if verdict and len(rows) <= LISTED:
        return judge_table(algorithm)
    return verdict


def judge_base(algorithm: Algorithm, base: SymmetricRows, kind: str) -> Verdict:
    """Judge the base on the whole network, with every chunk as long as the longest."""
    demand, timing = algorithm.demands[0], algorithm.require_timing()
    whole = timing.topology.require_whole()
    pieces, longest = demand.chunks_per_share, demand.largest_chunk
    size = longest * pieces * whole.npus
    full = Collective(kind, tuple(range(whole.npus)), size, pieces, None, longest)
    verdict = judge_symmetric(Algorithm((full,), base, Timing(whole, timing.cost)), base)
    if verdict:
        return verdict
    return Verdict(False, f"of the whole network: {verdict.violation}", verdict.kind)


def _malformed(rows: RepairedRows, demand: Collective, topology: Topology) -> str | None:
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
    wrong = malformed_patch(rows, demand, topology, np.int32) or unlike_before(topology)
    if wrong is None and demand.kind != "all-gather":
        kept = _keys(topology)
        turned = kept[[1, 0, 2, 3]]
        if len(np.unique(np.concatenate([kept, turned], axis=1), axis=1).T) != topology.links:
            return f"links without a twin the other way; {demand.kind} needs them to run backwards"
    return wrong


def malformed_patch(
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


def unlike_before(topology: Topology) -> str | None:
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


def end_of_base(base: SymmetricRows, whole: Topology, longest: int) -> int:
    """When the last row of the base ends, of chunks that are all of one size."""
    # The base has been judged: every row of it goes over a link.
    link = links_between(whole, base.src, base.dst)
    return int((base.start + over_links(whole, longest)[link]).max())


def _lost(base: SymmetricRows, topology: Topology, pieces: int) -> Numbers | None:
    """(chunk of the collective) · npus + NPU for all that the base does not bring, ascending.

    Follows the rows in their order: what a row does not bring, for the chunks of which NPUs, is
    what its source has not got, and what would cross a link that failed. None if an NPU gets a
    piece twice.
    """
    npus, grid = topology.npus, topology.dimensions
    sources = failed_sources(topology)
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


def failed_sources(topology: Topology) -> dict[int, Numbers]:
    """Where links that failed began, by how far they led."""
    whole = topology.require_whole()
    failed = np.flatnonzero(links_between(topology, whole.src, whole.dst) < 0)
    src = whole.src[failed].astype(np.int64)
    steps = apart(topology.dimensions, src, whole.dst[failed])
    return {int(step): src[steps == step] for step in np.unique(steps)}


def _judge_patch(
    rows: RepairedRows, topology: Topology, cost: CostModel, longest: int, lost: Numbers, begin: int
) -> Verdict:
    """Whether the patch brings just what is lost, over free links, from where it is."""
    npus, count = topology.npus, len(rows.chunk)
    expected = len(topology.members) * (len(rows.base.chunk) - _of_removed(rows, topology))
    if rows.count != expected:
        return Verdict(False, f"{rows.count} rows; expected {expected}", "structure")
    push = _core.serialization(longest, topology.bandwidth)
    taken = push + topology.latency
    hold = taken if cost.latency_model == "blocking" else push
    chunk = rows.chunk.astype(np.int64)
    brought = chunk * npus + topology.dst[rows.link]
    if not np.array_equal(np.sort(brought), lost):
        return Verdict(False, "the patch does not bring just what is lost", "postcondition")
    if count and int(rows.start.min()) < begin:
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


def _of_removed(rows: RepairedRows, topology: Topology) -> int:
    """How many rows of the base bring an NPU's chunks to NPUs that are not there."""
    pieces = len(np.unique(rows.base.chunk))
    return pieces * (topology.npus - len(topology.members))
