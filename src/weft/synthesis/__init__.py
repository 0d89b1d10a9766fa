"""Producers: from a network and a collective to an algorithm, with one entry for all methods."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from weft import _core
from weft.algorithm import Algorithm
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import InputError
from weft.synthesis.chunking import best_chunking
from weft.synthesis.clock import check_clock
from weft.synthesis.engines import Settings, plan
from weft.synthesis.reductions import all_reduce, backwards
from weft.synthesis.schedule import transfers_of
from weft.topology.model import Topology

__all__ = ["produce"]

MAX_SEED = 2**63 - 1
MAX_TRIALS = 1_000_000
MAX_THREADS = 1024


def produce(
    topology: Topology,
    collective: Collective,
    *,
    choose_chunks: bool = False,
    cost: CostModel | None = None,
    seed: int = 0,
    trials: int = 1,
    threads: int | None = None,
    progress: _core.Progress | None = None,
) -> Algorithm:
    """Synthesize an algorithm for one collective.

    Parameters
    ----------
    choose_chunks
        Choose `Collective.chunks_per_share` for the least time, instead of taking it as given.
    cost
        Cost model; pipelined and cut-through by default.
    seed, trials, threads
        Seeds to try, from `seed` on; the first of the best is kept. Same seeds, same result, on
        any number of threads; by default one a core.
    progress
        Tells another thread how far the work is, and takes its word to give up.

    Raises
    ------
    UnreachableError
        If some chunk has no path to where it must go.
    """
    cost = cost or CostModel()
    threads = os.cpu_count() or 1 if threads is None else threads
    _check_settings(seed, trials, threads)
    topology.check_members(collective.group)
    check_clock(topology, collective)
    workers = min(threads, trials)
    settings = Settings(cost, seed, threads // workers, progress or _core.Progress())

    def make(network: Topology, mine: Settings) -> Algorithm:
        if choose_chunks:
            return best_chunking(network, collective, cost, partial(_produce, network, mine))
        return _produce(network, mine, collective)

    def attempt(number: int) -> Algorithm:
        mine = replace(settings, seed=(seed + number) & MAX_SEED)
        best = make(topology, mine)
        if topology.copying:  # copies can be in the way of what is wanted more
            plain = replace(make(topology.with_switches(copying=()), mine), topology=topology)
            best = min(best, plain, key=lambda algorithm: algorithm.time)
        return best

    with ThreadPoolExecutor(workers) as pool:
        best = attempt(0)
        for first in range(1, trials, workers):
            batch = range(first, min(first + workers, trials))
            best = min([best, *pool.map(attempt, batch)], key=lambda algorithm: algorithm.time)
    return replace(best, provenance={**best.provenance, "seed": seed, "trials": trials})


def _check_settings(seed: int, trials: int, threads: int) -> None:
    for name, value, least, most in (
        ("seed", seed, 0, MAX_SEED),
        ("trials", trials, 1, MAX_TRIALS),
        ("threads", threads, 1, MAX_THREADS),
    ):
        if not least <= value <= most:
            raise InputError(f"{name} {value} is out of range; expected {least} to {most}")


def _produce(topology: Topology, settings: Settings, collective: Collective) -> Algorithm:
    chunks = collective.chunks
    if collective.kind == "all-reduce":
        phases, method = all_reduce(topology, collective, settings)
    elif chunks.reduce.any() or collective.kind == "gather":
        schedule, method = backwards(topology, chunks, settings)
        phases = [schedule]
    else:
        schedule, method = plan(topology, chunks, settings)
        phases = [schedule]
    transfers, routes = transfers_of(phases, topology, settings.cost, chunks.bytes)
    made_by = MappingProxyType({"method": method})
    return Algorithm((collective,), transfers, topology, routes, settings.cost, made_by)
