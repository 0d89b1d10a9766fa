"""What the network is: nodes, directed links, and the many ways to say them."""

from weft.topology.builders import parse_topology
from weft.topology.kinds import DEFAULT_BANDWIDTH, DEFAULT_LATENCY, TOPOLOGIES, Builder
from weft.topology.load import load_topology
from weft.topology.model import Topology

__all__ = [
    "DEFAULT_BANDWIDTH",
    "DEFAULT_LATENCY",
    "TOPOLOGIES",
    "Builder",
    "Topology",
    "load_topology",
    "parse_topology",
]
