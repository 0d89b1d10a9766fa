"""The clock ends after 53 days of picoseconds: what may not fit is refused before planning."""

from __future__ import annotations

from weft import _core
from weft.collective import Collective
from weft.errors import InputError
from weft.topology.model import Topology

_CLOCK_PS = 1 << 62
_LINKS_A_HOP = 16  # more switches in a row than any fabric has


def check_clock(topology: Topology, collective: Collective) -> None:
    """Raise if an algorithm might run past the end of the clock.

    No algorithm takes longer than all its transfers one after the other, each over links as slow
    as the slowest.
    """
    if topology.links == 0:
        return
    slot = int(collective.chunks.bytes.max(initial=1))
    push = int(_core.serialization(slot, topology.bandwidth).max())
    links = min(topology.switches + 1, _LINKS_A_HOP)
    transfers = 2 * len(collective.chunks) * topology.npus
    if transfers * links * (push + int(topology.latency.max())) >= _CLOCK_PS:
        raise InputError(
            f"{topology.name}: {collective.kind} of {collective.size} B may take longer than the "
            f"clock runs (53 days); use a smaller size, fewer chunks or faster links"
        )
