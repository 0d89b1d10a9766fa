"""What is to be planned: a network, collectives that run at once, and how hard to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from weft import _core
from weft.bounds import NONE, Bound, exchange_bound, is_exchange, quick_bound, quick_bounds
from weft.clock import fits_clock
from weft.collective import Chunks, Collective
from weft.cost import CostModel
from weft.planners.attempts import Attempt
from weft.planners.symmetry import is_symmetric, symmetric_floor
from weft.topology.model import Topology
from weft.units import NEVER

AUTO = "auto"

ROUNDED = 1
"""Picoseconds by which a bound may be rounded down: what is no farther from it meets it."""
_NEAR, _NEAR_ENOUGH, _FEW_PAIRS = 1.000001, 1.005, 1 << 10
_MOST_LISTED = 1 << 20  # chunks of which a table is made only to bound them


@dataclass(frozen=True, eq=False)
class Task:
    """Collectives that run at once on a network, and what is known of them; worked out once."""

    topology: Topology
    demands: tuple[Collective, ...]
    cost: CostModel

    @cached_property
    def chunks(self) -> Chunks:
        """All demands' chunks, under their global numbers."""
        return Chunks.concatenate([demand.chunks for demand in self.demands])

    @cached_property
    def goal(self) -> int:
        """A time that no plan with slots for the largest chunk can beat: where kernels stop."""
        if int(self.chunks.bytes.min(initial=0)) == self.chunks.largest:
            return self._quick[0]
        return quick_bound(self.topology, self.chunks, self.cost, self.chunks.largest)

    @property
    def almost(self) -> float:
        """A time that no plan can beat by more than rounding: the goal, for the smallest chunk."""
        if self.is_too_large_for_tables or len(self.chunks) == 0:
            return 0
        return self.goal * int(self.chunks.bytes.min()) / self.chunks.largest

    @cached_property
    def floor(self) -> int:
        """The same for any slots, found without a table of chunks; 0 without symmetry."""
        if not self.is_symmetric:
            return 0
        return symmetric_floor(self.topology, self.demands[0], self.cost)

    @cached_property
    def bound(self) -> int:
        """A time that no algorithm with these chunks can beat, found cheaply."""
        if self.is_too_large_for_tables:
            return max(self.floor, self._of_many.time)
        return max(self.floor, self._quick[0])

    @cached_property
    def ideal(self) -> int:
        """A time that no algorithm can beat, in whatever chunks; 0 if that is not cheap to find."""
        if self.is_too_large_for_tables:
            return self._of_many.ideal
        return self._quick[1]

    @cached_property
    def _of_many(self) -> Bound:
        """What is known without a table of all chunks."""
        if len(self.demands) != 1 or not is_exchange(self.demands[0]):
            return NONE
        return exchange_bound(self.topology, self.demands[0], self.cost)

    @cached_property
    def _quick(self) -> tuple[int, int]:
        """Cheap bounds: for these chunks, and for any."""
        return quick_bounds(self.topology, self.chunks, self.cost)

    @cached_property
    def near(self) -> float:
        """How many times a bound a plan may take that ends the search: little is lost."""
        pairs = sum(demand.ranks**2 for demand in self.demands)
        return _NEAR if pairs <= _FEW_PAIRS else _NEAR_ENOUGH

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether all NPUs do the same, and the network is vertex-transitive."""
        return is_symmetric(self.topology, self.demands)

    @cached_property
    def deliveries(self) -> int:
        """How often a chunk must reach a taker, or a part of a sum its taker."""
        sizes = self.chunks.set_sizes
        contributors = np.where(self.chunks.reduce, sizes[self.chunks.pre], 1)
        return int((contributors + sizes[self.chunks.post]).sum())

    @cached_property
    def is_even(self) -> bool:
        """Whether slots of one length for all chunks lose little."""
        chunks = self.chunks
        return int(chunks.bytes.sum()) >= 0.95 * chunks.largest * len(chunks)

    @cached_property
    def fits_clock(self) -> bool:
        """Whether no plan can run past the end of the clock."""
        return fits_clock(self.topology, self.demands)

    @property
    def is_too_large_for_tables(self) -> bool:
        """Whether a table of all chunks is too much for a look at them."""
        return sum(demand.chunk_count for demand in self.demands) > _MOST_LISTED

    @cached_property
    def is_paired(self) -> bool:
        """Whether every chunk has one holder and one taker."""
        return self.chunks.are_pairs

    @cached_property
    def sums_for_one(self) -> bool:
        """Whether all chunks are sums, for one taker each."""
        chunks = self.chunks
        return bool(chunks.reduce.all() and (chunks.set_sizes[chunks.post] == 1).all())

    @cached_property
    def memo(self) -> dict[str, Any]:
        """What others find out about it, by who does: worked out once, whoever asks."""
        return {}

    @cached_property
    def cuts(self) -> dict[tuple[Collective, ...], Task]:
        """The same in other chunks: each is made once, whoever tries it."""
        return {self.demands: self}


@dataclass(frozen=True, eq=False)
class Problem:
    """One value that every planner gets.

    Attributes
    ----------
    task
        The network, the collectives and the cost model, with what follows from them.
    free
        For each collective: whether its number of chunks is to be chosen.
    method
        The only method to use, or ``auto`` for the best of those that fit.
    seed
        Same seed, same plan, on any number of threads.
    threads
        Threads to work on.
    progress
        Tells another thread how far the work is, and takes its word to give up.
    scratch
        Folder for rows that are too many for memory; None for the system's.
    below
        Picoseconds: a plan that takes as long is of no use, so a planner may give up.
    quiet
        Whether others plan at the same time, so that this one must not say what it does.
    tried
        What was tried so far; the portfolio adds to it.
    """

    task: Task
    free: tuple[bool, ...] = ()
    method: str = AUTO
    seed: int = 0
    threads: int = 1
    progress: _core.Progress = field(default_factory=_core.Progress)
    scratch: Path | None = None
    below: int = NEVER
    quiet: bool = False
    tried: list[Attempt] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        topology: Topology,
        demands: Sequence[Collective] | Collective,
        cost: CostModel | None = None,
        *,
        seed: int = 0,
        threads: int = 1,
        progress: _core.Progress | None = None,
        method: str = AUTO,
    ) -> Problem:
        """A problem whose collectives are cut as they are."""
        given = (demands,) if isinstance(demands, Collective) else tuple(demands)
        task = Task(topology, given, cost or CostModel())
        progress = progress or _core.Progress()
        return cls(task, method=method, seed=seed, threads=threads, progress=progress)

    @property
    def topology(self) -> Topology:
        return self.task.topology

    @property
    def demands(self) -> tuple[Collective, ...]:
        return self.task.demands

    @property
    def demand(self) -> Collective:
        """The first collective; most planners take one."""
        return self.task.demands[0]

    @property
    def cost(self) -> CostModel:
        return self.task.cost

    @property
    def chunks(self) -> Chunks:
        return self.task.chunks

    @property
    def bound(self) -> int:
        """See `Task.bound`."""
        return self.task.bound

    def search(self, goal: int = 0) -> _core.Search:
        """For the kernels: how to search for a plan that takes no less than `goal`."""
        return _core.Search(seed=self.seed, goal=goal, threads=self.threads, progress=self.progress)

    @property
    def kinds(self) -> set[str]:
        """Names of the patterns."""
        return {demand.kind for demand in self.demands}

    @property
    def is_auto(self) -> bool:
        return self.method == AUTO

    def cut(self, demands: Sequence[Collective]) -> Problem:
        """The same with these chunks, which are not to be chosen any more."""
        key, made = tuple(demands), self.task.cuts
        if key not in made:
            made[key] = replace(self.task, demands=key)
        return replace(self, task=made[key], free=())

    def only(self, demand: Collective) -> Problem:
        """One collective as if it had the network to itself."""
        task = replace(self.task, demands=(demand,))
        return replace(self, task=task, free=(), below=NEVER, tried=[])

    def on(self, topology: Topology) -> Problem:
        """The same on another network."""
        if topology is self.topology:
            return self
        return replace(self, task=replace(self.task, topology=topology))

    def say(self, phase: str) -> None:
        """Say what is done now."""
        if not self.quiet:
            self.progress.enter(phase)

    def planning(self, method: str, chunks: int) -> None:
        """Say what is planned now, and with how many chunks."""
        self.say(f"planning ({method}, {chunks:,} chunk{'s' * (chunks != 1)})")
