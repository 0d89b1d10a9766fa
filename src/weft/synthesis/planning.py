"""From demands to an algorithm: which plan for which chunks, forwards or backwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from weft.algorithm import Algorithm
from weft.baselines import baseline
from weft.bound import quick_bound
from weft.clock import check_clock, fits_clock
from weft.collective import Chunks, Collective
from weft.memory import check_table
from weft.reachability import check_first_chunk
from weft.synthesis.engines import Settings, plan, plan_any
from weft.synthesis.mending import can_mend, plan_mended
from weft.synthesis.periodic import plan_periodic, suits_periodic
from weft.synthesis.reductions import all_reduce, backwards
from weft.synthesis.rounds import plan_rounds, suits_rounds
from weft.synthesis.schedule import Schedule, transfers_of
from weft.synthesis.symmetric import (
    check_symmetric,
    is_symmetric,
    plan_symmetric,
    symmetric_floor,
)
from weft.topology.model import Topology

# More methods are tried where the first leaves more than this between it and its goal; of small
# plans, and of large ones.
_CLOSE, _CLOSE_ENOUGH = 1.01, 1.03
# Plans are small up to so many chunks, each for so many NPUs; beyond the other nothing is tried.
_FEW_DELIVERIES, _MOST_DELIVERIES = 1 << 13, 1 << 17
_MOST_SEARCHED = 1 << 22  # transfers: beyond, nothing is tried beside a symmetric plan
# A plan by rounds or periodic trees is held against others if it leaves more than this.
_NEAR = 1.005
# Of these large plans have been tried by trees already.
_BY_TREES = ("all-reduce", "broadcast", "reduce")


def planned(topology: Topology, settings: Settings, demands: Sequence[Collective]) -> Algorithm:
    """One plan for all chunks of the demands together: the best of those worth trying."""
    if settings.method in ("auto", "symmetric") and can_mend(topology, demands):
        return _mended(topology, settings, demands[0])
    check_symmetric(topology, demands, settings)
    if settings.method not in ("auto", "symmetric") or not is_symmetric(topology, demands):
        return searched(topology, settings, demands)
    alike = plan_symmetric(topology, demands[0], settings)
    floor = symmetric_floor(topology, demands[0], settings.cost)
    if settings.method == "symmetric" or not worth_searching(topology, alike, floor):
        return alike
    other = searched(topology, settings, demands)
    return alike if alike.time <= other.time else other


def _mended(topology: Topology, settings: Settings, demand: Collective) -> Algorithm:
    """A plan from before failures with a patch, or a new one: whichever ends first."""
    mended = plan_mended(topology, demand, settings)
    if mended is not None and settings.method == "symmetric":
        return mended
    auto = replace(settings, method="auto")
    large = mended is not None and len(mended) > _MOST_SEARCHED
    if not large:
        if mended is not None and not fits_clock(topology, [demand]):
            return mended
        check_clock(topology, [demand])  # so far only for what one NPU does
        other = searched(topology, auto, [demand])
    elif suits_periodic(topology, [demand]):
        other = plan_periodic(topology, auto, [demand])
    else:
        assert mended is not None
        return mended
    return other if mended is None or other.time < mended.time else mended


def worth_searching(topology: Topology, alike: Algorithm, floor: float) -> bool:
    """Whether to look for something better than a symmetric plan, which nothing below `floor` is.

    If it would be a very large plan there is no point in it, and neither is there in a little gain
    for much work.
    """
    demand = alike.demands[0]
    work = demand.chunk_count * topology.npus
    if demand.pattern.own_buffers:
        work = len(alike)
    close = 1.0 if work <= _MOST_DELIVERIES else _CLOSE
    return work <= _MOST_SEARCHED and alike.time > floor * close and fits_clock(topology, [demand])


def searched(topology: Topology, settings: Settings, demands: Sequence[Collective]) -> Algorithm:
    """The same without what only networks have that look alike from every NPU."""
    check_first_chunk(topology, demands[0])
    if settings.method == "rounds":
        return plan_rounds(topology, settings, demands)
    if settings.method == "periodic":
        return plan_periodic(topology, settings, demands)
    if settings.method != "auto" or not suits_rounds(topology, settings, demands):
        return _listed(topology, settings, demands)
    first = _compact(topology, settings, demands)
    if len(first) > _MOST_SEARCHED:
        return first
    if first.time <= quick_bound(topology, demands[0].chunks, settings.cost) * _NEAR:
        return first
    listed = _listed(topology, settings, demands)
    return first if first.time <= listed.time else listed


def _compact(topology: Topology, settings: Settings, demands: Sequence[Collective]) -> Algorithm:
    """By rounds; or an All-Reduce by periodic trees, where its two halves cannot be as good."""
    if not suits_periodic(topology, demands):
        return plan_rounds(topology, settings, demands)
    by_trees = plan_periodic(topology, settings, demands)
    half = replace(demands[0], kind="all-gather")
    if by_trees.time <= 2 * quick_bound(topology, half.chunks, settings.cost):
        return by_trees
    by_rounds = plan_rounds(topology, settings, demands)
    return by_rounds if by_rounds.time <= by_trees.time else by_trees


def _listed(topology: Topology, settings: Settings, demands: Sequence[Collective]) -> Algorithm:
    """The same as a table of transfers."""
    chunks = Chunks.concatenate([demand.chunks for demand in demands])
    deliveries = _deliveries(chunks)
    check_table(deliveries - len(chunks))
    first = timed(topology, settings, demands, *_phases(topology, settings, demands, chunks))
    if settings.method != "auto" or deliveries > _MOST_DELIVERIES:
        return first
    few = deliveries <= _FEW_DELIVERIES
    if not few and len(demands) == 1 and demands[0].kind in _BY_TREES:
        return first
    close = _CLOSE if few else _CLOSE_ENOUGH
    if first.time <= quick_bound(topology, chunks, settings.cost) * close:
        return first
    others = _others(topology, settings, demands, chunks, str(first.provenance["method"]))
    return min([first, *others], key=lambda algorithm: algorithm.time)


def _others(
    topology: Topology,
    settings: Settings,
    demands: Sequence[Collective],
    chunks: Chunks,
    tried: str,
) -> Iterator[Algorithm]:
    """What another method makes of it."""
    if tried != "steiner":
        schedule, method = plan_any(topology, chunks, settings)
        yield timed(topology, settings, demands, [schedule], method)
    if chunks.are_pairs:
        yield baseline("direct", topology, demands, settings.cost)


def timed(
    topology: Topology,
    settings: Settings,
    demands: Sequence[Collective],
    phases: Sequence[Schedule],
    method: str,
) -> Algorithm:
    """The algorithm that schedules make, one after the other, with exact times."""
    sizes = np.concatenate([demand.chunks.bytes for demand in demands])
    transfers, routes = transfers_of(phases, topology, settings.cost, sizes)
    made_by = {"method": method}
    return Algorithm(tuple(demands), transfers, topology, routes, settings.cost, made_by)


def _phases(
    topology: Topology, settings: Settings, demands: Sequence[Collective], chunks: Chunks
) -> tuple[list[Schedule], str]:
    """Schedules one after the other, chunk by chunk, and the method's name."""
    suits = settings.method != "auto" or _is_even(chunks)
    # Else there are no shares to scatter; trees do without.
    in_shares = settings.method == "trees" or all(demand.parts is None for demand in demands)
    if settings.method == "steiner":
        schedule, method = plan_any(topology, chunks, settings)
    elif suits and all(demand.kind == "all-reduce" for demand in demands) and in_shares:
        return all_reduce(topology, demands, settings)
    elif all(demand.kind == "gather" for demand in demands) or (suits and _sums_for_one(chunks)):
        schedule, method = backwards(topology, chunks, settings)
    elif not chunks.reduce.any() and (chunks.are_pairs or suits):
        schedule, method = plan(topology, chunks, settings)
    else:
        settings.insist("steiner", "sums for several takers, or sums beside copies")
        schedule, method = plan_any(topology, chunks, settings)
    return [schedule], method


def _is_even(chunks: Chunks) -> bool:
    """Whether slots of one length for all chunks lose little."""
    return int(chunks.bytes.sum()) >= 0.95 * chunks.largest * len(chunks)


def _sums_for_one(chunks: Chunks) -> bool:
    """Whether all are sums, for one taker each."""
    return bool(chunks.reduce.all() and (chunks.set_sizes[chunks.post] == 1).all())


def _deliveries(chunks: Chunks) -> int:
    """How often a chunk must reach a taker, or a part of a sum its taker."""
    sizes = chunks.set_sizes
    contributors = np.where(chunks.reduce, sizes[chunks.pre], 1)
    return int((contributors + sizes[chunks.post]).sum())
