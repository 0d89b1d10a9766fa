"""What synthesis hands to its user: an algorithm, judged and bounded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weft.algorithm import Algorithm, Transfers
from weft.bound import Bound
from weft.collective import Collective
from weft.errors import InputError
from weft.topology.model import Topology
from weft.verify import Verdict


@dataclass(frozen=True, eq=False)
class Result:
    """An algorithm for one collective, with the judge's verdict and a proven lower bound.

    Attributes
    ----------
    algorithm
        The algorithm itself.
    verdict
        What the independent judge says of it.
    bound
        A time no algorithm can beat.
    synthesis_s
        Seconds the synthesis took, without bound and verdict.
    """

    algorithm: Algorithm
    verdict: Verdict
    bound: Bound
    synthesis_s: float

    @property
    def collective(self) -> Collective:
        return self.algorithm.demands[0]

    @property
    def topology(self) -> Topology:
        if self.algorithm.topology is None:
            raise InputError("the algorithm was not made for a network")
        return self.algorithm.topology

    @property
    def transfers(self) -> Transfers:
        """The rows, as NumPy columns."""
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
        """Size over time, in 10^9 bytes per second, as nccl-tests defines it."""
        return self.collective.size / self.time_us / 1e3 if self.algorithm.time else 0.0

    @property
    def busbw_GBps(self) -> float:  # noqa: N802 - the unit's own spelling
        """Algorithm bandwidth times the pattern's factor, as nccl-tests defines it."""
        return self.algbw_GBps * self.collective.pattern.bus_factor(self.collective.ranks)

    def save(self, folder: str | Path) -> None:
        """Write the algorithm as a folder of Chakra execution traces, one file a rank."""
        self.algorithm.save(folder)

    def to_dict(self) -> dict[str, str | int | float | bool | None]:
        """The figures, for machines: what ``weft synth --json`` prints."""
        cost, provenance = self.algorithm.cost, self.algorithm.provenance
        assert cost is not None
        return {
            "topology": self.topology.name,
            "npus": len(self.topology.members),
            "switches": self.topology.switches,
            "links": self.topology.links,
            "collective": self.collective.kind,
            "size_bytes": self.collective.size,
            "chunks": self.collective.chunks_per_share,
            "root": self.collective.root,
            "time_us": self.time_us,
            "lower_bound_us": self.lower_bound_us,
            "bound_kind": self.bound.kind,
            "ideal_us": self.bound.ideal_us,
            "efficiency": self.efficiency,
            "algbw_GBps": self.algbw_GBps,
            "busbw_GBps": self.busbw_GBps,
            "transfers": len(self.transfers),
            "synthesis_s": self.synthesis_s,
            "method": provenance["method"],
            "seed": provenance["seed"],
            "trials": provenance["trials"],
            "latency_model": cost.latency_model,
            "switching": cost.switching,
            "verified": self.verified,
            "violation": self.verdict.violation,
        }
