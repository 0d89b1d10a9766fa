"""Weft and every classical algorithm that fits, on the same network, at every size."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weft.algorithm import Algorithm
from weft.bounds import lower_bound
from weft.collective import Plan, Request
from weft.comparison.contention import collided
from weft.comparison.model import WEFT, Comparison, Outcome, Refusal, Row, Run, bus_bytes
from weft.comparison.sizes import parse_sizes
from weft.cost import CostModel, LatencyModel, Switching
from weft.errors import InputError, WeftError, unknown_name
from weft.planners import PLANNERS, Problem, is_file
from weft.planners.planner import guarded
from weft.progress import ProgressHook, Tracker, run
from weft.synthesis import chunked, made_by
from weft.topology import Topology
from weft.topology.load import as_topology
from weft.units import format_size

MOST_ROWS = 1 << 23
"""Larger plans of others are not run: they would take minutes and many gigabytes."""


def compare(
    topology: Topology | str,
    collective: str | Request | Sequence[Plan],
    sizes: str | Sequence[int | str] | None = None,
    *,
    against: Sequence[str] | None = None,
    groups: Sequence[Sequence[int]] | None = None,
    seed: int = 0,
    threads: int | None = None,
    latency_model: LatencyModel = "pipelined",
    switching: Switching = "cut-through",
    progress: ProgressHook | Tracker | None = None,
) -> Comparison:
    """Weft's answer beside classical algorithms and the lower bound, at every size.

    All of them choose their number of chunks by the same search, and the judge looks at each.
    Where several groups run at once, also what it gains to synthesize them together.

    Parameters
    ----------
    topology
        The network, or what `weft.load_topology` takes, such as ``mesh:8x8``.
    collective
        Name of the pattern, or a `weft.collective.Request` for one that needs more; or
        what runs at each size, a `weft.Plan` each.
    sizes
        With a name or a request: see `parse_sizes`, or a list of sizes. Requests that say
        themselves how much moves have none.
    against
        Names of planners (keys of `weft.planners.PLANNERS`), or files with algorithms of one's own
        (see `weft.own`); by default all classical and users' own that fit.
    groups
        With a name or a request: who takes part, in order of rank, in one group or in several
        that run at once; by default all NPUs in one.
    seed, threads
        Same seed, same result, on any number of threads.
    latency_model, switching
        See `weft.CostModel`.
    progress
        Is called some ten times a second with a `weft.Progress`, whose step says what is run;
        what it raises ends the comparison.

    Raises
    ------
    InputError
        If a name is not known, or sizes make no sense.
    UnreachableError
        If some chunk has no path to where it must go.

    Examples
    --------
    >>> import weft
    >>> rows = weft.compare("ring:4", "all-gather", ["64KiB", "1MiB"], against=["direct"]).rows
    >>> [row.size for row in rows]
    [65536, 1048576]
    """
    cost = CostModel(latency_model, switching)

    def work(report: Tracker) -> Comparison:
        network = as_topology(topology)
        plans = _plans(network, collective, sizes, groups)
        names = _chosen(network, against, plans)
        steps = len(plans) * (1 + len(names)) + sum(
            len(plan.collectives) for plan in plans if len(plan.collectives) > 1
        )
        job = _Job(network, cost, seed, threads, report, steps)
        rows = tuple(_row(job, plan, names) for plan in plans)
        first = plans[0].collectives
        kinds, members = tuple(d.kind for d in first), tuple(d.group for d in first)
        return Comparison(network, cost, seed, kinds, members, names, rows)

    return run(work, progress)


def _plans(
    topology: Topology,
    collective: str | Request | Sequence[Plan],
    sizes: str | Sequence[int | str] | None,
    groups: Sequence[Sequence[int]] | None,
) -> list[Plan]:
    """What runs at each size."""
    if isinstance(collective, str):
        collective = Request(collective)
    if isinstance(collective, Request):
        members = [topology.members.tolist()] if groups is None else groups
        each = parse_sizes(sizes) if isinstance(sizes, str) else sizes
        asked = [collective] if each is None else [replace(collective, size=s) for s in each]
        plans = [Plan([one.among(g) for g in members], [None] * len(members)) for one in asked]
    else:
        if sizes is not None or groups is not None:
            raise InputError("sizes and groups go with a collective's name")
        plans = list(collective)
    if not plans or not all(plan.collectives for plan in plans):
        raise InputError("there is no collective to compare")
    return plans


def _chosen(
    topology: Topology, against: Sequence[str] | None, plans: Sequence[Plan]
) -> tuple[str, ...]:
    """The planners to run: those asked for, or all that are shown beside Weft and fit."""
    if against is None:
        problems = [Problem.of(topology, plan.collectives) for plan in plans]
        return tuple(
            name
            for name, planner in PLANNERS.items()
            if planner.beside
            and all(guarded(planner, planner.fits, problem) is None for problem in problems)
        )
    for name in against:
        if is_file(name):
            from weft.formats import recognise  # loads every format

            recognise(Path(name))
        elif name not in PLANNERS:
            raise unknown_name("baseline", name, PLANNERS)
    if not against:
        raise InputError("there is no baseline to compare with")
    return tuple(dict.fromkeys(against))


@dataclass
class _Job:
    """What all runs of a comparison share, and how many there have been."""

    topology: Topology
    cost: CostModel
    seed: int
    threads: int | None
    progress: Tracker
    steps: int
    step: int = 0

    def begin(self, what: str, size: int) -> None:
        """Say what comes next; this is also where a comparison that is not wanted ends."""
        self.step += 1
        step = f"{self.step} of {self.steps}: {what} at {format_size(size)}"
        self.progress.begin_step(step)

    def made(self, plan: Plan, method: str) -> Algorithm:
        demands, choose = chunked(plan.collectives, plan.chunks)
        search = {"seed": self.seed, "threads": self.threads, "progress": self.progress}
        return made_by(method, self.topology, demands, choose, self.cost, **search)


def _row(job: _Job, plan: Plan, names: Sequence[str]) -> Row:
    demands = plan.collectives
    size = max(demand.size for demand in demands)
    job.begin(WEFT, size)
    began = time.perf_counter()
    answer = job.made(plan, "auto")
    weft = Run.of(answer, time.perf_counter() - began)
    # For any chunks, and not only as strong as it takes to meet Weft's time.
    bound = lower_bound(job.topology, answer.chunks, job.cost).ideal
    return Row(
        size,
        bound,
        max(bus_bytes(demand) for demand in demands) / bound * 1e3 if bound else 0.0,
        weft,
        {name: _baseline(job, plan, name, size) for name in names},
        _alone(job, answer, size) if len(demands) > 1 else None,
    )


def _baseline(job: _Job, plan: Plan, name: str, size: int) -> Outcome:
    """The best of a classical algorithm, or why there is none."""
    job.begin(name, size)
    planner = PLANNERS.get(name)  # or else a file
    began = time.perf_counter()
    try:
        demands, _ = chunked(plan.collectives, plan.chunks)
        problem = Problem.of(job.topology, demands, job.cost)
        rows = 0
        if planner is not None and guarded(planner, planner.fits, problem) is None:
            rows = guarded(planner, planner.rows, problem)
        if rows > MOST_ROWS:
            return Refusal(f"about {rows:,} rows; baselines of more than {MOST_ROWS:,} are not run")
        found = job.made(plan, name)
    except WeftError as error:
        return Refusal(str(error))
    return Run.of(found, time.perf_counter() - began)


def _alone(job: _Job, answer: Algorithm, size: int) -> Outcome:
    """Each group synthesized as if it had the network to itself; then all run at once.

    The chunks are those of the answer, so that only the planning differs.
    """
    if job.topology.plain is not job.topology:
        return Refusal(
            "switches neither copy nor add first come first served, so that no run is fair"
        )
    began = time.perf_counter()
    single = []
    for i, demand in enumerate(answer.demands):
        job.begin(f"group {i} alone", size)
        single.append(job.made(Plan([demand], [demand.chunks_per_share]), "auto"))
    return Run.of(collided(single), time.perf_counter() - began)
