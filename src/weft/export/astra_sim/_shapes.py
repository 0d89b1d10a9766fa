"""Whether a network is one that ASTRA-sim's analytical backends name: a product of dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weft.arrays import Int64
from weft.errors import InputError
from weft.topology import Topology
from weft.topology.astra import BYTES_PER_GB
from weft.topology.dimensions import Dimension, product
from weft.units import PS_PER_NS

NAMES = {"ring": "Ring", "fc": "FullyConnected", "switch": "Switch"}


@dataclass(frozen=True)
class Shape:
    """One dimension of ASTRA-sim's network file: B/s and picoseconds a link."""

    name: str
    size: int
    bandwidth: int
    latency: int

    @property
    def gb(self) -> float:
        """Bandwidth as the file has it."""
        return self.bandwidth / BYTES_PER_GB

    @property
    def ns(self) -> float:
        """Latency as the file has it."""
        return self.latency / PS_PER_NS


def shapes_of(topology: Topology) -> tuple[Shape, ...] | None:
    """The dimensions of which the network is the product, fastest first; None if of none.

    The numbers of its nodes must be those of `weft.topology.dimensions`, which are ASTRA-sim's.
    """
    if topology.removed or topology.copying or topology.npus < 2:
        return None
    from_zero = np.flatnonzero(topology.src == 0)
    near = topology.dst[from_zero].tolist()
    if len(set(near)) < len(near):
        return None  # parallel links
    npus = frozenset(node for node in near if node < topology.npus)
    switches = tuple(sorted(node for node in near if node >= topology.npus))
    links = dict(zip(near, from_zero.tolist(), strict=True))
    for wirings in _candidates(topology, 1, npus, switches):
        found = _check(topology, wirings, links)
        if found is not None:
            return found
    return None


# A wiring, how many NPUs it joins, and the node over which NPU 0 is on it.
_Axis = tuple[str, int, int]


def _candidates(
    topology: Topology, stride: int, npus: frozenset[int], switches: tuple[int, ...]
) -> Iterator[tuple[_Axis, ...]]:
    """Ways to explain the neighbours of NPU 0, dimension by dimension."""
    left = topology.npus // stride
    if left == 1:
        if not npus and not switches:
            yield ()
        return
    for wiring, size, over in _axes(topology, stride, npus, switches):
        used = frozenset(_needed(wiring, size, stride))
        others = switches[1:] if wiring == "switch" else switches
        for rest in _candidates(topology, stride * size, npus - used, others):
            yield ((wiring, size, over), *rest)


def _axes(
    topology: Topology, stride: int, npus: frozenset[int], switches: tuple[int, ...]
) -> Iterator[_Axis]:
    left = topology.npus // stride
    for size in range(2, left + 1):
        if left % size == 0:
            for wiring in ("fc", "ring") if size > 3 else ("fc",):
                if npus.issuperset(_needed(wiring, size, stride)):
                    yield wiring, size, stride
    if switches:
        size = int(np.count_nonzero(topology.dst == switches[0]))
        if size > 1 and left % size == 0:
            yield "switch", size, switches[0]


def _needed(wiring: str, size: int, stride: int) -> list[int]:
    """The neighbours that NPU 0 has in a dimension."""
    if wiring == "switch":
        return []
    return [stride * step for step in ((1, size - 1) if wiring == "ring" else range(1, size))]


def _check(
    topology: Topology, axes: tuple[_Axis, ...], links: dict[int, int]
) -> tuple[Shape, ...] | None:
    """The dimensions, if their product has the very links of the network."""
    speeds = [links[over] for _, _, over in axes]
    rates = [int(topology.bandwidth[link]) for link in speeds]
    delays = [int(topology.latency[link]) for link in speeds]
    try:
        built = product(
            topology.name,
            [Dimension(wiring, size, i) for i, (wiring, size, _) in enumerate(axes)],
            rates,
            delays,
        )
    except InputError:
        return None
    if built.nodes != topology.nodes or built.links != topology.links:
        return None
    if any((a != b).any() for a, b in zip(_sorted(built), _sorted(topology), strict=True)):
        return None
    return tuple(
        Shape(NAMES[wiring], size, rate, delay)
        for (wiring, size, _), rate, delay in zip(axes, rates, delays, strict=True)
    )


def _sorted(topology: Topology) -> list[Int64]:
    columns = (topology.src, topology.dst, topology.bandwidth, topology.latency)
    order = np.lexsort(columns[::-1])
    return [column[order].astype(np.int64) for column in columns]
