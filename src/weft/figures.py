"""How one of the collectives of an algorithm fares, in the figures of nccl-tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.bounds import Bound
from weft.collective import Collective
from weft.display import line, of_bound, title_of
from weft.units import PS_PER_US, format_time
from weft.values import Value


@dataclass(frozen=True)
class GroupResult(Value):
    """How one of the collectives fares.

    Attributes
    ----------
    collective
        What was asked for, with the number of chunks that was chosen.
    time
        When its last transfer ends, in picoseconds.
    bound
        A time no algorithm can beat, not even if this collective had the network to itself.
    """

    collective: Collective
    time: int
    bound: Bound

    def __repr__(self) -> str:
        title = title_of([self.collective])
        return line(self, f"{title}: {format_time(self.time)}", of_bound(self.efficiency))

    @property
    def time_us(self) -> float:
        """When its last transfer ends, in microseconds."""
        return self.time / PS_PER_US

    @property
    def lower_bound_us(self) -> float:
        """A time in microseconds that no algorithm can beat with these chunks."""
        return self.bound.time_us

    @property
    def efficiency(self) -> float:
        """Lower bound over time; 1 when nothing need move."""
        return self.bound.time / self.time if self.time else 1.0

    @property
    def algbw_GBps(self) -> float:  # noqa: N802 - the unit's own spelling
        """Size over time, in 10^9 bytes per second, as nccl-tests defines it."""
        return self.collective.size / self.time_us / 1e3 if self.time else 0.0

    @property
    def busbw_GBps(self) -> float:  # noqa: N802 - the unit's own spelling
        """Algorithm bandwidth times the pattern's factor, as nccl-tests defines it."""
        return self.algbw_GBps * self.collective.pattern.bus_factor(self.collective.ranks)

    def to_dict(self) -> dict[str, Any]:
        """The figures, for machines."""
        return {
            "members": list(self.collective.group),
            "collective": self.collective.kind,
            "size_bytes": self.collective.size,
            "chunks": self.collective.chunks_per_share,
            "root": self.collective.root,
            "relay": self.collective.relay,
            "time_us": self.time_us,
            "lower_bound_us": self.lower_bound_us,
            "bound_kind": self.bound.kind,
            "efficiency": self.efficiency,
            "algbw_GBps": self.algbw_GBps,
            "busbw_GBps": self.busbw_GBps,
        }
