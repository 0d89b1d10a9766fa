"""Tables in a compact store."""

from __future__ import annotations

from weft.algorithm import COLUMN_TYPES, Algorithm, Transfers
from weft.formats.limits import check_rows, standard_columns
from weft.formats.store._layout import Arrays
from weft.formats.store.kinds import KINDS, StoredKind, Taken

_REQUIRED = ("chunk", "src", "dst", "reduce")  # columns that every table has


def _take(rows: Transfers, algorithm: Algorithm) -> Taken:
    table = standard_columns(rows)
    _check(algorithm, table)
    return dict(table.columns()), {}


def _make(frame: Algorithm, arrays: Arrays) -> Transfers:
    there = {n: kind for n, kind in COLUMN_TYPES.items() if n in _REQUIRED or n in arrays}
    table = Transfers(**arrays.columns(there))
    _check(frame, table)
    return table


def _check(algorithm: Algorithm, table: Transfers) -> None:
    npus = 1 << 31 if algorithm.topology is None else algorithm.topology.npus
    check_rows(table, npus, len(algorithm.chunks), len(algorithm.routes))


KINDS.add(Transfers.kind, StoredKind(_take, _make))
