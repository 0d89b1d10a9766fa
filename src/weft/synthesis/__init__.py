"""Producers: from a network and a collective to an algorithm, with one entry for all methods."""

from __future__ import annotations

import os

from weft import _core
from weft.algorithm import Algorithm, Routes, Transfers
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import InputError
from weft.synthesis.chunking import best_chunking
from weft.synthesis.engines import Settings, plan
from weft.synthesis.reductions import all_reduce, backwards
from weft.synthesis.schedule import transfers_of
from weft.topology.model import Topology

__all__ = ["produce"]


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
    seed, trials, threads, progress
        See `weft.synthesis.engines.Settings`; by default a thread a core.

    Raises
    ------
    UnreachableError
        If some chunk has no path to where it must go.
    """
    settings = Settings(
        cost or CostModel(),
        seed,
        trials,
        os.cpu_count() or 1 if threads is None else threads,
        progress or _core.Progress(),
    )
    _check(topology, collective, settings)

    def with_chunks_of(demand: Collective) -> Algorithm:
        transfers, routes, method = _produce(topology, demand, settings)
        provenance: dict[str, str | int | float | bool] = {
            "method": method,
            "seed": seed,
            "trials": trials,
        }
        return Algorithm((demand,), transfers, topology, routes, settings.cost, provenance)

    if choose_chunks:
        return best_chunking(topology, collective, settings.cost, with_chunks_of)
    return with_chunks_of(collective)


def _check(topology: Topology, collective: Collective, settings: Settings) -> None:
    topology.check_members(collective.group)
    if settings.trials < 1 or settings.threads < 1:
        raise InputError("trials and threads must be at least 1")
    if not 0 <= settings.seed < 2**63:
        raise InputError(f"seed {settings.seed} is out of range; expected 0 to 2^63 - 1")


def _produce(
    topology: Topology, collective: Collective, settings: Settings
) -> tuple[Transfers, Routes, str]:
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
    return transfers, routes, method
