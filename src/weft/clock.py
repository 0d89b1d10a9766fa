"""The clock ends after 53 days of picoseconds: what may not fit is refused before planning."""

from __future__ import annotations

from collections.abc import Sequence

from weft import _core
from weft.collective import Collective
from weft.errors import InputError
from weft.topology.model import Topology

_CLOCK_PS = 1 << 62
_LINKS_A_HOP = 16  # more switches in a row than any fabric has


def check_clock(
    topology: Topology, demands: Sequence[Collective], transfers: int | None = None
) -> None:
    """Raise if an algorithm might run past the end of the clock.

    No algorithm takes longer than all its transfers one after the other, each over links as slow
    as the slowest. Unless `transfers` says how many a demand has at most, each of its chunks gets
    to each NPU, and away from it again, once.
    """
    if topology.links == 0:
        return
    links = min(topology.switches + 1, _LINKS_A_HOP)
    time = 0
    for demand in demands:
        slot = demand.chunks.largest
        push = int(_core.serialization(slot, topology.bandwidth).max())
        count = 2 * len(demand.chunks) * topology.npus if transfers is None else transfers
        time += count * links * (push + int(topology.latency.max()))
        if time >= _CLOCK_PS:
            raise InputError(
                f"{topology.name}: {demand.kind} of {demand.size} B may take longer than the "
                f"clock runs (53 days); use a smaller size, fewer chunks or faster links"
            )
