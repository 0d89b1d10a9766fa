"""Wires: the links of a network as virtual cables, and the addresses of what they join."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from ipaddress import IPv4Address

from weft.topology import Topology

# 198.18.0.0/15 is set aside for tests of networks (RFC 2544).
_WIRE_ENDS = IPv4Address("198.18.0.0")  # two a wire
_WAY_ENDS = IPv4Address("198.18.64.0")  # two a way through switches
_NPUS = IPv4Address("198.19.0.0")

MOST_WIRES = 4096
MOST_NODES = 1024
MOST_WAYS = 16384


@dataclass(frozen=True)
class Wire:
    """A cable between two nodes: a link, and one that runs the other way if there is one.

    Where there is none, that direction carries acknowledgements only.
    """

    number: int
    ends: tuple[int, int]
    links: tuple[int, int | None]  # from the first end, from the second

    @property
    def device(self) -> str:
        """What it is called at both ends."""
        return f"w{self.number}"

    def address(self, node: int) -> str:
        """The address of its end at this node."""
        return str(_WIRE_ENDS + 2 * self.number + self.ends.index(node))

    def addresses(self, node: int) -> tuple[str, str]:
        """The addresses of both ends, that at this node first."""
        return self.address(node), self.address(self.other(node))

    def other(self, node: int) -> int:
        return self.ends[1 - self.ends.index(node)]

    def link_from(self, node: int) -> int | None:
        """The link that leaves this node through it."""
        return self.links[self.ends.index(node)]


def wires_of(topology: Topology) -> list[Wire]:
    """One wire for a link and its reverse; parallel links have wires of their own."""
    waiting: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    pairs: list[tuple[int, int | None]] = []
    ends = list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    for link, (src, dst) in enumerate(ends):
        if waiting[dst, src]:
            place = waiting[dst, src].pop(0)
            pairs[place] = (pairs[place][0], link)
        else:
            waiting[src, dst].append(len(pairs))
            pairs.append((link, None))
    return [Wire(number, ends[links[0]], links) for number, links in enumerate(pairs)]


def host_name(topology: Topology, node: int) -> str:
    """What the host of a node is called: ``npu3``, ``switch0``."""
    return f"npu{node}" if node < topology.npus else f"switch{node - topology.npus}"


def host_address(npu: int) -> str:
    """The address under which every other reaches this NPU."""
    return str(_NPUS + npu + 1)


def way_addresses(number: int) -> tuple[str, str]:
    """The addresses of both ends of a way through switches."""
    first = _WAY_ENDS + 2 * number
    return str(first), str(first + 1)
