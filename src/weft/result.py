"""What synthesis hands to its user: an algorithm, judged and bounded, group by group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from weft.algorithm import Algorithm, Transfers
from weft.bounds import Bound, lower_bound
from weft.collective import Collective
from weft.display import html_table, line, of_bound
from weft.errors import InputError
from weft.figures import GroupResult
from weft.judge import Verdict
from weft.progress import interruptible
from weft.topology.model import Topology
from weft.units import format_bandwidth, format_time
from weft.values import Value


@dataclass(frozen=True, eq=False)
class Result(Value):
    """An algorithm for one collective or several, with the judge's verdict and a lower bound.

    Attributes
    ----------
    algorithm
        The algorithm itself.
    verdict
        What the independent judge says of it, all collectives together.
    bound
        A time no algorithm can beat for all of them together.
    synthesis_s
        Seconds the synthesis took, without bound and verdict.
    """

    algorithm: Algorithm
    verdict: Verdict
    bound: Bound
    synthesis_s: float

    def __repr__(self) -> str:
        figures = f"{self.algorithm.title}: {format_time(self.algorithm.time)}"
        return line(self, figures, of_bound(self.efficiency), self._word)

    def _repr_html_(self) -> str:
        return html_table(
            self.algorithm.title,
            (
                ("time", format_time(self.algorithm.time)),
                ("lower bound", f"{format_time(self.bound.time)}, {self.bound.kind}"),
                ("", of_bound(self.efficiency)),
                ("bus bandwidth", format_bandwidth(self.busbw_GBps * 1e9)),
                ("transfers", f"{len(self.algorithm):,}"),
                ("method", self.algorithm.provenance.get("method", "")),
                ("verdict", self._word),
            ),
        )

    @property
    def _word(self) -> str:
        return "verified" if self.verified else f"WRONG: {self.verdict.violation}"

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """The transfers for a data frame: see `Algorithm.to_columns`."""
        return self.algorithm.to_columns()

    @property
    def collective(self) -> Collective:
        """The collective, if there is one."""
        if len(self.algorithm.demands) > 1:
            raise InputError("the algorithm serves several collectives: see Result.groups")
        return self.algorithm.demands[0]

    @cached_property
    def groups(self) -> tuple[GroupResult, ...]:
        """One result a collective, in the order they were asked for."""
        demands, times = self.algorithm.demands, self.algorithm.times
        if len(demands) == 1:
            return (GroupResult(demands[0], times[0], self.bound),)
        cost = self.algorithm.require_timing().cost
        return tuple(
            GroupResult(
                demand,
                time,
                lower_bound(self.topology, demand.chunks, cost, enough=time),
            )
            for demand, time in zip(demands, times, strict=True)
        )

    @property
    def topology(self) -> Topology:
        return self.algorithm.require_timing().topology

    @property
    def transfers(self) -> Transfers:
        """The rows, as NumPy columns; see `Algorithm.transfers`."""
        return self.algorithm.transfers

    @property
    def verified(self) -> bool:
        return self.verdict.ok

    @property
    def time_us(self) -> float:
        """When the last transfer ends, in microseconds."""
        return self.algorithm.time_us

    @property
    def lower_bound_us(self) -> float:
        """A time in microseconds that no algorithm can beat with these chunks."""
        return self.bound.time_us

    @property
    def efficiency(self) -> float:
        """Lower bound over time; 1 when nothing need move."""
        return self.bound.time / self.algorithm.time if self.algorithm.time else 1.0

    @property
    def algbw_GBps(self) -> float:  # noqa: N802 - the unit's own spelling
        """Size over time of the slowest group, in 10^9 bytes per second."""
        return min(group.algbw_GBps for group in self.groups)

    @property
    def busbw_GBps(self) -> float:  # noqa: N802 - the unit's own spelling
        """Bus bandwidth of the slowest group, as nccl-tests defines it."""
        return min(group.busbw_GBps for group in self.groups)

    @interruptible
    def save(self, path: str | Path, *, kind: str | None = None) -> str:
        """Write the algorithm, whole or not at all; gives the name of the format.

        The path's ending names the format unless `kind` does: see `weft.save`.
        """
        from weft.formats import write  # many modules, and seldom needed

        return write(self.algorithm, path, kind=kind)

    def to_dict(self) -> dict[str, Any]:
        """The figures, for machines: what ``weft synth --json`` prints.

        Where several collectives differ in kind, size, chunks or root, that is None at the top.
        """
        cost, provenance = self.algorithm.require_timing().cost, self.algorithm.provenance
        return {
            "topology": self.topology.name,
            "changes": list(self.topology.changes),
            "npus": len(self.topology.members),
            "switches": self.topology.switches,
            "links": self.topology.links,
            "collective": self._common("kind"),
            "size_bytes": self._common("size"),
            "chunks": self._common("chunks_per_share"),
            "root": self._common("root"),
            "time_us": self.time_us,
            "lower_bound_us": self.lower_bound_us,
            "bound_kind": self.bound.kind,
            "ideal_us": self.bound.ideal_us,
            "efficiency": self.efficiency,
            "algbw_GBps": self.algbw_GBps,
            "busbw_GBps": self.busbw_GBps,
            "transfers": len(self.algorithm),
            "synthesis_s": self.synthesis_s,
            "method": provenance["method"],
            "seed": provenance["seed"],
            "trials": provenance["trials"],
            "latency_model": cost.latency_model,
            "switching": cost.switching,
            "verified": self.verified,
            "violation": self.verdict.violation,
            "groups": [group.to_dict() for group in self.groups],
        }

    def _common(self, attribute: str) -> Any:
        """What all collectives have in common, or None."""
        values = {getattr(demand, attribute) for demand in self.algorithm.demands}
        return values.pop() if len(values) == 1 else None
