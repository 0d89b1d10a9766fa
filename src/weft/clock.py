"""The clock ends after 53 days of picoseconds: what may not fit is refused before planning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft import _core
from weft.collective import Chunks, Collective
from weft.errors import InputError
from weft.topology.model import Topology
from weft.units import CLOCK_PS

_MOST_LEVELS = 64  # of a composition
_LINKS_A_HOP = 16  # more switches in a row than any fabric has


def check_clock(topology: Topology, demands: Sequence[Collective], *, alike: bool = False) -> None:
    """Raise if an algorithm might run past the end of the clock.

    No algorithm takes longer than all its transfers one after the other, each over links as slow
    as the slowest. Each chunk of a demand gets to each NPU, and away from it again, once. Where
    all NPUs do the same at the same time (`alike`), only the transfers of one NPU's chunks count.
    """
    times = _times(topology, demands, alike=alike)
    if sum(times) >= CLOCK_PS:
        longest = demands[times.index(max(times))]
        together = f"with {len(demands) - 1} more " if max(times) < CLOCK_PS else ""
        raise InputError(
            f"{topology.name}: {longest.kind} of {longest.size} B {together}may take longer than "
            f"the clock runs (53 days); use a smaller size, fewer chunks or faster links"
        )


def fits_clock(topology: Topology, demands: Sequence[Collective], *, alike: bool = False) -> bool:
    """Whether `check_clock` would let it pass."""
    return sum(_times(topology, demands, alike=alike)) < CLOCK_PS


def _times(topology: Topology, demands: Sequence[Collective], *, alike: bool) -> list[int]:
    """The longest that each demand may take, in picoseconds."""
    return [
        2 * _transfers(topology, demand, alike=alike) * _longest(topology, demand.largest_chunk)
        for demand in demands
    ]


def _transfers(topology: Topology, demand: Collective, *, alike: bool) -> int:
    """How often chunks may be sent one after the other."""
    if not alike:
        return demand.chunk_count * topology.npus
    if demand.kind != "all-to-all":
        return demand.chunk_count
    # One NPU's chunks, each at most round every dimension, or up and down every level.
    hops = min(demand.ranks, sum(topology.dimensions) + _MOST_LEVELS)
    return demand.chunk_count // demand.ranks * hops


def check_run(topology: Topology, chunks: Chunks, transfers: int, reducer: int | None) -> None:
    """Raise if so many transfers, each of them added, might run past the end of the clock."""
    each = _longest(topology, chunks.largest)
    if reducer is not None:
        each += int(_core.serialization(chunks.largest, np.array([reducer]))[0])
    if transfers * each >= CLOCK_PS:
        raise InputError(
            f"{topology.name}: {transfers} transfers of up to {chunks.largest} B may take longer "
            "than the clock runs (53 days); use faster links, or NPUs that add faster"
        )


def _longest(topology: Topology, chunk_bytes: int) -> int:
    """The longest that a transfer of so many bytes may take, in picoseconds."""
    if topology.links == 0:
        return 0
    links = min(topology.switches + 1, _LINKS_A_HOP)
    push = int(_core.serialization(chunk_bytes, topology.bandwidth).max())
    return links * (push + int(topology.latency.max()))
