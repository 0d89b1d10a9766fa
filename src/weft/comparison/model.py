"""The figures of a comparison: a row per size, in it a run for every algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm
from weft.collective import Collective
from weft.cost import CostModel
from weft.display import html_table, line, named
from weft.figures import network_figures
from weft.judge import verify
from weft.planners import PLANNERS
from weft.topology.model import Topology
from weft.units import PS_PER_US, format_size, format_time
from weft.values import Value

WEFT = "weft"
_TYPES: dict[str, type] = {
    "size_bytes": np.int64,
    "algorithm": np.str_,
    "method": object,
    "chunks": np.float64,
    "time_us": np.float64,
    "lower_bound_us": np.float64,
    "efficiency": np.float64,
    "algbw_GBps": np.float64,
    "busbw_GBps": np.float64,
    "transfers": np.float64,
    "synthesis_s": np.float64,
    "verified": object,
    "winner": np.bool_,
    "refused": object,
}
COLUMNS = tuple(_TYPES)
"""What a comparison is as a table."""


@dataclass(frozen=True)
class Run:
    """What one algorithm reaches. Bandwidths are those of the slowest group, as for `weft.Result`.

    Attributes
    ----------
    method
        How it was made, by its provenance.
    chunks
        Chunks a share; None if the groups' differ.
    time
        When the last transfer ends, in picoseconds.
    transfers
        How many rows it has.
    synthesis_s
        Seconds it took to make.
    violation
        What the judge finds wrong; None if nothing is.
    """

    method: str
    chunks: int | None
    time: int
    algbw_GBps: float  # noqa: N815 - the unit's own spelling
    busbw_GBps: float  # noqa: N815
    transfers: int
    synthesis_s: float
    violation: str | None

    @classmethod
    def of(cls, algorithm: Algorithm, synthesis_s: float) -> Run:
        """The figures of a timed algorithm, once the judge has looked at it."""
        counts = {demand.chunks_per_share for demand in algorithm.demands}
        pairs = list(zip(algorithm.demands, algorithm.times, strict=True))
        return cls(
            str(algorithm.provenance["method"]),
            counts.pop() if len(counts) == 1 else None,
            algorithm.time,
            min(_rate(demand.size, time) for demand, time in pairs),
            min(_rate(bus_bytes(demand), time) for demand, time in pairs),
            len(algorithm.transfers),
            synthesis_s,
            verify(algorithm).violation,
        )

    @property
    def verified(self) -> bool:
        return self.violation is None

    def to_dict(self, bound: int) -> dict[str, Any]:
        """The figures, for machines."""
        figures = {name: value for name, value in vars(self).items() if name != "time"}
        efficiency = bound / self.time if self.time else 1.0
        times = {"time_us": self.time / PS_PER_US, "efficiency": efficiency}
        return figures | times | {"verified": self.verified}


def bus_bytes(demand: Collective) -> float:
    """Bytes that count for the bus bandwidth."""
    return demand.size * demand.pattern.bus_factor(demand.ranks)


def _rate(size: float, time: int) -> float:
    """10⁹ bytes per second; 0 where nothing moves."""
    return size / time * 1e3 if time else 0.0


@dataclass(frozen=True)
class Refusal:
    """Why there is no run, in one sentence."""

    reason: str

    def to_dict(self, _bound: int) -> dict[str, Any]:
        return {"refused": self.reason}


Outcome = Run | Refusal


@dataclass(frozen=True)
class Row(Value):
    """All algorithms at one size.

    Attributes
    ----------
    size
        Bytes of the largest buffer on one NPU; of the largest collective, if there are several.
    bound
        Picoseconds that no algorithm can beat, whatever its chunks.
    bound_busbw_GBps
        Bus bandwidth that no slowest group can beat.
    weft
        Weft's answer. It may be one of the classical algorithms: see `classical`.
    baselines
        The classical algorithms by name.
    alone
        With several collectives: each synthesized as if it had the network to itself, and all
        run at once, first come first served.
    """

    size: int
    bound: int
    bound_busbw_GBps: float  # noqa: N815
    weft: Run
    baselines: Mapping[str, Outcome]
    alone: Outcome | None = None

    def __repr__(self) -> str:
        best = self.best_baseline
        beside = "" if best is None else f"{best} {format_time(self.runs[best].time)}"
        return line(self, f"{format_size(self.size)}: {WEFT} {format_time(self.weft.time)}", beside)

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """Weft's answer, the classical algorithms, and what comes of groups planned alone."""
        found = {WEFT: self.weft, **self.baselines}
        return found if self.alone is None else found | {"alone": self.alone}

    def records(self) -> Iterator[dict[str, Any]]:
        """The figures of each algorithm; what does not apply is not there."""
        for name, outcome in self.outcomes.items():
            yield {
                "size_bytes": self.size,
                "algorithm": name,
                "lower_bound_us": self.bound / PS_PER_US,
                "winner": name == self.winner,
                **outcome.to_dict(self.bound),
            }

    @property
    def runs(self) -> dict[str, Run]:
        """Weft's answer, then the classical algorithms that can do it."""
        ran = {name: run for name, run in self.baselines.items() if isinstance(run, Run)}
        return {WEFT: self.weft, **ran}

    @property
    def winner(self) -> str | None:
        """Who is fastest of those that are right; of equals the first, Weft before all others."""
        return _fastest(self.runs)

    @property
    def best_baseline(self) -> str | None:
        """The fastest classical algorithm that is right."""
        return _fastest({name: run for name, run in self.runs.items() if name != WEFT})

    @property
    def speedup(self) -> float | None:
        """The best baseline's time over Weft's; below 1 where a baseline is faster."""
        best = self.best_baseline
        return None if best is None else _ratio(self.runs[best].time, self.weft.time)

    @property
    def classical(self) -> str | None:
        """The method of Weft's answer, if it is a classical algorithm itself."""
        parts = [PLANNERS.get(part) for part in self.weft.method.split(" + ")]
        known = all(part is not None and part.beside for part in parts)
        return self.weft.method if known else None

    @property
    def gain(self) -> float | None:
        """How much faster all are together than each planned alone."""
        return _ratio(self.alone.time, self.weft.time) if isinstance(self.alone, Run) else None

    @property
    def violations(self) -> dict[str, str]:
        """What is wrong with what."""
        runs = {name: run for name, run in self.outcomes.items() if isinstance(run, Run)}
        return {name: run.violation for name, run in runs.items() if run.violation is not None}

    def to_dict(self) -> dict[str, Any]:
        """The figures, for machines."""
        runs = {name: found.to_dict(self.bound) for name, found in self.outcomes.items()}
        alone = runs.pop("alone", None)
        return {
            "size_bytes": self.size,
            "lower_bound_us": self.bound / PS_PER_US,
            "bound_busbw_GBps": self.bound_busbw_GBps,
            "winner": self.winner,
            "classical": self.classical,
            "best_baseline": self.best_baseline,
            "speedup": self.speedup,
            "runs": runs,
            "alone": alone,
            "gain": self.gain,
        }


