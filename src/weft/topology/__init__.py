"""What the network is: nodes, directed links, and the many ways to say them."""

from weft.topology.builders import DEFAULT_BANDWIDTH, DEFAULT_LATENCY, parse_topology
from weft.topology.load import load_topology
from weft.topology.model import Topology

__all__ = [
    "DEFAULT_BANDWIDTH",
    "DEFAULT_LATENCY",
    "Topology",
    "load_topology",
    "parse_topology",
]
