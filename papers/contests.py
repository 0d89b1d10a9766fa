"""Weft's answer beside classical ones on many networks: `weft.compare`, a row per network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from papers.figures import Bars
from papers.report import VERIFIED, Table
from weft.collective import Collective, Plan
from weft.comparison import Row, Run, compare
from weft.cost import CostModel
from weft.topology import Topology


@dataclass(frozen=True)
class Contest:
    """What came of one set-up."""

    name: str
    row: Row

    @property
    def verified(self) -> bool:
        """Whether the judge found nothing wrong in any of the algorithms."""
        return not self.row.violations

    @property
    def runs(self) -> list[Run | None]:
        """Weft's answer, then each classical algorithm; None if it refuses."""
        others = self.row.baselines.values()
        return [self.row.weft, *(run if isinstance(run, Run) else None for run in others)]

    @property
    def names(self) -> list[str]:
        return ["Weft", *self.row.baselines]

    def speed_up(self, run: Run) -> float:
        """How much faster Weft is."""
        return run.time / self.row.weft.time

    def efficiency(self, run: Run) -> float:
        """How near a run comes to what no algorithm can beat, whatever its chunks."""
        return self.row.bound / run.time

    def each(self, figure: Callable[[Run], float]) -> list[float | None]:
        """A figure of Weft's answer and of each classical algorithm."""
        return [None if run is None else figure(run) for run in self.runs]


def contest(
    name: str,
    network: Topology,
    demands: Sequence[Collective],
    against: Sequence[str],
    *,
    chunks: int | None = None,
    cost: CostModel | None = None,
) -> Contest:
    """Run the demands at once: by Weft, and by each of the classical algorithms.

    Parameters
    ----------
    chunks
        A number of chunks per share for all of them, instead of what suits each best.
    """
    cost = cost or CostModel()
    plan = Plan(list(demands), [chunks] * len(demands))
    found = compare(
        network,
        [plan],
        against=against,
        latency_model=cost.latency_model,
        switching=cost.switching,
    )
    return Contest(name, found.rows[0])


def contest_tables(contests: Sequence[Contest], first: str = "network") -> list[Table]:
    """Time, efficiency, bus bandwidth and speed-ups, a row a contest."""
    names = contests[0].names
    return [
        Table(
            "Time in us:",
            (first, "bound", *names, "Weft's method", VERIFIED),
            [
                (c.name, c.row.bound / 1e6, *c.each(_time_us), c.row.weft.method, c.verified)
                for c in contests
            ],
        ),
        Table(
            "Efficiency, the bound over the time:",
            (first, *names),
            [(c.name, *c.each(c.efficiency)) for c in contests],
        ),
        Table(
            "Bus bandwidth in GB/s:",
            (first, "bound", *names),
            [(c.name, c.row.bound_busbw_GBps, *c.each(_bus_bandwidth)) for c in contests],
        ),
        Table(
            "Speed-up of Weft over:",
            (first, *names[1:]),
            [(c.name, *c.each(c.speed_up)[1:]) for c in contests],
        ),
    ]


def efficiency_bars(
    title: str, contests: Sequence[Contest], names: Sequence[str] | None = None
) -> Bars:
    """How near each comes to the bound."""
    columns = [c.each(c.efficiency) for c in contests]
    names = names or contests[0].names
    series = {name: [c[i] for c in columns] for i, name in enumerate(names)}
    return Bars(title, "bound / time", [c.name for c in contests], series)


def _time_us(run: Run) -> float:
    return run.time / 1e6


def _bus_bandwidth(run: Run) -> float:
    return run.busbw_GBps
