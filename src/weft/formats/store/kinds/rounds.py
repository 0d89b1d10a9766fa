"""Logs of rounds in a compact store."""

from __future__ import annotations

import numpy as np

from weft.algorithm import Algorithm, RoundLog
from weft.algorithm.rounds import NARROW_CHUNKS
from weft.errors import InputError
from weft.formats.store._layout import LOG, Arrays
from weft.formats.store.kinds import KINDS, StoredKind, Taken, context
from weft.units import CLOCK_PS


def _take(rows: RoundLog, _algorithm: Algorithm) -> Taken:
    return {LOG: rows.log, "offsets": rows.offsets}, {"slot": rows.slot, "count": rows.count}


def _make(frame: Algorithm, arrays: Arrays) -> RoundLog:
    """What lies in the log is left to those who read it; where its rounds lie is checked here."""
    network, demand = context(frame, ("all-gather", "reduce-scatter", "all-reduce"))
    if network.switches:
        raise InputError("a log of rounds is for networks without switches")
    log, offsets = arrays.log, arrays.typed("offsets", np.int64)
    if log is None:
        raise InputError(f"the array {LOG} is missing")
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(log):
        raise InputError("the offsets of the rounds do not fit the log")
    sizes = np.diff(offsets)
    bitmap = -(-network.links // 64) * 8
    for bad in np.flatnonzero((sizes < bitmap) | (sizes % 8 != 0))[:1]:
        raise InputError(
            f"round {bad} has {sizes[bad]} bytes; expected a multiple of 8, at least {bitmap}"
        )
    width = 2 if demand.chunk_count <= NARROW_CHUNKS else 4
    slot = arrays.number("slot", 1, CLOCK_PS // max(len(sizes), 1))
    count = arrays.number("count", 0, (len(log) - bitmap * len(sizes)) // width)
    return RoundLog(slot, count, log, offsets, 2 if demand.kind == "all-reduce" else 1)


KINDS.add(RoundLog.kind, StoredKind(_take, _make, file=lambda rows: rows.file))
