"""Planners: from a network and collectives to an algorithm, through one portfolio."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from weft import _core
from weft.algorithm import Algorithm
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import InputError
from weft.planners.attempts import Attempt
from weft.planners.planner import PLANNERS, Planner, is_file, method_names
from weft.planners.portfolio import MAX_SEED, solve
from weft.planners.problem import AUTO, Problem, Task
from weft.topology.model import Topology

__all__ = [
    "PLANNERS",
    "Attempt",
    "Planner",
    "Problem",
    "Task",
    "is_file",
    "method_names",
    "produce",
]

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
    method: str = AUTO,
    scratch: Path | None = None,
    tried: list[Attempt] | None = None,
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
        any number of threads; by default one per core.
    progress
        Tells another thread how far the work is, and takes its word to give up.
    method
        A key of `PLANNERS`: the only one to use, or ``auto`` for the best of those that fit.
    scratch
        Folder for rows that are too many for memory; None for the system's.
    tried
        A list to which every planner's turn is added.

    Raises
    ------
    UnreachableError
        If some chunk has no path to where it must go.
    """
    threads = os.cpu_count() or 1 if threads is None else threads
    for name, value, least, most in (
        ("seed", seed, 0, MAX_SEED),
        ("trials", trials, 1, MAX_TRIALS),
        ("threads", threads, 1, MAX_THREADS),
    ):
        if not least <= value <= most:
            raise InputError(f"{name} {value} is out of range; expected {least} to {most}")
    if method != AUTO:
        PLANNERS.find(method)
    for demand in demands:
        topology.check_members(demand.group)
    problem = Problem(
        Task(topology, tuple(demands), cost or CostModel()),
        tuple(choose_chunks or ()),
        method,
        seed,
        threads,
        progress or _core.Progress(),
        scratch,
        tried=[] if tried is None else tried,
    )
    best = solve(problem, trials)
    return replace(best, provenance={**best.provenance, "seed": seed, "trials": trials})
