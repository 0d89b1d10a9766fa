"""What a lab will be: hosts, wires, ways, rates; nothing is made yet."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft.errors import InputError
from weft.lab.ways import Steps, Way, ways_of
from weft.lab.wires import MOST_NODES, MOST_WIRES, Wire, host_name, wires_of
from weft.topology import Topology
from weft.units import PS_PER_US, format_bandwidth

_LEAST_RATE = 1000  # bytes per second
_MOST_RATE = 2_000_000_000
# Bits per second over all links that one core was seen to carry near the shaped rates, by NPUs.
_CARRIED = ((16, 3.2e9), (32, 1.6e9), (64, 1.28e9))


@dataclass(frozen=True, eq=False)
class LabPlan:
    """A network as a lab emulates it.

    Attributes
    ----------
    topology
        The network that was asked for.
    scale
        What its bandwidths are multiplied by, and its α divided by.
    plan_ways
        Ways that a plan takes, beside the shortest.
    """

    topology: Topology
    scale: float
    plan_ways: tuple[Steps, ...] = ()

    def __post_init__(self) -> None:
        topology, wires = self.topology, len(self.wires)
        if len(topology.members) < 2:
            raise InputError(f"{topology.name} has no two NPUs, so there is nothing to emulate")
        if len(self.nodes) > MOST_NODES or wires > MOST_WIRES:
            raise InputError(
                f"{topology.name} has {len(self.nodes)} nodes and {wires} cables; "
                f"a lab has at most {MOST_NODES} and {MOST_WIRES}"
            )
        for link in np.flatnonzero((self.rates < _LEAST_RATE) | (self.rates > _MOST_RATE))[:1]:
            raise InputError(
                f"link {topology.link_name(int(link))} would carry "
                f"{format_bandwidth(self.rates[link])} at --scale {self.scale:g}; a lab can "
                f"emulate {format_bandwidth(_LEAST_RATE)} to {format_bandwidth(_MOST_RATE)}"
            )

    @cached_property
    def rates(self) -> NDArray[np.float64]:
        """The payload of each link in bytes per second."""
        return self.topology.bandwidth.astype(np.float64) * self.scale

    @cached_property
    def delays_us(self) -> NDArray[np.float64]:
        """α of each link."""
        return self.topology.latency.astype(np.float64) / PS_PER_US / self.scale

    @cached_property
    def scaled(self) -> Topology:
        """The network with the rates and α of the lab, for which to plan."""
        return replace(
            self.topology,
            bandwidth=np.rint(self.rates).astype(np.int64),
            latency=np.rint(self.delays_us * PS_PER_US).astype(np.int64),
            whole=None,
        )

    @cached_property
    def wires(self) -> list[Wire]:
        return wires_of(self.topology)

    @cached_property
    def wire_of(self) -> dict[int, Wire]:
        return {link: wire for wire in self.wires for link in wire.links if link is not None}

    @cached_property
    def ways(self) -> list[Way]:
        return ways_of(self.topology, self.wire_of, self.plan_ways)

    @cached_property
    def nodes(self) -> list[int]:
        """The NPUs that are there, and the switches with a link."""
        switches = {node for wire in self.wires for node in wire.ends if node >= self.topology.npus}
        return [*self.topology.members.tolist(), *sorted(switches)]

    def host(self, node: int) -> str:
        return host_name(self.topology, node)

    @property
    def doubts(self) -> list[str]:
        """Why this machine can hardly emulate this network, if so; sentences."""
        cores = len(os.sched_getaffinity(0))
        wanted, carried = 8 * float(self.rates.sum()), cores * _carried_by_core(self.topology)
        found = []
        if wanted > carried:
            found.append(
                f"{self.topology.links} links carry {wanted / 1e9:.3g} Gbit/s when all are busy, "
                f"more than the {carried / 1e9:.3g} Gbit/s that {cores} cores were seen to carry "
                "honestly; use a smaller --scale or fewer links"
            )
        if self.topology.copying or self.topology.adding:
            found.append("switches only forward here: none copies or adds")
        if self.topology.buffers:
            found.append("switches have buffers of another size here")
        return found


def _carried_by_core(topology: Topology) -> float:
    npus = len(topology.members)
    return next((carried for most, carried in _CARRIED if npus <= most), 64 / npus * 1.28e9)


def fitting_scale(topology: Topology) -> float:
    """1, or the first of 0.1, 0.01, ... at which this machine carries all links when busy."""
    scale, cores = 1.0, len(os.sched_getaffinity(0))
    while 8 * scale * float(topology.bandwidth.sum()) > cores * _carried_by_core(topology):
        scale /= 10
    return scale


def lab_plan(
    topology: Topology, scale: float | None = None, plan_ways: Iterable[Steps] = ()
) -> LabPlan:
    """Lay a lab out; raises InputError if there cannot be one.

    Parameters
    ----------
    scale
        What bandwidths are multiplied by; by default as much as the machine can carry.
    """
    if scale is None:
        scale = fitting_scale(topology)
    if not 0 < scale <= 1e6:
        raise InputError(f"--scale is {scale:g}; expected more than 0, such as 1e-3")
    return LabPlan(topology, scale, tuple(plan_ways))
