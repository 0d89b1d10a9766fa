"""The planners of the core: matching and trees where chunks spread, else a path for each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.bound import quick_bound
from weft.collective import Chunks
from weft.cost import CostModel
from weft.errors import UnreachableError
from weft.synthesis.schedule import Schedule
from weft.topology.model import Topology
from weft.units import NEVER

# A schedule is pushed together if it takes longer than this over its goal.
_TIGHT = 1.001
# Trees are tried where another method leaves more than this between it and its goal.
_CLOSE = 1.02


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
    """

    cost: CostModel
    seed: int
    threads: int
    progress: _core.Progress = field(default_factory=_core.Progress)


def plan(topology: Topology, chunks: Chunks, settings: Settings) -> tuple[Schedule, str]:
    """Plan chunks that are not summed; also says by which method."""
    slot = int(chunks.bytes.max(initial=1))
    goal = quick_bound(topology, chunks, settings.cost, slot)
    alone = np.diff(chunks.set_offsets) == 1
    if alone[chunks.post].all() and alone[chunks.pre].all():
        planned, method = _unicast(topology, chunks, settings, slot, goal), "unicast"
    else:
        planned, method = _spread(topology, chunks, settings, slot, goal), "matching"
    if planned[-1] == NEVER:
        raise unreachable(topology, chunks)
    schedule = Schedule.from_core(topology, planned, slot)
    if schedule.time > goal * _TIGHT:
        schedule = schedule.tightened(topology, settings.cost, slot)
    if _has_one_root(chunks) and schedule.time > goal * _CLOSE:
        root = int(chunks.members(int(chunks.pre[0]))[0])
        takers = chunks.members(int(chunks.post[0]))
        by_trees = plan_trees(topology, takers, root, len(chunks), settings, slot, goal)
        if by_trees.time < schedule.time:
            return by_trees, "trees"
    return schedule, method


def _has_one_root(chunks: Chunks) -> bool:
    """Whether this is a Broadcast to several: one holder, the same takers for all."""
    return (
        len(chunks) > 0
        and bool((chunks.pre == chunks.pre[0]).all() and (chunks.post == chunks.post[0]).all())
        and len(chunks.members(int(chunks.pre[0]))) == 1
        and len(chunks.members(int(chunks.post[0]))) > 1
    )


def plan_trees(
    topology: Topology,
    members: NDArray[np.int32],
    root: int | None,
    chunks: int,
    settings: Settings,
    slot: int,
    goal: int,
) -> Schedule:
    """Trees packed together: a Broadcast from `root`, or an All-Reduce if there is none."""
    planned = _core.trees(
        topology.core,
        settings.cost.core,
        slot,
        members,
        -1 if root is None else root,
        chunks,
        settings.seed,
        goal,
        settings.progress,
    )
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
        chunks.set_offsets,
        chunks.set_members,
        settings.seed,
        goal,
        settings.threads,
        settings.progress,
    )


def _unicast(
    topology: Topology, chunks: Chunks, settings: Settings, slot: int, goal: int
) -> _core.Schedule:
    first = chunks.set_offsets
    src = chunks.set_members[first[chunks.pre]]
    dst = chunks.set_members[first[chunks.post]]
    return _core.unicast(
        topology.core,
        settings.cost.core,
        slot,
        src,
        dst,
        settings.seed,
        goal,
        settings.progress,
    )


def unreachable(topology: Topology, chunks: Chunks) -> UnreachableError:
    """Name the first chunk, or part of a sum, that has no way to one of its takers."""
    ends = np.stack([chunks.pre, chunks.post], axis=1)
    for chunk in np.sort(np.unique(ends, axis=0, return_index=True)[1]):
        holders = chunks.members(int(chunks.pre[chunk]))
        takers = chunks.members(int(chunks.post[chunk]))
        if chunks.reduce[chunk]:  # what every holder has must get there
            source, target = _lonely(topology, takers, holders, reverse=True), takers[0]
        else:
            source, target = holders[0], _lonely(topology, holders, takers, reverse=False)
        if source is not None and target is not None:
            return UnreachableError(
                f"{topology.name}: chunk {chunk} cannot get from NPU {source} to NPU {target}: "
                "no path of links leads there"
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
