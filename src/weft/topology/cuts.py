"""Bisection bandwidth: the thinnest way to cut the NPUs into two halves.

The NPUs that are there are split in two sets A and B that differ in size by at most one; the
cut's bandwidth is that of the links from A to B, with every switch on the side that makes it
smallest. The bisection bandwidth is the smallest over all such splits (both directions of each
split, so for one-way links the weaker direction counts).

Up to `EXACT_NPUS` NPUs every split is tried. Beyond, the result is the best of some natural
splits: an upper bound on the bisection bandwidth, and usually equal to it on regular networks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.topology.model import Topology

EXACT_NPUS = 16
"""C(16, 8) = 12870 splits are quick to try."""
WORK = 150_000_000
"""Links to look at over all natural splits: about a second."""
SPECTRAL_ROUNDS = 200
SWITCH_ROUNDS = 4

Side = NDArray[np.bool_]


@dataclass(frozen=True)
class Bisection:
    """Bandwidth (B/s) of the thinnest balanced cut found, and whether none is thinner."""

    bandwidth: int
    exact: bool


def bisection(topology: Topology) -> Bisection | None:
    """The bisection bandwidth, or an upper bound on it; None for a single NPU."""
    if len(topology.members) < 2:
        return None
    between_switches = (topology.src >= topology.npus) & (topology.dst >= topology.npus)
    if len(topology.members) <= EXACT_NPUS and not between_switches.any():
        return Bisection(_thinnest_of_all(topology), exact=True)
    best = min(
        min(_crossing(topology, side), _crossing(topology, ~side)) for side in _natural(topology)
    )
    return Bisection(round(best), exact=False)


def _thinnest_of_all(topology: Topology) -> int:
    """Try every split; a switch that touches NPUs only is placed by itself, so this is exact."""
    members, npus = topology.members, topology.npus
    capacity = np.zeros((topology.nodes, topology.nodes), dtype=np.float64)
    np.add.at(capacity, (topology.src, topology.dst), topology.bandwidth)
    direct = capacity[np.ix_(members, members)]
    up, down = capacity[members, npus:], capacity[npus:, members].T
    thinnest = np.inf
    for size in {len(members) // 2, (len(members) + 1) // 2}:
        inside = np.zeros((math.comb(len(members), size), len(members)))
        rows = itertools.combinations(range(len(members)), size)
        np.put_along_axis(inside, np.array(list(rows)), 1, axis=1)
        outside = 1 - inside
        crossing = ((inside @ direct) * outside).sum(axis=1)
        crossing += np.minimum(inside @ up, outside @ down).sum(axis=1)
        thinnest = min(thinnest, crossing.min())
    return round(thinnest)


def _crossing(topology: Topology, side: Side) -> float:
    """Bandwidth from the NPUs in `side` (one flag per NPU) to the rest."""
    rate = topology.bandwidth.astype(np.float64)
    full = np.concatenate([side, np.zeros(topology.switches, dtype=bool)])
    if topology.switches == 0:
        return float(rate[full[topology.src] & ~full[topology.dst]].sum())
    placed = np.arange(topology.nodes) < topology.npus
    best = np.inf
    for _ in range(SWITCH_ROUNDS):
        # Each switch goes where it costs less, given where its neighbours are so far.
        known_in = np.where(placed & full, 1.0, 0.0)
        known_out = np.where(placed & ~full, 1.0, 0.0)
        if_out = np.bincount(topology.dst, rate * known_in[topology.src], topology.nodes)
        if_in = np.bincount(topology.src, rate * known_out[topology.dst], topology.nodes)
        full[topology.npus :] = (if_in <= if_out)[topology.npus :]
        placed[:] = True
        best = min(best, float(rate[full[topology.src] & ~full[topology.dst]].sum()))
    return best


def _natural(topology: Topology) -> Iterator[Side]:
    """Halves in order of number, along each dimension the links suggest, and by spectrum."""
    cost = max(topology.links, 1) * (8 if topology.switches else 1)
    yield _half(topology, np.arange(topology.npus, dtype=np.float64))
    for stride, size in itertools.islice(_axes(topology), max(4, WORK // (6 * cost))):
        yield _half(topology, (np.arange(topology.npus) // stride % size).astype(np.float64))
    if SPECTRAL_ROUNDS * topology.links <= WORK:
        yield _half(topology, _smooth(topology)[: topology.npus])


def _half(topology: Topology, key: NDArray[np.float64]) -> Side:
    """The half of the NPUs that are there with the smallest keys; ties in order of number."""
    members = topology.members
    order = members[np.argsort(key[members], kind="stable")]
    side = np.zeros(topology.npus, dtype=bool)
    side[order[: len(order) // 2]] = True
    return side


def _axes(topology: Topology) -> Iterator[tuple[int, int]]:
    """(stride, size) of dimensions that the distances between neighbours' numbers suggest."""
    npu_links = (topology.src < topology.npus) & (topology.dst < topology.npus)
    steps = np.abs(topology.src[npu_links] - topology.dst[npu_links])
    # NPUs on a common switch are neighbours too.
    up = (topology.src < topology.npus) & (topology.dst >= topology.npus)
    order = np.lexsort((topology.src[up], topology.dst[up]))
    npu, switch = topology.src[up][order], topology.dst[up][order]
    shared = np.diff(npu)[np.diff(switch) == 0]
    found, counts = np.unique(np.concatenate([steps, shared]), return_counts=True)
    common = found[np.argsort(-counts, kind="stable")]
    strides = [int(step) for step in common[:24] if 0 < step < topology.npus]
    for stride in strides:
        for larger in sorted({*strides, topology.npus}):
            if larger > stride and larger % stride == 0:
                yield stride, larger // stride


def _smooth(topology: Topology) -> NDArray[np.float64]:
    """An approximate Fiedler vector: the slowest way to vary over the network's links."""
    weight = topology.bandwidth / topology.bandwidth.max(initial=1)
    nodes = topology.nodes
    degree = np.bincount(topology.src, weight, nodes) + np.bincount(topology.dst, weight, nodes)
    most = max(float(degree.max()), 1.0)
    value = np.random.default_rng(0).standard_normal(nodes)
    for _ in range(SPECTRAL_ROUNDS):
        around = np.bincount(topology.src, weight * value[topology.dst], nodes)
        around += np.bincount(topology.dst, weight * value[topology.src], nodes)
        value = (2 * most - degree) * value + around
        value -= value.mean()
        value /= max(float(np.abs(value).max()), 1e-300)
    return value
