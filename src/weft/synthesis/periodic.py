"""All-Reduce by trees that carry one chunk after the other: see `weft.algorithm.PeriodicRows`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft import _core
from weft.algorithm import Algorithm, PeriodicRows
from weft.collective import Collective
from weft.errors import InputError
from weft.memory import check_fits
from weft.reachability import unreachable
from weft.synthesis.engines import Settings
from weft.topology.model import Topology

# Some 100 · links / NPUs trees are tried in all, and each looks at all links twice, up and down:
# with auto up to so many looks, a quarter of an hour of them.
_LOOKS, _MOST_LOOKS = 200, 1 << 34
# Rows that the most trees have, for each link of the network; bytes of one in each attempt, and of
# one of the plan that is kept.
_ROWS_A_LINK, _BYTES_TRIED, _BYTES_KEPT = 62, 13, 60


def suits_periodic(topology: Topology, demands: Sequence[Collective]) -> bool:
    """Whether periodic trees can be had, and in fair time: on dense networks there are too many."""
    looks = _LOOKS * topology.links**2 // topology.npus
    return looks <= _MOST_LOOKS and why_not_periodic(topology, demands) is None


def why_not_periodic(topology: Topology, demands: Sequence[Collective]) -> str | None:
    """Why there are no periodic trees for these collectives; None if there are."""
    if len(demands) > 1:
        return "plans one collective at a time"
    demand = demands[0]
    if demand.kind != "all-reduce":
        return f"plans all-reduce, not {demand.kind}"
    if len(demand.group) != len(topology.members):  # they are there: that has been checked
        return "plans collectives of all NPUs"
    if demand.ranks < 2 or topology.links == 0:
        return "plans networks of two NPUs or more, and links between them"
    if topology.switches:
        return "plans networks without switches"
    if np.ptp(topology.bandwidth) or np.ptp(topology.latency):
        return "plans networks whose links are all alike"
    return None


def plan_periodic(
    topology: Topology, settings: Settings, demands: Sequence[Collective]
) -> Algorithm:
    """Trees found by the core, and the chunks shared out among them.

    Raises
    ------
    InputError
        There are none for this collective on this network.
    UnreachableError
        Some NPU cannot be reached.
    """
    reason = why_not_periodic(topology, demands)
    if reason is not None:
        raise InputError(f"method periodic {reason}; use auto")
    demand = demands[0]
    each = _BYTES_TRIED * (settings.threads + 1) + _BYTES_KEPT
    needed = topology.links * _ROWS_A_LINK * each
    check_fits(f"{demand.kind} on {topology.name} by periodic trees", needed)
    push = int(_core.serialization(demand.largest_chunk, topology.bandwidth[:1]).sum())
    latency = int(topology.latency[:1].sum())
    held = push + (latency if settings.cost.latency_model == "blocking" else 0)
    made = [
        Algorithm(
            (demand,),
            _trees(topology, settings, demand, slot, lag),
            topology,
            cost=settings.cost,
            provenance={"method": "periodic"},
        )
        for slot, lag in _slots(held, push + latency)
    ]
    best = min(made, key=lambda algorithm: algorithm.time)
    if len(best) == 0:
        raise unreachable(topology, demand.chunks)
    return best


def _slots(held: int, duration: int) -> list[tuple[int, int]]:
    """Lengths of a slot, and how many a hop takes: links that never wait, or hops that do not."""
    lag = -(-duration // max(held, 1))
    slots = [(held, lag)]
    if lag > 1 and lag * held > duration:
        slots.append((-(-duration // (lag - 1)), lag - 1))
    return slots


def _trees(
    topology: Topology, settings: Settings, demand: Collective, slot: int, lag: int
) -> PeriodicRows:
    settings.tell("periodic", demand.chunk_count)
    period, offsets, link, slots, reduce, counts = _core.plan_periodic(
        topology.core,
        topology.members,
        lag,
        len(demand.chunks),
        settings.seed,
        settings.threads,
        settings.progress,
    )
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return PeriodicRows(period * slot, first, offsets, link, reduce.view(np.bool_), slots * slot)
