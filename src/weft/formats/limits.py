"""What formats that keep an algorithm whole share: bounds, and checks of parts and rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import COLUMN_TYPES, Algorithm, Transfers
from weft.arrays import Int64
from weft.collective import PATTERNS, Chunks
from weft.errors import InputError
from weft.ragged import offsets_of, owners
from weft.units import MAX_BYTES

# The columns that say what moves in a collective whose name does not.
PART_TYPES: dict[str, type[np.generic]] = {
    "bytes": np.int64,
    "offset": np.int64,
    "pre": np.int32,
    "post": np.int32,
    "reduce": np.bool_,
}


def count_limit(total_bytes: int) -> int:
    """How many chunks, NPUs or switches files of this size may claim.

    A transfer takes some ten bytes at least, so files that move their chunks stay below; without a
    limit a few corrupt bytes could claim all memory.
    """
    return max(1 << 20, total_bytes)


def check_npu_numbers(algorithm: Algorithm, total_bytes: int) -> None:
    """Raise if files of this size name an NPU of too high a number, and no network.

    NPUs without a network are as many as are named: one number could claim all memory.
    """
    if algorithm.topology is not None:
        return
    most, named = count_limit(total_bytes), named_npus(algorithm)
    if named > most:
        raise InputError(f"names NPU {named - 1}, but no network; expected NPUs 0 to {most - 1}")


def named_npus(algorithm: Algorithm) -> int:
    """How many NPUs an algorithm is for: those of its network, or up to the last it names."""
    if algorithm.topology is not None:
        return algorithm.topology.npus
    rows = algorithm.transfers
    groups = max(max(demand.group) for demand in algorithm.demands)
    return 1 + max(groups, int(rows.src.max(initial=0)), int(rows.dst.max(initial=0)))


def chunk_total(kind: str, ranks: int, parts: int | None, chunks_per_share: int) -> int:
    """How many chunks a collective claims to have, before any is made."""
    pattern = PATTERNS.get(kind)
    if parts is None and pattern is not None and pattern.build is not None:
        parts = pattern.parts(max(ranks, 0))
    return max(parts or 0, ranks, 0) * max(chunks_per_share, 0)


def checked_range(name: str, values: Int64, end: int, least: int = 0) -> None:
    """Raise unless all values are `least` to end - 1."""
    for index in np.flatnonzero((values < least) | (values >= end))[:1]:
        raise InputError(f"{name}[{index}] is {values[index]}; expected {least} to {end - 1}")


def checked_parts(
    columns: Mapping[str, NDArray[Any]], lengths: Int64, members: Int64, prefix: str
) -> Chunks:
    """Parts from their columns (`PART_TYPES`) and the sets they name, all of equal length.

    `prefix` stands before a column's name in messages.
    """
    for side in ("pre", "post"):
        checked_range(f"{prefix}{side}", columns[side], len(lengths))
    checked_range(f"{prefix}bytes", columns["bytes"], MAX_BYTES + 1, least=1)
    # Halves cannot overflow where the sum of all could.
    if int((columns["bytes"] >> 16).sum()) > MAX_BYTES >> 16:
        raise InputError(f"{prefix}bytes are more than {MAX_BYTES} B in all")
    ends = offsets_of(lengths)
    inner = np.diff(members) > 0
    if len(members) != ends[-1] or (lengths < 1).any():
        raise InputError(f"the members of the sets of {prefix}pre and {prefix}post do not fit them")
    inner[ends[1:-1] - 1] = True  # sets are ascending; from one to the next need not be
    if not inner.all() or (members < 0).any() or (members >= 1 << 31).any():
        raise InputError(f"the sets of {prefix}pre and {prefix}post are not NPUs in rising order")
    return Chunks(
        **{name: columns[name].astype(kind) for name, kind in PART_TYPES.items()},
        reach=np.full(len(columns["bytes"]), -1, dtype=np.int32),
        set_offsets=ends,
        set_members=members.astype(np.int32),
    )


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
    check_deps(table)


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


def check_deps(table: Transfers) -> None:
    """Raise InputError at the first row with a dependency that is not an earlier row."""
    if table.dep_offsets is not None and table.deps is not None:
        owner = owners(np.diff(table.dep_offsets))
        for row in owner[(table.deps < 0) | (table.deps >= owner)][:1]:
            raise InputError(f"row {row} depends on a row that is not before it")
