"""Failed links as people write them: ``3-4`` both ways, ``3>4`` one way, ``0-s1`` to a switch."""

from __future__ import annotations

import re

from weft.errors import TopologyError
from weft.quoting import quoted
from weft.topology.model import Topology

_PAIR = re.compile(r"\s*(s?)([0-9]{1,9})\s*([->])\s*(s?)([0-9]{1,9})\s*")


def parse_link_removal(text: str, topology: Topology) -> list[tuple[int, int]]:
    """The ordered pairs (source, destination) that `text` takes away, for `Topology.without`.

    ``3-4`` means every link between the two, in whichever directions there are; ``3>4`` means
    those from 3 to 4. Parallel links go together. ``s0`` is the first switch.
    """
    match = _PAIR.fullmatch(text)
    if not match:
        raise TopologyError(f"link {quoted(text)} is not one; write it like 3-4, 3>4 or 0-s1")
    a = _node(topology, text, match[1], int(match[2]))
    b = _node(topology, text, match[4], int(match[5]))
    wanted = [(a, b), (b, a)] if match[3] == "-" else [(a, b)]
    found = [
        (src, dst) for src, dst in wanted if ((topology.src == src) & (topology.dst == dst)).any()
    ]
    if not found:
        raise TopologyError(f"{topology.name} has no link {text.strip()} to remove")
    return found


def _node(topology: Topology, text: str, prefix: str, number: int) -> int:
    node = number + topology.npus if prefix else number
    if node < topology.nodes:
        return node
    switches = f", switches s0 to s{topology.switches - 1}" if topology.switches else ""
    raise TopologyError(
        f"link {quoted(text)} names {prefix}{number}, which {topology.name} does not have; "
        f"NPUs are 0 to {topology.npus - 1}{switches}"
    )
