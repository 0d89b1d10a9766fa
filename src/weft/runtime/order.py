"""The order in which all ranks take the rows of an algorithm: what a row waits for comes before it.

A rank sends to another in this order and receives in it, so every message is known by its turn. The
order is also why nothing can deadlock: of all rows that are not over, the first waits for none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm, Transfers
from weft.algorithm.transfers import Routes
from weft.errors import InputError
from weft.ragged import lengths_of, offsets_of, places

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Share:
    """The rows of one NPU, in the order that all agree on.

    Attributes
    ----------
    npu
        The NPU.
    rows
        Its rows, without dependencies.
    number
        Of each row in the algorithm's table; where rows are compact, its place here (int64).
    port
        What leaves the NPU by the same link has the same number, and so has what comes in by the
        same link; -1 where nobody knows (int64).
    after_offsets, after
        Rows of this share that each row also waits for before it is sent (int64).
    """

    npu: int
    rows: Transfers
    number: Int64
    port: Int64
    after_offsets: Int64
    after: Int64


class Order:
    """The agreed order of one algorithm's rows."""

    def __init__(self, algorithm: Algorithm) -> None:
        self._algorithm = algorithm

    def share(self, npu: int) -> Share:
        """What one NPU does; compact rows are not expanded."""
        return self._of_compact(npu) if self._algorithm.rows.compact else self._of_table(npu)

    @cached_property
    def _table_by_start(self) -> bool:
        """Whether rows of a table go in order of their starts; else in that of the table."""
        rows = self._algorithm.transfers
        return rows.start is not None and not _is_contradicted(rows, rows.start)

    @cached_property
    def _table(self) -> Int64:
        rows = self._algorithm.transfers
        if not self._table_by_start or rows.start is None:
            return np.arange(len(rows))
        return np.argsort(rows.start, kind="stable")

    def _of_table(self, npu: int) -> Share:
        whole = self._algorithm.transfers
        order = self._table
        mine = order[(whole.src[order] == npu) | (whole.dst[order] == npu)]
        rows = whole.selected(mine)
        port = np.full(len(mine), -1, dtype=np.int64)
        if rows.route is not None and self._algorithm.timing is not None:
            port = _ports(npu, rows, self._algorithm.timing.routes)
        return Share(npu, rows, mine, port, *_dependencies(whole, rows, mine))

    def _of_compact(self, npu: int) -> Share:
        algorithm = self._algorithm
        rows = algorithm.of_npu(npu)
        assert rows.start is not None
        if _is_contradicted(rows, rows.start):
            raise InputError(
                "rows of this kind cannot be run rank by rank; save the algorithm as a folder of "
                "traces and run that"
            )
        rows = rows.selected(np.argsort(rows.start, kind="stable"))
        near = algorithm.rows.near(algorithm, npu, rows)  # type: ignore[attr-defined]
        port = np.full(len(rows), -1, dtype=np.int64) if near is None else near
        topology = algorithm.topology
        if near is None and topology is not None and topology.switches:
            port = _ports(npu, rows, algorithm.routes)
        none = np.zeros(len(rows) + 1, dtype=np.int64)
        return Share(npu, rows, np.arange(len(rows)), port, none, none[:0])


def _ports(npu: int, rows: Transfers, routes: Routes) -> Int64:
    """The link by which each row leaves the NPU, or comes in."""
    port = np.full(len(rows), -1, dtype=np.int64)
    assert rows.route is not None
    out = np.flatnonzero((rows.src == npu) & (rows.dst != npu))
    into = np.flatnonzero((rows.dst == npu) & (rows.src != npu))
    port[out] = routes.links[routes.offsets[rows.route[out]]]
    port[into] = routes.links[routes.offsets[rows.route[into] + 1] - 1]
    return port


def read_places(rows: Transfers) -> Int64:
    """The place that each row reads on `src`."""
    return (rows.chunk if rows.src_place is None else rows.src_place).astype(np.int64)


