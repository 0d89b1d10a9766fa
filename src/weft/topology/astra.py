"""ASTRA-sim's analytical network file, read as a product of dimensions.

It has four lists with one item per dimension: ``topology`` (Ring, FullyConnected, Switch),
``npus_count``, ``bandwidth`` in "GB/s" of 2^30 bytes and ``latency`` in nanoseconds.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from weft.documents import PlacedError, Words, convert, placed
from weft.errors import unknown_name
from weft.topology.dimensions import Dimension, product
from weft.topology.model import Topology
from weft.units import MAX_BANDWIDTH, MAX_LATENCY_PS, PS_PER_NS

WIRING_OF = {"Ring": "ring", "FullyConnected": "fc", "Switch": "switch"}
BYTES_PER_GB = 1 << 30


class AstraNetwork(msgspec.Struct):
    """The keys Weft uses; ASTRA-sim ignores others, and so do we."""

    topology: list[str]
    npus_count: list[Annotated[int, Meta(ge=1, le=10**9)]]
    bandwidth: list[float]
    latency: list[float]


def is_astra(value: Any) -> bool:
    """Whether plain values look like ASTRA-sim's file rather than Weft's."""
    return isinstance(value, dict) and "npus_count" in value and "weft" not in value


def build_astra(value: Any) -> Topology:
    """The network that the plain values of such a file describe. Raises `PlacedError`."""
    record, rates, delays = _checked(value)
    dimensions = [
        Dimension(WIRING_OF[kind], size, i)
        for i, (kind, size) in enumerate(zip(record.topology, record.npus_count, strict=True))
    ]
    name = "*".join(f"{d.wiring}:{d.size}" for d in dimensions)
    with placed("", ("npus_count",)):
        return product(name, dimensions, rates, delays)


def astra_network(value: Any) -> AstraNetwork:
    """What the plain values of such a file say, checked. Raises `PlacedError`."""
    if not is_astra(value):
        raise PlacedError("is not a network file of ASTRA-sim: it has no npus_count")
    return _checked(value)[0]


def _checked(value: Any) -> tuple[AstraNetwork, list[int], list[int]]:
    """The record, with bytes per second and picoseconds by dimension."""
    record = convert(value, AstraNetwork, Words())
    count = len(record.npus_count)
    for field in ("topology", "bandwidth", "latency"):
        if len(getattr(record, field)) != count or count == 0:
            raise PlacedError(
                f"{field} has {len(getattr(record, field))} items where npus_count has {count}; "
                "expected one per dimension",
                (field,),
            )
    for i, kind in enumerate(record.topology):
        if kind not in WIRING_OF:
            raise PlacedError(str(unknown_name("topology", kind, WIRING_OF)), ("topology", i))
    rates = [
        _scaled(v, BYTES_PER_GB, 1, MAX_BANDWIDTH, ("bandwidth", i))
        for i, v in enumerate(record.bandwidth)
    ]
    delays = [
        _scaled(v, PS_PER_NS, 0, MAX_LATENCY_PS, ("latency", i))
        for i, v in enumerate(record.latency)
    ]
    return record, rates, delays


def _scaled(value: float, unit: int, least: int, most: int, path: tuple[str, int]) -> int:
    number = round(Fraction(value) * unit) if math.isfinite(value) else -1
    if not least <= number <= most:
        raise PlacedError(
            f"{path[0]} of dimension {path[1]} is {value}; "
            f"expected {least / unit:.3g} to {most / unit:.3g}",
            path,
        )
    return number
