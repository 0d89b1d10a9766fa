"""Running Chakra execution traces, one file per rank, on a network of Weft's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from weft import _core
from weft.cost import CostModel
from weft.documents import naming, read_whole
from weft.errors import InputError
from weft.formats.chakra import TraceFiles, has_traces
from weft.progress import ProgressHook, Tracker, run
from weft.replay.trace_run import TraceRun
from weft.topology import Topology
from weft.topology.load import as_topology


def is_workload(where: str | os.PathLike[str]) -> bool:
    """Whether a path names traces to run as they are, rather than an algorithm of Weft's.

    Raises
    ------
    FormatError
        The first trace is none; names file and place.
    """
    path = Path(where)

    def look() -> bool:
        if not has_traces(path):
            return False
        files = TraceFiles(path)
        attributes, _ = files.read(files.first)
        return "weft.version" not in attributes

    return read_whole(path, look)


def simulate_traces(
    where: str | os.PathLike[str],
    topology: Topology | str,
    cost: CostModel | None = None,
    *,
    method: str = "auto",
    comm_group: str | os.PathLike[str] | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: ProgressHook | Tracker | None = None,
) -> TraceRun:
    """Run traces on a network; a workload's collectives are lowered first.

    Parameters
    ----------
    where
        A folder of Chakra execution traces, one per rank, or the prefix of their paths.
    topology
        The network, or what `weft.load_topology` takes. Rank r is its r-th NPU that is there.
    cost
        The cost model; by default pipelined and cut-through.
    method, comm_group, seed, threads
        How collectives are lowered: see `weft.lower`.
    progress
        Is called some ten times a second with a `weft.Progress`; what it raises ends the work.

    Raises
    ------
    FormatError
        A file is no sound trace; names file and node.
    InputError
        The network has too few NPUs, or a message has no way.

    Examples
    --------
    >>> simulate_traces("step", "mesh:4x4").time_us  # doctest: +SKIP
    """
    model, path = cost or CostModel(), Path(where)
    how = {"method": method, "comm_group": comm_group, "seed": seed, "threads": threads}

    def work(report: Tracker) -> TraceRun:
        network, lowered = as_topology(topology), None
        parts = read_ranks(path, _core.RunRules.weft)
        if any(part.collective is not None for part in parts):
            parts, lowered = _lowered(path, network, model, how | {"progress": report})
        members = network.members
        if len(parts) > len(members):
            raise InputError(
                f"{path} has {len(parts)} ranks, but {network.name} only {len(members)} NPUs"
            )
        npus = np.ascontiguousarray(members[: len(parts)])
        with running(path):
            graph = _core.RunGraph(parts)
            done = _core.run_traces(graph, network.core, model.core, npus)
        title, npu_count = network.title, network.npus
        return TraceRun(str(where), title, npu_count, "weft", model, lowered, graph, done)

    return run(work, progress)


def read_ranks(
    path: Path, rules: _core.RunRules, ranks: int | None = None
) -> list[_core.RankNodes]:
    """The nodes of all ranks, of which there must be as many as are given, if any are."""

    def look() -> list[_core.RankNodes]:
        files = TraceFiles(path)
        files.expect(len(files) if ranks is None else ranks)
        parts = []
        for rank in range(len(files)):
            content = files.content(rank)
            with naming(files.path(rank)):
                parts.append(_core.read_rank(content, rank, len(files), rules))
        return parts

    return read_whole(path, look)


@contextmanager
def running(path: Path) -> Iterator[None]:
    """Say which traces went wrong while they ran."""
    try:
        yield
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def _lowered(
    path: Path, topology: Topology, cost: CostModel, how: dict[str, Any]
) -> tuple[list[_core.RankNodes], dict[str, Any]]:
    """The traces with messages in place of collectives, and the figures of those."""
    from weft.workload import lower  # large, and most traces need it not

    lowering = lower(
        path, topology, latency_model=cost.latency_model, switching=cost.switching, **how
    )
    for reason, count in lowering.kept.items():
        raise InputError(f"{path}: {count} collectives cannot be run as messages; {reason}")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "lowered"
        lowering.save(out)
        parts = read_ranks(out, _core.RunRules.weft)
    return parts, lowering.to_dict()
