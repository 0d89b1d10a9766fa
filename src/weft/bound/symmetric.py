"""Bounds of All-to-All on networks that look alike from every NPU: no table of pairs is needed.

Where lengths of links are alike wherever translations take a link, what one NPU sends has as far
to go as what any other sends: the flow bound needs the distances from one NPU alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.bound.classes import ChunkClasses
from weft.bound.lengths import Carriers, Lengths, whole_lengths
from weft.bound.nodes import Proof, node_bound
from weft.collective import Collective
from weft.collective.chunks import cut
from weft.cost import CostModel
from weft.topology.model import Topology

_KINDS = 3


def applies(topology: Topology, demand: Collective) -> bool:
    """Whether `symmetric_bounds` has something to say."""
    everyone = len(demand.group) == topology.npus > 1 and not topology.removed
    return topology.translates and everyone and demand.kind == "all-to-all"


def symmetric_bounds(
    topology: Topology, demand: Collective, cost: CostModel, enough: int
) -> Iterator[Proof]:
    """What one NPU's sends prove, and then the links of one dimension after the other."""
    classes = _sends_of_first(demand)
    yield node_bound(topology, classes, cost, enough, topology.links + topology.nodes, 0)
    links = Carriers(topology, cost, classes.smallest, classes.largest)
    chunks = int((_sizes(demand) > 0).sum())
    for lengths in _lengths(topology, links):
        away = _distances_in_all(topology, demand, lengths)
        whole, ideal = links.prove(lengths, away * demand.size, away * chunks)
        yield whole, "flow", ideal


def _sizes(demand: Collective) -> NDArray[np.int64]:
    """Bytes of each chunk that an NPU has: a row for each rank it is for."""
    marks = cut(demand.size, demand.ranks * demand.chunks_per_share, demand.alignment)
    return np.diff(marks).reshape(demand.ranks, demand.chunks_per_share)


def _sends_of_first(demand: Collective) -> ChunkClasses:
    """What rank 0 has for the others: a part of the collective, so its bounds hold for all."""
    sizes = _sizes(demand)
    real = sizes[sizes > 0]
    others = np.arange(1, demand.ranks, dtype=np.int32)
    return ChunkClasses(
        np.zeros_like(others),
        others,
        np.zeros(len(others), dtype=np.bool_),
        (sizes > 0).sum(1)[others],
        sizes.sum(1)[others],
        int(real.min()),
        int(real.max()),
        np.arange(demand.ranks + 1, dtype=np.int64),
        np.array(demand.group, dtype=np.int32),
    )


def _distances_in_all(topology: Topology, demand: Collective, lengths: Lengths) -> float:
    """From one NPU to all others; from all others to one, it is the same sum."""
    source = demand.group[0]
    offsets = np.zeros(topology.nodes + 1, dtype=np.int64)
    offsets[source + 1 :] = topology.npus
    to = np.arange(topology.npus, dtype=np.int32)
    once = np.ones(topology.npus, dtype=np.int64)
    return _core.shortest_routing(topology.core, lengths, offsets, to, once, 1)[0]


def _lengths(topology: Topology, links: Carriers) -> Iterator[Lengths]:
    """Lengths that translations keep: of one dimension's links alone, and alike in time."""
    sort = _axes(topology) * _KINDS + _kinds(topology)
    sorts = np.unique(sort)
    for number in sorts:
        yield (sort == number).astype(np.int64)
    if len(sorts) > 1:
        yield whole_lengths(1 / links.capacity)


def _kinds(topology: Topology) -> NDArray[np.int64]:
    """Between NPUs 0, to a switch 1, from a switch 2: what passes one of these passes the other."""
    to, origin = topology.dst >= topology.npus, topology.src >= topology.npus
    return to + 2 * origin.astype(np.int64)


def _axes(topology: Topology) -> NDArray[np.intp]:
    """The first dimension along which each link leads: at a switch, that of its NPUs."""
    npus, up = topology.npus, topology.dst >= topology.npus
    nearest, farthest = np.arange(topology.nodes), np.arange(topology.nodes)
    nearest[npus:], farthest[npus:] = npus, 0
    np.minimum.at(nearest, topology.dst[up], topology.src[up])
    np.maximum.at(farthest, topology.dst[up], topology.src[up])
    down = topology.src >= npus
    one = np.where(up, nearest[topology.dst], nearest[topology.src])
    other = np.where(down, farthest[topology.src], farthest[topology.dst])
    shape = topology.dimensions
    places = zip(
        np.unravel_index(one, shape, "F"), np.unravel_index(other, shape, "F"), strict=True
    )
    axes: NDArray[np.intp] = np.argmax([here != there for here, there in places], axis=0)
    return axes
