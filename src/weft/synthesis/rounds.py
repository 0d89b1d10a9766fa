"""All-Gather by synchronous rounds, and what is made of it: see `weft.algorithm.RoundLog`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm, RoundLog, UnnamedFile
from weft.algorithm.rounds import LOG_BEGINS, NARROW_CHUNKS
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import InputError
from weft.memory import check_fits
from weft.reachability import unreachable
from weft.synthesis.engines import Settings
from weft.topology.model import Topology
from weft.topology.twins import twin_links
from weft.units import format_size

_KINDS = ("all-gather", "reduce-scatter", "all-reduce")
# With auto, from so many deliveries on, and where chunks must wait before they are sent on: that
# costs a round or two, which matching does not lose, and up to there it is quick.
_MANY_DELIVERIES, _MANY_WITH_WAITS = 1 << 20, 1 << 22
_MOST_LAG = 1 << 12  # rounds that a transfer may take: beyond, most rounds would be empty
_FIT = 1.005  # times of links, rounded up to whole rounds, may lose so much
_IN_MEMORY = 256 << 20  # larger logs go to disk
_BLOCK = 512  # chunks, as in cpp/block_sets.h


def suits_rounds(topology: Topology, settings: Settings, demands: Sequence[Collective]) -> bool:
    """Whether rounds are the method of choice: very much to do, over links of few speeds."""
    deliveries = sum(demand.chunk_count * demand.ranks for demand in demands)
    if deliveries <= _MANY_DELIVERIES or _why_not(topology, demands) is not None:
        return False
    rhythm = _rhythm(topology, settings.cost, demands[0])
    held = _held(topology, settings.cost, demands[0])
    waits = bool((rhythm.lag > rhythm.period).any())
    return (
        deliveries > (_MANY_WITH_WAITS if waits else _MANY_DELIVERIES)
        and rhythm.longest_lag <= _MOST_LAG
        and bool((rhythm.period * rhythm.slot <= held * _FIT).all())
    )


def plan_rounds(topology: Topology, settings: Settings, demands: Sequence[Collective]) -> Algorithm:
    """Run the round engine, which writes its log on disk as it goes if it is large.

    Raises
    ------
    InputError
        Rounds cannot serve this collective on this network; or memory or disk are too small.
    UnreachableError
        Some NPU cannot be reached.
    """
    reason = _why_not(topology, demands)
    if reason is not None:
        raise InputError(f"method rounds {reason}; use auto")
    demand = demands[0]
    rhythm = _rhythm(topology, settings.cost, demand)
    if rhythm.longest_lag > _MOST_LAG:
        raise InputError(
            f"method rounds plans transfers of up to {_MOST_LAG} rounds; here the slowest takes "
            f"{rhythm.longest_lag} times as long as the quickest link is held; use auto"
        )
    settings.tell("rounds", demand.chunk_count)
    file = _file_for(topology, settings, demand, rhythm)
    try:
        offsets, count, complete = _core.run_rounds(
            topology.core,
            rhythm.period,
            rhythm.lag,
            np.repeat(np.array(demand.group, dtype=np.int32), demand.chunks_per_share),
            settings.seed,
            settings.threads,
            file.fd,
            LOG_BEGINS,
            settings.progress,
        )
    except OSError as error:
        raise InputError(f"the log of rounds cannot be written: {error.strerror}") from None
    if not complete:
        raise unreachable(topology, demand.chunks)
    phases = 2 if demand.kind == "all-reduce" else 1
    rows = RoundLog(rhythm.slot, count, file.log(LOG_BEGINS), offsets, phases, file)
    return Algorithm((demand,), rows, topology, cost=settings.cost, provenance={"method": "rounds"})


def _why_not(topology: Topology, demands: Sequence[Collective]) -> str | None:
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
    if demand.kind != "all-gather" and twin_links(topology) is None:
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


def _held(topology: Topology, cost: CostModel, demand: Collective) -> NDArray[np.int64]:
    """How long the largest chunk holds each link."""
    push = _core.serialization(demand.largest_chunk, topology.bandwidth)
    return push + topology.latency if cost.latency_model == "blocking" else push


def _rhythm(topology: Topology, cost: CostModel, demand: Collective) -> _Rhythm:
    """Rounds as long as the quickest link is held, or a little longer if chunks then wait less."""
    held = _held(topology, cost, demand)
    takes = _core.serialization(demand.largest_chunk, topology.bandwidth) + topology.latency
    quickest = int(held.min(initial=1 << 62)) if len(held) else 1
    waits = -(-int(takes.min(initial=1 << 62)) // quickest) if len(held) else 1
    slots = [quickest]
    if waits > 1:
        slots.append(-(-int(takes.min()) // (waits - 1)))
    options = [_with_slot(topology, demand, held, takes, slot) for slot in slots]
    return min(options, key=lambda rhythm: rhythm.rounds * rhythm.slot)


def _with_slot(
    topology: Topology,
    demand: Collective,
    held: NDArray[np.int64],
    takes: NDArray[np.int64],
    slot: int,
) -> _Rhythm:
    period, lag = (np.minimum(-(-times // slot), _MOST_LAG + 1) for times in (held, takes))
    into = np.bincount(topology.dst, weights=1 / period, minlength=topology.npus)
    slowest = float(into[topology.members].min())
    chunks = demand.chunk_count - demand.chunks_per_share
    # What comes first can be sent on only later: that costs about twice the wait.
    rounds = chunks / max(slowest, 1 / _MOST_LAG) + 2 * (int(lag.max(initial=1)) - 1)
    return _Rhythm(slot, period.astype(np.int32), lag.astype(np.int32), int(rounds) + 1)


def _file_for(
    topology: Topology, settings: Settings, demand: Collective, rhythm: _Rhythm
) -> UnnamedFile:
    """A file for the log, once it is clear that there is room for it and for the work."""
    chunks = demand.chunk_count
    width = 2 if chunks <= NARROW_CHUNKS else 4
    bitmaps = rhythm.rounds * (topology.links // 8 + 16)
    log = chunks * demand.ranks * width + bitmaps + LOG_BEGINS
    sets = 2 if rhythm.longest_lag > 1 else 1
    needed = sets * topology.npus * -(-chunks // _BLOCK) * (_BLOCK // 8)
    needed += topology.links * (56 + 4 * (rhythm.longest_lag + 1)) + rhythm.rounds * 8
    folder = None
    if log > _IN_MEMORY:
        folder = settings.scratch or Path(tempfile.gettempdir())
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
