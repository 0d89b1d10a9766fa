"""Links that run the other way: over them what was spread comes back as a sum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.topology.model import Topology


def twin_links(topology: Topology) -> NDArray[np.int32] | None:
    """For each link one that runs the other way at the same speed; None if some have none."""
    columns = (topology.latency, topology.bandwidth)
    there = np.lexsort((*columns, topology.dst, topology.src))
    back = np.lexsort((*columns, topology.src, topology.dst))
    alike = (
        np.array_equal(topology.src[there], topology.dst[back])
        and np.array_equal(topology.dst[there], topology.src[back])
        and np.array_equal(topology.bandwidth[there], topology.bandwidth[back])
        and np.array_equal(topology.latency[there], topology.latency[back])
    )
    if not alike:
        return None
    twin = np.empty(topology.links, dtype=np.int32)
    twin[there] = back
    return twin
