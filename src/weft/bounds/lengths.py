"""How soon links can have carried so much, also under lengths: see ``docs/bounds.md``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.bounds.classes import ChunkClasses
from weft.bounds.overheads import Overheads
from weft.cost import CostModel
from weft.topology.durations import held
from weft.topology.model import Topology

_LONGEST = 2.0**40  # whole lengths: distances stay below 2^63

Lengths = NDArray[np.int64]
Price = NDArray[np.float64]  # per link: length times capacity, one in sum


@dataclass(frozen=True, eq=False)
class Carriers:
    """The links of a network, for chunks between `smallest` and `largest` bytes."""

    topology: Topology
    cost: CostModel
    smallest: int
    largest: int

    @classmethod
    def of(cls, topology: Topology, classes: ChunkClasses, cost: CostModel) -> Carriers:
        """The links for chunks of these classes."""
        return cls(topology, cost, classes.smallest, classes.largest)

    @cached_property
    def held(self) -> NDArray[np.int64]:
        """What α adds to each hold of a link."""
        return held(self.topology, self.cost, 0)

    @cached_property
    def gap(self) -> NDArray[np.int64]:
        """How long the smallest chunk holds each link."""
        return held(self.topology, self.cost, self.smallest)

    @cached_property
    def capacity(self) -> NDArray[np.float64]:
        """Bytes a second of chunks moved whole: where α blocks, each costs an α as well."""
        if self.smallest == self.largest:
            return self.largest / (self.gap / 1e12)
        alpha = self.held / 1e12 / self.largest
        return np.asarray(1 / (1 / self.topology.bandwidth + alpha), dtype=np.float64)

    def _overheads(self, links: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        found = Overheads.of(self.topology, self.cost)
        return found.once[links], found.across[links]

    def time_through(
        self, links: NDArray[np.intp], chunks: int, total_bytes: float
    ) -> tuple[int, int]:
        """Picoseconds until `chunks` whole chunks, or `total_bytes` cut at will, can have crossed.

        Whole chunks count in two ways, of which the stronger holds: by their number, as whole
        chunks between the smallest and the largest, and by their exact bytes plus, where α
        blocks, the α each of them holds its link, on the link where that costs least.
        """
        once, across = self._overheads(links)
        held, gap, bandwidth = self.held[links], self.gap[links], self.topology.bandwidth[links]
        fluid = _core.Capacity(opens=held + once, first=held + across, bandwidth=bandwidth)
        ideal = fluid.time_for_bytes(total_bytes)
        whole = _core.Capacity(
            opens=gap + once, first=gap + across, bandwidth=bandwidth, gap=gap, overhead=held
        )
        counted = whole.time_for_chunks(chunks, total_bytes, self.largest)
        overhead = float((held * (bandwidth / 1e12)).min(initial=np.inf)) if len(links) else 0.0
        exact = _core.Capacity(opens=held + once, first=across, bandwidth=bandwidth)
        by_bytes = exact.time_for_bytes(total_bytes + overhead * chunks)
        return max(counted, by_bytes, ideal), ideal

    def prove(self, lengths: Lengths, total: float, chunks: float) -> tuple[int, int]:
        """Picoseconds, for whole chunks and for any chunking, rounded down.

        Parameters
        ----------
        total, chunks
            All bytes, and all chunks, times the distance each has to go under `lengths`.
        """
        used = np.flatnonzero(lengths)
        if total <= 0 or len(used) == 0:  # what has no way at all has no length either
            return 0, 0
        once, across = self._overheads(used)
        held, gap, weight = self.held[used], self.gap[used], lengths[used]
        opens = held + once
        bandwidth = self.topology.bandwidth[used].astype(float)
        ideal = _fluid(opens, held + across, weight * bandwidth, total)
        exact = _fluid(opens, across, weight * self.capacity[used], total)
        counted = _core.Capacity(
            opens=gap + once, first=gap + across, bandwidth=weight, gap=gap
        ).time_for_weight(chunks * (1 - 1e-9))
        return max(ideal, exact, counted), ideal


def whole_lengths(lengths: NDArray[np.float64]) -> Lengths:
    """The nearest whole numbers, scaled so that the sums of many stay exact."""
    whole: Lengths = np.rint(lengths * (_LONGEST / lengths.max())).astype(np.int64)
    return whole


def _fluid(opens: NDArray[np.int64], first: NDArray[np.int64], rate: Price, total: float) -> int:
    """When links of these rates (length times bytes a second) can have carried `total`."""
    scale = 2.0**60 / float(rate.max())
    whole = np.ceil(rate * scale * (1 + 1e-12)).astype(np.int64)
    capacity = _core.Capacity(opens=opens, first=first, bandwidth=whole)
    return capacity.time_for_bytes(total * scale * (1 - 1e-12))
