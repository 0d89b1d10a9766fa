"""Rows of one NPU's chunks in a compact store."""

from __future__ import annotations

import numpy as np

from weft.algorithm import Algorithm, SymmetricRows
from weft.errors import InputError
from weft.formats.limits import checked_range
from weft.formats.store._layout import Arrays
from weft.formats.store.kinds import KINDS, StoredKind, Taken, columns_of, context
from weft.units import CLOCK_PS

TYPES: dict[str, type[np.generic]] = {
    "chunk": np.int32,
    "src": np.int32,
    "dst": np.int32,
    "reduce": np.bool_,
    "start": np.int64,
}
_SERVED = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")


def _take(rows: SymmetricRows, _algorithm: Algorithm) -> Taken:
    return columns_of(rows, TYPES), {}


def _make(frame: Algorithm, arrays: Arrays) -> SymmetricRows:
    network, demand = context(frame, _SERVED)
    if not network.translates or demand.group != tuple(range(network.npus)):
        raise InputError("symmetric rows are for all NPUs of a network that translates onto itself")
    return own_rows(arrays, "", demand.chunk_count // network.npus, network.npus)


def own_rows(arrays: Arrays, prefix: str, chunks: int, npus: int) -> SymmetricRows:
    """The rows of one NPU, which has so many chunks."""
    columns = arrays.columns(TYPES, prefix)
    if len({len(column) for column in columns.values()}) > 1:
        raise InputError("the columns of the rows differ in length")
    for name, end in (("chunk", chunks), ("src", npus), ("dst", npus), ("start", CLOCK_PS)):
        checked_range(f"{prefix}{name}", columns[name], end)
    if (np.diff(columns["start"]) < 0).any():
        raise InputError("the rows are not in the order of their starts")
    return SymmetricRows(**columns, npus=npus)


KINDS.add(SymmetricRows.kind, StoredKind(_take, _make, of_one=True))
