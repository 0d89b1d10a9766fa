"""Networks that look the same from every NPU: automorphisms that move NPUs to each other.

An automorphism is a permutation of the nodes that maps links to links of the same speed, NPUs to
NPUs, and switches to switches that can do the same. Where some of them together move one NPU to
all others, the network is vertex-transitive. What builders declare (`Topology.translates`) is
worked out here, for other networks the core searches. Neither is a proof: `weft.judge` has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.values import Value

if TYPE_CHECKING:
    from weft.topology.model import Topology

MOST_NPUS = 4096
"""Networks of more NPUs are not searched: what they declare is all that is known of them."""
MOST_LINKS = 1 << 22
_BUDGET = 300_000_000  # links looked at: about three seconds

Nodes = NDArray[np.int32]
Numbers = NDArray[np.int64]
Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Symmetry(Value):
    """What is said of how NPUs of a network can be exchanged.

    Attributes
    ----------
    found
        Images of all nodes under automorphisms that together move any NPU to any other; none if
        there is only one NPU, or if nothing is known.
    transitive
        Whether they are said to do so.
    searched
        Whether they were searched for, rather than declared or not known.
    """

    found: tuple[Nodes, ...]
    transitive: bool
    searched: bool


def symmetry_of(topology: Topology) -> Symmetry:
    """What a network declares or its grid shows, else what is found."""
    if topology.shifts:
        shifts = tuple(image for image in _shifts(topology) if image is not None)
        colour = _colours(topology)
        if all(np.array_equal(colour[image], colour) for image in shifts):
            return Symmetry(shifts, transitive=True, searched=False)
    if len(topology.members) > MOST_NPUS or topology.links > MOST_LINKS:
        return Symmetry((), transitive=False, searched=False)
    return _searched(topology)


def grid_shifts(topology: Topology) -> bool:
    """Whether links go to links of the same speed if NPUs move along their grid, and switches.

    For networks that do not declare it, such as those read from files.
    """
    degree = np.bincount(topology.src, minlength=topology.nodes)[: topology.npus]
    if not topology.dimensions or topology.removed or (degree != degree[0]).any():
        return False
    kind = _numbered(*topology.columns[2:])
    if topology.nodes**2 * (int(kind.max(initial=0)) + 1) >= 2**63:
        return False
    keys = _sorted_keys(topology, kind, np.arange(topology.nodes))
    return all(
        image is not None and np.array_equal(_sorted_keys(topology, kind, image), keys)
        for image in _shifts(topology)
    )


def _sorted_keys(topology: Topology, kind: Numbers, image: NDArray[np.integer[Any]]) -> Numbers:
    """A number for the ends and the speed of each link, as it is moved, in ascending order."""
    ends = image[topology.src] * np.int64(topology.nodes) + image[topology.dst]
    return np.sort(ends * (int(kind.max(initial=0)) + 1) + kind)


def _searched(topology: Topology) -> Symmetry:
    """What the core finds."""
    columns = np.stack([column.astype(np.int64) for column in topology.columns])
    columns = columns[:, np.lexsort(columns[::-1])]
    new = np.append(True, (columns[:, 1:] != columns[:, :-1]).any(axis=0))[: topology.links]
    first = np.flatnonzero(new)
    src, dst, *speed = columns[:, first]
    parallel = np.diff(first, append=topology.links)
    ends = src.astype(np.int32), dst.astype(np.int32)
    kinds = _numbered(*speed, parallel).astype(np.int32)
    transitive, images = _core.find_automorphisms(
        _colours(topology), *ends, kinds, topology.members, _BUDGET
    )
    return Symmetry(tuple(images.reshape(-1, topology.nodes)), transitive, searched=True)


def _numbered(*columns: Numbers) -> Numbers:
    """One number for all places that have the same in all columns."""
    number = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        kinds, kind = np.unique(column, return_inverse=True)
        number = np.unique(number * len(kinds) + kind, return_inverse=True)[1].astype(np.int64)
    return number


def _colours(topology: Topology) -> Nodes:
    """Nodes that no automorphism moves to each other have different numbers."""
    colours = np.zeros(topology.nodes, dtype=np.int32)
    colours[list(topology.removed)] = 1
    colours[topology.npus :] = 2
    copying, adding, limits = topology.copying, topology.adding, topology.buffers
    special = copying | adding | limits.keys()
    kinds = {
        switch: (switch in copying, switch in adding, limits.get(switch)) for switch in special
    }
    number = {kind: i for i, kind in enumerate(sorted(set(kinds.values()), key=str))}
    for switch, kind in kinds.items():
        colours[switch] = 3 + number[kind]
    return colours


def _shifts(topology: Topology) -> Iterator[Nodes | None]:
    """The images of all nodes if NPUs move by one place along a dimension, for each of these.

    None if switches cannot follow.
    """
    stride, npu = 1, np.arange(topology.npus)
    for size in topology.dimensions:
        if size > 1:
            place = npu // stride % size
            yield _with_switches(topology, npu + ((place + 1) % size - place) * stride)
        stride *= size


def _with_switches(topology: Topology, npus: Numbers) -> Nodes | None:
    """The images of all nodes, given those of NPUs.

    From the NPUs on, tier by tier, a switch goes to one that is linked to the images of what it
    is linked to; of several the first to the first, the second to the second.
    """
    image = np.full(topology.nodes, -1, dtype=np.int64)
    image[: topology.npus] = npus
    speed = _hashed(topology.bandwidth.astype(np.uint64)) + topology.latency.astype(np.uint64)
    ends = ((topology.src, topology.dst, speed), (topology.dst, topology.src, _hashed(speed)))
    known = image >= 0
    while not known.all():
        here, there = np.zeros((2, topology.nodes), dtype=np.uint64)
        for near, far, kind in ends:
            use = known[near] & ~known[far]
            for sums, node in ((here, near[use]), (there, image[near[use]])):
                np.add.at(sums, far[use], _hashed(node.astype(np.uint64) ^ kind[use]))
        tier = np.flatnonzero(here)
        if len(tier) == 0:  # switches without links
            image[~known] = np.flatnonzero(~known)
            break
        own, moved = (tier[np.argsort(sums[tier], kind="stable")] for sums in (here, there))
        if not np.array_equal(here[own], there[moved]):
            return None
        image[moved] = own
        known[tier] = True
    return image.astype(np.int32)


def _hashed(numbers: Hashes) -> Hashes:
    """Numbers that differ give numbers that look random."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(27))
