"""The planners of the core: matching and trees where chunks spread, else a path for each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.bound import quick_bound
from weft.collective import Chunks
from weft.cost import CostModel
from weft.errors import InputError, UnreachableError, unknown_name
from weft.synthesis.schedule import Schedule
from weft.topology.model import Topology
from weft.units import NEVER

# A schedule is pushed together if it takes longer than this over its goal.
_TIGHT = 1.001
# Chunks this much shorter than the largest are planned with slots of their own (see the core).
_ALIKE = 1 - 1 / 64
# Trees are tried where another method leaves more than this between it and its goal.
_CLOSE = 1.02


METHODS = ("auto", "matching", "unicast", "trees", "steiner", "direct")


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
    """

    cost: CostModel
    seed: int
    threads: int
    progress: _core.Progress = field(default_factory=_core.Progress)
    method: str = "auto"

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise unknown_name("method", self.method, METHODS)

    def insist(self, method: str, what: str) -> None:
        """Raise if another method is asked for: only this one can plan `what`."""
        if self.method not in ("auto", method):
            raise InputError(f"method {self.method} cannot plan {what}; use {method} or auto")


def plan(topology: Topology, chunks: Chunks, settings: Settings) -> tuple[Schedule, str]:
    """Plan chunks that are not summed; also says by which method."""
    if are_pairs(chunks) and settings.method in ("auto", "unicast"):
        return _plan_pairs(topology, chunks, settings), "unicast"
    if settings.method == "unicast":
        settings.insist("matching", "chunks with several takers or holders")
    slot = int(chunks.bytes.max(initial=1))
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


def are_pairs(chunks: Chunks) -> bool:
    """Whether every chunk goes from one NPU to one other."""
    alone = np.diff(chunks.set_offsets) == 1
    return bool(alone[chunks.pre].all() and alone[chunks.post].all())


def _plan_spread(
    topology: Topology, chunks: Chunks, settings: Settings, slot: int, goal: int
) -> Schedule:
    """Plan by matching."""
    planned = _spread(topology, chunks, settings, slot, goal)
    if planned[-1] == NEVER:
        raise unreachable(topology, chunks)
    schedule = Schedule.from_core(topology, planned, slot)
    if schedule.time > goal * _TIGHT:
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


def _plan_pairs(topology: Topology, chunks: Chunks, settings: Settings) -> Schedule:
    """Plan chunks that each go from one NPU to one other, of any sizes."""
    goal = quick_bound(topology, chunks, settings.cost)
    planned = _unicast(topology, chunks, settings, goal)
    if planned[-1] == NEVER:
        raise unreachable(topology, chunks)
    slot = int(chunks.bytes.max(initial=1))
    if (chunks.bytes < slot * _ALIKE).any():
        return Schedule.from_core(topology, planned, None)  # exact for no chunk
    schedule = Schedule.from_core(topology, planned, slot)
    # What waits for its busiest link all the time cannot be pushed together.
    if schedule.time > _busiest(topology, schedule, settings.cost, slot) * _TIGHT:
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
    return Schedule.from_core(topology, planned, slot).tightened(topology, settings.cost, slot)


def _spread(
    topology: Topology, chunks: Chunks, settings: Settings, slot: int, goal: int
) -> _core.Schedule:
    sizes = np.diff(chunks.set_offsets)[chunks.pre]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    inner = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
    holders = chunks.set_members[np.repeat(chunks.set_offsets[chunks.pre], sizes) + inner]
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


def unreachable(topology: Topology, chunks: Chunks) -> UnreachableError:
    """Name the first chunk, or part of a sum, that has no way to one of its takers."""
    ends = np.stack([chunks.pre, chunks.post, chunks.reach], axis=1)
    for chunk in np.sort(np.unique(ends, axis=0, return_index=True)[1]):
        holders = chunks.members(int(chunks.pre[chunk]))
        takers = chunks.members(int(chunks.post[chunk]))
        network, why = topology, "no path of links leads there"
        if chunks.reach[chunk] >= 0:
            allowed = chunks.members(int(chunks.reach[chunk]))
            network = topology.without(npus=np.setdiff1d(topology.members, allowed))
            why += f" through its group of {len(allowed)} NPUs, and relaying outside is forbidden"
        if chunks.reduce[chunk]:  # what every holder has must get to every taker
            pairs = [(_lonely(network, npu[None], holders, reverse=True), npu) for npu in takers]
        else:
            pairs = [(holders[0], _lonely(network, holders, takers, reverse=False))]
        for source, target in pairs:
            if source is not None and target is not None:
                return UnreachableError(
                    f"{topology.name}: chunk {chunk} cannot get from NPU {source} to NPU {target}: "
                    f"{why}"
                )
    room = min(topology.buffers.values(), default=NEVER)
    return UnreachableError(
        f"{topology.name}: chunks of {chunks.bytes.max(initial=0)} B do not fit the buffers of the "
        f"switches on their way (from {room} B), which forward whole chunks only; use more chunks "
        "or cut-through"
    )


def _lonely(
    topology: Topology, near: NDArray[np.int32], far: NDArray[np.int32], *, reverse: bool
) -> np.int32 | None:
    """The first of `far` without a path from any of `near`, or to any of them if `reverse`."""
    found = [_core.distances(topology.core, int(npu), reverse)[far] >= 0 for npu in near]
    missed: NDArray[np.int32] = far[~np.any(found, axis=0)]
    return missed[0] if len(missed) else None
