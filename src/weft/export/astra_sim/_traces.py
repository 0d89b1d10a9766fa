"""The traces of a bundle: the algorithm's, and a workload that calls it once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weft import _core
from weft.collective import Chunks, Collective
from weft.export.astra_sim._forms import Form
from weft.export.astra_sim._messages import Int32, Int64
from weft.formats.chakra._attributes import CHAKRA_VERSION

_COMP, _COMM_COLL = 4, 7
# Bits of `present`, in the order of the core's known attributes.
_HAS_SIZE, _HAS_TYPE, _HAS_CPU = 1 << 2, 1 << 7, 1 << 8
_MOST = (1 << 31) - 1
GROUP = "1"


@dataclass(frozen=True)
class Call:
    """The collective as a workload names it.

    Attributes
    ----------
    kind
        One of those for which ASTRA-sim takes an algorithm.
    number
        Its number in Chakra's schema.
    size
        In bytes: what one rank gives in an All-Gather, the whole buffer otherwise.
    exact
        Whether the algorithm serves just that collective.
    """

    kind: str
    number: int
    size: int
    exact: bool


_NUMBERS = {"all-reduce": 0, "all-gather": 2, "all-to-all": 6, "reduce-scatter": 7}


def call_of(demands: Sequence[Collective]) -> Call:
    """What to call the algorithm: any name will do, so the nearest."""
    kinds = {demand.kind for demand in demands}
    exact = len(demands) == 1 and kinds <= _NUMBERS.keys()
    kind = demands[0].kind if len(kinds) == 1 and kinds <= _NUMBERS.keys() else "all-gather"
    size = max(
        -(-demand.size // demand.ranks) if demand.kind == "all-gather" else demand.size
        for demand in demands
    )
    return Call(kind, _NUMBERS[kind], size, exact)


@dataclass(frozen=True, eq=False)
class _Counts:
    """Sizes as counts of equal pieces, for versions of ASTRA-sim that scale algorithms."""

    count: Int32
    index: Int32
    total: int


def _counts(form: Form, call: Call, offset: Int64) -> _Counts:
    """Pieces that give the very bytes; a total of -1 says that there are none such.

    Such a version takes the workload's size over the total for a piece (times the ranks for an
    All-Gather), and wants both the size and the total to be divisible.
    """
    sent = form.rows.bytes[~form.rows.local]
    gathers = call.kind == "all-gather"
    whole = call.size if gathers or call.size % form.ranks else call.size // form.ranks
    piece = math.gcd(int(np.gcd.reduce(sent)) if len(sent) else 0, whole)
    total = call.size * (form.ranks if gathers else 1) // piece
    fits = total % form.ranks == 0 and call.size % total == 0 and total <= _MOST
    if not fits or int(sent.max(initial=0)) // piece > _MOST:
        zeros = np.zeros(len(form.rows), dtype=np.int32)
        return _Counts(zeros, zeros, -1)
    index = np.minimum(offset[form.rows.chunk] // piece, total - 1)
    return _Counts((form.rows.bytes // piece).astype(np.int32), index.astype(np.int32), total)


def participants(form: Form, demands: Sequence[Collective]) -> Int64:
    """The ranks that have something to do, ascending; all where nobody has."""
    if not len(form.rows):
        return np.arange(form.ranks)
    members = [np.array(demand.group, dtype=np.int64) for demand in demands]
    return np.unique(np.concatenate([form.rows.src, form.rows.dst, *members]))


def algorithm_traces(form: Form, call: Call, ranks: Int64, chunks: Chunks) -> Iterator[bytes]:
    """One trace for each of `ranks`, numbered from 0."""
    rows, counts = form.rows, _counts(form, call, _offsets(chunks, form.parts))
    sizes = np.zeros(max(len(rows), rows.places), dtype=np.int64)
    sizes[: len(rows)] = rows.bytes
    plan = _core.ChakraPlan(
        len(ranks),
        np.arange(len(rows), dtype=np.int32),
        np.searchsorted(ranks, rows.src).astype(np.int32),
        np.searchsorted(ranks, rows.dst).astype(np.int32),
        np.ascontiguousarray(rows.reduce),
        sizes,
        np.ascontiguousarray(rows.reads),
        np.ascontiguousarray(rows.writes),
        rows.dep_offsets,
        rows.deps,
        gate=form.pace.gate,
        after=form.pace.after,
        delay=form.delay,
        piece_count=counts.count,
        piece_index=counts.index,
        pieces=counts.total,
    )
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
    grouped = len(ranks) < form.ranks
    busy = _core.write_chakra(CHAKRA_VERSION, [], _call_node(call, GROUP if grouped else ""))
    idle = _core.write_chakra(CHAKRA_VERSION, [], _idle_node())
    takes_part = np.isin(np.arange(form.ranks), ranks)
    for rank, part in enumerate(takes_part.tolist()):
        (place / f"{prefix}.{rank}.et").write_bytes(busy if part else idle)
    return int(np.where(takes_part, len(busy), len(idle)).sum())


def _call_node(call: Call, group: str) -> _core.ChakraNodes:
    return _one_node(
        _COMM_COLL,
        call.kind,
        _HAS_SIZE | _HAS_TYPE | _HAS_CPU,
        comm_size=np.array([call.size]),
        comm_type=np.array([call.number]),
        is_cpu_op=np.array([0]),
        groups=[group] if group else [],
    )


def _idle_node() -> _core.ChakraNodes:
    return _one_node(_COMP, "idle", 0)


def _one_node(
    kind: int, name: str, present: int, *, groups: list[str] | None = None, **known: Int64
) -> _core.ChakraNodes:
    nothing, none = np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    return _core.ChakraNodes(
        id=np.zeros(1, dtype=np.uint64),
        type=np.array([kind], dtype=np.int32),
        ctrl_offsets=nothing,
        ctrl=none,
        data_offsets=nothing,
        data=none,
        start=np.zeros(1, dtype=np.uint64),
        duration=np.zeros(1, dtype=np.uint64),
        present=np.array([present], dtype=np.uint16),
        names=[name],
        groups=groups or [],
        **known,
    )
