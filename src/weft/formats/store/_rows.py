"""The kinds of rows a compact store can hold: as arrays and a few numbers, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.algorithm import (
    COLUMN_TYPES,
    Algorithm,
    CompactRows,
    PeriodicRows,
    RepairedExchange,
    RepairedRows,
    RoundLog,
    SymmetricRows,
    Transfers,
)
from weft.algorithm.rounds import NARROW_CHUNKS
from weft.collective import Collective
from weft.errors import InputError
from weft.formats.limits import checked_range
from weft.formats.row_checks import check_rows, standard_columns
from weft.formats.store._layout import LOG, Arrays, Column
from weft.topology.model import Topology
from weft.units import CLOCK_PS

Columns = dict[str, Column]
Numbers = dict[str, int]

_REQUIRED = ("chunk", "src", "dst", "reduce")  # columns that every table has
_SYMMETRIC: dict[str, type[np.generic]] = {
    "chunk": np.int32,
    "src": np.int32,
    "dst": np.int32,
    "reduce": np.bool_,
    "start": np.int64,
}
_PATCH: dict[str, type[np.generic]] = {"chunk": np.int32, "link": np.int32, "start": np.int64}
_EXCHANGE_PATCH = _PATCH | {"chunk": np.int64}
_PERIODIC: dict[str, type[np.generic]] = {
    "first": np.int64,
    "offsets": np.int64,
    "link": np.int32,
    "reduce": np.bool_,
    "start": np.int64,
}


@dataclass(frozen=True)
class Kind:
    """A kind of rows.

    Attributes
    ----------
    type
        Their class.
    take
        Arrays and numbers that say all of an algorithm's rows; a log comes first.
    make
        Rows from arrays and numbers of a file. It also gets the algorithm without its rows.
    """

    type: type[Transfers | CompactRows]
    take: Callable[[Algorithm], tuple[Columns, Numbers]]
    make: Callable[[Algorithm, Arrays, Numbers], Transfers | CompactRows]


def _number(numbers: Numbers, name: str, least: int, most: int) -> int:
    value = numbers.get(name)
    if value is None or not least <= value <= most:
        raise InputError(f"{name} is {value}; expected {least} to {most}")
    return value


def _take_table(algorithm: Algorithm) -> tuple[Columns, Numbers]:
    table = standard_columns(algorithm.transfers)
    _check_table(algorithm, table)
    return dict(table.columns()), {}


def _make_table(frame: Algorithm, arrays: Arrays, _numbers: Numbers) -> Transfers:
    columns: dict[str, Any] = {
        name: arrays.typed(name, kind)
        for name, kind in COLUMN_TYPES.items()
        if name in _REQUIRED or name in arrays
    }
    table = Transfers(**columns)
    _check_table(frame, table)
    return table


def _check_table(algorithm: Algorithm, table: Transfers) -> None:
    npus = 1 << 31 if algorithm.topology is None else algorithm.topology.npus
    routes = algorithm.route_table
    check_rows(table, npus, len(algorithm.chunks), 0 if routes is None else len(routes))


def _take_rounds(algorithm: Algorithm) -> tuple[Columns, Numbers]:
    rows = algorithm.rows
    assert isinstance(rows, RoundLog)
    arrays: Columns = {LOG: rows.log, "offsets": rows.offsets}
    return arrays, {"slot": rows.slot, "count": rows.count}


def _make_rounds(frame: Algorithm, arrays: Arrays, numbers: Numbers) -> RoundLog:
    """What lies in the log is left to those who read it; where its rounds lie is checked here."""
    network, demand = _place_of(frame, ("all-gather", "reduce-scatter", "all-reduce"))
    if network.switches:
        raise InputError("a log of rounds is for networks without switches")
    log, offsets = arrays.log, arrays.typed("offsets", np.int64)
    if log is None:
        raise InputError(f"the array {LOG} is missing")
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(log):
        raise InputError("the offsets of the rounds do not fit the log")
    sizes = np.diff(offsets)
    bitmap = -(-network.links // 64) * 8
    for number in np.flatnonzero((sizes < bitmap) | (sizes % 8 != 0))[:1]:
        raise InputError(
            f"round {number} has {sizes[number]} bytes; expected a multiple of 8, at least {bitmap}"
        )
    width = 2 if demand.chunk_count <= NARROW_CHUNKS else 4
    slot = _number(numbers, "slot", 1, CLOCK_PS // max(len(sizes), 1))
    count = _number(numbers, "count", 0, (len(log) - bitmap * len(sizes)) // width)
    return RoundLog(slot, count, log, offsets, 2 if demand.kind == "all-reduce" else 1)


def _take_symmetric(algorithm: Algorithm) -> tuple[Columns, Numbers]:
    assert isinstance(algorithm.rows, SymmetricRows)
    return _own_columns(algorithm.rows, ""), {}


def _make_symmetric(frame: Algorithm, arrays: Arrays, _numbers: Numbers) -> SymmetricRows:
    kinds = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")
    network, demand = _place_of(frame, kinds)
    if not network.translates or demand.group != tuple(range(network.npus)):
        raise InputError("symmetric rows are for all NPUs of a network that translates onto itself")
    return _own_rows(arrays, "", demand.chunk_count // network.npus, network.npus)


def _own_columns(rows: SymmetricRows, prefix: str) -> Columns:
    """The columns of one NPU's rows."""
    return {f"{prefix}{name}": getattr(rows, name).astype(t) for name, t in _SYMMETRIC.items()}


