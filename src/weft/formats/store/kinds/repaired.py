"""Repaired rows in a compact store: those of one NPU's chunks before failures, and a patch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.algorithm import Algorithm, RepairedExchange, RepairedRows
from weft.algorithm.repaired import Patched
from weft.errors import InputError
from weft.formats.limits import checked_range
from weft.formats.store._layout import Arrays, Types
from weft.formats.store.kinds import KINDS, StoredKind, Taken, columns_of, context
from weft.formats.store.kinds.symmetric import TYPES, own_rows
from weft.units import CLOCK_PS

_PATCH: Types = {"chunk": np.int32, "link": np.int32, "start": np.int64}
_EXCHANGE_PATCH: Types = {"chunk": np.int64, "link": np.int32, "start": np.int64}
_GATHERS = ("all-gather", "reduce-scatter", "all-reduce")


def _taker(types: Types) -> Callable[[Patched, Algorithm], Taken]:
    """What takes rows whose patch is of these types."""

    def take(rows: Patched, _algorithm: Algorithm) -> Taken:
        base, patch = columns_of(rows.base, TYPES, "base_"), columns_of(rows, types)
        return base | patch, {"count": rows.count}

    return take


def _make(frame: Algorithm, arrays: Arrays) -> RepairedRows:
    patched = _patched(frame, arrays, _GATHERS, _PATCH)
    return RepairedRows(**patched, both=frame.demands[0].kind == "all-reduce")


def _make_exchange(frame: Algorithm, arrays: Arrays) -> RepairedExchange:
    return RepairedExchange(**_patched(frame, arrays, ("all-to-all",), _EXCHANGE_PATCH))


def _patched(
    frame: Algorithm, arrays: Arrays, served: tuple[str, ...], types: Types
) -> dict[str, Any]:
    """Base, count and patch of rows that serve some collectives."""
    network, demand = context(frame, served)
    if network.whole is None or demand.group != tuple(network.members.tolist()):
        raise InputError(
            "repaired rows are for all NPUs that are left of a network that translated"
        )
    own = demand.chunks_per_share * (network.npus if demand.pattern.own_buffers else 1)
    base = own_rows(arrays, "base_", own, network.npus)
    patch = arrays.columns(types)
    if len({len(column) for column in patch.values()}) > 1 or not len(patch["chunk"]):
        raise InputError("the columns of the patch differ in length, or are empty")
    ends = {"chunk": demand.chunk_count, "link": network.links, "start": CLOCK_PS}
    for name, end in ends.items():
        checked_range(name, patch[name], end)
    count = arrays.number("count", 0, len(base) + len(patch["chunk"]))
    return {"base": base, "count": count, **patch}


KINDS.add(RepairedRows.kind, StoredKind(_taker(_PATCH), _make))
KINDS.add(RepairedExchange.kind, StoredKind(_taker(_EXCHANGE_PATCH), _make_exchange, of_one=True))
