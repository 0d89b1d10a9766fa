"""Tables of transfers as formats that keep them whole want them, and what can be wrong with one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from weft.algorithm import COLUMN_TYPES, Transfers
from weft.errors import InputError


def standard_columns(table: Transfers) -> Transfers:
    """The same table with the types the kernels want; columns that have them are not copied."""
    columns: dict[str, Any] = {
        name: np.ascontiguousarray(column, dtype=COLUMN_TYPES[name])
        for name, column in table.columns().items()
    }
    return replace(table, **columns)


def check_rows(table: Transfers, npus: int, chunks: int, routes: int) -> None:
    """Raise InputError if columns do not fit each other, or a row makes no sense."""
    _check_lengths(table)
    for name, column, most in (
        ("source NPU", table.src, npus),
        ("destination NPU", table.dst, npus),
        ("chunk", table.chunk, chunks),
        ("route", table.route, routes),
        ("source place", table.src_place, 1 << 31),
        ("destination place", table.dst_place, 1 << 31),
    ):
        if column is None:
            continue
        for row in np.flatnonzero((column < 0) | (column >= most))[:1]:
            raise InputError(
                f"row {row}: {name} {column[row]} is out of range; expected 0 to {most - 1}"
            )
    row = first_bad_dep(table)
    if row is not None:
        raise InputError(f"row {row} depends on a row that is not before it")


def _check_lengths(table: Transfers) -> None:
    timed = [column is not None for column in (table.route, table.start, table.end)]
    if any(timed) != all(timed):
        raise InputError("a timed table has a route, a start and an end for each row")
    if (table.dep_offsets is None) != (table.deps is None):
        raise InputError("dependencies need both their offsets and their rows")
    for name, column in table.columns().items():
        if name == "deps":
            continue
        if len(column) != len(table) + (name == "dep_offsets"):
            raise InputError(f"column '{name}' has {len(column)} entries for {len(table)} rows")
    if table.dep_offsets is not None and table.deps is not None:
        marks = table.dep_offsets
        if marks[0] != 0 or marks[-1] != len(table.deps) or (np.diff(marks) < 0).any():
            raise InputError("the offsets of the dependencies do not fit the dependencies")


def first_bad_dep(table: Transfers) -> int | None:
    """The first row with a dependency that is not an earlier row, if any."""
    if table.dep_offsets is None or table.deps is None:
        return None
    owner = np.repeat(np.arange(len(table)), np.diff(table.dep_offsets))
    bad = np.flatnonzero((table.deps < 0) | (table.deps >= owner))
    return int(owner[bad[0]]) if len(bad) else None
