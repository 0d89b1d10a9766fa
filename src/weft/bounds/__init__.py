"""Proven lower bounds on the time of a collective on a network: no algorithm can be faster.

The proofs are in ``docs/bounds.md``. Cheap bounds come first; the search stops as soon as one
meets the time to be judged.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weft.bounds.bound import NONE, Bound, Certificate
from weft.bounds.classes import ChunkClasses
from weft.bounds.cuts import cut_bound
from weft.bounds.exchange import exchange_bound, is_exchange
from weft.bounds.flows import flow_bound, quick_flow_bound
from weft.bounds.nodes import node_bound
from weft.bounds.parts import message_bound, quick_message_bound, region_bound
from weft.bounds.postal import postal_bound
from weft.bounds.symmetric import applies, symmetric_bounds
from weft.collective import Chunks, Collective
from weft.cost import CostModel
from weft.topology.model import Topology
from weft.units import NEVER

__all__ = [
    "NONE",
    "Bound",
    "Certificate",
    "demand_bound",
    "exchange_bound",
    "is_exchange",
    "lower_bound",
    "quick_bound",
    "quick_bounds",
]

# Link visits: about half a second each on one core.
_NODE_BUDGET = 4_000_000
_CUT_BUDGET = 60_000_000
_FLOW_BUDGET = 60_000_000
_MESSAGE_BUDGET = 2_000_000
_QUICK_BUDGET = 10_000
_FEW = 64  # chunks, of which one may be what takes longest
_MET = 1 - 1e-6  # of a time: chunks differ by some bytes, and what is left is not worth a search

_TELLING = 0.95  # of the time a bound for any chunking should say
_MOST_LISTED = 1 << 20  # chunks of one collective, where there is a bound without a table


def lower_bound(
    topology: Topology,
    chunks: Chunks,
    cost: CostModel,
    *,
    enough: int = NEVER,
    effort: float = 1.0,
) -> Bound:
    """The strongest bound Weft can prove at reasonable cost.

    Parameters
    ----------
    enough
        A time in picoseconds, usually that of an algorithm: a bound that reaches it proves the
        algorithm optimal, and the search stops; also if only one part in a million is missing.
    effort
        How much of the usual cost is reasonable.
    """
    topology, enough = _within_reach(topology, chunks), int(enough * _MET)
    classes = ChunkClasses.of(chunks)
    bound = NONE
    node_budget = max(_NODE_BUDGET, topology.links + topology.nodes)  # one NPU's distances
    messages, flows, cuts = (
        int(budget * effort) for budget in (_MESSAGE_BUDGET, _FLOW_BUDGET, _CUT_BUDGET)
    )
    proofs: list[Callable[[int], Bound]] = [
        lambda _: node_bound(topology, classes, cost, enough, node_budget),
        lambda _: region_bound(topology, classes, cost),
        lambda _: postal_bound(topology, classes, cost),
        lambda _: message_bound(topology, classes, cost, enough, messages),
        lambda _: flow_bound(topology, classes, cost, enough, flows),
        lambda known: cut_bound(topology, classes, cost, enough, cuts, known),
    ]
    for number, prove in enumerate(proofs):
        bound = bound.stronger(prove(bound.ideal))
        # Regions are cheap, and say more of any chunking than single NPUs do.
        if bound.time >= enough and (number > 0 or bound.ideal >= enough * _TELLING):
            break
    return bound


def demand_bound(
    topology: Topology, demand: Collective, cost: CostModel, *, enough: int = NEVER
) -> Bound:
    """The same for one collective, whose chunks may be too many to list.

    Of All-to-All much is known without a table: what one NPU sends, what parts of the network tell
    each other, and on vertex-transitive networks how far all has to go. Chunks are listed only if
    that does not reach `enough`, and there are not too many.
    """
    if not is_exchange(demand):
        return lower_bound(topology, demand.chunks, cost, enough=enough)
    many, bound = demand.chunk_count > _MOST_LISTED, NONE
    if many:
        bound = exchange_bound(topology, demand, cost, enough=enough)
    if applies(topology, demand):
        for proof in symmetric_bounds(topology, demand, cost, enough):
            bound = bound.stronger(proof)
    if bound.time >= enough * _MET or many:
        return bound
    return bound.stronger(lower_bound(topology, demand.chunks, cost, enough=enough))


def quick_bound(
    topology: Topology, chunks: Chunks, cost: CostModel, chunk_bytes: int | None = None
) -> int:
    """A cheap bound in picoseconds: a planner's goal.

    With `chunk_bytes`, every chunk is taken for that long.
    """
    return quick_bounds(topology, chunks, cost, chunk_bytes)[0]


def quick_bounds(
    topology: Topology, chunks: Chunks, cost: CostModel, chunk_bytes: int | None = None
) -> tuple[int, int]:
    """The same, and one for any chunking of the same bytes."""
    classes = ChunkClasses.of(chunks)
    if chunk_bytes is not None:
        classes = classes.resized(chunk_bytes)
    proofs = [
        node_bound(topology, classes, cost, NEVER, _QUICK_BUDGET),
        region_bound(topology, classes, cost),
    ]
    whole, ideal = quick_flow_bound(topology, classes, cost)
    if classes.count.sum() <= _FEW:
        whole = max(whole, postal_bound(topology, classes, cost).time)
    if topology.switches:  # without them messages say little more than single NPUs do
        ideal = max(ideal, quick_message_bound(topology, classes, cost))
    ideal = max(ideal, *(proof.ideal for proof in proofs))
    return max(whole, ideal, *(proof.time for proof in proofs)), ideal


def _within_reach(topology: Topology, chunks: Chunks) -> Topology:
    """The network without the NPUs that no chunk may visit, if that is the same for all."""
    if len(chunks) == 0 or chunks.reach[0] < 0 or (chunks.reach != chunks.reach[0]).any():
        return topology
    allowed = chunks.members(int(chunks.reach[0]))
    return topology.without(npus=np.setdiff1d(topology.members, allowed).tolist())
