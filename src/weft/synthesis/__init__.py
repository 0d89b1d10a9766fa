"""Producers: from a network and a collective to an algorithm, with one entry for all methods."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from weft import _core
from weft.algorithm import Algorithm
from weft.baselines import BASELINES
from weft.clock import check_clock
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import InputError
from weft.synthesis.chunking import best_chunking
from weft.synthesis.classical import best_known, plan_classical
from weft.synthesis.engines import METHODS, Settings
from weft.synthesis.mending import can_mend
from weft.synthesis.planning import planned, searched, worth_searching
from weft.synthesis.symmetric import best_symmetric, check_symmetric, is_symmetric
from weft.synthesis.together import planned_together
from weft.threads import in_threads
from weft.topology.model import Topology

__all__ = ["METHODS", "produce"]

MAX_SEED = 2**63 - 1
MAX_TRIALS = 1_000_000
MAX_THREADS = 1024


def produce(
    topology: Topology,
    demands: Sequence[Collective],
    *,
    choose_chunks: Sequence[bool] | None = None,
    cost: CostModel | None = None,
    seed: int = 0,
    trials: int = 1,
    threads: int | None = None,
    progress: _core.Progress | None = None,
    method: str = "auto",
    scratch: Path | None = None,
) -> Algorithm:
    """Synthesize one algorithm for all demands, which run at the same time.

    Parameters
    ----------
    choose_chunks
        For each demand: choose `Collective.chunks_per_share` for the least time, instead of
        taking it as given; by default none.
    cost
        Cost model; pipelined and cut-through by default.
    seed, trials, threads
        Seeds to try, from `seed` on; the first of the best is kept. Same seeds, same result, on
        any number of threads; by default one a core.
    progress
        Tells another thread how far the work is, and takes its word to give up.
    method
        One of `METHODS`: the only one to use, or ``auto`` for the best of those that fit.
    scratch
        Folder for rows that are too many for memory; None for the system's.

    Raises
    ------
    UnreachableError
        If some chunk has no path to where it must go.
    """
    cost = cost or CostModel()
    threads = os.cpu_count() or 1 if threads is None else threads
    _check_settings(seed, trials, threads)
    for demand in demands:
        topology.check_members(demand.group)
    alike = method in ("auto", "symmetric") and (
        is_symmetric(topology, demands) or can_mend(topology, demands)
    )
    check_clock(topology, demands, alike=alike)
    workers = min(threads, trials)
    settings = Settings(
        cost, seed, threads // workers, progress or _core.Progress(), method, scratch
    )
    choose = choose_chunks or [False] * len(demands)
    jobs = list(zip(demands, choose, strict=True))

    def attempt(number: int) -> Algorithm:
        alone = number == 0 or workers == 1
        mine = replace(settings, seed=(seed + number) & MAX_SEED, one_of_several=not alone)
        best = _attempt(topology, mine, jobs)
        if topology.copying:  # copies can be in the way of what is wanted more
            plain = _attempt(topology.with_switches(copying=()), mine, jobs)
            best = min(best, replace(plain, topology=topology), key=lambda found: found.time)
        return best

    best = attempt(0)
    for first in range(1, trials, workers):
        batch = range(first, min(first + workers, trials))
        settings.progress.enter(f"planning (trials {first + 1} to {batch[-1] + 1} of {trials})")
        tried = in_threads(attempt, batch, workers)
        best = min([best, *tried], key=lambda algorithm: algorithm.time)
    if method == "auto":
        best = best_known(topology, replace(settings, threads=threads), jobs, best)
    return replace(best, provenance={**best.provenance, "seed": seed, "trials": trials})


def _check_settings(seed: int, trials: int, threads: int) -> None:
    for name, value, least, most in (
        ("seed", seed, 0, MAX_SEED),
        ("trials", trials, 1, MAX_TRIALS),
        ("threads", threads, 1, MAX_THREADS),
    ):
        if not least <= value <= most:
            raise InputError(f"{name} {value} is out of range; expected {least} to {most}")


def _attempt(
    topology: Topology, settings: Settings, demands: Sequence[tuple[Collective, bool]]
) -> Algorithm:
    """The algorithm of one seed; each demand says whether its chunk count is to be chosen."""
    if settings.method in BASELINES:
        return plan_classical(topology, settings, demands, settings.method)
    if len(demands) > 1:
        return planned_together(topology, settings, demands)

    demand, choose = demands[0]
    return _chosen(topology, settings, demand) if choose else planned(topology, settings, [demand])


def _chosen(topology: Topology, settings: Settings, demand: Collective) -> Algorithm:
    """The algorithm with the best number of chunks."""
    mendable = settings.method in ("auto", "symmetric") and can_mend(topology, [demand])

    def plan_one(option: Collective) -> Algorithm:
        return (planned if mendable else searched)(topology, settings, [option])

    if mendable:
        return best_chunking(topology, demand, settings.cost, plan_one)
    check_symmetric(topology, [demand], settings)
    if settings.method not in ("auto", "symmetric") or not is_symmetric(topology, [demand]):
        return best_chunking(topology, demand, settings.cost, plan_one)
    alike, floor = best_symmetric(topology, demand, settings)
    if settings.method == "symmetric" or not worth_searching(topology, alike, floor):
        return alike
    other = best_chunking(topology, demand, settings.cost, plan_one)
    return alike if alike.time <= other.time else other
