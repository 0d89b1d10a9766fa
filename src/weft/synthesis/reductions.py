"""Reductions: gathers run backwards, and All-Reduce by the better of two ways."""

from __future__ import annotations

import numpy as np

from weft.bound import quick_bound
from weft.collective import Chunks, Collective
from weft.errors import UnreachableError
from weft.synthesis.engines import Settings, plan, plan_trees, unreachable
from weft.synthesis.schedule import Schedule, twin_links
from weft.topology.model import Topology

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
    topology: Topology, collective: Collective, settings: Settings
) -> tuple[list[Schedule], str]:
    """Reduce-Scatter then All-Gather, or trees: whichever ends first.

    The first is as good as it gets where every NPU looks alike. Elsewhere, as on a mesh, links
    at the edge idle in either half; trees that sum some chunks while others are spread do not
    let them.
    """
    phases, method = _scatter_and_gather(topology, collective, settings)
    slot = int(collective.chunks.bytes.max(initial=1))
    goal = quick_bound(topology, collective.chunks, settings.cost, slot)
    if sum(phase.time for phase in phases) <= goal * _CLOSE:
        return phases, method
    members = np.array(sorted(collective.group), dtype=np.int32)
    trees = plan_trees(topology, members, None, len(collective.chunks), settings, slot, goal)
    if trees.time < sum(phase.time for phase in phases):
        return [trees], "trees"
    return phases, method


def _scatter_and_gather(
    topology: Topology, collective: Collective, settings: Settings
) -> tuple[list[Schedule], str]:
    """One plan serves for both halves where every link has a twin the other way.

    Not where switches copy: the first half must do without.
    """
    shares = (collective.group, collective.size, collective.chunks_per_share)
    gathered = Collective.of("all-gather", *shares, alignment=collective.alignment).chunks
    gather, method = plan(topology, gathered, settings)
    twin = None if topology.copying else twin_links(topology)
    if twin is not None:
        return [gather.backwards(twin), gather], method
    scattered = Collective.of("reduce-scatter", *shares, alignment=collective.alignment).chunks
    scatter, _ = backwards(topology, scattered, settings)
    return [scatter, gather], method
