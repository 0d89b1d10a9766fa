"""Networks that looked alike from every NPU before some links or NPUs failed.

The symmetric All-Gather of the whole network goes on as if nothing had happened; what does not get
through is brought afterwards, over the links that are left. A link fewer into an NPU costs it that
link's share of the chunks; brought over the others, they arrive as soon as its ingress allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from weft import _core
from weft.algorithm import Algorithm, MendedRows, SymmetricRows
from weft.algorithm.mended import missing_deliveries
from weft.collective import Collective
from weft.memory import check_fits
from weft.synthesis.engines import Settings
from weft.synthesis.symmetric import plan_symmetric
from weft.topology.model import Topology
from weft.topology.twins import twin_links

_KINDS = ("all-gather", "reduce-scatter", "all-reduce")
_BYTES_A_DELIVERY = 160  # that is missing, while it is found and brought
_CLOCK_PS = 1 << 62


def can_mend(topology: Topology, demands: Sequence[Collective]) -> bool:
    """Whether this is a collective of all NPUs that are left of a network that was symmetric."""
    whole = topology.whole
    if len(demands) != 1 or whole is None or whole.switches:
        return False
    demand, failed = demands[0], whole.links - topology.links
    return (
        demand.kind in _KINDS
        and demand.parts is None
        and demand.group == tuple(topology.members.tolist())
        and demand.smallest_chunk > 0
        and 0 < failed < len(topology.members)  # so the first row of the plan is there for somebody
        and (demand.kind == "all-gather" or twin_links(topology) is not None)
    )


def plan_mended(topology: Topology, demand: Collective, settings: Settings) -> Algorithm | None:
    """The whole network's plan with a patch; None if some NPU is cut off."""
    whole, pieces = topology.whole, demand.chunks_per_share
    assert whole is not None
    full = Collective.of(
        "all-gather", range(whole.npus), demand.largest_chunk * pieces * whole.npus, pieces
    )
    full = replace(full, alignment=demand.largest_chunk)
    gather = plan_symmetric(whole, full, replace(settings, method="symmetric"))
    assert isinstance(gather.rows, SymmetricRows)
    lost = missing_deliveries(gather.rows, topology, pieces)
    check_fits(f"mending {demand.kind} on {topology.name}", len(lost) * _BYTES_A_DELIVERY)
    push = _core.serialization(demand.largest_chunk, topology.bandwidth)
    duration = push + topology.latency
    if gather.time + len(lost) * int(duration.max(initial=0)) >= _CLOCK_PS:
        return None
    hold = duration if settings.cost.latency_model == "blocking" else push
    rank = np.zeros(whole.npus, dtype=np.int64)
    rank[topology.members] = np.arange(len(topology.members))
    piece, npu = np.divmod(lost, whole.npus)
    owner, piece = np.divmod(piece, pieces)
    chunk = (rank[owner] * pieces + piece).astype(np.int32)
    order = np.lexsort((chunk, npu))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(npu, minlength=whole.npus))])
    patch = _core.complete(
        topology.core, offsets.astype(np.int64), chunk[order], hold, duration, gather.time
    )
    if len(patch[0]) != len(lost):
        return None
    left, pieces_sent = len(topology.members), len(gather.rows.chunk)
    count = left * (pieces_sent - pieces * (whole.npus - left))
    rows = MendedRows(gather.rows, count, *patch, demand.kind == "all-reduce")
    return Algorithm((demand,), rows, topology, cost=settings.cost, provenance={"method": "mended"})