def written_places(rows: Transfers) -> Int64:
    """The place that each row writes on `dst`."""
    return (rows.chunk if rows.dst_place is None else rows.dst_place).astype(np.int64)


def _dependencies(whole: Transfers, rows: Transfers, mine: Int64) -> tuple[Int64, Int64]:
    """Dependencies that the senders of these rows can see: places among them."""
    if whole.dep_offsets is None or whole.deps is None:
        none = np.zeros(len(mine) + 1, dtype=np.int64)
        return none, none[:0]
    place = np.full(len(whole), -1, dtype=np.int64)
    place[mine] = np.arange(len(mine))
    counts = lengths_of(whole.dep_offsets, mine)
    named = place[whole.deps[places(whole.dep_offsets, mine)]]
    owner = np.repeat(np.arange(len(mine)), counts)
    seen = (named >= 0) & (rows.dst[named] == rows.src[owner])
    return offsets_of(np.bincount(owner[seen], minlength=len(mine))), named[seen]


def _is_contradicted(rows: Transfers, start: Int64) -> bool:
    """Whether a row would start before one that it must wait for, by the order of the table."""
    count = len(rows)
    if rows.dep_offsets is not None and rows.deps is not None:
        owner = np.repeat(np.arange(count), np.diff(rows.dep_offsets))
        if (start[rows.deps] > start[owner]).any():
            return True
    cell = np.concatenate(
        [
            rows.src.astype(np.int64) << 32 | read_places(rows),
            rows.dst.astype(np.int64) << 32 | written_places(rows),
        ]
    )
    turn = np.concatenate([2 * np.arange(count), 2 * np.arange(count) + 1])
    by = np.lexsort((turn, cell))
    writes, row = turn[by] % 2 == 1, turn[by] // 2
    adds = writes & rows.reduce[row]
    uses = Uses(cell[by], writes, adds)
    when = np.unique(start, return_inverse=True)[1].reshape(-1)[row] + 1
    latest_write = _latest(uses, np.where(writes, when, 0))
    latest_read = _latest(uses, np.where(writes, 0, when))
    before = uses.before
    waits_for_reads = np.where(writes, latest_read[before], 0)
    known = before >= 0
    latest = np.where(known, np.maximum(latest_write[before], waits_for_reads), 0)
    return bool((latest > when).any())


def _latest(uses: Uses, when: Int64) -> Int64:
    """The greatest value so far in each cell, that of each use itself included."""
    span = int(when.max(initial=0)) + 1
    return np.maximum.accumulate(uses.group * span + when) - uses.group * span


class Uses:
    """Reads and writes of cells, each cell's one after the other in their order.

    Sums may come in any order among themselves; everything else about a cell keeps its order.
    """

    def __init__(self, cell: Int64, writes: Bools, adds: Bools) -> None:
        self.writes, self.adds = writes, adds
        self.first = np.ones(len(cell), dtype=np.bool_)
        self.first[1:] = cell[1:] != cell[:-1]
        self.group: Int64 = np.cumsum(self.first)

    @cached_property
    def begin(self) -> Int64:
        """The first use of the cell of each."""
        at = np.where(self.first, np.arange(len(self.first)), 0)
        return np.maximum.accumulate(at)

    @cached_property
    def before(self) -> Int64:
        """The last use that each must wait for, with all before it; -1 if it need not wait.

        A sum waits for what is before the sums that it is among.
        """
        place = np.arange(len(self.first))
        fixed = np.maximum.accumulate(np.where(self.adds, -1, place))
        previous = np.where(self.adds, fixed, place - 1)
        return np.where(previous >= self.begin, previous, -1)

    def counts(self) -> tuple[Int64, Int64]:
        """How many writes and reads of its cell each waits for."""
        return self._so_far(self.writes), self._so_far(~self.writes)

    def _so_far(self, which: Bools) -> Int64:
        total = np.cumsum(which)
        inside: Int64 = total - (total - which)[self.begin]
        return np.where(self.before >= 0, inside[self.before], 0)
