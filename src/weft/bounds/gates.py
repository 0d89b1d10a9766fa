"""How soon a set of links can have carried so much."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.bounds.classes import ChunkClasses
from weft.cost import CostModel
from weft.topology.model import Topology


def time_through(
    topology: Topology,
    links: NDArray[np.intp],
    cost: CostModel,
    classes: ChunkClasses,
    chunks: int,
    total_bytes: float,
) -> tuple[int, int]:
    """Picoseconds until `chunks` whole chunks, or `total_bytes` cut at will, can have crossed.

    Whole chunks count in two ways, of which the stronger holds: by their number, as whole
    chunks between the smallest and the largest of `classes`, and by their exact bytes plus,
    where α blocks, the α each of them holds its link, on the link where that costs least.
    """
    bandwidth, latency = topology.bandwidth[links], topology.latency[links]
    push = _core.serialization(classes.smallest, bandwidth)
    once, across = (lead[links] for lead in _core.leads(topology.core, cost.core))
    held = latency if cost.latency_model == "blocking" else np.zeros_like(latency)
    fluid = _core.Capacity(opens=held + once, first=held + across, bandwidth=bandwidth)
    ideal = fluid.time_for_bytes(total_bytes)
    gap = push + held
    whole = _core.Capacity(
        opens=gap + once, first=gap + across, bandwidth=bandwidth, gap=gap, overhead=held
    )
    counted = whole.time_for_chunks(chunks, total_bytes, classes.largest)
    overhead = float((held * (bandwidth / 1e12)).min(initial=np.inf)) if len(links) else 0.0
    all_bytes = total_bytes + overhead * chunks
    exact = _core.Capacity(opens=held + once, first=across, bandwidth=bandwidth)
    return max(counted, exact.time_for_bytes(all_bytes), ideal), ideal
