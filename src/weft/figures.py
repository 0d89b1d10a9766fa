"""Figures of what takes a time for which there is a bound, as nccl-tests defines them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.bounds import Bound, lower_bound
from weft.collective import Collective
from weft.cost import CostModel
from weft.display import line, of_bound, title_of
from weft.topology.model import Topology
from weft.units import PS_PER_US, format_bandwidth, format_time
from weft.values import Value


class Bounded(Value):
    """What has a time, a lower bound and bandwidths."""

    if TYPE_CHECKING:  # fields of some, properties of others

        @property
        def time(self) -> int: ...
        @property
        def bound(self) -> Bound: ...
        @property
        def algbw_GBps(self) -> float: ...  # noqa: N802 - the unit's own spelling
        @property
        def busbw_GBps(self) -> float: ...  # noqa: N802

    @property
    def time_us(self) -> float:
        """When the last transfer ends, in microseconds."""
        return self.time / PS_PER_US

    @property
    def lower_bound_us(self) -> float:
        """A time in microseconds that no algorithm can beat with these chunks."""
        return self.bound.time_us

    @property
    def efficiency(self) -> float:
        """Lower bound over time; 1 when nothing need move."""
        return self.bound.time / self.time if self.time else 1.0

    def _speeds(self) -> dict[str, Any]:
        """How fast it is, for machines."""
        return {
            "time_us": self.time_us,
            "lower_bound_us": self.lower_bound_us,
            "bound_kind": self.bound.kind,
            "certificate": self.bound.certificate.to_dict(),
            "efficiency": self.efficiency,
            "algbw_GBps": self.algbw_GBps,
            "busbw_GBps": self.busbw_GBps,
        }


_FEW_GROUPS = 16  # whose bounds alone are each worth the usual cost


@dataclass(frozen=True)
class GroupResult(Bounded):
    """How one of the collectives fares.

    Attributes
    ----------
    collective
        What was asked for, with the number of chunks that was chosen.
    time
        When its last transfer ends, in picoseconds.
    bound
        A time no algorithm can beat, not even if this collective had the network to itself, and
        all other NPUs only relayed for it. Where several run at once it is no measure of any.
    """

    collective: Collective
    time: int
    bound: Bound

    def __repr__(self) -> str:
        title = title_of([self.collective])
        alone = f"at least {format_time(self.bound.time)} alone on the network"
        return line(self, f"{title}: {format_time(self.time)}", alone)

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
            **self._speeds(),
        }


class Grouped(Bounded):
    """What serves several collectives at once."""

    if TYPE_CHECKING:

        @property
        def groups(self) -> tuple[GroupResult, ...]: ...

    @property
    def algbw_GBps(self) -> float:  # noqa: N802 - the unit's own spelling
        """Size over time of the slowest group, in 10^9 bytes per second."""
        return min(group.algbw_GBps for group in self.groups)

    @property
    def busbw_GBps(self) -> float:  # noqa: N802 - the unit's own spelling
        """Bus bandwidth of the slowest group, as nccl-tests defines it."""
        return min(group.busbw_GBps for group in self.groups)

    def _speeds(self) -> dict[str, Any]:
        groups = [group.to_dict() for group in self.groups]
        return super()._speeds() | {"ideal_us": self.bound.ideal_us, "groups": groups}

    def _speed_rows(self) -> list[tuple[str, str]]:
        """How fast it is, for people."""
        return [
            ("lower bound", f"{format_time(self.bound.time)}, {self.bound.kind}"),
            ("", of_bound(self.efficiency)),
            ("bus bandwidth", format_bandwidth(self.busbw_GBps * 1e9)),
        ]


def group_results(
    topology: Topology,
    cost: CostModel,
    demands: Sequence[Collective],
    times: Sequence[int],
    bound: Bound,
) -> tuple[GroupResult, ...]:
    """One result per collective; `bound` is that of all together."""
    if len(demands) == 1:
        return (GroupResult(demands[0], times[0], bound),)
    effort = 1.0 if len(demands) <= _FEW_GROUPS else 1 / len(demands)
    bounds = [
        lower_bound(topology, demand.chunks, cost, enough=time, effort=effort)
        for demand, time in zip(demands, times, strict=True)
    ]
    return tuple(GroupResult(*each) for each in zip(demands, times, bounds, strict=True))


def network_figures(topology: Topology) -> dict[str, Any]:
    """What network it is, for machines."""
    return {
        "topology": topology.name,
        "changes": list(topology.changes),
        "npus": len(topology.members),
        "switches": topology.switches,
        "links": topology.links,
    }
