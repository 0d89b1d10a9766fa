"""Fabrics people have: All-Reduce at every size beside the bound, the first release, and others.

What stands beside is of the first release (0.1.0), printed by the same call on the same networks,
or written by hand, judged and timed by Weft.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from papers.clusters import clusters, compositions
from papers.report import Extent, Row, Setup, one_table
from weft import synthesize
from weft.result import Result
from weft.topology import Topology, load_topology
from weft.units import format_size, parse_size

SIZES = tuple(256 * 4**i for i in range(12))

# Microseconds of All-Reduces of `SIZES` in the first release.
_BEFORE = """
h100:2,plain 4.7052 4.7209 4.7836 5.0345 6.038 6.9539 7.8811 17.2297 64.9124 255.303 1010.4 4037.3
h100:8,plain 5.6506 6.605 6.6189 6.6677 6.8486 7.395 9.7146 26.6481 81.948 308.344 1209.4 4760.6
h100:32,plain 6.6197 6.6203 6.6203 6.6814 6.9664 8.0268 12.298 33.2812 97.9599 352.24 1353.5 5439.2
a100:4 6.0229 6.3916 7.8665 11.9084 12.2335 12.8667 16.0667 38.74 135.6 515.553 2040.8 8139.5
ndv2:4 5.4643 5.6515 6.3904 9.3782 14.8806 37.9018 132.863 510.834 2022.4 8069.4 32260.0 129022.6
rails:8x32 4.0205 4.0333 4.0666 4.2893 5.1571 8.5466 23.497 85.8861 337.544 1344.2 5370.7 21476.8
leaf-spine:8x8x4 2.727 4.067 4.211 4.845 7.28 13.148 45.512 167.151 662.603 2644.4 10571.6 42280.6
dgx2:2 4.1682 4.6723 6.4291 7.5488 8.0598 9.6876 17.7837 66.3903 261.425 1029.7 4106.9 16359.2
"""
BEFORE = {
    name: tuple(map(float, times)) for name, *times in map(str.split, _BEFORE.strip().splitlines())
}

# Why rows take more than 1.15 of the bound. Nobody knows a faster algorithm for any of them, nor
# a higher bound for those that are open.
_OPEN = "open"
_TO_BLAME = {
    "dgx2:2 256KiB": "the algorithm: some ports send the buffer 4 times, 8.4 us, and others twice",
    "rails:8x32 64KiB": _OPEN,
    "rails:8x32 256KiB": _OPEN,
    "leaf-spine:8x8x4 64KiB": _OPEN,
}

# Collective, network, size, microseconds by hand: what the algorithm does.
_BY_HAND = (
    ("all-reduce", "h100:8,plain", "256", 3.340, "one-shot by level"),
    ("all-reduce", "h100:8,plain", "4KiB", 3.937, "one-shot by level"),
    ("all-reduce", "h100:8,plain", "64KiB", 5.293, "scatter in the box, one-shot across"),
    ("all-reduce", "h100:2,plain", "4KiB", 3.446, "one-shot by level"),
    ("all-reduce", "h100:2,plain", "64KiB", 4.310, "scatter in the box, one-shot across"),
    ("all-reduce", "a100:4", "64KB", 7.773, "scatter in the box, one-shot across"),
    ("all-reduce", "torus:4x4x4", "64KiB", 3.984, "three thirds, one-shot a ring"),
    ("all-reduce", "h100:32,plain", "1KiB", 3.95, "one-shot by level"),
    ("broadcast", "mesh:8x8", "1MiB", 18.55, "two arc-disjoint trees"),
    ("broadcast", "hypercube:6", "1MiB", 7.50, "six arc-disjoint trees"),
    ("broadcast", "dgx1", "1MiB", 10.19, "six trees of depth four"),
    ("broadcast", "torus:4x4x4", "1GiB", 3778.0, "2048 chunks"),
)

_TWINS = ("torus:4x4x4", "hypercube:6")
_KINDS = ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce", "all-to-all")

# Network, its bandwidths, what is changed, collective, size, microseconds and CPU seconds before.
_Case = tuple[str, str | None, str, str, str, float, float]
_SECONDS: tuple[_Case, ...] = (
    ("leaf-spine:16x4x8", "50GB/s,100GB/s", "", "all-to-all", "256MiB", 0.0, 56),
    ("leaf-spine:8x8x4", None, "", "all-reduce", "1MiB", 45.512, 32),
    ("h100:8,plain", None, "", "all-reduce", "256MiB", 1209.4, 9),
    ("h100:8,plain", None, "one NIC at half speed", "all-reduce", "256MiB", 1344, 10),
    ("h100:8,plain", None, "one NIC dead", "all-reduce", "256MiB", 1362, 10),
    ("mi250:2", None, "", "all-gather", "1GB", 3021.5, 5),
)


def sizes(extent: Extent) -> Setup:
    """Every size on the networks that most people own."""
    title = "All-Reduce: microseconds, the first release's, the bound for any chunks; CPU seconds"
    networks = BEFORE if extent >= Extent.USUAL else ("h100:2,plain", "a100:4")
    cases = [
        (network, size, before)
        for network in networks
        for size, before in zip(SIZES, BEFORE[network], strict=True)
    ]
    columns = ("network", "size", "us", "before", "bound", "of bound", "method", "CPU s")
    more = ("verified", "best by any means", "to blame")
    return one_table("sizes", title, (*columns, *more), cases, _size_row)


def _size_row(case: tuple[str, int, float]) -> Row:
    network, size, before = case
    result, seconds = _timed(load_topology(network), "all-reduce", size)
    us, shown = result.time / 1e6, format_size(size)
    by_hand = (
        one[3]
        for one in _BY_HAND
        if one[:2] == ("all-reduce", network) and parse_size(one[2]) == size
    )
    why = _TO_BLAME.get(f"{network} {shown}", "")
    return (network, shown, us, before, *_beside(result, seconds), min(us, before, *by_hand), why)


def by_hand(extent: Extent) -> Setup:  # noqa: ARG001 - one extent
    """Algorithms written by hand, which the first release did not find."""
    title = "Microseconds, those of an algorithm by hand, the bound for any chunks; CPU seconds"
    columns = ("collective", "network", "size", "us", "by hand", "bound", "of bound", "method")
    return one_table(
        "by-hand",
        title,
        (*columns, "CPU s", "verified", "the algorithm by hand"),
        _BY_HAND,
        _hand_row,
    )


def _hand_row(case: tuple[str, str, str, float, str]) -> Row:
    kind, network, size, hand, what = case
    result, seconds = _timed(load_topology(network), kind, size)
    return (kind, network, size, result.time / 1e6, hand, *_beside(result, seconds), what)


def twins(extent: Extent) -> Setup:
    """Two names of one graph."""
    title = "A torus of rings of four is a hypercube: microseconds of both"
    wanted = ("256", "4KiB", "64KiB", "1MiB", "16MiB", "1GiB")
    few = wanted if extent >= Extent.USUAL else wanted[2:4]
    cases = [(kind, size) for kind in _KINDS for size in few]
    return one_table("twins", title, ("collective", "size", *_TWINS, "ratio"), cases, _twin_row)


def _twin_row(case: tuple[str, str]) -> Row:
    kind, size = case
    one, other = (_timed(load_topology(name), kind, size)[0].time for name in _TWINS)
    return (kind, size, one / 1e6, other / 1e6, max(one, other) / min(one, other))


def seconds(extent: Extent) -> Setup:  # noqa: ARG001 - one extent
    """What took long, or suffered from a fault."""
    title = "Microseconds and CPU seconds, the first release's beside them"
    columns = ("network", "collective", "size", "us", "us before", "CPU s before", "bound")
    more = ("of bound", "method", "CPU s", "verified")
    return one_table("seconds", title, (*columns, *more), _SECONDS, _seconds_row)


def _seconds_row(case: _Case) -> Row:
    name, bandwidth, change, kind, size, before, cpu = case
    network = _changed(load_topology(name, bandwidth), change)
    result, took = _timed(network, kind, size)
    shown = f"{name}, {change}" if change else name
    return (shown, kind, size, result.time / 1e6, before, cpu, *_beside(result, took))


def _changed(network: Topology, change: str) -> Topology:
    """NPU 0's link to its leaf, both ways, slower or gone."""
    leaf = f"0-s{network.dimensions[-1]}"
    if not change:
        return network
    return network.without(links=[leaf]) if "dead" in change else network.scaled([leaf], 0.5)


