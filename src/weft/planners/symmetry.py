"""Collectives in which all NPUs do the same, on vertex-transitive networks: what bounds them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.collective import Collective
from weft.cost import CostModel
from weft.topology.model import Topology
from weft.topology.translations import Translations, translates_by_hops

KINDS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")
# Bytes while a plan is made: of a chunk at an NPU, of a way out of it there, and of a row.
_BYTES_A_PLACE, _BYTES_A_WAY, _BYTES_A_ROW = 32, 24, 80


def is_symmetric(topology: Topology, demands: Sequence[Collective]) -> bool:
    """Whether one collective of all NPUs has all do the same, and the network is symmetric."""
    if len(demands) != 1 or topology.npus < 2:
        return False
    return all_do_the_same(demands[0], range(topology.npus)) and translates_by_hops(topology)


def all_do_the_same(demand: Collective, npus: Iterable[int]) -> bool:
    """Whether a collective is one of just these NPUs in which all have the same to do."""
    return (
        demand.kind in KINDS
        and demand.parts is None
        and demand.group == tuple(npus)
        and demand.smallest_chunk > 0
    )


def symmetric_floor(topology: Topology, demand: Collective, cost: CostModel) -> int:
    """A time in picoseconds that no algorithm can beat, found without a table of chunks."""
    return Job(Translations.of(topology), demand, cost).floor(demand.smallest_chunk)


@dataclass(frozen=True, eq=False)
class Job:
    """A collective on a network that translates onto itself."""

    moves: Translations
    demand: Collective
    cost: CostModel

    @property
    def pieces(self) -> int:
        return self.demand.chunks_per_share

    @property
    def npus(self) -> int:
        return self.moves.topology.npus

    @cached_property
    def directions(self) -> _core.Directions:
        """For the kernels, which plan for the largest chunk."""
        hold, duration = self.resources(self.demand.largest_chunk, self.demand.smallest_chunk)
        moves = self.moves
        return _core.Directions(
            sizes=np.array(moves.topology.dimensions, dtype=np.int32),
            dimension=moves.dimension,
            step=moves.step,
            resource=moves.resource,
            hold=hold,
            duration=duration,
        )

    def resources(self, largest: int, smallest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How long each resource is held by a chunk, and how long until that is usable."""
        _, first = np.unique(self.moves.resource, return_index=True)
        hold = self.moves.holds(self.cost, largest, smallest)[first]
        return hold, self.moves.durations(self.cost, largest)[first]

    @cached_property
    def _steps(self) -> list[tuple[int, int, int]]:
        """Of each dimension that is wider than 1: size, steps to the farthest, steps to all."""
        steps = []
        for dimension in np.unique(self.moves.dimension).tolist():
            size = self.moves.topology.dimensions[dimension]
            if int((self.moves.dimension == dimension).sum()) == size - 1:
                steps.append((size, 1, size - 1))
            else:  # a ring, in which the way is the shorter of two
                steps.append((size, size // 2, size * size // 4))
        return steps

    def floor(self, chunk_bytes: int) -> int:
        """A time that no algorithm can beat if all chunks are at least so long.

        Either the farthest NPU is too far away, or links have too much to carry: all of those
        along a dimension in an All-to-All; else those along the slowest one, two, ... dimensions,
        over which every chunk must get to each part of the network that they join.
        """
        hold, duration = self.resources(chunk_bytes, chunk_bytes)
        if self.moves.topology.copying:
            _, first = np.unique(self.moves.resource, return_index=True)
            hold = self.moves.arrivals(self.cost, chunk_bytes)[first]
        if not self.moves.complete:
            return self._carried_by_all(hold, duration)
        of_dimension = np.zeros(len(hold), dtype=np.int64)
        of_dimension[self.moves.resource] = self.moves.dimension
        groups = [np.flatnonzero(of_dimension == one) for one in np.unique(of_dimension)]
        paired = list(zip(groups, self._steps, strict=True))
        least = sum(far * int(duration[mine].min()) for mine, (_, far, _) in paired)
        if self.demand.kind == "all-to-all":
            for mine, (size, _, to_all) in paired:
                rows = self.npus // size * to_all * self.pieces
                least = max(least, _carried(rows, hold[mine], duration[mine]))
            return least
        # Where switches add, one receive may bring all that others contribute.
        adding = bool(self.moves.topology.adding)
        times = 2 if self.demand.kind == "all-reduce" and not adding else 1
        parts, joining = 1, np.empty(0, dtype=np.int64)
        for mine, (size, _, _) in sorted(paired, key=lambda pair: -int(hold[pair[0]].min())):
            parts, joining = parts * size, np.concatenate([joining, mine])
            rows = (parts - 1) * self.pieces * times
            least = max(least, _carried(rows, hold[joining], duration[joining]))
        return least

    def _carried_by_all(self, hold: NDArray[np.int64], duration: NDArray[np.int64]) -> int:
        """The same if there are other ways too: all that an NPU sends leaves it over its links."""
        adding = bool(self.moves.topology.adding)
        times = 2 if self.demand.kind == "all-reduce" and not adding else 1
        return _carried((self.npus - 1) * self.pieces * times, hold, duration)

    @property
    def bytes_needed(self) -> int:
        """About how much memory it takes to make a plan."""
        places = self.npus * self.pieces
        rows = places * (2 if self.demand.kind == "all-reduce" else 1)
        ways = len(np.unique(self.moves.resource))
        if self.demand.kind == "all-to-all":
            rows = sum(places // size * to_all for size, _, to_all in self._steps)
            ways = len(self.moves.topology.dimensions)
        return places * (_BYTES_A_PLACE + ways * _BYTES_A_WAY) + rows * _BYTES_A_ROW


def _carried(rows: int, hold: NDArray[np.int64], duration: NDArray[np.int64]) -> int:
    """How soon so many chunks can have passed over some resources."""
    lead = duration - hold
    latest = int((lead + hold * rows).min())

    def passed(time: int) -> int:
        return int(np.maximum((time - lead) // hold, 0).sum())

    return bisect_left(range(latest), rows, key=passed)
