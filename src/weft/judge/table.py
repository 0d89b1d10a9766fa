"""Hands an algorithm's columns to the judge in the core, and its finding to the wording."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import COLUMN_TYPES, Algorithm, Transfers
from weft.errors import InputError
from weft.judge.verdict import Verdict
from weft.judge.wording import word_row
from weft.topology.model import Topology
from weft.units import format_size

MAX_ROWS = (1 << 32) - 1
MAX_NPUS = 1 << 24
LISTED = 1 << 20
"""Compact rows that are judged as they are: up to so many are also judged one by one."""

_TOGETHER = (("route", "start", "end"), ("dep_offsets", "deps"))


def judge_table(algorithm: Algorithm) -> Verdict:
    """Judge a table row by row: see `weft.verify`."""
    malformed = (
        _malformed_columns(algorithm.transfers)
        or malformed_column("routes.offsets", algorithm.routes.offsets, np.int64)
        or malformed_column("routes.links", algorithm.routes.links, np.int32)
    )
    if malformed:
        return Verdict(False, malformed, "structure")
    if len(algorithm.transfers) > MAX_ROWS:
        raise InputError(f"the judge takes up to {MAX_ROWS} rows, not {len(algorithm.transfers)}")
    found = _judge(algorithm)
    if found is None:
        return Verdict(True)
    if found.code == _core.ViolationCode.too_large:
        raise InputError(
            f"judging this algorithm would take {format_size(found.other)} for the sets of "
            "contributions in its places; the judge uses up to 8GiB"
        )
    text, kind = word_row(found, algorithm)
    if found.row >= 0 or found.chunk < 0:
        return Verdict(False, text, kind, found.row if found.row >= 0 else None)
    return Verdict(False, text, kind, chunk=found.chunk, npu=found.npu)


def _malformed_columns(transfers: Transfers) -> str | None:
    """What is wrong with the shapes of the columns, if anything."""
    columns = transfers.columns()
    for name, column in columns.items():
        length = None if name == "deps" else len(transfers) + (name == "dep_offsets")
        if (wrong := malformed_column(name, column, COLUMN_TYPES[name], length)) is not None:
            return wrong
    for names in _TOGETHER:
        there = [name for name in names if name in columns]
        if there and len(there) < len(names):
            absent = next(name for name in names if name not in columns)
            return f"column '{there[0]}' is there, but '{absent}' is not"
    return None


def link_at_removed(topology: Topology) -> str | None:
    """A link at an NPU that is not there, in words: no row may cross it."""
    gone = list(topology.removed)
    for link in np.flatnonzero(np.isin(topology.src, gone) | np.isin(topology.dst, gone))[:1]:
        return f"link {topology.link_name(int(link))} is at an NPU that was removed"
    return None


def malformed_column(
    name: str, column: NDArray[np.generic], expected: type[np.generic], length: int | None = None
) -> str | None:
    """What is wrong with a column that is to be of this type and length, if anything."""
    if column.ndim != 1:
        return f"column '{name}' has {column.ndim} dimensions, but 1 is expected"
    if column.dtype != expected:
        return f"column '{name}' is {column.dtype}, but {np.dtype(expected)} is expected"
    if length is not None and len(column) != length:
        return f"column '{name}' has {len(column)} values, but {length} are expected"
    return None


def _judge(algorithm: Algorithm) -> _core.Violation | None:
    timing = removed = None
    if algorithm.timing is not None:
        timing = replace(algorithm.timing, routes=algorithm.routes).core
        topology = algorithm.timing.topology
        removed = np.isin(np.arange(topology.npus), list(topology.removed))
    return _core.judge(
        npus=_npus(algorithm),
        rows=algorithm.transfers.core,
        chunks=algorithm.chunks.core,
        timing=timing,
        removed=removed,
    )


def _npus(algorithm: Algorithm) -> int:
    """How many NPU numbers there are; without a network, as many as are mentioned."""
    if algorithm.topology is not None:
        return algorithm.topology.npus
    transfers = algorithm.transfers
    used = max(int(transfers.src.max(initial=0)), int(transfers.dst.max(initial=0)))
    demanded = max(max(demand.group) for demand in algorithm.demands)
    return 1 + min(max(demanded, used), MAX_NPUS)