_FAULTS: dict[str, Callable[[Topology], Topology]] = {
    "none": lambda network: network,
    "NIC dead": lambda network: network.without(links=["0-s64"]),
    "NIC at half speed": lambda network: network.scaled(["0-s64"], 0.5),
    "GPU dead": lambda network: network.without(npus=[3]),
    "leaf dead": lambda network: network.without(switches=["s64"]),
    "spine dead": lambda network: network.without(switches=["s72"]),
}


def faults(extent: Extent) -> Setup:
    """What failures cost: the gap to the bound of what is left."""
    title = "h100:64 with a fault: microseconds, the bound for any chunks; CPU seconds, all in"
    kinds = ("all-reduce", "all-gather", "all-to-all")
    wanted = kinds if extent >= Extent.USUAL else kinds[1:2]
    cases = [(fault, kind) for kind in wanted for fault in _FAULTS]
    columns = ("fault", "collective", "us", "bound", "of bound", "method", "CPU s", "verified")
    return one_table("faults", title, columns, cases, _fault_row)


def _fault_row(case: tuple[str, str]) -> Row:
    fault, kind = case
    network = _FAULTS[fault](load_topology("h100:64"))
    result, took = _timed(network, kind, "256MiB")
    return (fault, kind, result.time / 1e6, *_beside(result, took))


def _beside(result: Result, took: float) -> Row:
    ratio = result.time / max(result.bound.ideal, 1)
    return (result.bound.ideal / 1e6, ratio, result.to_dict()["method"], took, result.verified)


def _timed(network: Topology, kind: str, size: int | str) -> tuple[Result, float]:
    began = time.process_time()
    result = synthesize(network, kind, parse_size(size) if isinstance(size, str) else size)
    return result, time.process_time() - began


TABLES = {
    "sizes": sizes,
    "by-hand": by_hand,
    "twins": twins,
    "seconds": seconds,
    "faults": faults,
    "compositions": compositions,
    "clusters": clusters,
}
