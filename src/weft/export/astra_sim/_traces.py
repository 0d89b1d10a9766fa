"""The traces of a bundle, the algorithm's and a workload that calls it once; and their time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weft import _core
from weft.arrays import Int32, Int64
from weft.collective import Chunks, Collective
from weft.export.astra_sim._forms import Form
from weft.formats.chakra.encoding import FILE_HEAD, Node, encode
from weft.formats.chakra.schema import CHAKRA_VERSION, COMM_COLL, COMM_TYPE_OF, COMP
from weft.replay.astra_sim import dimensions_of
from weft.topology.astra import AstraNetwork

_CALLED = ("all-reduce", "all-gather", "all-to-all", "reduce-scatter")
_MOST = (1 << 31) - 1
GROUP = "1"


@dataclass(frozen=True)
class Call:
    """The collective as a workload names it.

    Attributes
    ----------
    kind
        One of those for which ASTRA-sim takes an algorithm.
    size
        In bytes: what one rank gives in an All-Gather, the whole buffer otherwise.
    exact
        Whether the algorithm serves just that collective.
    """

    kind: str
    size: int
    exact: bool


def call_of(demands: Sequence[Collective]) -> Call:
    """What to call the algorithm: any name will do, so the nearest."""
    kinds = {demand.kind for demand in demands}
    exact = len(demands) == 1 and kinds <= set(_CALLED)
    kind = demands[0].kind if len(kinds) == 1 and kinds <= set(_CALLED) else "all-gather"
    size = max(
        -(-demand.size // demand.ranks) if demand.kind == "all-gather" else demand.size
        for demand in demands
    )
    return Call(kind, size, exact)


def _counts(form: Form, call: Call, offset: Int64) -> tuple[Int32, Int32, int]:
    """Sizes as counts of equal pieces, for versions of ASTRA-sim that scale algorithms.

    Gives the number of pieces and the first one of each message, and how many there are in all:
    -1 if no pieces give the very bytes. Such a version takes the workload's size over the total
    for a piece (times the ranks for an All-Gather), and wants both to be divisible.
    """
    sent = form.rows.bytes[~form.rows.local]
    gathers = call.kind == "all-gather"
    whole = call.size if gathers or call.size % form.ranks else call.size // form.ranks
    piece = math.gcd(int(np.gcd.reduce(sent)) if len(sent) else 0, whole)
    total = call.size * (form.ranks if gathers else 1) // piece
    fits = total % form.ranks == 0 and call.size % total == 0 and total <= _MOST
    if not fits or int(sent.max(initial=0)) // piece > _MOST:
        zeros = np.zeros(len(form.rows), dtype=np.int32)
        return zeros, zeros, -1
    index = np.minimum(offset[form.rows.chunk] // piece, total - 1)
    return (form.rows.bytes // piece).astype(np.int32), index.astype(np.int32), total


def participants(form: Form, demands: Sequence[Collective]) -> Int64:
    """The ranks that have something to do, ascending; all where nobody has."""
    if not len(form.rows):
        return np.arange(form.ranks)
    members = [np.array(demand.group, dtype=np.int64) for demand in demands]
    return np.unique(np.concatenate([form.rows.src, form.rows.dst, *members]))


def algorithm_traces(form: Form, call: Call, ranks: Int64, chunks: Chunks) -> Iterator[bytes]:
    """One trace for each of `ranks`, numbered from 0."""
    rows = form.rows
    piece_count, piece_index, pieces = _counts(form, call, _offsets(chunks, form.parts))
    sizes = np.zeros(max(len(rows), rows.places), dtype=np.int64)
    sizes[: len(rows)] = rows.bytes
    table = _core.Transfers(
        chunk=np.arange(len(rows), dtype=np.int32),
        src=np.searchsorted(ranks, rows.src).astype(np.int32),
        dst=np.searchsorted(ranks, rows.dst).astype(np.int32),
        reduce=rows.reduce,
        src_place=rows.reads,
        dst_place=rows.writes,
        dep_offsets=rows.dep_offsets,
        deps=rows.deps,
    )
    pace = _core.Pace(
        gate=form.pace.gate,
        after=form.pace.after,
        delay=form.delay,
        piece_count=piece_count,
        piece_index=piece_index,
        pieces=pieces,
    )
    plan = _core.ChakraPlan(len(ranks), table, sizes, pace)
    for rank in range(len(ranks)):
        yield _core.write_chakra(CHAKRA_VERSION, [], plan.nodes(rank))


def _offsets(chunks: Chunks, parts: int) -> Int64:
    """Where each part of each chunk begins."""
    return np.concatenate(
        [chunks.offset[:, None] + chunks.bytes[:, None] * part // parts for part in range(parts)],
        axis=1,
    ).reshape(-1)


def write_workload(place: Path, prefix: str, form: Form, call: Call, ranks: Int64) -> int:
    """Write one trace a rank: the call for each of `ranks`, nothing to do for others."""
    said = [("comm_size", call.size), ("comm_type", COMM_TYPE_OF[call.kind]), ("is_cpu_op", 0)]
    group = [("pg_name", GROUP)] if len(ranks) < form.ranks else []
    busy = FILE_HEAD + encode(Node(0, call.kind, COMM_COLL, attributes=(*said, *group)))
    idle = FILE_HEAD + encode(Node(0, "idle", COMP))
    takes_part = np.isin(np.arange(form.ranks), ranks)
    for rank, part in enumerate(takes_part.tolist()):
        (place / f"{prefix}.{rank}.et").write_bytes(busy if part else idle)
    return int(np.where(takes_part, len(busy), len(idle)).sum())


MOST_MESSAGES = 1 << 24  # more would take gigabytes


def predicted_ns(form: Form, traces: Iterable[bytes], ranks: Int64) -> int | None:
    """When the last of `ranks` finishes on the congestion-aware backend.

    None if there are too many messages to find out.
    """
    if len(form.rows) > MOST_MESSAGES:
        return None
    custom = _core.RunRules.custom
    parts = [_core.read_rank(trace, rank, len(ranks), custom) for rank, trace in enumerate(traces)]
    (shape,) = form.shapes
    network = AstraNetwork([shape.name], [shape.size], [shape.gb], [shape.ns])
    graph = _core.RunGraph(parts)
    devices = ranks.astype(np.int32)
    run = _core.run_astra_traces(graph, False, True, devices, dimensions_of(network))
    return int(run.finish.max()) // 1000
