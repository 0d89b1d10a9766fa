"""The planners of the core: for chunks that spread, for pairs, for any mix of both and of sums."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.baselines import BASELINES
from weft.bound import quick_bound
from weft.collective import Chunks
from weft.cost import CostModel
from weft.errors import InputError, unknown_name
from weft.reachability import unreachable
from weft.synthesis.schedule import Schedule
from weft.topology.model import Topology
from weft.units import NEVER

# So many rows take seconds to push together: then there must be more to gain.
_MANY_ROWS, _LOOSE = 1 << 20, 1.02
# A schedule is pushed together if it takes longer than this over its goal.
_TIGHT = 1.001
# Chunks this much shorter than the largest are planned with slots of their own (`cpp/sizes.cpp`).
_ALIKE = 1 - 1 / 64
# Trees are tried where another method leaves more than this between it and its goal.
_CLOSE = 1.02


METHODS = (
    "auto",
    "matching",
    "rounds",
    "symmetric",
    "periodic",
    "unicast",
    "trees",
    "steiner",
    *BASELINES,
)


@dataclass(frozen=True)
class Settings:
    """How hard to try.

    Attributes
    ----------
    cost
        The cost model to plan for.
    seed
        Same seed, same result, on any number of threads.
    threads
        Threads to work on.
    progress
        Tells another thread how far the work is, and takes its word to give up.
    method
        One of `METHODS`: the only one to use, or ``auto`` for the best of those that fit.
    scratch
        Folder for rows that are too many for memory; None for the system's.
    one_of_several
        Whether other attempts run at the same time, so that this one must not say what it does.
    """

    cost: CostModel
    seed: int
    threads: int
    progress: _core.Progress = field(default_factory=_core.Progress)
    method: str = "auto"
    scratch: Path | None = None
    one_of_several: bool = False

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise unknown_name("method", self.method, METHODS)

    def tell(self, method: str, chunks: int) -> None:
        """Say what is planned now, and with how many chunks."""
        self.say(f"planning ({method}, {chunks:,} chunk{'s' * (chunks != 1)})")

    def say(self, phase: str) -> None:
        """Say what is done now."""
        if not self.one_of_several:
            self.progress.enter(phase)

    def insist(self, method: str, what: str) -> None:
        """Raise if another method is asked for: only this one can plan `what`."""
        if self.method not in ("auto", method):
            raise InputError(f"method {self.method} cannot plan {what}; use {method} or auto")


def plan(topology: Topology, chunks: Chunks, settings: Settings) -> tuple[Schedule, str]:
    """Plan chunks that are not summed; also says by which method."""
    if chunks.are_pairs and settings.method in ("auto", "unicast"):
        goal = quick_bound(topology, chunks, settings.cost)
        return plan_pairs(topology, chunks, settings, goal), "unicast"
    if settings.method == "unicast":
        settings.insist("matching", "chunks with several takers or holders")
    slot = chunks.largest
    goal = quick_bound(topology, chunks, settings.cost, slot)
    if settings.method == "trees":
        return _plan_broadcast(topology, chunks, settings, slot, goal), "trees"
    schedule = _plan_spread(topology, chunks, settings, slot, goal)
    far = settings.method == "auto" and schedule.time > goal * _CLOSE
    if far and _has_one_root(chunks):
        by_trees = _plan_broadcast(topology, chunks, settings, slot, goal)
        if by_trees.time < schedule.time:
            return by_trees, "trees"
    return schedule, "matching"


def _plan_spread(
    topology: Topology, chunks: Chunks, settings: Settings, slot: int, goal: int
) -> Schedule:
    """Plan by matching."""
    planned = _spread(topology, chunks, settings, slot, goal)
    if planned[-1] == NEVER:
        raise unreachable(topology, chunks)
    schedule = Schedule.from_core(topology, planned, slot)
    if schedule.time > goal * _TIGHT:
        settings.say("pushing together")
        schedule = schedule.tightened(topology, settings.cost, slot)
    return schedule


def _plan_broadcast(
    topology: Topology, chunks: Chunks, settings: Settings, slot: int, goal: int
) -> Schedule:
    """Plan chunks that all have one holder and the same takers by trees."""
    if not _has_one_root(chunks):
        raise InputError(
            "method trees plans all-reduce, broadcast and reduce among two NPUs or more; "
            "use auto for others"
        )
    root = chunks.members(int(chunks.pre[0]))
    members = np.union1d(root, chunks.members(int(chunks.post[0])))
    return plan_trees(topology, chunks, members, int(root[0]), settings, slot, goal)


def plan_pairs(topology: Topology, chunks: Chunks, settings: Settings, goal: int) -> Schedule:
    """Plan chunks that each go from one NPU to one other, of any sizes."""
    planned = _unicast(topology, chunks, settings, goal)
    if planned[-1] == NEVER:
        raise unreachable(topology, chunks)
    slot = chunks.largest
    if (chunks.bytes < slot * _ALIKE).any():
        return Schedule.from_core(topology, planned, None)  # exact for no chunk
    schedule = Schedule.from_core(topology, planned, slot)
    # What waits for its busiest link all the time cannot be pushed together.
    tight = _TIGHT if len(schedule.chunk) <= _MANY_ROWS else _LOOSE
    if schedule.time > _busiest(topology, schedule, settings.cost, slot) * tight:
        settings.say("pushing together")
        schedule = schedule.tightened(topology, settings.cost, slot)
    return schedule


def _busiest(topology: Topology, schedule: Schedule, cost: CostModel, slot: int) -> int:
    """How long the busiest link is held."""
    held = _core.serialization(slot, topology.bandwidth)
    if cost.latency_model == "blocking":
        held += topology.latency
    routes = schedule.routes
    times = np.repeat(np.bincount(schedule.route, minlength=len(routes)), np.diff(routes.offsets))
    uses = np.bincount(routes.links, weights=times, minlength=topology.links)
    return int((uses * held).max(initial=0))


def plan_any(topology: Topology, chunks: Chunks, settings: Settings) -> tuple[Schedule, str]:
    """Plan any mix of copies and sums, of any sizes."""
    settings.tell("steiner", len(chunks))
    planned = _core.steiner(
        topology.core,
        settings.cost.core,
        chunks.bytes,
        chunks.reduce,
        chunks.pre,
        chunks.post,
        chunks.reach,
        chunks.set_offsets,
        chunks.set_members,
        settings.seed,
        quick_bound(topology, chunks, settings.cost),
        settings.threads,
        settings.progress,
    )
    if planned[-1] == NEVER:
        raise unreachable(topology, chunks)
    return Schedule.from_core(topology, planned, None), "steiner"


def _has_one_root(chunks: Chunks) -> bool:
    """Whether this is a Broadcast to several: one holder, the same takers and reach for all."""
    return (
        len(chunks) > 0
        and all((column == column[0]).all() for column in (chunks.pre, chunks.post, chunks.reach))
        and len(chunks.members(int(chunks.pre[0]))) == 1
        and len(chunks.members(int(chunks.post[0]))) > 1
    )


def _reach_of(chunks: Chunks) -> NDArray[np.int32]:
    """The NPUs that the first chunk may visit; empty for any."""
    number = int(chunks.reach[0]) if len(chunks) else -1
    return chunks.members(number) if number >= 0 else np.empty(0, dtype=np.int32)


def plan_trees(
    topology: Topology,
    chunks: Chunks,
    members: NDArray[np.int32],
    root: int | None,
    settings: Settings,
    slot: int,
    goal: int,
) -> Schedule:
    """Trees packed together: a Broadcast from `root`, or an All-Reduce if there is none.

    Trees join all of `members`, of which `root` must be one.
    """
    settings.tell("trees", len(chunks))
    planned = _core.trees(
        topology.core,
        settings.cost.core,
        slot,
        members,
        _reach_of(chunks),
        -1 if root is None else root,
        len(chunks),
        settings.seed,
        goal,
        settings.progress,
    )
    if planned[-1] == NEVER and len(members) > 1:  # one alone has no tree, and needs none
        raise unreachable(topology, chunks)
    settings.say("pushing together")
    return Schedule.from_core(topology, planned, slot).tightened(topology, settings.cost, slot)


def _spread(
    topology: Topology, chunks: Chunks, settings: Settings, slot: int, goal: int
) -> _core.Schedule:
    sizes = chunks.set_sizes[chunks.pre]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    inner = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
    holders = chunks.set_members[np.repeat(chunks.set_offsets[chunks.pre], sizes) + inner]
    settings.tell("matching", len(chunks))
    return _core.match(
        topology.core,
        settings.cost.core,
        slot,
        offsets,
        holders,
        chunks.post,
        chunks.reach,
        chunks.set_offsets,
        chunks.set_members,
        settings.seed,
        goal,
        settings.threads,
        settings.progress,
    )


def _unicast(topology: Topology, chunks: Chunks, settings: Settings, goal: int) -> _core.Schedule:
    first = chunks.set_offsets
    settings.tell("unicast", len(chunks))
    return _core.unicast(
        topology.core,
        settings.cost.core,
        chunks.bytes,
        chunks.set_members[first[chunks.pre]],
        chunks.set_members[first[chunks.post]],
        chunks.reach,
        chunks.set_offsets,
        chunks.set_members,
        settings.seed,
        goal,
        settings.threads,
        settings.progress,
    )
