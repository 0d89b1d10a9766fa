"""What a network must be like; whatever is not raises TopologyError."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from weft.errors import TopologyError
from weft.units import MAX_BYTES

if TYPE_CHECKING:
    from weft.topology.model import Topology

MAX_DIMENSIONS = 64


def check_network(network: Topology) -> None:
    """Raise unless there are NPUs, links between nodes that are there, and a grid that fits."""
    name, src, dst = network.name, network.src, network.dst
    if network.npus < 1:
        raise TopologyError(f"{name}: a network needs at least one NPU")
    if any(column.shape != src.shape for column in network.columns):
        raise TopologyError(f"{name}: link columns differ in length")
    ends = np.stack([src, dst])
    for wrong, what in (
        (
            ((ends < 0) | (ends >= network.nodes)).any(axis=0),
            f"joins {{}} and {{}}, but nodes are 0 to {network.nodes - 1}",
        ),
        (src == dst, "joins node {} to itself"),
        (network.bandwidth <= 0, "has no positive bandwidth"),
        (network.latency < 0, "has a negative latency"),
    ):
        for link in np.flatnonzero(wrong)[:1]:
            raise TopologyError(f"{name}: link {link} {what.format(src[link], dst[link])}")
    check_dimensions(name, network.dimensions, network.npus)


def check_dimensions(name: str, sizes: Sequence[int], npus: int) -> None:
    """Raise unless a grid of these sizes has a place for every NPU, or there is no grid."""
    if len(sizes) > MAX_DIMENSIONS:
        raise TopologyError(f"{name}: {len(sizes)} dimensions; expected {MAX_DIMENSIONS} at most")
    if sizes and (min(sizes) < 1 or math.prod(sizes) != npus):
        raise TopologyError(
            f"{name}: dimensions {list(sizes)} do not fit {npus} NPUs; expected sizes from 1 "
            "whose product is the number of NPUs"
        )


def check_switches(
    network: Topology,
    buffers: Mapping[int, int],
    copying: Collection[int],
    adding: Collection[int],
) -> None:
    """Raise unless switches, and only they, have buffers, copy and add."""
    for what, switches in (("has a buffer", buffers), ("copies", copying), ("adds", adding)):
        for switch in switches:
            if not network.npus <= switch < network.nodes:
                raise TopologyError(f"{network.name}: node {switch} {what} but is no switch")
    for switch, size in buffers.items():
        if not 0 <= size <= MAX_BYTES:
            raise TopologyError(
                f"{network.name}: switch {network.node_name(switch)} has a buffer of {size} B; "
                f"expected 0 to {MAX_BYTES}"
            )
