"""Groups that do not know of each other: each planned alone, all run at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm, Routes, Transfers
from weft.algorithm.transfers import moved_places, scratch_slots
from weft.engine import simulate
from weft.ragged import offsets_of


def collided(single: Sequence[Algorithm]) -> Algorithm:
    """What becomes of algorithms for one network if all begin at once: links serve first come."""
    return simulate(side_by_side(single), order="fifo").timed()


def side_by_side(single: Sequence[Algorithm]) -> Algorithm:
    """Algorithms for one network as one, with the times that each has if no other runs.

    Rows are in order of start; chunks and slots of memory have the numbers beside those of the
    others. Links may be held twice at once.
    """
    routes, shifts = Routes.joined([a.routes for a in single])
    parts, chunk, slot, row = [], 0, 0, 0
    named = any({"src_place", "dst_place"} & a.transfers.columns().keys() for a in single)
    waits = any(a.transfers.deps is not None for a in single)
    for algorithm, shift in zip(single, shifts, strict=True):
        columns = _columns(algorithm.transfers, named=named, waits=waits)
        columns["chunk"] = columns["chunk"] + np.int32(chunk)
        columns["route"] = columns["route"] + shift
        if named:
            places = [columns["src_place"], columns["dst_place"]]
            columns["src_place"], columns["dst_place"] = (
                moved_places(column, chunk, slot) for column in places
            )
            slot += max(map(scratch_slots, places))
        if waits:
            columns["deps"] = columns["deps"] + row
        parts.append(columns)
        chunk += len(algorithm.chunks)
        row += len(algorithm.transfers)
    together: dict[str, Any] = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    if waits:
        counts = np.concatenate([np.diff(p["dep_offsets"]) for p in parts])
        together["dep_offsets"] = offsets_of(counts)
    rows = Transfers(**together)
    timing = single[0].require_timing()
    return Algorithm(
        tuple(demand for algorithm in single for demand in algorithm.demands),
        rows.reordered(np.argsort(rows.require_times().start, kind="stable")),
        replace(timing, routes=routes),
        {"method": " + ".join(dict.fromkeys(str(a.provenance["method"]) for a in single))},
    )


def _columns(rows: Transfers, *, named: bool, waits: bool) -> dict[str, NDArray[Any]]:
    """The columns, also those that only others have: no place is HOME, no waits are none."""
    columns: dict[str, NDArray[Any]] = dict(rows.columns())
    if named:
        for name in ("src_place", "dst_place"):
            columns.setdefault(name, rows.chunk)
    if waits:
        columns.setdefault("dep_offsets", np.zeros(len(rows) + 1, dtype=np.int64))
        columns.setdefault("deps", np.zeros(0, dtype=np.int64))
    return columns
