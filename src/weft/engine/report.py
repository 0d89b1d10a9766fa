"""What a run says about an algorithm: how fast, how far from planned, which links, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.bounds import Bound, lower_bound
from weft.display import html_table, line, of_bound, title_of
from weft.engine.algorithms import CAUSES, Simulation
from weft.engine.path_times import PathTimes
from weft.figures import Grouped, GroupResult, group_results, network_figures
from weft.units import PS_PER_US, format_time
from weft.values import Value

QUARTERS = (0.25, 0.5, 0.75, 1.0)
"""Up to which utilisation links are counted together."""


@dataclass(frozen=True)
class PlanDifference:
    """How the starts of a run differ from those planned.

    Attributes
    ----------
    planned
        When the last row should have ended, in picoseconds.
    earlier, later
        How many rows started earlier and later than planned.
    most_earlier, most_later
        By how much at most, in picoseconds.
    first
        The first row, by planned start, that did not start as planned; None if all did.
    """

    planned: int
    earlier: int
    later: int
    most_earlier: int
    most_later: int
    first: int | None

    @classmethod
    def of(cls, run: Simulation) -> PlanDifference | None:
        planned = run.transfers.start
        if run.planned is None or planned is None:
            return None
        delay = run.start - planned
        moved = np.flatnonzero(delay)
        first = int(moved[np.argmin(planned[moved])]) if len(moved) else None
        return cls(
            run.planned,
            int((delay < 0).sum()),
            int((delay > 0).sum()),
            -int(delay.min(initial=0)),
            int(delay.max(initial=0)),
            first,
        )


@dataclass(frozen=True, eq=False)
class LinkUse(Value):
    """How long each link was held, and what it carried.

    Attributes
    ----------
    busy
        Picoseconds (int64).
    utilisation
        The share of the run's time (float64).
    bytes
        Bytes that it carried (int64).
    """

    busy: NDArray[np.int64]
    utilisation: NDArray[np.float64]
    bytes: NDArray[np.int64]

    @classmethod
    def of(cls, run: Simulation) -> LinkUse:
        held, sizes = run.occupied, run.algorithm.chunks.bytes
        carried = np.zeros(run.topology.links, dtype=np.int64)
        np.add.at(carried, held.link, sizes[run.transfers.chunk[held.row]])
        return cls(run.busy, run.utilisation, carried)

    def __len__(self) -> int:
        return len(self.busy)

    @property
    def mean(self) -> float:
        return float(self.utilisation.mean()) if len(self) else 0.0

    @property
    def least(self) -> float:
        return float(self.utilisation.min(initial=1.0)) if len(self) else 0.0

    @property
    def most(self) -> float:
        return float(self.utilisation.max(initial=0.0))

    @property
    def idle(self) -> int:
        """How many links were never held."""
        return int((self.busy == 0).sum())

    @property
    def quarters(self) -> tuple[int, ...]:
        """How many links were held at all, and up to each of `QUARTERS`, above the one before."""
        used = self.utilisation[self.busy > 0]
        counts = np.bincount(np.searchsorted(QUARTERS, used), minlength=len(QUARTERS))
        return tuple(counts.tolist())

    @property
    def busiest(self) -> NDArray[np.intp]:
        """The links, busiest first."""
        return np.argsort(-self.busy, kind="stable")


@dataclass(frozen=True, eq=False)
class Report(Grouped):
    """What a run says about an algorithm.

    Attributes
    ----------
    run
        The run itself.
    bound
        A time that no algorithm can beat on this network.
    groups
        Time, bound and bandwidth of each collective.
    plan
        How the run differs from what was planned; None if nothing was.
    links
        How the links were used.
    path
        Where the time went, along the critical path.
    """

    run: Simulation
    bound: Bound
    groups: tuple[GroupResult, ...]
    plan: PlanDifference | None
    links: LinkUse
    path: PathTimes

    @classmethod
    def of(cls, run: Simulation) -> Report:
        """Look at a run, and bound what could be expected of it."""
        made, network = run.algorithm, run.topology
        bound = lower_bound(network, made.chunks, run.cost, enough=run.time)
        return cls(
            run,
            bound,
            group_results(network, run.cost, made.demands, run.times, bound),
            PlanDifference.of(run),
            LinkUse.of(run),
            PathTimes.of(run),
        )

    def __repr__(self) -> str:
        figures = f"{self.title}: {format_time(self.run.time)}"
        return line(self, figures, of_bound(self.efficiency), f"order {self.run.order}")

    def _repr_html_(self) -> str:
        path, use = self.path, self.links
        shares = [
            (f"critical path, {name}", format_time(time))
            for name, time in (
                ("moving", path.moving),
                ("latency", path.latency),
                ("waiting for links", path.waiting),
                ("adding", path.adding),
            )
        ]
        plan = [] if self.plan is None else [("planned", format_time(self.plan.planned))]
        return html_table(
            self.title,
            (
                ("time", format_time(self.run.time)),
                *plan,
                *self._speed_rows(),
                ("links", f"{use.mean:.1%} used on average, {use.idle:,} idle"),
                *shares,
            ),
        )

    @property
    def title(self) -> str:
        """What ran and where, in a few words."""
        return title_of(self.run.algorithm.demands, self.run.topology)

    @property
    def time(self) -> int:
        """When the last row ended, in picoseconds."""
        return self.run.time

    def to_dict(self) -> dict[str, Any]:
        """The figures, for machines: what ``weft simulate --json`` prints."""
        run = self.run
        return {
            **network_figures(run.topology),
            "transfers": len(run.transfers),
            "order": run.order,
            **asdict(run.cost),
            "reducer_Bps": run.reducer,
            **self._speeds(),
            "plan": self._plan_figures(),
            "link_use": self._link_figures(),
            "critical_path": self._path_figures(),
        }

    def _plan_figures(self) -> dict[str, Any] | None:
        plan, rows = self.plan, self.run.transfers
        if plan is None or rows.start is None:
            return None
        first, row = None, plan.first
        if row is not None:
            _, route = self.run.routes.crossed(self.run.route[row : row + 1])
            planned = {"route": route.tolist(), "planned_us": int(rows.start[row]) / PS_PER_US}
            first = self._row_figures(row) | planned
        return {
            "time_us": plan.planned / PS_PER_US,
            "earlier": plan.earlier,
            "later": plan.later,
            "most_earlier_us": plan.most_earlier / PS_PER_US,
            "most_later_us": plan.most_later / PS_PER_US,
            "first": first,
        }

    def _link_figures(self) -> dict[str, Any]:
        use, columns = self.links, self.to_columns()
        return {
            "mean": use.mean,
            "least": use.least,
            "most": use.most,
            "idle": use.idle,
            "histogram": [
                {"up_to": quarter, "links": links}
                for quarter, links in zip(QUARTERS, use.quarters, strict=True)
            ],
            "per_link": [dict(zip(columns, row, strict=True)) for row in _rows(*columns.values())],
        }

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """The links for a data frame, one per row."""
        use, network = self.links, self.run.topology
        src, dst = (
            np.array([network.node_name(node) for node in ends.tolist()], dtype=np.str_)
            for ends in (network.src, network.dst)
        )
        return {
            "link": np.arange(network.links),
            "src": src,
            "dst": dst,
            "bandwidth_Bps": network.bandwidth,
            "busy_us": use.busy / PS_PER_US,
            "utilisation": use.utilisation,
            "bytes": use.bytes,
        }

    def _path_figures(self) -> dict[str, Any]:
        path, times = self.run.critical_path, self.path
        on_path = np.flatnonzero((times.moving_on > 0) | (times.waiting_for > 0))
        return {
            "moving_us": times.moving / PS_PER_US,
            "latency_us": times.latency / PS_PER_US,
            "waiting_for_links_us": times.waiting / PS_PER_US,
            "adding_us": times.adding / PS_PER_US,
            "per_link": [
                {
                    "link": link,
                    "moving_us": float(times.moving_on[link]) / PS_PER_US,
                    "waiting_us": int(times.waiting_for[link]) / PS_PER_US,
                }
                for link in on_path.tolist()
            ],
            "steps": [
                {
                    **self._row_figures(row),
                    "took_us": took / PS_PER_US,
                    "cause": CAUSES[cause],
                    "link": None if link < 0 else link,
                }
                for row, took, cause, link in _rows(path.row, times.took, path.cause, path.link)
            ],
        }

    def _row_figures(self, row: int) -> dict[str, Any]:
        rows = self.run.transfers
        return {
            "row": row,
            "chunk": int(rows.chunk[row]),
            "src": int(rows.src[row]),
            "dst": int(rows.dst[row]),
            "start_us": int(self.run.start[row]) / PS_PER_US,
            "end_us": int(self.run.end[row]) / PS_PER_US,
        }


def _rows(*columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """Columns row by row, as plain numbers and texts."""
    return zip(*(column.tolist() for column in columns), strict=True)
