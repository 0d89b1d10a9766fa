"""Running an algorithm on a network: what waits for what decides, not when it was planned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, Routes, Timing, Transfers, last_ends
from weft.clock import check_run
from weft.collective import Chunks
from weft.cost import CostModel
from weft.display import line, title_of
from weft.engine.occupied import Occupied
from weft.engine.routing import Routed, routed
from weft.errors import InputError, unknown_name
from weft.topology import Topology
from weft.topology.load import as_topology
from weft.units import PS_PER_US, format_time
from weft.values import Value

Order = Literal["plan", "fifo"]


@dataclass(frozen=True, eq=False)
class Simulation(Value):
    """What happened when an algorithm ran.

    Attributes
    ----------
    algorithm
        What ran, over which routes; if the network was not its own, with a row for every hop.
        Its times, if any, are those planned.
    topology, cost
        Where, and under which cost model.
    order
        ``plan`` if each link carried its rows in the planned order, ``fifo`` if first come first
        served.
    reducer
        Bytes per second that an NPU adds; None if adding took no time.
    start, end
        When each row started, and when what it brought could be used, in picoseconds (int64).
    busy
        How long each link was held, in picoseconds (int64).
    chained
        Whether each row passes on just what the row before it brought (uint8).
    """

    algorithm: Algorithm
    topology: Topology
    routes: Routes
    route: NDArray[np.int32]
    cost: CostModel
    order: Order
    reducer: int | None
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    busy: NDArray[np.int64]
    chained: NDArray[np.uint8]

    def __repr__(self) -> str:
        title = title_of(self.algorithm.demands, self.topology)
        return line(self, f"{title}: {format_time(self.time)}", f"order {self.order}")

    @cached_property
    def _run(self) -> _core.Simulation:
        """The kernel, ready to be asked about these times."""
        hops = Routed(self.transfers, self.routes, self.route, self.chained)
        chunks = self.algorithm.chunks
        return _prepared(hops, chunks, self.topology, self.cost, self.order, self.reducer)

    @property
    def transfers(self) -> Transfers:
        return self.algorithm.transfers

    @cached_property
    def time(self) -> int:
        """When the last row ended, in picoseconds."""
        return int(self.end.max(initial=0))

    @property
    def time_us(self) -> float:
        return self.time / PS_PER_US

    @property
    def planned(self) -> int | None:
        """When the last row should have ended, in picoseconds; None if nothing was planned."""
        return self.algorithm.time if self.algorithm.timed else None

    @cached_property
    def times(self) -> tuple[int, ...]:
        """When the last row of each collective ended, in picoseconds."""
        return last_ends(self.algorithm.demands, self.transfers.chunk, self.end)

    @property
    def utilisation(self) -> NDArray[np.float64]:
        """The share of the time in which each link was held."""
        return self.busy / max(self.time, 1)

    @cached_property
    def critical_path(self) -> CriticalPath:
        """The chain of rows that decided how long it took."""
        return CriticalPath(*self._run.critical_path(self.start, self.end))

    @cached_property
    def occupied(self) -> Occupied:
        """When each row was on its way, and when it held links."""
        return Occupied.of(self.routes, self.route, self._run.occupied(self.start))

    def timed(self) -> Algorithm:
        """The algorithm with the times of this run, rows in order of start.

        Raises
        ------
        InputError
            Adding took time, which no plan accounts for.
        """
        if self.reducer is not None:
            raise InputError("a run in which adding takes time is no plan of the cost model")
        order = np.argsort(self.start, kind="stable")
        rows = self.transfers.reordered(order)
        timed = replace(rows, route=self.route[order], start=self.start[order], end=self.end[order])
        return replace(
            self.algorithm,
            rows=timed,
            timing=Timing(self.topology, self.cost, self.routes),
        )


@dataclass(frozen=True, eq=False)
class CriticalPath(Value):
    """Rows from the start to the end of a run, each of which waited for the one before it.

    Attributes
    ----------
    row
        Row numbers (int32).
    cause
        What it waited for: see `CAUSES` (uint8).
    link
        The link it waited for; -1 for other causes (int32). One of another row's, if that is
        sent on by switches together with this one.
    """

    row: NDArray[np.int32]
    cause: NDArray[np.uint8]
    link: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.row)


CAUSES = ("start", "data", "link", "adding")
"""What a row of a critical path waited for: nothing, the row before it to bring what it sends or
free the memory it writes, to leave a link, or to be added."""


def simulate(
    algorithm: Algorithm,
    topology: Topology | str | None = None,
    cost: CostModel | None = None,
    *,
    order: Order | None = None,
    reducer: int | None = None,
) -> Simulation:
    """Run an algorithm on its own network, or on another.

    Parameters
    ----------
    topology
        Another network than the algorithm's own, or what `weft.load_topology` takes: the rows are
        routed over it anew.
    cost
        The cost model; by default the algorithm's own, else pipelined and cut-through.
    order
        ``plan``: each link carries its rows in the planned order, the default where there is a
        plan for this network. ``fifo``: first come first served.
    reducer
        Bytes per second that an NPU adds; by default adding takes no time.

    Raises
    ------
    InputError
        If there is no network to run it on, or no plan for it whose order could be kept.
    UnreachableError
        If a row has no path on another network.
    """
    cost = cost or algorithm.cost or CostModel()
    if order is not None and order not in get_args(Order):
        raise unknown_name("order", order, get_args(Order))
    if reducer is not None and reducer < 1:
        raise InputError(f"an NPU that adds {reducer} B/s; expected 1 B/s or more")
    topology = None if topology is None else as_topology(topology)
    own = algorithm.timed and (topology is None or topology is algorithm.topology)
    has_plan = own and cost == algorithm.cost
    if order == "plan" and not has_plan:
        raise InputError(
            "there is no plan whose order could be kept: the algorithm has no times for this "
            "network and cost model; use fifo"
        )
    topology = topology or algorithm.topology
    if topology is None:
        raise InputError(
            "the algorithm was made for no network; name one to run it on, as with --topology"
        )
    if own:
        rows, none = algorithm.transfers, np.empty(0, dtype=np.uint8)
        hops = Routed(rows, algorithm.routes, rows.require_times().route, none)
    else:
        hops = routed(algorithm.transfers, algorithm.chunks, topology, cost)
        algorithm = replace(algorithm, rows=hops.transfers, timing=None)
    kept: Order = "plan" if has_plan and order != "fifo" else "fifo"
    if kept == "fifo" or reducer is not None:  # a plan that is kept takes no longer than planned
        check_run(topology, algorithm.chunks, len(hops.transfers), reducer)
    run = _prepared(hops, algorithm.chunks, topology, cost, kept, reducer)
    try:
        start, end, busy = run.as_planned() if kept == "plan" else run.first_come()
    except RuntimeError as error:  # rows that add late can hold each other up for ever
        raise InputError(f"{error} while adding takes time; use fifo") from None
    where = (algorithm, topology, hops.routes, hops.route, cost)
    done = Simulation(*where, kept, reducer, start, end, busy, hops.chained)
    vars(done)["_run"] = run  # or it would be made again
    return done


def placed(
    algorithm: Algorithm, topology: Topology, cost: CostModel, earliest: NDArray[np.int64]
) -> Algorithm:
    """An algorithm with times: rows one after the other, none sooner than `earliest` (ps).

    Every row must be one hop of the network.
    """
    hops = routed(algorithm.transfers, algorithm.chunks, topology, cost)
    algorithm = replace(algorithm, rows=hops.transfers, timing=None)
    run = _prepared(hops, algorithm.chunks, topology, cost, "fifo", None)
    start, end, busy = run.in_order(earliest)
    where = (algorithm, topology, hops.routes, hops.route, cost)
    return Simulation(*where, "fifo", None, start, end, busy, hops.chained).timed()


def _prepared(
    hops: Routed,
    chunks: Chunks,
    topology: Topology,
    cost: CostModel,
    order: Order,
    reducer: int | None,
) -> _core.Simulation:
    rows = replace(hops.transfers, route=hops.route)
    if order != "plan":
        rows = replace(rows, start=None, end=None)
    return _core.Simulation(
        Timing(topology, cost, hops.routes).core,
        rows.core,
        chunks.core,
        chained=hops.chained,
        reducer=reducer or 0,
    )
