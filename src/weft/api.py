"""What a notebook or a script does with algorithms: read, write, judge, run and bound them.

Each function takes a `weft.Result`, a `weft.Algorithm`, or the path of a file or folder with one.
All of them work in a thread of their own, so that Ctrl-C ends them within a second.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.algorithm import Algorithm, described
from weft.bounds import Bound, demand_bound, lower_bound
from weft.collective import Chunks, Collective
from weft.cost import CostModel, LatencyModel, Switching
from weft.engine import Order, Report
from weft.engine import simulate as run_on
from weft.errors import InputError
from weft.formats import NO_HINTS, Conversion, Hints, Imported, read, write
from weft.formats.limits import named_npus
from weft.judge import Verdict, WrongAlgorithmError
from weft.judge import verify as judge
from weft.progress import ProgressHook, Tracker, run
from weft.result import Result
from weft.synthesis import bound_of, demands_of
from weft.topology import Topology
from weft.topology.load import as_topology
from weft.units import parse_bandwidth

Source = Result | Algorithm | str | os.PathLike[str]


def load(
    path: str | os.PathLike[str],
    hints: Hints | None = None,
    *,
    kind: str | None = None,
    progress: ProgressHook | Tracker | None = None,
) -> Algorithm:
    """Read an algorithm in any format Weft knows: see `weft.formats`.

    Parameters
    ----------
    path
        A folder of Chakra execution traces, or a file.
    hints
        What the file does not say, such as the collective of traces that others wrote.
    kind
        Name of the format; by default it is recognised by what is in the file.
    progress
        Is called some ten times a second with a `weft.Progress`; what it raises ends the work.

    The algorithm is not judged: see `weft.verify`.
    """
    return run(lambda _: _opened(path, hints, kind).algorithm, progress)


def save(
    source: Source,
    path: str | os.PathLike[str],
    kind: str | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    progress: ProgressHook | Tracker | None = None,
) -> str:
    """Write an algorithm, whole or not at all; gives the name of the format.

    Parameters
    ----------
    source
        A result, an algorithm, or a path of one.
    path
        The file or folder to write. Its ending names the format: a folder of Chakra execution
        traces if it has none.
    kind
        Name of the format, instead of what the ending asks for.
    options
        Options of the format, by name: see `weft.formats.FORMATS`.
    progress
        As for `load`.

    Examples
    --------
    >>> weft.save(weft.synthesize("ring:4", "all-gather", "1MiB"), "a.weft")  # doctest: +SKIP
    'weft'
    """

    def work(report: Tracker) -> str:
        algorithm = _opened(source).algorithm
        report.enter("writing")
        return write(algorithm, Path(path), kind=kind, options=options)

    return run(work, progress)


@dataclass(frozen=True, eq=False)
class Converted:
    """What was converted.

    Attributes
    ----------
    algorithm
        The algorithm, which has been verified.
    source_format, target_format
        Names of the formats.
    stored_bytes
        How many bytes were written.
    notes
        What is not as it was, one sentence each.
    """

    algorithm: Algorithm
    source_format: str
    target_format: str
    stored_bytes: int
    notes: tuple[str, ...] = ()

    @property
    def ranks(self) -> int:
        """How many NPUs the algorithm is for."""
        return named_npus(self.algorithm)

    def to_dict(self) -> dict[str, Any]:
        """The figures, for machines."""
        return {
            "from": self.source_format,
            "to": self.target_format,
            **described(self.algorithm),
            "ranks": self.ranks,
            "verified": True,
            "stored_bytes": self.stored_bytes,
            "notes": list(self.notes),
        }


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    read_as: str | None = None,
    write_as: str | None = None,
    hints: Hints | None = None,
    options: Mapping[str, Any] | None = None,
    progress: ProgressHook | Tracker | None = None,
) -> Converted:
    """Convert a file or folder to another format; the algorithm is verified on the way.

    Parameters
    ----------
    source, target
        The paths; the target is written whole or not at all.
    read_as, write_as
        Names of formats; by default what the source is recognised as, and what the target's
        ending asks for.
    hints
        What the source does not say, such as the collective of traces that others wrote.
    options
        Options of the target's format, by name.
    progress
        As for `load`.

    Raises
    ------
    FormatError
        The source cannot be read, or its algorithm is wrong.
    """
    job = Conversion(
        Path(source), Path(target), read_as, write_as, hints or NO_HINTS, options or {}
    )

    def work(report: Tracker) -> Converted:
        job.check()
        algorithm = job.read(report)
        report.enter("writing")
        target, stored, notes = job.target_format, job.write(algorithm), []
        if algorithm.topology is not None and target.loses_switches(algorithm):
            notes.append(
                f"what switches of {algorithm.topology.title} copy or add goes row by row in the "
                f"format {target.name}, and takes longer; plan for switches that only forward, "
                "such as h100:1,plain"
            )
        return Converted(algorithm, job.source_format, target.name, stored, tuple(notes))

    return run(work, progress)


def verify(
    source: Source,
    topology: Topology | str | None = None,
    *,
    hints: Hints | None = None,
    kind: str | None = None,
    progress: ProgressHook | Tracker | None = None,
) -> Verdict:
    """Judge an algorithm: its structure, its logic and, if it is timed, its times.

    Parameters
    ----------
    source
        A result, an algorithm, or a path of one.
    topology
        A network, or what `weft.load_topology` takes: the rows are also routed over it, and
        judged with their times there.
    hints, kind, progress
        As for `load`.

    Examples
    --------
    >>> import weft
    >>> bool(weft.verify(weft.synthesize("ring:4", "all-gather", "1MiB")))
    True
    """

    def work(report: Tracker) -> Verdict:
        found = _opened(source, hints, kind)
        verdict = found.judged(report)
        if topology is None or not verdict:
            return verdict
        network = as_topology(topology)
        report.enter("simulating")
        timed = run_on(found.algorithm, network).timed()
        report.enter("verifying")
        return judge(timed, progress=report)

    return run(work, progress)


def simulate(
    source: Source,
    topology: Topology | str | None = None,
    *,
    latency_model: LatencyModel | None = None,
    switching: Switching | None = None,
    order: Order | None = None,
    reducer: int | str | None = None,
    hints: Hints | None = None,
    kind: str | None = None,
    progress: ProgressHook | Tracker | None = None,
) -> Report:
    """Run an algorithm on its own network, or on another, and report what decides its time.

    It is judged first. Traces of a workload, which are no algorithm, run by
    `weft.replay.simulate_traces`.

    Parameters
    ----------
    source
        A result, an algorithm, or a path of one.
    topology
        Another network than the algorithm's own, or what `weft.load_topology` takes: the rows
        are routed over it anew.
    latency_model, switching
        Of the cost model; by default the algorithm's own, else pipelined and cut-through.
    order
        ``plan``: each link carries its rows in the planned order, the default where there is a
        plan for this network. ``fifo``: first come first served.
    reducer
        Bytes per second that an NPU adds, or a text such as ``100GB/s``; by default adding takes
        no time.
    hints, kind, progress
        As for `load`.

    Raises
    ------
    WrongAlgorithmError
        The algorithm is wrong; has the verdict.
    InputError
        If there is no network to run it on, or no plan for it whose order could be kept.
    UnreachableError
        If a row has no path on another network.

    Examples
    --------
    >>> import weft
    >>> result = weft.synthesize("ring:4", "all-gather", "1MiB")
    >>> weft.simulate(result).time_us == result.time_us
    True
    """
    rate = parse_bandwidth(reducer) if isinstance(reducer, str) else reducer

    def work(report: Tracker) -> Report:
        algorithm = _verified(source, hints, kind, report)
        report.enter("simulating")
        network = None if topology is None else as_topology(topology)
        asked = {"latency_model": latency_model, "switching": switching}
        given: dict[str, Any] = {name: model for name, model in asked.items() if model}
        cost = replace(algorithm.cost or CostModel(), **given)
        return Report.of(run_on(algorithm, network, cost, order=order, reducer=rate))

    return run(work, progress)


def bound(
    source: Source | Topology,
    collective: str | Collective | Sequence[Collective] | None = None,
    size: int | str | None = None,
    *,
    chunks: int = 1,
    group: Sequence[int] | None = None,
    root: int | None = None,
    latency_model: LatencyModel = "pipelined",
    switching: Switching = "cut-through",
    progress: ProgressHook | Tracker | None = None,
) -> Bound:
    """A time that no algorithm can beat: for a collective on a network, or for an algorithm's.

    Parameters
    ----------
    source
        Without a collective: a result, a timed algorithm, or a path of one. With a collective:
        the network, or what `weft.load_topology` takes.
    collective, size, group, root, latency_model, switching
        As for `weft.synthesize`.
    chunks
        With a name: in how many chunks each NPU's share is cut. `Bound.ideal` holds for any
        number.
    progress
        As for `load`.

    Examples
    --------
    >>> import weft
    >>> weft.bound("ring:4", "all-gather", "1MiB").kind
    'ingress'
    """

    def work(_: Tracker) -> Bound:
        if collective is None:
            if isinstance(source, Topology):
                raise InputError("a network alone has no bound; name a collective and a size")
            if isinstance(source, Result):
                return source.bound
            return bound_of(_opened(source).algorithm)
        if isinstance(source, Result | Algorithm):
            raise InputError("a collective goes with a network, not with a result or an algorithm")
        network, cost = as_topology(source), CostModel(latency_model, switching)
        demands = demands_of(network, collective, size, group, root)
        if isinstance(collective, str):
            demands = [replace(demands[0], chunks_per_share=chunks)]
        for demand in demands:
            network.check_members(demand.group)
        if len(demands) == 1:
            return demand_bound(network, demands[0], cost)
        return lower_bound(network, Chunks.concatenate([d.chunks for d in demands]), cost)

    return run(work, progress)


def _opened(source: Source, hints: Hints | None = None, kind: str | None = None) -> Imported:
    """The algorithm that is meant, not judged."""
    if isinstance(source, Result | Algorithm):
        if hints is not None or kind is not None:
            raise InputError("hints and kind go with a path, not with a result or an algorithm")
        algorithm = source.algorithm if isinstance(source, Result) else source
        return Imported(algorithm, Path())
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"a {type(source).__name__} is no algorithm; give a Result, an Algorithm or a path"
        )
    return read(Path(source), hints or NO_HINTS, kind=kind)


def _verified(source: Source, hints: Hints | None, kind: str | None, report: Tracker) -> Algorithm:
    """The algorithm that is meant, if it is right."""
    found = _opened(source, hints, kind)
    if not isinstance(source, Result | Algorithm):
        return found.verified(report)
    verdict = source.verdict if isinstance(source, Result) else found.judged(report)
    if not verdict:
        raise WrongAlgorithmError(f"the algorithm is wrong: {verdict.violation}", verdict)
    return found.algorithm
