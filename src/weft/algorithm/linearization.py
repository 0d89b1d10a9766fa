"""From a program of thread blocks to a table of transfers: ordered, free of races, with chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm.cells import Cells
from weft.algorithm.transfers import Transfers
from weft.errors import InputError
from weft.ragged import offsets_of, owners

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Program:
    """What thread blocks do, and in which order as far as that is sure.

    Action ``a`` copies cell ``src[a]`` to cell ``dst[a]``, or adds it to what is there. It reads
    in event ``2 * a`` and writes in event ``2 * a + 1``, which follows it. Further events, from
    ``2 * len(src)`` on, do nothing but keep order (a signal, a barrier).

    Attributes
    ----------
    cells
        The memory.
    src, dst, reduce
        The actions (int32, int32, bool).
    events
        How many events there are.
    chain_offsets, chain_events
        Events that follow each other, as the steps of a thread block do: chain ``c`` is
        ``chain_events[chain_offsets[c]:chain_offsets[c + 1]]``; an event is in one at most (int64).
    edge_from, edge_to
        Further order: one event before another (int64).
    wished
        Which edges the author asked for (bool): they become dependencies of rows, even where
        the flow of data does not need them.
    """

    cells: Cells
    src: Int32
    dst: Int32
    reduce: NDArray[np.bool_]
    events: int
    chain_offsets: Int64
    chain_events: Int64
    edge_from: Int64
    edge_to: Int64
    wished: NDArray[np.bool_]


class Words(Protocol):
    """What people call the events and cells of a program."""

    def event(self, event: int) -> str:
        """Where in the file an event is, such as ``GPU 0, thread block 1, step 2``."""

    def cell(self, cell: int) -> str:
        """A cell, such as ``output[3]``."""


@dataclass(frozen=True, eq=False)
class Linearized:
    """A program as rows.

    Attributes
    ----------
    transfers
        The rows, untimed. Places are left out if every chunk is always at home.
    action
        The action each row comes from (int64). An action whose source is overwritten before it
        writes, as in an exchange in place, is two rows, by way of scratch. -1: a last row that
        shows the judge what lies where a result should.
    before
        The chunk that the cell written held before, or -1 (int32).
    """

    transfers: Transfers
    action: Int64
    before: Int32


def linearize(program: Program, words: Words, kept: int | None = None) -> Linearized:
    """Put a program's actions in an order in which they could run one after the other.

    Parameters
    ----------
    kept
        So many actions become rows, if not all: what comes after them only looks at results.

    Raises
    ------
    InputError
        Events wait for each other in a circle; a cell is read (or added to) that holds nothing;
        or two events use a cell, one writes it, and nothing says which comes first.
    """
    said = vars(program) | vars(program.cells)
    del said["cells"], said["slots"]
    linear = _core.Program(**said).linearize()
    if linear.fault != _core.Fault.nothing:
        raise InputError(_sentence(linear, words))
    columns = linear.columns()
    if kept is not None:
        columns = _first(columns, kept)
    action, before = columns.pop("action"), columns.pop("before")
    columns["reduce"] = columns["reduce"].astype(np.bool_)
    if all((columns[name] == columns["chunk"]).all() for name in ("src_place", "dst_place")):
        del columns["src_place"], columns["dst_place"]
    if len(columns["deps"]) == 0:
        del columns["dep_offsets"], columns["deps"]
    return Linearized(Transfers(**columns), action, before)


def _first(columns: dict[str, NDArray[Any]], kept: int) -> dict[str, NDArray[Any]]:
    """The rows of the first actions only; they depend on none of the others."""
    mine = columns["action"] < kept
    owner = owners(np.diff(columns["dep_offsets"]))
    deps = columns.pop("deps")[mine[owner]]
    counts = np.diff(columns.pop("dep_offsets"))[mine]
    columns = {name: column[mine] for name, column in columns.items()}
    columns["dep_offsets"] = offsets_of(counts)
    columns["deps"] = (np.cumsum(mine) - 1)[deps]
    return columns


_SHOWN = 6  # events of a cycle that a sentence names


def _sentence(linear: _core.Linearized, words: Words) -> str:
    # A cycle passes through both halves of an action; people call them by one name.
    events = list(dict.fromkeys(words.event(event) for event in linear.fault_events))
    if linear.fault == _core.Fault.cycle:
        rest = [f"and {len(events) - _SHOWN} more"] if len(events) > _SHOWN else []
        circle = ", then ".join([*events[1:_SHOWN], *rest]) or "itself"
        return f"deadlock: {events[0]} must come before {circle}, which must come before it"
    cell = words.cell(linear.fault_cell)
    if linear.fault == _core.Fault.empty:
        return f"{events[0]} reads {cell}, which holds nothing then"
    pair = " and ".join(events)
    if linear.fault == _core.Fault.tangled:
        return f"the order of {pair}, which both use {cell}, is too tangled to find out"
    return f"{pair} both use {cell}, and nothing says which comes first"
