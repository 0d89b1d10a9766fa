"""From demands to an algorithm: which plan for which chunks, forwards or backwards."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from weft.algorithm import Algorithm
from weft.collective import Chunks, Collective
from weft.synthesis.engines import Settings, plan, plan_any
from weft.synthesis.reductions import all_reduce, backwards
from weft.synthesis.schedule import Schedule, transfers_of
from weft.topology.model import Topology


def planned(topology: Topology, settings: Settings, demands: Sequence[Collective]) -> Algorithm:
    """One plan for all chunks of the demands together."""
    chunks = Chunks.concatenate([demand.chunks for demand in demands])
    phases, method = _phases(topology, settings, demands, chunks)
    transfers, routes = transfers_of(phases, topology, settings.cost, chunks.bytes)
    made_by = MappingProxyType({"method": method})
    return Algorithm(tuple(demands), transfers, topology, routes, settings.cost, made_by)


def _phases(
    topology: Topology, settings: Settings, demands: Sequence[Collective], chunks: Chunks
) -> tuple[list[Schedule], str]:
    """Schedules one after the other, chunk by chunk, and the method's name."""
    if all(demand.kind == "all-reduce" for demand in demands):
        return all_reduce(topology, demands, settings)
    if all(demand.kind == "gather" for demand in demands):
        schedule, method = backwards(topology, chunks, settings)
    elif not chunks.reduce.any():
        schedule, method = plan(topology, chunks, settings)
    elif chunks.reduce.all() and _has_one_taker_each(chunks):
        schedule, method = backwards(topology, chunks, settings)
    else:
        schedule, method = plan_any(topology, chunks, settings)
    return [schedule], method


def _has_one_taker_each(chunks: Chunks) -> bool:
    return bool((np.diff(chunks.set_offsets)[chunks.post] == 1).all())
