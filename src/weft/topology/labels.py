"""What the nodes of a network are called, where a file says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.values import Value

if TYPE_CHECKING:
    from weft.topology.wiring import Wiring  # brings a parser, which a spec needs not


@dataclass(frozen=True)
class Labels(Value):
    """Names and kinds of nodes, as the file that a network was read from has them.

    Attributes
    ----------
    names
        What each node is called there: a bus id, an adapter, a switch.
    kinds
        What each node is: ``gpu``, ``nvswitch``, ``pci``, ``cpu``, ``nic``, ``leaf`` ...
    hosts
        The host each node is in; empty for none.
    notes
        What the file did not say and where it was taken from, what was left out: one sentence each.
    wiring
        What a network joined of several files was made of.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    hosts: tuple[str, ...]
    notes: tuple[str, ...] = ()
    wiring: Wiring | None = None

    def described(self, node: int) -> str:
        """A node in words: ``gpu 0000:4f:00.0 of dgx-01``."""
        host = f" of {self.hosts[node]}" if self.hosts[node] else ""
        return f"{self.kinds[node]} {self.names[node]}{host}"


@dataclass(frozen=True)
class Wishes:
    """What a user says that a file does not.

    Attributes
    ----------
    rates
        ``nominal`` or ``reachable``.
    nvlink
        NVLinks of each GPU into the switch of its host; None if not said.
    nvlink_rate
        B/s of one of them; None if the GPU tells.
    bandwidth, latency
        B/s and ps by kind of link, such as ``pcie`` or ``leaf``.
    """

    rates: str = "nominal"
    nvlink: int | None = None
    nvlink_rate: int | None = None
    bandwidth: Mapping[str, int] | None = None
    latency: Mapping[str, int] | None = None

    @property
    def any(self) -> bool:
        return self != Wishes(rates=self.rates)
