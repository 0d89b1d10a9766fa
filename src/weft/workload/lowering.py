"""Lowering: a workload's collectives become the sends and receives of synthesized algorithms."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from weft import _core
from weft.arrays import Int64
from weft.cost import LatencyModel, Switching
from weft.display import line
from weft.errors import InputError, WeftError
from weft.formats.chakra.schema import TAGS
from weft.progress import ProgressHook, Tracker, interruptible, run
from weft.ragged import earlier_equals, offsets_of
from weft.result import Result
from weft.synthesis import cost_of_plain, plain_for, synthesize
from weft.topology import Topology
from weft.topology.load import as_topology
from weft.units import format_size, parse_size
from weft.workload.choosing import Batch, Choice, Job, choose
from weft.workload.communicators import COMM_GROUP_NAME, load_comm_groups, match_collectives
from weft.workload.loading import Workload, load_workload
from weft.workload.splicing import save


@dataclass(frozen=True, eq=False)
class Template:
    """What is left of a synthesized algorithm when only its nodes are still to be written.

    Attributes
    ----------
    figures
        What it is and how it fares, for machines.
    splicer
        Its rows, by rank.
    tags
        How many tags a use of it takes.
    touched
        The ranks that send or receive, those that only relay included.
    """

    figures: dict[str, Any]
    splicer: _core.TraceSplicer
    tags: int
    touched: frozenset[int]


@dataclass(frozen=True, eq=False)
class Lowering:
    """A workload with an algorithm for each of its collectives, ready to be written.

    Attributes
    ----------
    workload
        The traces.
    topology
        The network; rank r is its r-th NPU that is there.
    comm_group
        The file that describes process groups, if there is one.
    batches
        What is lowered.
    algorithms
        One a job, synthesized once however often it is used.
    kept
        How many collectives stay as they are, by reason.
    first_tags
        For each batch: the first tag of each step.
    notes
        What is not as asked, one sentence each.
    """

    workload: Workload
    topology: Topology
    comm_group: Path | None
    batches: Sequence[Batch]
    algorithms: dict[Job, Template]
    kept: dict[str, int]
    first_tags: Sequence[Int64]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        where = f"{self.workload.files.name} on {self.topology.title}"
        return line(self, f"{where}: {self.lowered:,} collectives lowered", f"{self.ranks:,} ranks")

    def __reduce__(self) -> NoReturn:
        raise InputError("a Lowering cannot be pickled or copied; hand on the traces that it saves")

    @property
    def lowered(self) -> int:
        """How many collectives are lowered; that of a group on all its ranks is one."""
        return sum(len(batch.jobs) * len(batch.communicators) for batch in self.batches)

    @property
    def ranks(self) -> int:
        """How many traces there will be: more than before where other NPUs relay."""
        last = max((max(a.touched, default=0) for a in self.algorithms.values()), default=0)
        return self.workload.ranks if last < self.workload.ranks else len(self.topology.members)

    @interruptible
    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the lowered traces, under the names they had; whole or not at all."""
        save(self, Path(folder))

    def to_dict(self) -> dict[str, Any]:
        """The figures, for machines: what ``weft lower --json`` prints."""
        uses = Counter(job for batch in self.batches for job in batch.jobs)
        return {
            "topology": self.topology.name,
            "changes": list(self.topology.changes),
            "npus": len(self.topology.members),
            "ranks": self.workload.ranks,
            "trace_count": self.ranks,
            "collective_count": self.lowered + sum(self.kept.values()),
            "lowered_count": self.lowered,
            "kept": self.kept,
            "notes": list(self.notes),
            "algorithms": [
                {**algorithm.figures, "uses": uses[job]}
                for job, algorithm in self.algorithms.items()
            ],
        }


