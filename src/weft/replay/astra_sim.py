"""Running Chakra execution traces as ASTRA-sim's analytical backends do, to the nanosecond."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from weft import _core
from weft.documents import read_document
from weft.errors import InputError
from weft.progress import interruptible
from weft.replay.trace_run import TraceRun
from weft.replay.traces import read_ranks, running
from weft.topology.astra import BYTES_PER_GB, AstraNetwork, astra_network

_SHAPES = {
    "Ring": _core.AstraShape.ring,
    "FullyConnected": _core.AstraShape.fully_connected,
    "Switch": _core.AstraShape.switched,
}
_NS_PER_S = 1_000_000_000


@interruptible
def simulate_astra_sim(
    where: str | os.PathLike[str],
    network: str | os.PathLike[str],
    *,
    aware: bool = True,
    plain: bool = False,
    group: Sequence[int] | None = None,
) -> TraceRun:
    """Run traces on a network of ASTRA-sim's.

    Parameters
    ----------
    where
        A folder of Chakra execution traces, one per rank, or the prefix of their paths.
    network
        ASTRA-sim's file of the network.
    aware
        As the congestion-aware backend, or as the one in which messages never wait.
    plain
        As a workload, in which a rank sends one message at a time; otherwise as the files of a
        collective algorithm, in which everything starts that can.
    group
        The ranks that the traces are of, ascending, if they are not all of the network's.

    Raises
    ------
    FormatError
        A file is no sound trace, or says what ASTRA-sim aborts at; names file and node.
    InputError
        Traces and network do not fit, or ASTRA-sim would abort.

    Examples
    --------
    >>> run = simulate_astra_sim("bundle/algorithm", "bundle/network.yml")  # doctest: +SKIP
    """
    record = read_document(network, "network", lambda document: astra_network(document.plain()))
    _check_network(record, network, aware=aware)
    there_are = math.prod(record.npus_count)
    path, npus = Path(where), _npus(range(there_are) if group is None else group, there_are)
    rules = _core.RunRules.plain if plain else _core.RunRules.custom
    parts = read_ranks(path, rules, len(npus))
    with running(path):
        graph = _core.RunGraph(parts)
        devices = np.array(npus, dtype=np.int32)
        run = _core.run_astra_traces(graph, plain, aware, devices, dimensions_of(record))
    model = f"astra-sim {'aware' if aware else 'unaware'}"
    name = " x ".join(
        f"{kind} of {size}" for kind, size in zip(record.topology, record.npus_count, strict=True)
    )
    return TraceRun(str(where), name, there_are, model, None, None, graph, run)


def _check_network(record: AstraNetwork, network: str | os.PathLike[str], *, aware: bool) -> None:
    """Raise where ASTRA-sim would abort."""
    counts, wrong = record.npus_count, None
    if min(counts) < 2:
        wrong = f"npus_count is {min(counts)}; ASTRA-sim wants 2 or more"
    elif aware and len(counts) > 1:
        takes = "takes one, the unaware one takes any number"
        wrong = f"{len(counts)} dimensions; ASTRA-sim's congestion-aware backend {takes}"
    elif aware and record.topology[0] == "Ring" and counts[0] == 2:
        wrong = "ASTRA-sim's congestion-aware backend aborts on a Ring of 2; use FullyConnected"
    if wrong is not None:
        raise InputError(f"{os.fspath(network)}: {wrong}")


def _npus(group: Sequence[int], there_are: int) -> list[int]:
    npus = list(group)
    if npus != sorted(set(npus)) or not npus or npus[0] < 0 or npus[-1] >= there_are:
        raise InputError(
            f"the group must name ranks of 0 to {there_are - 1} in ascending order, each once"
        )
    return npus


def dimensions_of(record: AstraNetwork) -> list[_core.AstraDimension]:
    """As ASTRA-sim computes them, in this order: its times come from these very doubles."""
    return [
        _core.AstraDimension(_SHAPES[kind], size, bandwidth * BYTES_PER_GB / _NS_PER_S, latency)
        for kind, size, bandwidth, latency in zip(
            record.topology, record.npus_count, record.bandwidth, record.latency, strict=True
        )
    ]
