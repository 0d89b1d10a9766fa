"""Networks by name that are no products: dragonflies and fabrics of switches.

To add one, write a builder and put it in `FABRICS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.topology.dimensions import Dimension, Ends, check_size, dimension_ends, levelled
from weft.topology.kinds import Kind, Speeds, sizes_of, speeds_of
from weft.topology.model import Topology

Wires = tuple[tuple[int, int], int, list[Ends]]
"""Sizes of the grid, how many switches there are, and the ends of links, level by level."""


@dataclass(frozen=True, kw_only=True)
class Fabric(Kind):
    """How a fabric is asked for.

    Attributes
    ----------
    sizes
        How many sizes it takes; one of these.
    wires
        From the name and the sizes to what is wired; each level of links has its own speed.
    """

    sizes: tuple[int, ...]
    wires: Callable[[str, Sequence[int]], Wires]
    rank: int = 20

    def network(
        self, spec: str, parameters: str | None, bandwidth: Speeds, latency: Speeds
    ) -> Topology:
        sizes = sizes_of(spec, parameters, self.example, self.sizes)
        grid, switches, ends = self.wires(spec, sizes)
        speeds = speeds_of(spec, len(ends), bandwidth, latency)
        return levelled(spec, grid, switches, ends, *speeds)


def _dragonfly(name: str, sizes: Sequence[int]) -> Wires:
    """Groups that are fully connected inside, with one link each way between every two.

    NPU = member + group·members. A group's links to the groups after it (cyclically) leave
    from its members in turn. Order of links: local ones group by group as in ``fc``, then
    global ones by source group, then by distance to the destination group.
    """
    members, groups = sizes
    local, far = groups * members * (members - 1), groups * (groups - 1)
    check_size(name, members * groups, local + far)
    near = dimension_ends(Dimension("fc", members, 0), members * groups, 1, members * groups)
    group, ahead = np.divmod(np.arange(far), max(groups - 1, 1))
    other = (group + ahead + 1) % groups
    back = groups - 2 - ahead
    across = group * members + ahead % members, other * members + back % members
    return (members, groups), 0, [near, across]


def _leaf_spine(name: str, sizes: Sequence[int]) -> Wires:
    """NPUs on leaves, every leaf on every spine: as many equal ways between leaves as spines.

    Sizes are NPUs a leaf, leaves, spines. NPUs are numbered leaf by leaf; switches are the
    leaves, then the spines.
    """
    hosts, leaves, spines = sizes
    npus = hosts * leaves
    check_size(name, npus, 2 * (npus + leaves * spines))
    npu = np.arange(npus)
    leaf = npus + np.arange(leaves)
    ends = [_both_ways(npu, leaf[npu // hosts]), _to_spines(leaf, spines)]
    return (hosts, leaves), leaves + spines, ends


def _rails(name: str, sizes: Sequence[int]) -> Wires:
    """Boxes with a switch inside, and a leaf for each place in a box, its rail.

    Sizes are NPUs a box, boxes and, if the leaves are joined, spines. NPUs are numbered box by
    box; switches are those of the boxes, then the leaves, then the spines.
    """
    places, boxes, spines = (*sizes, 0)[:3]
    npus = places * boxes
    check_size(name, npus, 2 * (2 * npus + places * spines))
    npu = np.arange(npus)
    leaf = npus + boxes + np.arange(places)
    ends = [_both_ways(npu, npus + npu // places), _both_ways(npu, leaf[npu % places])]
    if spines:
        ends.append(_to_spines(leaf, spines))
    return (places, boxes), boxes + places + spines, ends


def _both_ways(low: NDArray[np.int64], high: NDArray[np.int64]) -> Ends:
    """All links up, then all links down."""
    return np.concatenate([low, high]), np.concatenate([high, low])


def _to_spines(leaf: NDArray[np.int64], spines: int) -> Ends:
    """Every leaf with every spine; these are numbered after the leaves."""
    spine = leaf[-1] + 1 + np.arange(spines)
    return _both_ways(np.repeat(leaf, spines), np.tile(spine, len(leaf)))


FABRICS = (
    Fabric(
        name="dragonfly",
        example="dragonfly:4x9",
        summary="full groups, a link between every two",
        sizes=(2,),
        wires=_dragonfly,
    ),
    Fabric(
        name="leaf-spine",
        example="leaf-spine:8x4x2",
        summary="NPUs on leaves, every leaf on every spine",
        sizes=(3,),
        wires=_leaf_spine,
    ),
    Fabric(
        name="rails",
        example="rails:8x4",
        summary="boxes with a leaf for each place in a box, spines if a third size is given",
        sizes=(2, 3),
        wires=_rails,
    ),
)
