"""What an algorithm is, in a few facts; compact rows are not expanded."""

from __future__ import annotations

from typing import Any

from weft.algorithm.model import Algorithm
from weft.algorithm.periodic import PeriodicRows
from weft.algorithm.repaired import RepairedRows
from weft.algorithm.repaired_exchange import RepairedExchange
from weft.algorithm.rounds import RoundLog
from weft.algorithm.symmetric import SymmetricRows
from weft.collective import Collective
from weft.units import PS_PER_US


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
        "rows": _rows(algorithm),
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


def _rows(algorithm: Algorithm) -> dict[str, Any]:
    """In which form the rows are, and what is peculiar to it."""
    rows = algorithm.rows
    if isinstance(rows, RoundLog):
        return {"form": "log of rounds", "rounds": rows.rounds, "slot_us": rows.slot / PS_PER_US}
    if isinstance(rows, SymmetricRows):
        return {"form": "rows of one NPU's chunks", "own_rows": len(rows.chunk)}
    if isinstance(rows, RepairedRows | RepairedExchange):
        own, patch = len(rows.base.chunk), len(rows.chunk)
        return {"form": "rows of one NPU's chunks, mended", "own_rows": own, "patch_rows": patch}
    if isinstance(rows, PeriodicRows):
        own = len(rows.link)
        return {
            "form": "trees",
            "trees": rows.trees,
            "own_rows": own,
            "period_us": rows.period / PS_PER_US,
        }
    return {"form": "table", "columns": list(algorithm.transfers.columns())}
