"""What the network is: nodes, directed links, and the many ways to say them."""

from weft.topology.builders import DEFAULT_BANDWIDTH, DEFAULT_LATENCY, parse_topology
from weft.topology.files import read_topology, write_topology
from weft.topology.load import load_topology
from weft.topology.model import Topology
from weft.topology.summary import Speed, TopologySummary, summarize

__all__ = [
    "DEFAULT_BANDWIDTH",
    "DEFAULT_LATENCY",
    "Speed",
    "Topology",
    "TopologySummary",
    "load_topology",
    "parse_topology",
    "read_topology",
    "summarize",
    "write_topology",
]
