"""What links of given lengths prove: see Flow in ``docs/bounds.md``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.cost import CostModel
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

    @cached_property
    def held(self) -> NDArray[np.int64]:
        """What α adds to each hold of a link."""
        blocking = self.cost.latency_model == "blocking"
        return self.topology.latency if blocking else np.zeros_like(self.topology.latency)

    @cached_property
    def gap(self) -> NDArray[np.int64]:
        """How long the smallest chunk holds each link."""
        return _core.serialization(self.smallest, self.topology.bandwidth) + self.held

    @cached_property
    def capacity(self) -> NDArray[np.float64]:
        """Bytes a second of chunks moved whole: where α blocks, each costs an α as well."""
        if self.smallest == self.largest:
            return self.largest / (self.gap / 1e12)
        alpha = self.held / 1e12 / self.largest
        return np.asarray(1 / (1 / self.topology.bandwidth + alpha), dtype=np.float64)

    @cached_property
    def _leads(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return _core.leads(self.topology.core, self.cost.core)

    def prove(self, lengths: Lengths, total: float, chunks: float) -> tuple[int, int]:
        """Picoseconds, for whole chunks and for any chunking, rounded down.

        Parameters
        ----------
        total, chunks
            All bytes, and all chunks, times the distance each has to go under `lengths`.
        """
        if total <= 0:
            return 0, 0
        used = np.flatnonzero(lengths)
        once, across = (lead[used] for lead in self._leads)
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
