"""A planned schedule, before it becomes an algorithm: rows on a network, slot by slot.

Kernels plan with one slot length for all chunks, that of the largest, so that equal links keep
their rhythm. The exact times, with each chunk's own bytes, follow from the order of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, Routes, Timing, Transfers
from weft.collective import Collective
from weft.cost import CostModel
from weft.ragged import offsets_of, positions
from weft.topology.model import Topology

TIGHT = 1.001
"""A schedule is pushed together if it takes longer than this over its goal."""


_COLUMNS = ("chunk", "src", "dst", "reduce", "route", "start", "end")


@dataclass(frozen=True, eq=False)
class Schedule:
    """Rows in an order in which they could run; `start` and `end` are slots in picoseconds."""

    chunk: NDArray[np.int32]
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    reduce: NDArray[np.bool_]
    route: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    routes: Routes
    slot: int | None  # bytes of a chunk for which the times are exact; None if for none

    @classmethod
    def from_core(cls, topology: Topology, planned: _core.Schedule, slot: int | None) -> Schedule:
        if topology.switches:
            routes = Routes(planned.route_offsets, planned.route_links)
        else:
            routes = Routes.of_links(topology.links)
        return cls(**_columns(planned), routes=routes, slot=slot)

    @classmethod
    def of(cls, algorithm: Algorithm) -> Schedule:
        """The rows of a timed algorithm, to be scheduled anew."""
        rows, routes = algorithm.transfers, algorithm.routes
        times = rows.require_times()
        return cls(rows.chunk, rows.src, rows.dst, rows.reduce, *times, routes, None)

    @property
    def transfers(self) -> Transfers:
        """The rows as a table."""
        return Transfers(**_columns(self))

    @property
    def time(self) -> int:
        """When the last slot ends."""
        return int(self.end.max(initial=0))

    def backwards(self, reverse: NDArray[np.int32] | None = None) -> Schedule:
        """The same run back in time on the network with every link turned round.

        A copy that spread a chunk becomes a partial sum on its way to where the chunk came
        from. With `reverse` (see `Topology.reverse_links`) the links are those of the same network.
        """
        rows, last = self._reordered(np.argsort(-self.end, kind="stable")), self.time
        # Where there are switches, the few routes in use may happen to be the first links.
        if self.routes.are_links and reverse is not None and len(self.routes) == len(reverse):
            routes, route = self.routes, reverse[rows.route]
        else:
            routes, route = _reversed_routes(self.routes, reverse), rows.route
        return Schedule(
            rows.chunk,
            rows.dst,
            rows.src,
            ~rows.reduce,
            route,
            last - rows.end,
            last - rows.start,
            routes,
            None,
        )

    def tightened(self, topology: Topology, cost: CostModel, slot: int) -> Schedule:
        """The same rows pushed together: as late as they may, then as early."""
        timing = Timing(topology, cost, self.routes).core
        order, start, end = _core.tighten(timing, self.transfers.core, slot)
        return replace(self, start=start, end=end, slot=slot)._reordered(order)

    def _reordered(self, order: NDArray[np.integer[Any]]) -> Schedule:
        columns = {name: column[order] for name, column in _columns(self).items()}
        return replace(self, **columns)

    def as_copies(self) -> Schedule:
        """The same rows without summing: a chunk with one contributor is its own sum."""
        return replace(self, reduce=np.zeros_like(self.reduce))


def _columns(rows: Schedule | _core.Schedule) -> dict[str, Any]:
    """The columns of rows, by name."""
    return {name: getattr(rows, name) for name in _COLUMNS}


def transfers_of(
    phases: Sequence[Schedule],
    topology: Topology,
    cost: CostModel,
    chunk_bytes: NDArray[np.int64],
) -> tuple[Transfers, Routes]:
    """Transfers with exact times, and their routes: each row starts as soon as it may.

    For each chunk the phases come one after the other; otherwise they overlap. Rows planned as
    one multicast stay one.
    """
    both = _joined(phases)
    if both.slot is not None and (chunk_bytes == both.slot).all():
        rows = both
    else:
        timing = Timing(topology, cost, both.routes).core
        start, end = _core.retime(timing, both.transfers.core, chunk_bytes)
        rows = replace(both, start=start, end=end)
        if np.any(start[:-1] > start[1:]):
            rows = rows._reordered(np.argsort(start, kind="stable"))
    return rows.transfers, rows.routes


def overlaid(
    schedules: Sequence[Schedule], delays: Sequence[int], demands: Sequence[Collective]
) -> Schedule:
    """Schedules of one demand each as one, in order of start; each is delayed by so much."""
    firsts = offsets_of([len(demand.chunks) for demand in demands[:-1]])
    moved = [
        replace(
            schedule,
            chunk=(schedule.chunk + first).astype(np.int32),
            start=schedule.start + delay,
            end=schedule.end + delay,
        )
        for schedule, delay, first in zip(schedules, delays, firsts, strict=True)
    ]
    both = _joined(moved)
    return both._reordered(np.argsort(both.start, kind="stable"))


def _joined(phases: Sequence[Schedule]) -> Schedule:
    """Phases one after the other, with one table of routes."""
    if len(phases) == 1:
        return phases[0]
    routes, shifts = Routes.joined([phase.routes for phase in phases])
    begins = offsets_of([phase.time for phase in phases[:-1]])
    moved = [
        _columns(replace(p, route=p.route + shift, start=p.start + begin, end=p.end + begin))
        for p, shift, begin in zip(phases, shifts, begins, strict=True)
    ]
    joined = {name: np.concatenate([columns[name] for columns in moved]) for name in _COLUMNS}
    return Schedule(**joined, routes=routes, slot=None)


def _reversed_routes(routes: Routes, reverse: NDArray[np.int32] | None) -> Routes:
    """Every route with its links in the opposite order (and replaced by those that run back)."""
    lengths = np.diff(routes.offsets)
    mirrored = np.repeat(routes.offsets[1:], lengths) - 1 - positions(lengths)
    links = routes.links[mirrored]
    return Routes(routes.offsets, links if reverse is None else reverse[links])