def _own_rows(arrays: Arrays, prefix: str, chunks: int, npus: int) -> SymmetricRows:
    """The rows of one NPU, which has so many chunks."""
    columns: dict[str, Any] = {
        name: arrays.typed(f"{prefix}{name}", kind) for name, kind in _SYMMETRIC.items()
    }
    if len({len(column) for column in columns.values()}) > 1:
        raise InputError("the columns of the rows differ in length")
    for name, end in (("chunk", chunks), ("src", npus), ("dst", npus), ("start", CLOCK_PS)):
        checked_range(f"{prefix}{name}", columns[name], end)
    if (np.diff(columns["start"]) < 0).any():
        raise InputError("the rows are not in the order of their starts")
    return SymmetricRows(**columns, npus=npus)


def _take_mended(algorithm: Algorithm) -> tuple[Columns, Numbers]:
    rows = algorithm.rows
    assert isinstance(rows, RepairedRows | RepairedExchange)
    kinds = _PATCH if isinstance(rows, RepairedRows) else _EXCHANGE_PATCH
    patch = {name: getattr(rows, name).astype(kind) for name, kind in kinds.items()}
    return _own_columns(rows.base, "base_") | patch, {"count": rows.count}


def _make_mended(frame: Algorithm, arrays: Arrays, numbers: Numbers) -> RepairedRows:
    network, demand = _place_of(frame, ("all-gather", "reduce-scatter", "all-reduce"))
    base, patch = _base_and_patch(network, demand, arrays, _PATCH, demand.chunks_per_share)
    count = _number(numbers, "count", 0, len(base) + len(patch["chunk"]))
    return RepairedRows(base, count, **patch, both=demand.kind == "all-reduce")


def _make_repaired_exchange(frame: Algorithm, arrays: Arrays, numbers: Numbers) -> RepairedExchange:
    network, demand = _place_of(frame, ("all-to-all",))
    own = network.npus * demand.chunks_per_share
    base, patch = _base_and_patch(network, demand, arrays, _EXCHANGE_PATCH, own)
    count = _number(numbers, "count", 0, len(base) + len(patch["chunk"]))
    return RepairedExchange(base, count, **patch)


def _base_and_patch(
    network: Topology,
    demand: Collective,
    arrays: Arrays,
    kinds: dict[str, type[np.generic]],
    own: int,
) -> tuple[SymmetricRows, dict[str, Any]]:
    """Rows of an NPU that has `own` chunks before failures, and the columns of a patch."""
    if network.whole is None or demand.group != tuple(network.members.tolist()):
        raise InputError("mended rows are for all NPUs that are left of a network that translated")
    base = _own_rows(arrays, "base_", own, network.npus)
    patch: dict[str, Any] = {name: arrays.typed(name, kind) for name, kind in kinds.items()}
    if len({len(column) for column in patch.values()}) > 1 or not len(patch["chunk"]):
        raise InputError("the columns of the patch differ in length, or are empty")
    ends = {"chunk": demand.chunk_count, "link": network.links, "start": CLOCK_PS}
    for name, end in ends.items():
        checked_range(name, patch[name], end)
    return base, patch


def _take_periodic(algorithm: Algorithm) -> tuple[Columns, Numbers]:
    rows = algorithm.rows
    assert isinstance(rows, PeriodicRows)
    columns = {name: getattr(rows, name).astype(kind) for name, kind in _PERIODIC.items()}
    return columns, {"period": rows.period}


def _make_periodic(frame: Algorithm, arrays: Arrays, numbers: Numbers) -> PeriodicRows:
    network, demand = _place_of(frame, ("all-reduce",), told=True)
    columns: dict[str, Any] = {name: arrays.typed(name, kind) for name, kind in _PERIODIC.items()}
    if len({len(columns[name]) for name in ("link", "reduce", "start")}) > 1:
        raise InputError("the columns of the rows differ in length")
    ends = {"offsets": len(columns["link"]), "first": len(demand.chunks)}
    for name, end in ends.items():
        marks = columns[name]
        if not len(marks) or marks[0] != 0 or marks[-1] != end or (np.diff(marks) < 0).any():
            raise InputError(f"{name} does not go from 0 to {end}")
    if len(columns["offsets"]) != len(columns["first"]) or network.switches:
        raise InputError("the trees do not fit their chunks or the network")
    checked_range("link", columns["link"], network.links)
    checked_range("start", columns["start"], CLOCK_PS)
    period = _number(numbers, "period", 0, CLOCK_PS // max(len(demand.chunks), 1))
    return PeriodicRows(period=period, **columns)


def _place_of(
    frame: Algorithm, kinds: tuple[str, ...], *, told: bool = False
) -> tuple[Topology, Collective]:
    """Network and collective of compact rows; the name must say what moves, unless `told`."""
    demand, *others = frame.demands
    if frame.topology is None or frame.cost is None or others:
        raise InputError("compact rows need a topology, a cost model and one collective")
    if demand.kind not in kinds or (demand.parts is not None and not told):
        raise InputError(f"such rows cannot be those of this {demand.kind}")
    if demand.parts is None and not demand.smallest_chunk:
        raise InputError(f"compact rows need chunks that have bytes; {demand.size} B are too few")
    return frame.topology, demand


KINDS: dict[str, Kind] = {
    "table": Kind(Transfers, _take_table, _make_table),
    "rounds": Kind(RoundLog, _take_rounds, _make_rounds),
    "mended": Kind(RepairedRows, _take_mended, _make_mended),
    "mended-exchange": Kind(RepairedExchange, _take_mended, _make_repaired_exchange),
    "periodic": Kind(PeriodicRows, _take_periodic, _make_periodic),
    "symmetric": Kind(SymmetricRows, _take_symmetric, _make_symmetric),
}


def kind_of(rows: Transfers | CompactRows) -> str:
    """The name of the kind of rows these are."""
    for name, kind in KINDS.items():
        if isinstance(rows, kind.type):
            return name
    raise InputError(f"a compact store cannot hold rows of the kind {type(rows).__name__}")
