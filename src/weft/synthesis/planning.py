"""From demands to an algorithm: which plan for which chunks, forwards or backwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.algorithm import Algorithm
from weft.bound import quick_bound
from weft.collective import Chunks, Collective
from weft.synthesis.engines import Settings, plan, plan_any
from weft.synthesis.reductions import all_reduce, backwards
from weft.synthesis.schedule import Schedule, transfers_of
from weft.topology.model import Topology

# Steiner trees are tried where another method leaves more than this between it and its goal,
_CLOSE = 1.01
# and where there are no more chunks, each for so many NPUs, than this.
_MOST_DELIVERIES = 1 << 18


def planned(topology: Topology, settings: Settings, demands: Sequence[Collective]) -> Algorithm:
    """One plan for all chunks of the demands together: the better of two where they differ."""
    chunks = Chunks.concatenate([demand.chunks for demand in demands])
    first = _algorithm(topology, settings, demands, chunks, *_phases(topology, settings, demands))
    goal = quick_bound(topology, chunks, settings.cost)
    if first.provenance["method"] == "steiner" or first.time <= goal * _CLOSE:
        return first
    if _deliveries(chunks) > _MOST_DELIVERIES:
        return first
    schedule, method = plan_any(topology, chunks, settings)
    second = _algorithm(topology, settings, demands, chunks, [schedule], method)
    return min(first, second, key=lambda algorithm: algorithm.time)


def _algorithm(
    topology: Topology,
    settings: Settings,
    demands: Sequence[Collective],
    chunks: Chunks,
    phases: Sequence[Schedule],
    method: str,
) -> Algorithm:
    transfers, routes = transfers_of(phases, topology, settings.cost, chunks.bytes)
    made_by = {"method": method}
    return Algorithm(tuple(demands), transfers, topology, routes, settings.cost, made_by)


def _phases(
    topology: Topology, settings: Settings, demands: Sequence[Collective]
) -> tuple[list[Schedule], str]:
    """Schedules one after the other, chunk by chunk, and the method's name."""
    chunks = Chunks.concatenate([demand.chunks for demand in demands])
    if all(demand.kind == "all-reduce" for demand in demands) and _is_even(chunks):
        return all_reduce(topology, demands, settings)
    if all(demand.kind == "gather" for demand in demands):
        schedule, method = backwards(topology, chunks, settings)
    elif not chunks.reduce.any() and (_are_pairs(chunks) or _is_even(chunks)):
        schedule, method = plan(topology, chunks, settings)
    elif chunks.reduce.all() and _has_one_taker_each(chunks) and _is_even(chunks):
        schedule, method = backwards(topology, chunks, settings)
    else:
        schedule, method = plan_any(topology, chunks, settings)
    return [schedule], method


def _is_even(chunks: Chunks) -> bool:
    """Whether slots of one length for all chunks lose little."""
    largest = int(chunks.bytes.max(initial=1))
    return int(chunks.bytes.sum()) >= 0.95 * largest * len(chunks)


def _are_pairs(chunks: Chunks) -> bool:
    """Whether every chunk goes from one NPU to one other."""
    alone = np.diff(chunks.set_offsets) == 1
    return bool(alone[chunks.pre].all() and alone[chunks.post].all())


def _has_one_taker_each(chunks: Chunks) -> bool:
    return bool((np.diff(chunks.set_offsets)[chunks.post] == 1).all())


def _deliveries(chunks: Chunks) -> int:
    """How often a chunk must reach a taker, or a part of a sum its taker."""
    sizes = np.diff(chunks.set_offsets)
    contributors = np.where(chunks.reduce, sizes[chunks.pre], 1)
    return int((contributors + sizes[chunks.post]).sum())
