"""How long transfers over single links take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.cost import CostModel
from weft.topology.model import Topology


def over_links(topology: Topology, size: int) -> NDArray[np.int64]:
    """How long `size` bytes take over each link, in picoseconds.

    Over one link that is the same whether α holds the link or not.
    """
    return _core.serialization(size, topology.bandwidth) + topology.latency


def held(topology: Topology, cost: CostModel, size: int) -> NDArray[np.int64]:
    """How long `size` bytes hold each link, in picoseconds."""
    if cost.latency_model == "blocking":
        return over_links(topology, size)
    return _core.serialization(size, topology.bandwidth)


def of_rows(
    topology: Topology,
    sizes: NDArray[np.int64],
    which: NDArray[np.integer[Any]],
    link: NDArray[np.int32],
) -> NDArray[np.int64]:
    """How long each row takes that carries ``sizes[which]`` bytes over a link.

    There are few sizes of chunks, so they are worked out once each.
    """
    distinct, number = np.unique(sizes, return_inverse=True)
    table = np.stack([over_links(topology, size) for size in distinct.tolist()])
    found: NDArray[np.int64] = table[number.reshape(-1)[which], link]
    return found
