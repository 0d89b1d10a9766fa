"""Trees that carry one chunk after the other in a compact store."""

from __future__ import annotations

import numpy as np

from weft.algorithm import Algorithm, PeriodicRows
from weft.errors import InputError
from weft.formats.limits import checked_range
from weft.formats.store._layout import Arrays, Types
from weft.formats.store.kinds import KINDS, StoredKind, Taken, columns_of, context
from weft.units import CLOCK_PS

_TYPES: Types = {
    "first": np.int64,
    "offsets": np.int64,
    "link": np.int32,
    "reduce": np.bool_,
    "start": np.int64,
}


def _take(rows: PeriodicRows, _algorithm: Algorithm) -> Taken:
    return columns_of(rows, _TYPES), {"period": rows.period}


def _make(frame: Algorithm, arrays: Arrays) -> PeriodicRows:
    network, demand = context(frame, ("all-reduce",), custom=True)
    columns = arrays.columns(_TYPES)
    if len({len(columns[name]) for name in ("link", "reduce", "start")}) > 1:
        raise InputError("the columns of the rows differ in length")
    for name, end in (("offsets", len(columns["link"])), ("first", len(demand.chunks))):
        marks = columns[name]
        if not len(marks) or marks[0] != 0 or marks[-1] != end or (np.diff(marks) < 0).any():
            raise InputError(f"{name} does not go from 0 to {end}")
    if len(columns["offsets"]) != len(columns["first"]) or network.switches:
        raise InputError("the trees do not fit their chunks or the network")
    checked_range("link", columns["link"], network.links)
    checked_range("start", columns["start"], CLOCK_PS)
    period = arrays.number("period", 0, CLOCK_PS // max(len(demand.chunks), 1))
    return PeriodicRows(period=period, **columns)


KINDS.add(PeriodicRows.kind, StoredKind(_take, _make))