def lower(
    workload: Workload | str | os.PathLike[str],
    topology: Topology | str,
    *,
    comm_group: str | os.PathLike[str] | None = None,
    chunks: int | None = None,
    only: Collection[str] = (),
    min_size: int | str = 0,
    relay: bool = True,
    together: bool = True,
    method: str = "auto",
    seed: int = 0,
    threads: int | None = None,
    latency_model: LatencyModel = "pipelined",
    switching: Switching = "cut-through",
    progress: ProgressHook | Tracker | None = None,
) -> Lowering:
    """Synthesize an algorithm for every collective of a workload; see `Lowering.save`.

    Parameters
    ----------
    workload
        A folder of Chakra execution traces, one per rank, or the prefix of their paths; or what
        `load_workload` gave.
    topology
        The network, or what `weft.load_topology` takes. Rank r is its r-th NPU that is there.
    comm_group
        A JSON file of process groups; by default ``comm_group.json`` beside the traces, if it
        is there.
    chunks
        In how many chunks to cut each share; chosen if None.
    only, min_size
        Lower these patterns only, and none whose comm_size is less.
    relay
        Whether ranks outside a group may pass its chunks on.
    together
        Whether groups without common ranks that do the same share one synthesis, in which all
        run at the same time; else each is synthesized as if it were alone.
    method, seed, threads, latency_model, switching
        As in `weft.synthesize`.
    progress
        Is called some ten times a second with a `weft.Progress`, whose step says which collective
        is synthesized; what it raises ends the work.

    Examples
    --------
    >>> lowering = weft.lower("traces", "mesh:4x4")  # doctest: +SKIP
    >>> lowering.save("lowered")  # doctest: +SKIP
    """
    choice = Choice(tuple(only), parse_size(min_size, or_zero=True))

    def work(report: Tracker) -> Lowering:
        whole = as_topology(topology)
        network, why = plain_for("runs by sends and receives", whole)
        traces = workload if isinstance(workload, Workload) else load_workload(workload)
        npus = network.members.tolist()
        if traces.ranks > len(npus):
            raise InputError(
                f"{traces.files.name} has {traces.ranks} ranks, but {network.name} "
                f"only {len(npus)} NPUs"
            )
        groups_file = _comm_group_file(traces, comm_group)
        groups = load_comm_groups(groups_file, traces.ranks) if groups_file else {}
        batches, kept = choose(match_collectives(traces, groups), choice, together=together)
        jobs = dict.fromkeys(job for batch in batches for job in batch.jobs)
        algorithms: dict[Job, Template] = {}
        lost = list[float]()
        for number, job in enumerate(jobs, start=1):
            report.begin_step(f"{number} of {len(jobs)}: {job.kind} of {format_size(job.size)}")
            result = synthesize(
                network,
                job.collectives(npus, relay=relay),
                chunks=chunks,
                seed=seed,
                threads=threads,
                latency_model=latency_model,
                switching=switching,
                progress=report,
                method=method,
            )
            algorithms[job] = _template(job, result)
            if why:
                lost.append(cost_of_plain(whole, result.algorithm))
        first_tags = _number_tags(traces, batches, algorithms)
        notes = [f"{why}: at most x{max(lost):.2f} of what any take with them"] if lost else []
        facts = traces, network, groups_file, batches, algorithms, dict(kept), first_tags
        return Lowering(*facts, tuple(notes))

    return run(work, progress)


def _comm_group_file(traces: Workload, given: str | os.PathLike[str] | None) -> Path | None:
    if given is not None:
        return Path(given)
    beside = traces.files.folder / COMM_GROUP_NAME
    return beside if beside.is_file() else None


def _template(job: Job, result: Result) -> Template:
    if not result.verified:
        raise WeftError(
            f"the algorithm for {job.kind} is not right, so nothing is lowered: "
            f"{result.verdict.violation}"
        )
    rows, chunks = result.transfers, result.algorithm.chunks
    members = result.topology.members
    # From NPUs to ranks: where an NPU has failed, those after it move up.
    src, dst, sets = (
        np.searchsorted(members, column).astype(np.int32)
        for column in (rows.src, rows.dst, chunks.set_members)
    )
    # The messages of each pair of ranks are numbered: a tag need not be unique beyond that.
    tags = earlier_equals(src * np.int64(len(members)) + dst).astype(np.int32)
    splicer = _core.TraceSplicer(
        len(members),
        replace(rows, src=src, dst=dst).core,
        replace(chunks, set_members=sets).core,
        tags,
    )
    figures = {
        "collective": job.kind,
        "comm_size_bytes": job.size,
        "groups": [
            {"members": list(group), "chunks": demand.chunks_per_share}
            for group, demand in zip(job.groups, result.algorithm.demands, strict=True)
        ],
        "time_us": result.time_us,
        "lower_bound_us": result.lower_bound_us,
        "efficiency": result.efficiency,
        "transfers": len(rows),
        "synthesis_s": result.synthesis_s,
        "method": result.algorithm.provenance["method"],
        "verified": result.verified,
    }
    touched = frozenset(np.union1d(src, dst).tolist())
    return Template(figures, splicer, int(tags.max(initial=-1)) + 1, touched)


def _number_tags(
    traces: Workload, batches: Sequence[Batch], algorithms: dict[Job, Template]
) -> list[Int64]:
    """The first tag of each step of each batch, in the first gap that the traces' own leave."""
    widths = [[algorithms[job].tags for job in batch.jobs] for batch in batches]
    needed = sum(map(sum, widths))
    own = [np.unique(trace.frames.tags % (1 << 32) % TAGS) for trace in traces.traces]
    used = np.unique(np.concatenate([[-1, TAGS], *own]).astype(np.int64))
    gaps = np.flatnonzero(np.diff(used) > needed)
    if not len(gaps):
        raise InputError(
            f"the algorithms need {needed} tags in a row, but tags end at {TAGS} and the "
            "workload has its own among them; lower less with --only or --min-size, or take "
            "fewer --chunks"
        )
    first_tags, tag = [], int(used[gaps[0]]) + 1
    for steps in widths:
        ends = tag + offsets_of(steps)
        first_tags.append(ends[:-1])
        tag = int(ends[-1])
    return first_tags
