"""Proven lower bounds on the time of a collective on a network: no algorithm can be faster.

The proofs are in ``docs/bounds.md``. Cheap bounds come first; the search stops as soon as one
meets the time to be judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weft.bounds.classes import ChunkClasses
from weft.bounds.cuts import cut_bound
from weft.bounds.flows import flow_bound, quick_flow_bound
from weft.bounds.nodes import Proof, gossip_bound, node_bound
from weft.bounds.symmetric import applies, symmetric_bounds
from weft.collective import Chunks, Collective
from weft.cost import CostModel
from weft.display import html_table, line
from weft.topology.model import Topology
from weft.units import NEVER, PS_PER_US, format_time

__all__ = ["Bound", "demand_bound", "lower_bound", "quick_bound"]

# Link visits: about half a second each on one core.
_NODE_BUDGET = 4_000_000
_CUT_BUDGET = 60_000_000
_FLOW_BUDGET = 60_000_000
_QUICK_BUDGET = 10_000

_MOST_LISTED = 1 << 20  # chunks of one collective, where there is a bound without a table


@dataclass(frozen=True)
class Bound:
    """A time that no algorithm can beat.

    Attributes
    ----------
    time
        The strongest bound found for the given chunks, moved whole (picoseconds).
    kind
        Which argument gives it: ``ingress`` or ``egress`` of an NPU, ``path`` (the longest way
        a chunk must go), ``cut``, ``gossip`` (all receives over the total bandwidth),
        ``flow`` (all that moves, by the shortest ways under some lengths of the links), or
        ``none`` when nothing need move.
    ideal
        The strongest one that holds for any chunking (picoseconds).
    """

    time: int
    kind: str
    ideal: int

    def __repr__(self) -> str:
        ideal = f"{format_time(self.ideal)} for any chunks"
        return line(self, f"{format_time(self.time)} by {self.kind}", ideal)

    def _repr_html_(self) -> str:
        times = {"with these chunks": self.time, "with any chunks": self.ideal}
        rows = [(name, format_time(time)) for name, time in times.items()]
        return html_table(f"lower bound, by {self.kind}", rows)

    @property
    def time_us(self) -> float:
        return self.time / PS_PER_US

    @property
    def ideal_us(self) -> float:
        return self.ideal / PS_PER_US

    def stronger(self, other: Bound) -> Bound:
        """The better of both in each respect."""
        best = other if other.time > self.time else self
        return Bound(best.time, best.kind, max(self.ideal, other.ideal))


def lower_bound(
    topology: Topology, chunks: Chunks, cost: CostModel, *, enough: int = NEVER
) -> Bound:
    """The strongest bound Weft can prove at reasonable cost.

    Parameters
    ----------
    enough
        A time in picoseconds, usually that of an algorithm: a bound that reaches it proves the
        algorithm optimal, and the search stops.
    """
    topology = _within_reach(topology, chunks)
    classes = ChunkClasses.of(chunks)
    bound = Bound(0, "none", 0)
    node_budget = max(_NODE_BUDGET, topology.links + topology.nodes)  # one NPU's distances
    proofs: list[Callable[[int], Proof]] = [
        lambda known: node_bound(topology, classes, cost, enough, node_budget, known),
        lambda _: gossip_bound(topology, classes, cost),
        lambda _: flow_bound(topology, classes, cost, enough, _FLOW_BUDGET),
        lambda known: cut_bound(topology, classes, cost, enough, _CUT_BUDGET, known),
    ]
    for prove in proofs:
        bound = bound.stronger(Bound(*prove(bound.ideal)))
        if bound.time >= enough:
            break
    return bound


def demand_bound(
    topology: Topology, demand: Collective, cost: CostModel, *, enough: int = NEVER
) -> Bound:
    """The same for one collective, whose chunks may be too many to list.

    On vertex-transitive networks, what one of them sends says much of All-to-All;
    chunks are listed only if that does not reach `enough`, and there are not too many.
    """
    if not applies(topology, demand):
        return lower_bound(topology, demand.chunks, cost, enough=enough)
    bound = Bound(0, "none", 0)
    for proof in symmetric_bounds(topology, demand, cost, enough):
        bound = bound.stronger(Bound(*proof))
    if bound.time >= enough or demand.chunk_count > _MOST_LISTED:
        return bound
    return bound.stronger(lower_bound(topology, demand.chunks, cost, enough=enough))


def quick_bound(
    topology: Topology, chunks: Chunks, cost: CostModel, chunk_bytes: int | None = None
) -> int:
    """A cheap bound in picoseconds: a planner's goal.

    With `chunk_bytes`, every chunk is taken for that long.
    """
    classes = ChunkClasses.of(chunks)
    if chunk_bytes is not None:
        classes = classes.resized(chunk_bytes)
    node, _, _ = node_bound(topology, classes, cost, NEVER, _QUICK_BUDGET, 0)
    gossip, _, _ = gossip_bound(topology, classes, cost)
    return max(node, gossip, quick_flow_bound(topology, classes, cost))


def _within_reach(topology: Topology, chunks: Chunks) -> Topology:
    """The network without the NPUs that no chunk may visit, if that is the same for all."""
    if len(chunks) == 0 or chunks.reach[0] < 0 or (chunks.reach != chunks.reach[0]).any():
        return topology
    allowed = chunks.members(int(chunks.reach[0]))
    return topology.without(npus=np.setdiff1d(topology.members, allowed).tolist())
