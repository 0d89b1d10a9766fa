"""All-Gather by synchronous rounds, and what is made of it: see `weft.algorithm.RoundLog`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, RoundLog, Timing, UnnamedFile
from weft.algorithm.rounds import LOG_BEGINS, NARROW_CHUNKS
from weft.bounds import quick_bound
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import InputError
from weft.memory import check_fits
from weft.planners.listed import MOST_SEARCHED
from weft.planners.planner import Planner, add
from weft.planners.problem import Problem
from weft.reachability import unreachable
from weft.topology.durations import held, over_links
from weft.topology.model import Topology
from weft.units import format_size

_KINDS = ("all-gather", "reduce-scatter", "all-reduce")
# With auto, from so many deliveries on, and where chunks must wait before they are sent on: that
# costs a round or two, which matching does not lose, and up to there it is quick.
_MANY_DELIVERIES, _MANY_WITH_WAITS = 1 << 20, 1 << 22
_MOST_LAG = 1 << 12  # rounds that a transfer may take: beyond, most rounds would be empty
_FIT = 1.005  # times of links, rounded up to whole rounds, may lose so much
_IN_MEMORY = 256 << 20  # larger logs go to disk
_BLOCK = 512  # chunks, as in cpp/base/block_sets.h


class Rounds(Planner):
    """All-Gather of very many NPUs, and what is made of it run backwards."""

    name = "rounds"
    summary = "All-Gather, Reduce-Scatter and All-Reduce of very many NPUs, as a log of rounds"
    rank = 40
    beside = judged = False

    def fits(self, problem: Problem) -> str | None:
        return why_not(problem.topology, problem.demands)

    def floor(self, problem: Problem) -> int:
        """An All-Reduce takes as long as two All-Gathers."""
        if problem.demand.kind != "all-reduce":
            return problem.bound
        half = replace(problem.demand, kind="all-gather")
        return 2 * quick_bound(problem.topology, half.chunks, problem.cost)

    def is_worth_trying(self, problem: Problem, best: Algorithm | None) -> bool:
        if not suits(problem) or (best is not None and len(best) > MOST_SEARCHED):
            return False
        return super().is_worth_trying(problem, best)

    def plan(self, problem: Problem) -> Algorithm:
        """Run the round engine, which writes its log on disk as it goes if it is large."""
        topology, demand = problem.topology, problem.demand
        rhythm = _rhythm(topology, problem.cost, demand)
        if rhythm.longest_lag > _MOST_LAG:
            raise InputError(
                f"method rounds plans transfers of up to {_MOST_LAG} rounds; here the slowest "
                f"takes {rhythm.longest_lag} times as long as the quickest link is held; use auto"
            )
        problem.planning("rounds", demand.chunk_count)
        file = _file_for(problem, rhythm)
        try:
            offsets, count, complete = _core.run_rounds(
                topology.core,
                rhythm.period,
                rhythm.lag,
                np.repeat(np.array(demand.group, dtype=np.int32), demand.chunks_per_share),
                problem.search(),
                file=file.fd,
                at=LOG_BEGINS,
            )
        except OSError as error:
            raise InputError(f"the log of rounds cannot be written: {error.strerror}") from None
        if not complete:
            raise unreachable(topology, demand.chunks)
        phases = 2 if demand.kind == "all-reduce" else 1
        rows = RoundLog(rhythm.slot, count, file.log(LOG_BEGINS), offsets, phases, file)
        return Algorithm((demand,), rows, Timing(topology, problem.cost), {"method": "rounds"})


def suits(problem: Problem) -> bool:
    """Whether rounds are the method of choice: very much to do, over links of few speeds."""
    topology, demand = problem.topology, problem.demand
    deliveries = sum(one.chunk_count * one.ranks for one in problem.demands)
    if deliveries <= _MANY_DELIVERIES or why_not(topology, problem.demands) is not None:
        return False
    rhythm = _rhythm(topology, problem.cost, demand)
    holds = held(topology, problem.cost, demand.largest_chunk)
    waits = bool((rhythm.lag > rhythm.period).any())
    return (
        deliveries > (_MANY_WITH_WAITS if waits else _MANY_DELIVERIES)
        and rhythm.longest_lag <= _MOST_LAG
        and bool((rhythm.period * rhythm.slot <= holds * _FIT).all())
    )


def why_not(topology: Topology, demands: Sequence[Collective]) -> str | None:
    """Why rounds cannot plan these demands; None if they can."""
    demand = demands[0]
    if len(demands) > 1:
        return "plans one collective at a time"
    if demand.kind not in _KINDS:
        return f"plans {', '.join(_KINDS)}, not {demand.kind}"
    if topology.switches:
        return "plans networks without switches"
    if len(demand.group) != len(topology.members):  # they are there: that has been checked
        return "plans collectives of all NPUs"
    if demand.parts is not None or demand.smallest_chunk == 0:
        return "plans shares that all have bytes"
    if demand.kind != "all-gather" and topology.reverse_links is None:
        return f"plans {demand.kind} where every link has one of the same speed the other way"
    return None


@dataclass(frozen=True, eq=False)
class _Rhythm:
    """How long a round is; how many a send holds each link, and takes until it can be sent on."""

    slot: int
    period: NDArray[np.int32]
    lag: NDArray[np.int32]
    rounds: int  # about how many it will take

    @property
    def longest_lag(self) -> int:
        return int(self.lag.max(initial=1))


def _rhythm(topology: Topology, cost: CostModel, demand: Collective) -> _Rhythm:
    """Rounds as long as the quickest link is held, or a little longer if chunks then wait less."""
    holds = held(topology, cost, demand.largest_chunk)
    takes = over_links(topology, demand.largest_chunk)
    quickest, soonest = (int(times.min()) if len(times) else 1 for times in (holds, takes))
    waits = -(-soonest // quickest)
    slots = [quickest, -(-soonest // (waits - 1))] if waits > 1 else [quickest]

    def with_slot(slot: int) -> _Rhythm:
        period, lag = (np.minimum(-(-times // slot), _MOST_LAG + 1) for times in (holds, takes))
        into = np.bincount(topology.dst, weights=1 / period, minlength=topology.npus)
        slowest = float(into[topology.members].min())
        chunks = demand.chunk_count - demand.chunks_per_share
        # What comes first can be sent on only later: that costs about twice the wait.
        rounds = chunks / max(slowest, 1 / _MOST_LAG) + 2 * (int(lag.max(initial=1)) - 1)
        return _Rhythm(slot, period.astype(np.int32), lag.astype(np.int32), int(rounds) + 1)

    return min(map(with_slot, slots), key=lambda rhythm: rhythm.rounds * rhythm.slot)


def _file_for(problem: Problem, rhythm: _Rhythm) -> UnnamedFile:
    """A file for the log, once it is clear that there is room for it and for the work."""
    topology, demand = problem.topology, problem.demand
    chunks = demand.chunk_count
    width = 2 if chunks <= NARROW_CHUNKS else 4
    bitmaps = rhythm.rounds * (topology.links // 8 + 16)
    log = chunks * demand.ranks * width + bitmaps + LOG_BEGINS
    sets = 2 if rhythm.longest_lag > 1 else 1
    needed = sets * topology.npus * -(-chunks // _BLOCK) * (_BLOCK // 8)
    needed += topology.links * (56 + 4 * (rhythm.longest_lag + 1)) + rhythm.rounds * 8
    folder = None
    if log > _IN_MEMORY:
        from tempfile import gettempdir  # seldom needed

        folder = problem.scratch or Path(gettempdir())
        _check_disk(folder, log)
    check_fits(f"{demand.kind} on {topology.name}", needed + (log if folder is None else 0))
    return UnnamedFile(folder)


def _check_disk(folder: Path, needed: int) -> None:
    """Raise, before it begins, if a folder has no room for a log."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from None
    if needed > free:
        raise InputError(
            f"{folder}: the log of rounds needs about {format_size(needed)} on disk, but "
            f"{format_size(free)} is free; name another folder for it"
        )


add(Rounds())
