"""Reductions: gathers run backwards, and All-Reduce by the better of two ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from weft.bound import quick_bound
from weft.collective import Chunks, Collective
from weft.errors import UnreachableError
from weft.reachability import unreachable
from weft.synthesis.engines import Settings, plan, plan_trees
from weft.synthesis.schedule import Schedule
from weft.topology.model import Topology
from weft.topology.twins import twin_links

# All-Reduce by trees is tried where Reduce-Scatter and All-Gather leave more than this.
_CLOSE = 1.01


def backwards(topology: Topology, chunks: Chunks, settings: Settings) -> tuple[Schedule, str]:
    """A sum (or a gather) for one taker each: spread from the taker, run backwards.

    The spread is planned over the links turned round.
    """
    mirrored = Chunks(
        chunks.bytes,
        chunks.offset,
        chunks.post,
        chunks.pre,
        np.zeros_like(chunks.reduce),
        chunks.reach,
        chunks.set_offsets,
        chunks.set_members,
    )
    try:
        spread, method = plan(topology.reversed(), mirrored, settings)
    except UnreachableError:
        raise unreachable(topology, chunks) from None  # as it is, not turned round
    summed = spread.backwards()
    return summed if chunks.reduce.any() else summed.as_copies(), method


def all_reduce(
    topology: Topology, demands: Sequence[Collective], settings: Settings
) -> tuple[list[Schedule], str]:
    """Reduce-Scatter then All-Gather, or trees: whichever ends first. All demands are All-Reduce.

    The first is as good as it gets where every NPU looks alike. Elsewhere, as on a mesh, links
    at the edge idle in either half; trees that sum some chunks while others are spread do not
    let them.
    """
    if settings.method == "trees" and len(demands) == 1:
        goal = _goal(topology, demands[0].chunks, settings)
        return [_trees(topology, demands[0], settings, goal)], "trees"
    phases, method = _scatter_and_gather(topology, demands, settings)
    if len(demands) > 1 or settings.method != "auto":
        return phases, method
    goal = _goal(topology, demands[0].chunks, settings)
    if sum(phase.time for phase in phases) <= goal * _CLOSE:
        return phases, method
    trees = _trees(topology, demands[0], settings, goal)
    if trees.time < sum(phase.time for phase in phases):
        return [trees], "trees"
    return phases, method


def _goal(topology: Topology, chunks: Chunks, settings: Settings) -> int:
    return quick_bound(topology, chunks, settings.cost, chunks.largest)


def _trees(topology: Topology, demand: Collective, settings: Settings, goal: int) -> Schedule:
    chunks = demand.chunks
    members = np.array(sorted(demand.group), dtype=np.int32)
    return plan_trees(topology, chunks, members, None, settings, chunks.largest, goal)


def _scatter_and_gather(
    topology: Topology, demands: Sequence[Collective], settings: Settings
) -> tuple[list[Schedule], str]:
    """One plan serves for both halves where every link has a twin the other way.

    Not where switches copy: the first half must do without.
    """
    gathered = _as(demands, "all-gather")
    gather, method = plan(topology, gathered, settings)
    twin = None if topology.copying else twin_links(topology)
    if twin is not None:
        return [gather.backwards(twin), gather], method
    scatter, _ = backwards(topology, _as(demands, "reduce-scatter"), settings)
    return [scatter, gather], method


def _as(demands: Sequence[Collective], kind: str) -> Chunks:
    """The same buffers, cut the same way, in another pattern."""
    return Chunks.concatenate([replace(demand, kind=kind).chunks for demand in demands])
