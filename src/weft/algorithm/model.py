"""The algorithm: the common representation of producers and consumers, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.transfers import Routes, Transfers
from weft.collective import Chunks, Collective
from weft.cost import CostModel
from weft.errors import InputError
from weft.topology.model import Topology
from weft.units import PS_PER_US


@dataclass(frozen=True, eq=False)
class Algorithm:
    """Who sends which chunk to whom, after what, and (if timed) over which links and when.

    Attributes
    ----------
    demands
        The collectives it serves. Chunk numbers are global: those of the first demand come
        first, then those of the second, and so on.
    transfers
        The rows.
    topology, routes, cost
        The network, the routes and the cost model the times hold for; absent if untimed.
    provenance
        How it was made (method, seed, ...): for people, not for meaning.
    """

    demands: tuple[Collective, ...]
    transfers: Transfers
    topology: Topology | None = None
    routes: Routes | None = None
    cost: CostModel | None = None
    provenance: Mapping[str, str | int | float | bool] = field(
        default_factory=lambda: MappingProxyType({})
    )

    def __post_init__(self) -> None:
        if not self.demands:
            raise InputError("an algorithm serves at least one collective")
        if self.timed and (self.topology is None or self.routes is None or self.cost is None):
            raise InputError("a timed algorithm needs a topology, routes and a cost model")

    @property
    def timed(self) -> bool:
        return self.transfers.timed

    @cached_property
    def chunks(self) -> Chunks:
        """All demands' chunks, under their global numbers."""
        return Chunks.concatenate([demand.chunks for demand in self.demands])

    @cached_property
    def time(self) -> int:
        """When the last transfer ends, in picoseconds."""
        if self.transfers.end is None:
            raise InputError("the algorithm has no times yet: it was not made for a network")
        return int(self.transfers.end.max(initial=0))

    @property
    def time_us(self) -> float:
        return self.time / PS_PER_US

    @cached_property
    def times(self) -> tuple[int, ...]:
        """When the last transfer of each demand ends, in picoseconds."""
        if self.transfers.end is None:
            raise InputError("the algorithm has no times yet: it was not made for a network")
        return last_ends(self.demands, self.transfers.chunk, self.transfers.end)

    def save(self, folder: str | Path) -> None:
        """Write a folder of Chakra execution traces, one file a rank; see `weft.load`."""
        from weft.formats import chakra

        chakra.save(self, Path(folder))


def last_ends(
    demands: Sequence[Collective], chunk: NDArray[np.int32], end: NDArray[np.int64]
) -> tuple[int, ...]:
    """When the last row of each demand ends, given the chunk and the end of each row."""
    firsts = np.cumsum([0, *(len(demand.chunks) for demand in demands)])
    of = np.searchsorted(firsts, chunk, side="right") - 1
    last = np.zeros(len(demands), dtype=np.int64)
    np.maximum.at(last, of, end)
    return tuple(last.tolist())
