"""The main job in one call: synthesize, verify, bound."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from weft.algorithm import Algorithm
from weft.bounds import Bound, demand_bound, lower_bound
from weft.collective import Collective
from weft.cost import CostModel, LatencyModel, Switching
from weft.errors import InputError
from weft.judge import verify
from weft.planners import Attempt, is_file, produce
from weft.progress import ProgressHook, Tracker, run
from weft.result import Result
from weft.topology import Topology
from weft.topology.load import as_topology
from weft.units import parse_size


def synthesize(
    topology: Topology | str | os.PathLike[str],
    collective: str | Collective | Sequence[Collective],
    size: int | str | None = None,
    *,
    chunks: int | Sequence[int | None] | None = None,
    group: Sequence[int] | None = None,
    root: int | None = None,
    relay: bool = True,
    seed: int = 0,
    trials: int = 1,
    threads: int | None = None,
    latency_model: LatencyModel = "pipelined",
    switching: Switching = "cut-through",
    alignment: int = 16,
    progress: ProgressHook | Tracker | None = None,
    method: str = "auto",
    scratch: str | Path | None = None,
) -> Result:
    """Synthesize an algorithm for collectives on a network; verify it; bound it.

    Parameters
    ----------
    topology
        The network, or what `weft.load_topology` takes, such as ``mesh:8x8``.
    collective
        Name of the pattern, such as ``all-reduce``; or a `weft.Collective`; or several, which
        run at the same time over the same links.
    size
        With a name: the largest buffer on one NPU, as nccl-tests counts it: bytes, or a text
        such as ``64MiB``.
    chunks
        In how many chunks to cut each NPU's share (of each collective, if a sequence); by
        default, or where None, a choice that weighs α against bandwidth.
    group
        With a name: NPUs that take part, in order of rank; by default all.
    root
        With a name: NPU that sends or receives, for patterns with a root; by default the
        group's first.
    relay
        With a name: whether NPUs outside the group may pass chunks on.
    seed, trials, threads
        Same seed, same result, on any number of threads. The best of `trials` seeds is kept.
    latency_model, switching
        See `weft.CostModel`.
    alignment
        With a name: chunk boundaries fall on multiples of this many bytes.
    progress
        Is called some ten times a second with a `weft.Progress`; what it raises ends the search.
    method
        A key of `weft.planners.PLANNERS`, such as ``by-level`` or ``ring``, to use that method
        only; ``auto`` for the best of those that fit. Or a file with an algorithm of one's own:
        see `weft.own`.
    scratch
        Folder for rows that are too many for memory, by default the system's for temporary
        files. `Result.save` into the same file system need not copy them.

    Examples
    --------
    >>> import weft
    >>> result = weft.synthesize("ring:8", "all-gather", "1MiB")
    >>> result.verified
    True
    """
    cost = CostModel(latency_model, switching)

    def work(report: Tracker) -> Result:
        network = as_topology(topology)
        asked = demands_of(network, collective, size, group, root, relay, alignment)
        demands, choose = chunked(asked, chunks)
        began, tried = time.perf_counter(), list[Attempt]()
        algorithm = made_by(
            method,
            network,
            demands,
            choose,
            cost,
            seed=seed,
            trials=trials,
            threads=threads,
            progress=report,
            scratch=None if scratch is None else Path(scratch),
            tried=tried,
        )
        if is_file(method):
            said = {"seed": seed, "trials": trials, **algorithm.provenance}
            algorithm = replace(algorithm, provenance=said)
        seconds = time.perf_counter() - began
        report.enter("verifying")
        verdict = verify(algorithm, progress=report)
        report.enter("bounding")
        return Result(algorithm, verdict, bound_of(algorithm), seconds, tuple(tried))

    return run(work, progress)


def plain_for(user: str, topology: Topology) -> tuple[Topology, str]:
    """The network for those who let no switch copy or add, and why; "" where none could."""
    if topology.plain is topology:
        return topology, ""
    plain = replace(topology.plain, changes=(*topology.changes, "with plain switches"))
    taken = f"switches of {topology.title} are taken as plain"
    return plain, f"{user} let no switch copy or add, so {taken}"


def cost_of_plain(topology: Topology, algorithm: Algorithm) -> float:
    """How many times as long an algorithm takes as any can on the network as it is, at most."""
    demands, cost = algorithm.demands, algorithm.cost or CostModel()
    chunks = algorithm.chunks
    least = demand_bound(topology, demands[0], cost) if len(demands) == 1 else None
    ideal = (least or lower_bound(topology, chunks, cost)).ideal
    return algorithm.time / max(ideal, 1)


def made_by(
    method: str,
    topology: Topology,
    demands: Sequence[Collective],
    choose_chunks: Sequence[bool],
    cost: CostModel,
    **search: Any,
) -> Algorithm:
    """What a planner makes of the demands, or what a file has for them."""
    if is_file(method):
        from weft.own import own_algorithm  # loads every format

        return own_algorithm(method, topology, demands, choose_chunks=choose_chunks, cost=cost)
    how = {"method": method, "choose_chunks": choose_chunks, "cost": cost, **search}
    return produce(topology, demands, **how)


def demands_of(
    topology: Topology,
    collective: str | Collective | Sequence[Collective],
    size: int | str | None = None,
    group: Sequence[int] | None = None,
    root: int | None = None,
    relay: bool = True,
    alignment: int = 16,
) -> list[Collective]:
    """The collectives that arguments like those of `synthesize` stand for, one chunk per share."""
    if isinstance(collective, str):
        if size is None:
            raise InputError(f"{collective} needs a size")
        members = topology.members.tolist() if group is None else group
        return [Collective.of(collective, members, parse_size(size), 1, root, alignment, relay)]
    if (size, group, root, relay) != (None, None, None, True):
        raise InputError("size, group, root and relay go with a collective's name")
    return [collective] if isinstance(collective, Collective) else list(collective)


def chunked(
    demands: Sequence[Collective], chunks: int | Sequence[int | None] | None
) -> tuple[list[Collective], list[bool]]:
    """The demands cut as asked, and for each whether its number of chunks is to be chosen."""
    if not demands:
        raise InputError("there is no collective to synthesize")
    counts = list(chunks) if isinstance(chunks, Sequence) else [chunks] * len(demands)
    if len(counts) != len(demands):
        raise InputError(f"there are {len(counts)} chunk counts for {len(demands)} collectives")
    given = [1 if count is None else count for count in counts]
    cut = [replace(one, chunks_per_share=k) for one, k in zip(demands, given, strict=True)]
    return cut, [count is None for count in counts]


def bound_of(algorithm: Algorithm) -> Bound:
    """The lower bound for what a timed algorithm does, searched no further than its own time."""
    if algorithm.topology is None or algorithm.cost is None:
        raise InputError("an algorithm that was not made for a network has no bound")
    topology, cost, enough = algorithm.topology, algorithm.cost, algorithm.time
    if len(algorithm.demands) == 1:
        return demand_bound(topology, algorithm.demands[0], cost, enough=enough)
    return lower_bound(topology, algorithm.chunks, cost, enough=enough)
