"""What hops over each link cost besides their hold of it; found once for a network."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.cost import CostModel
from weft.topology.model import Topology


@dataclass(frozen=True, eq=False)
class Overheads:
    """One row a link: see ``cpp/bounds/hop_overheads.h``."""

    once: NDArray[np.int64]
    across: NDArray[np.int64]
    early: NDArray[np.uint8]
    late: NDArray[np.uint8]

    @classmethod
    def of(cls, topology: Topology, cost: CostModel) -> Overheads:
        """Those of a network's links."""
        known = _KNOWN.setdefault(topology, {})
        if cost not in known:
            known[cost] = cls(*_core.hop_overheads(topology.core, cost.core))
        return known[cost]


_KNOWN: WeakKeyDictionary[Topology, dict[CostModel, Overheads]] = WeakKeyDictionary()
