"""Where the time of a run went, along its critical path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.engine.algorithms import CAUSES, Simulation
from weft.values import Value


@dataclass(frozen=True, eq=False)
class PathTimes(Value):
    """How long each step of a critical path took, and doing what: all add up to the run's time.

    A step that the next one waits for to leave a link counts as waiting: the chunk that is
    followed has come, but the link carries another.

    Attributes
    ----------
    took
        Each step of the path, up to the next, in picoseconds (int64).
    moving, latency, waiting, adding
        Picoseconds in which the path pushed bytes, had them under way (α), waited for links,
        and added.
    moving_on, waiting_for
        The same by link, in picoseconds. A hop moves on its slowest link, but link after link
        where switches store and forward (float64, int64).
    """

    took: NDArray[np.int64]
    moving: int
    latency: int
    waiting: int
    adding: int
    moving_on: NDArray[np.float64]
    waiting_for: NDArray[np.int64]

    @classmethod
    def of(cls, run: Simulation) -> PathTimes:
        path = run.critical_path
        entered = _entered(run)
        took = np.diff(entered)
        waits = np.append(path.cause == CAUSES.index("link"), False)[1:][: len(path)]
        waiting_for = np.zeros(run.topology.links, dtype=np.int64)
        np.add.at(waiting_for, path.link[1:][waits[:-1]], took[waits])

        own = np.where(waits, 0, took)
        arrived = run.start[path.row] + run.occupied.duration[path.row]
        hop = np.clip(arrived - entered[:-1], 0, own)
        step, link = run.routes.crossed(run.route[path.row])
        alphas = np.zeros(len(path), dtype=np.int64)
        np.add.at(alphas, step, run.topology.latency[link])
        latency = np.minimum(hop, alphas)
        moving = hop - latency
        moving_on = np.zeros(run.topology.links)
        np.add.at(moving_on, link, moving[step] * _shares(run, step, link))
        return cls(
            took,
            int(moving.sum()),
            int(latency.sum()),
            int(waiting_for.sum()),
            int((own - hop).sum()),
            moving_on,
            waiting_for,
        )


def _entered(run: Simulation) -> NDArray[np.int64]:
    """When the path came to each step, and when it ended."""
    path = run.critical_path
    entered = np.append(run.start[path.row], run.time)
    by_end = np.isin(path.cause, (CAUSES.index("data"), CAUSES.index("adding")))
    later = np.flatnonzero(by_end)
    entered[later] = run.end[path.row[later - 1]]
    entered[:1] = 0
    # What waited only for memory to write may start before the step that freed it ends.
    backwards: NDArray[np.int64] = np.minimum.accumulate(entered[::-1])
    return backwards[::-1]


def _shares(
    run: Simulation, step: NDArray[np.int64], link: NDArray[np.int32]
) -> NDArray[np.float64]:
    """How much of the time in which a step pushes bytes belongs to each of its links."""
    bandwidth = run.topology.bandwidth[link]
    if run.cost.switching == "store-and-forward":
        pushes = 1 / bandwidth
        shares: NDArray[np.float64] = pushes / np.bincount(step, pushes)[step]
        return shares
    slowest_first = np.lexsort((bandwidth, step))  # stable: the first of equals
    _, firsts = np.unique(step[slowest_first], return_index=True)
    shares = np.zeros(len(link))
    shares[slowest_first[firsts]] = 1
    return shares
