"""What synthesis hands to its user: an algorithm, judged and bounded, group by group."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from weft.algorithm import Algorithm, Transfers
from weft.bounds import Bound
from weft.collective import Collective
from weft.display import html_table, line, of_bound
from weft.errors import InputError
from weft.figures import Grouped, GroupResult, group_results, network_figures
from weft.judge import Verdict
from weft.planners import Attempt
from weft.progress import interruptible
from weft.topology.model import Topology
from weft.units import format_time


@dataclass(frozen=True, eq=False)
class Result(Grouped):
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
    tried
        Every planner's turn: what it gave, and what that cost.
    """

    algorithm: Algorithm
    verdict: Verdict
    bound: Bound
    synthesis_s: float
    tried: tuple[Attempt, ...] = ()

    def __repr__(self) -> str:
        figures = f"{self.algorithm.title}: {format_time(self.time)}"
        return line(self, figures, of_bound(self.efficiency), self._word)

    def _repr_html_(self) -> str:
        return html_table(
            self.algorithm.title,
            (
                ("time", format_time(self.time)),
                *self._speed_rows(),
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
        """One result per collective, in the order they were asked for."""
        made, timing = self.algorithm, self.algorithm.require_timing()
        return group_results(timing.topology, timing.cost, made.demands, made.times, self.bound)

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
    def time(self) -> int:
        """When the last transfer ends, in picoseconds."""
        return self.algorithm.time

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
            **network_figures(self.topology),
            "collective": self._common("kind"),
            "size_bytes": self._common("size"),
            "chunks": self._common("chunks_per_share"),
            "root": self._common("root"),
            **self._speeds(),
            "transfers": len(self.algorithm),
            "synthesis_s": self.synthesis_s,
            "tried": [attempt.to_dict() for attempt in self.tried],
            "method": provenance["method"],
            "seed": provenance["seed"],
            "trials": provenance["trials"],
            **asdict(cost),
            "verified": self.verified,
            "violation": self.verdict.violation,
        }

    def _common(self, attribute: str) -> Any:
        """What all collectives have in common, or None."""
        values = {getattr(demand, attribute) for demand in self.algorithm.demands}
        return values.pop() if len(values) == 1 else None
