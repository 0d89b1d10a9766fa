"""What an algorithm is, in a few facts; compact rows are not expanded."""

from __future__ import annotations

from typing import Any

from weft.algorithm.model import Algorithm
from weft.collective import Collective


def described(algorithm: Algorithm) -> dict[str, Any]:
    """The facts, for machines; what is not known is None."""
    topology, cost = algorithm.topology, algorithm.cost
    return {
        "groups": [_group(demand) for demand in algorithm.demands],
        "topology": None if topology is None else topology.name,
        "changes": None if topology is None else list(topology.changes),
        "npus": None if topology is None else len(topology.members),
        "switches": None if topology is None else topology.switches,
        "links": None if topology is None else topology.links,
        "dimensions": None if topology is None else list(topology.dimensions),
        "method": algorithm.provenance.get("method"),
        "transfers": len(algorithm),
        "time_us": algorithm.time_us if algorithm.timed else None,
        "latency_model": None if cost is None else cost.latency_model,
        "switching": None if cost is None else cost.switching,
        "rows": algorithm.rows.described(),
    }


def _group(demand: Collective) -> dict[str, Any]:
    return {
        "collective": demand.kind,
        "members": list(demand.group),
        "ranks": demand.ranks,
        "size_bytes": demand.size,
        "chunks": demand.chunks_per_share,
        "chunk_count": demand.chunk_count,
        "largest_chunk_bytes": demand.largest_chunk,
        "root": demand.root,
        "relay": demand.relay,
    }