def _fastest(runs: Mapping[str, Run]) -> str | None:
    """Of those that are right; of equals the first."""
    right = [name for name, run in runs.items() if run.verified]
    return min(right, key=lambda name: runs[name].time, default=None)


def _ratio(time: int, base: int) -> float:
    return time / base if base else 1.0


@dataclass(frozen=True)
class Comparison(Value):
    """Weft and classical algorithms on one network, size by size.

    Attributes
    ----------
    topology, cost, seed
        The network, the cost model and the seed of Weft's search.
    kinds
        The collectives' names, in the order of `groups`.
    groups
        Who takes part in each.
    names
        The classical algorithms.
    rows
        One a size, ascending.
    """

    topology: Topology
    cost: CostModel
    seed: int
    kinds: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    rows: tuple[Row, ...]

    def __repr__(self) -> str:
        many = f"{len(self.rows)} sizes, {1 + len(self.names)} algorithms"
        word = "all verified" if self.verified else "not all of them right"
        return line(self, f"{self.title}: {many}", word)

    def _repr_html_(self) -> str:
        def shown(outcome: Outcome, *, best: bool) -> str:
            if isinstance(outcome, Refusal):
                return "-"
            time = format_time(outcome.time) if outcome.verified else "WRONG"
            return f"{time} *" if best else time

        rows = (
            (
                format_size(row.size),
                format_time(row.bound),
                shown(row.weft, best=row.winner == WEFT),
                *(shown(row.baselines[name], best=row.winner == name) for name in self.names),
            )
            for row in self.rows
        )
        header = ["size", "lower bound", WEFT, *self.names]
        return html_table(self.title, rows, header, "time; * the best")

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """A row for each size and algorithm, for a data frame.

        What does not apply is NaN in columns of numbers, None in those of words.
        """
        records = [record for row in self.rows for record in row.records()]
        return {
            name: np.array([record.get(name) for record in records], dtype=kind)
            for name, kind in _TYPES.items()
        }

    @property
    def title(self) -> str:
        """What was compared, in a few words."""
        return f"{named(self.kinds)} on {self.topology.title}"

    @property
    def verified(self) -> bool:
        """Whether the judge finds nothing wrong with any of them."""
        return not any(row.violations for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """The figures, for machines: what ``weft compare --json`` prints."""
        return {
            **network_figures(self.topology),
            "collective": self.kinds[0] if len(set(self.kinds)) == 1 else None,
            "groups": [
                {"collective": kind, "members": list(group)}
                for kind, group in zip(self.kinds, self.groups, strict=True)
            ],
            "baselines": list(self.names),
            **asdict(self.cost),
            "seed": self.seed,
            "verified": self.verified,
            "sizes": [row.to_dict() for row in self.rows],
        }
