"""Networks that looked alike from every NPU before some links or NPUs failed.

The symmetric plan of the whole network goes on as if nothing had happened; what does not get
through is brought afterwards, over the links that are left. A link fewer into an NPU costs it that
link's share of an All-Gather's chunks; brought over the others, they arrive as soon as its ingress
allows. What an All-to-All loses is little, and comes from and goes to many places: it is an
exchange of its own among the pairs that are left over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, MendedExchange, MendedRows, SymmetricRows
from weft.algorithm.mended import missing_deliveries
from weft.algorithm.mended_exchange import demand_chunks, lost_chunks
from weft.collective import Chunks, Collective
from weft.collective.chunks import singles
from weft.cost import CostModel
from weft.memory import check_fits
from weft.synthesis.engines import Settings, plan_pairs
from weft.synthesis.schedule import transfers_of
from weft.synthesis.symmetric import plan_symmetric
from weft.topology.model import Topology
from weft.topology.translations import Translations
from weft.topology.twins import twin_links
from weft.units import CLOCK_PS

_KINDS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")
_ONE_WAY = ("all-gather", "all-to-all")  # never run backwards
_BYTES_A_DELIVERY = 160  # that is missing, while it is found and brought
_BYTES_A_DETOUR = 250  # a row of the patch of an All-to-All, while it is planned


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
        and (demand.kind in _ONE_WAY or twin_links(topology) is not None)
    )


def plan_mended(topology: Topology, demand: Collective, settings: Settings) -> Algorithm | None:
    """The whole network's plan with a patch; None if some NPU is cut off, or nothing is lost."""
    mend = _mended_exchange if demand.kind == "all-to-all" else _mended_gather
    rows = mend(topology, demand, settings)
    if rows is None:
        return None
    return Algorithm((demand,), rows, topology, cost=settings.cost, provenance={"method": "mended"})


def _of_whole(
    topology: Topology, demand: Collective, kind: str, settings: Settings
) -> tuple[SymmetricRows, int]:
    """The plan of the whole network for chunks that are all as long as the longest; its time."""
    whole, pieces = topology.whole, demand.chunks_per_share
    assert whole is not None
    full = Collective.of(
        kind, range(whole.npus), demand.largest_chunk * pieces * whole.npus, pieces
    )
    full = replace(full, alignment=demand.largest_chunk)
    planned = plan_symmetric(whole, full, replace(settings, method="symmetric"))
    assert isinstance(planned.rows, SymmetricRows)
    return planned.rows, planned.time


def _mended_gather(topology: Topology, demand: Collective, settings: Settings) -> MendedRows | None:
    """An All-Gather, which may stand for the same backwards or both."""
    npus, pieces = topology.npus, demand.chunks_per_share
    base, time = _of_whole(topology, demand, "all-gather", settings)
    lost = missing_deliveries(base, topology, pieces)
    check_fits(f"mending {demand.kind} on {topology.name}", len(lost) * _BYTES_A_DELIVERY)
    push = _core.serialization(demand.largest_chunk, topology.bandwidth)
    duration = push + topology.latency
    if time + len(lost) * int(duration.max(initial=0)) >= CLOCK_PS:
        return None
    hold = duration if settings.cost.latency_model == "blocking" else push
    rank = np.zeros(npus, dtype=np.int64)
    rank[topology.members] = np.arange(len(topology.members))
    piece, npu = np.divmod(lost, npus)
    owner, piece = np.divmod(piece, pieces)
    chunk = (rank[owner] * pieces + piece).astype(np.int32)
    order = np.lexsort((chunk, npu))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(npu, minlength=npus))])
    settings.tell("mending", len(lost))
    patch = _core.complete(
        topology.core,
        offsets.astype(np.int64),
        chunk[order],
        hold,
        duration,
        time,
        settings.progress,
    )
    if len(patch[0]) != len(lost):
        return None
    left, pieces_sent = len(topology.members), len(base.chunk)
    count = left * (pieces_sent - pieces * (npus - left))
    return MendedRows(base, count, *patch, demand.kind == "all-reduce")


def _mended_exchange(
    topology: Topology, demand: Collective, settings: Settings
) -> MendedExchange | None:
    """An All-to-All, then the pairs whose way is broken, as if they were all there is."""
    base, time = _of_whole(topology, demand, "all-to-all", settings)
    lost = lost_chunks(base, topology, demand)
    hops = np.bincount(base.chunk, minlength=base.npus * demand.chunks_per_share)
    dropped = int(hops[_seen_from_source(lost, topology, demand)].sum())
    keys = lost[demand_chunks(lost, topology, demand) >= 0]
    if not len(keys):
        return None
    chunks = _pairs(keys, topology, demand)
    distances = len(np.unique(chunks.post)) * topology.npus  # of two bytes each
    needed = dropped * _BYTES_A_DETOUR + 2 * distances
    check_fits(f"mending {demand.kind} on {topology.name}", needed)
    schedule = plan_pairs(topology, chunks, settings, _busiest_end(topology, chunks, settings.cost))
    patch, _ = transfers_of([schedule], topology, settings.cost, chunks.bytes)
    assert patch.start is not None
    assert patch.route is not None
    return MendedExchange(
        base,
        len(base) - dropped + len(patch),
        demand_chunks(keys, topology, demand)[patch.chunk],
        patch.route,  # without switches a link
        patch.start + time,
    )


def _busiest_end(topology: Topology, chunks: Chunks, cost: CostModel) -> int:
    """How long some NPU must take to send what it has, or to receive what it gets: picoseconds."""
    hold = _core.serialization(int(chunks.bytes.min()), topology.bandwidth)
    if cost.latency_model == "blocking":
        hold += topology.latency
    slowest = []
    for ends, links in ((chunks.pre, topology.src), (chunks.post, topology.dst)):
        rate = np.bincount(links, weights=1 / np.maximum(hold, 1), minlength=topology.npus)
        count = np.bincount(ends, minlength=topology.npus)
        slowest.append((count / np.maximum(rate, 1e-30))[count > 0].max())
    return int(min(max(slowest), CLOCK_PS))


def _seen_from_source(
    keys: NDArray[np.int64], topology: Topology, demand: Collective
) -> NDArray[np.int64]:
    """Which of NPU 0's chunks those of the whole network are moved from."""
    assert topology.whole is not None
    pair, piece = np.divmod(keys, demand.chunks_per_share)
    src, dst = np.divmod(pair, topology.npus)
    away = Translations.of(topology.whole).between(src, dst)
    return away * demand.chunks_per_share + piece


def _pairs(keys: NDArray[np.int64], topology: Topology, demand: Collective) -> Chunks:
    """Some chunks of the whole network as a table of their own."""
    src, dst = np.divmod(keys // demand.chunks_per_share, topology.npus)
    pieces = demand.piece_bytes
    sizes = pieces[demand_chunks(keys, topology, demand) % len(pieces)]
    return Chunks.build(
        sizes,
        np.cumsum(sizes) - sizes,
        src.astype(np.int32),
        dst.astype(np.int32),
        singles(np.arange(topology.npus)),
        reduce=False,
    )
