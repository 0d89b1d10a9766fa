"""The main job in one call: synthesize, verify, bound."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from weft import _core
from weft.algorithm import Algorithm
from weft.bound import Bound, lower_bound
from weft.collective import PATTERNS, Collective
from weft.cost import CostModel, LatencyModel, Switching
from weft.errors import InputError, unknown_name
from weft.result import Result
from weft.synthesis import produce
from weft.topology import Topology, load_topology
from weft.units import parse_size
from weft.verify import verify


def synthesize(
    topology: Topology | str,
    collective: str,
    size: int | str,
    *,
    chunks: int | None = None,
    group: Sequence[int] | None = None,
    root: int | None = None,
    seed: int = 0,
    trials: int = 1,
    threads: int | None = None,
    latency_model: LatencyModel = "pipelined",
    switching: Switching = "cut-through",
    alignment: int = 16,
    progress: _core.Progress | None = None,
) -> Result:
    """Synthesize an algorithm for a collective on a network; verify it; bound it.

    Parameters
    ----------
    topology
        The network, or what `weft.load_topology` takes, such as ``mesh:8x8``.
    collective
        Name of the pattern, such as ``all-reduce``.
    size
        Largest buffer on one NPU, as nccl-tests counts it: bytes, or a text such as ``64MiB``.
    chunks
        In how many chunks to cut each NPU's share; by default a choice that weighs α against
        bandwidth.
    group
        NPUs that take part, in order of rank; by default all.
    root
        NPU that sends or receives, for patterns with a root; by default the group's first.
    seed, trials, threads
        Same seed, same result, on any number of threads. The best of `trials` seeds is kept.
    latency_model, switching
        See `weft.CostModel`.
    alignment
        Chunk boundaries fall on multiples of this many bytes.

    Examples
    --------
    >>> import weft
    >>> result = weft.synthesize("ring:8", "all-gather", "1MiB")
    >>> result.verified
    True
    """
    if collective not in PATTERNS:
        raise unknown_name("collective", collective, PATTERNS)
    if isinstance(topology, str):
        topology = load_topology(topology)
    cost = CostModel(latency_model, switching)
    members = tuple(int(npu) for npu in (topology.members if group is None else group))
    bytes_ = parse_size(size)
    count = 1 if chunks is None else chunks
    demand = Collective(collective, members, bytes_, count, root, alignment)
    began = time.perf_counter()
    algorithm = produce(
        topology,
        demand,
        choose_chunks=chunks is None,
        cost=cost,
        seed=seed,
        trials=trials,
        threads=threads,
        progress=progress,
    )
    seconds = time.perf_counter() - began
    return Result(algorithm, verify(algorithm), bound_of(algorithm), seconds)


def bound_of(algorithm: Algorithm) -> Bound:
    """The lower bound for what a timed algorithm does, searched no further than its own time."""
    if algorithm.topology is None or algorithm.cost is None:
        raise InputError("an algorithm that was not made for a network has no bound")
    return lower_bound(algorithm.topology, algorithm.chunks, algorithm.cost, enough=algorithm.time)


def load(folder: str | Path) -> Algorithm:
    """Read back what `Algorithm.save` wrote: a folder of Chakra execution traces."""
    from weft.formats import chakra

    return chakra.load(Path(folder))
