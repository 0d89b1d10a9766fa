"""What looks wrong in a network, in words, and what it costs: ``weft topo check``.

Parts of a machine are held against their siblings, both directions of a pair against each other;
the healthy twin has what the siblings have.
"""

from weft.health.checkup import Checkup, check, check_machine, check_topology
from weft.health.finding import Finding

__all__ = ["Checkup", "Finding", "check", "check_machine", "check_topology"]
