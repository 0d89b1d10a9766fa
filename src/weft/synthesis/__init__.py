"""Producers: from a network and a collective to an algorithm, with one entry for all methods."""

from __future__ import annotations

import os

import numpy as np

from weft import _core
from weft.algorithm import Algorithm, Routes, Transfers
from weft.collective import Chunks, Collective
from weft.cost import CostModel
from weft.errors import InputError
from weft.synthesis.chunking import best_chunking
from weft.synthesis.engines import Settings, method_of, plan
from weft.synthesis.schedule import Schedule, transfers_of, twin_links
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
        return _all_reduce(topology, collective, settings)
    if chunks.reduce.any() or collective.kind == "gather":
        schedule = _backwards(topology, chunks, settings)
    else:
        schedule = plan(topology, chunks, settings)
    transfers, routes = transfers_of([schedule], topology, settings.cost, chunks.bytes)
    return transfers, routes, method_of(chunks)


def _mirrored(chunks: Chunks) -> Chunks:
    """The chunks a reduction (or a gather) has when run backwards: copies from taker to givers."""
    return Chunks(
        chunks.bytes,
        chunks.offset,
        chunks.post,
        chunks.pre,
        np.zeros_like(chunks.reduce),
        chunks.set_offsets,
        chunks.set_members,
    )


def _backwards(topology: Topology, chunks: Chunks, settings: Settings) -> Schedule:
    """A sum for one taker: spread from the taker over the links turned round, run backwards."""
    spread = plan(topology.reversed(), _mirrored(chunks), settings)
    summed = spread.backwards()
    return summed if chunks.reduce.any() else summed.as_copies()


def _all_reduce(
    topology: Topology, collective: Collective, settings: Settings
) -> tuple[Transfers, Routes, str]:
    """Reduce-Scatter, then All-Gather. Where every link has a twin, one plan serves for both."""
    shares = (collective.group, collective.size, collective.chunks_per_share)
    gathered = Collective.of("all-gather", *shares, alignment=collective.alignment).chunks
    gather = plan(topology, gathered, settings)
    twin = twin_links(topology)
    if twin is not None:
        scatter = gather.backwards(twin)
    else:
        scattered = Collective.of("reduce-scatter", *shares, alignment=collective.alignment).chunks
        scatter = _backwards(topology, scattered, settings)
    transfers, routes = transfers_of(
        [scatter, gather], topology, settings.cost, collective.chunks.bytes
    )
    return transfers, routes, method_of(gathered)
