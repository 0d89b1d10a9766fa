"""Networks by name that are no products: dragonflies and fabrics of switches.

To add one, write a builder and put it in `FABRICS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weft.errors import InputError
from weft.quoting import quoted
from weft.topology.dimensions import Dimension, Ends, check_size, dimension_ends, levelled
from weft.topology.kinds import Kind, Speeds, sizes_of, speeds_of
from weft.topology.model import Topology
from weft.topology.twisted import can_twist, twisted_ends

Wires = tuple[Sequence[int], int, list[Ends]]
"""Sizes of the grid, how many switches there are, and the ends of links, level by level."""


@dataclass(frozen=True)
class Wish:
    """What a spec asks for.

    Attributes
    ----------
    spec
        All of it, for messages.
    sizes
        The numbers joined by ``x`` behind the colon.
    options
        The numbers of each option, such as ``up=16x8``.
    """

    spec: str
    sizes: Sequence[int]
    options: Mapping[str, Sequence[int]]

    def refuse(self, why: str) -> InputError:
        return InputError(f"topology {quoted(self.spec)}: {why}")

    def number(self, option: str, example: str) -> int:
        """The number of an option that must be there."""
        if option not in self.options:
            raise self.refuse(f"{option} is not given; write it like {example}")
        return self.options[option][0]


@dataclass(frozen=True, kw_only=True)
class Fabric(Kind):
    """How a fabric is asked for.

    Attributes
    ----------
    sizes
        How many sizes it takes: one of these, any number if there are none. 0: options will do.
    takes
        Its options, and how many numbers each takes.
    wires
        From what is asked for to what is wired; each level of links has its own speed.
    translates
        See `Topology.translates`.
    """

    sizes: tuple[int, ...]
    wires: Callable[[Wish], Wires]
    takes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    translates: bool = True
    rank: int = 20

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(self.takes)

    def network(
        self, spec: str, parameters: str | None, bandwidth: Speeds, latency: Speeds
    ) -> Topology:
        grid, switches, ends = self.wires(self._wish(spec, parameters or ""))
        speeds = speeds_of(spec, len(ends), bandwidth, latency)
        return levelled(spec, grid, switches, ends, *speeds, translates=self.translates)

    def _wish(self, spec: str, parameters: str) -> Wish:
        options: dict[str, list[int]] = {}
        sizes: list[int] | None = None
        for text in parameters.split(","):
            word, equals, value = (part.strip() for part in text.lower().partition("="))
            if not equals and sizes is None:
                counts = [count for count in self.sizes if count]
                sizes = sizes_of(spec, text, self.example, counts)
            elif not equals or word not in self.takes or word in options:
                raise InputError(
                    f"topology {quoted(spec)}: {quoted(text.strip())} does not belong there; "
                    f"write it like {self.example}"
                )
            else:
                options[word] = sizes_of(spec, value, self._like(word)[0], ())
                if len(options[word]) not in self.takes[word]:
                    raise InputError(
                        f"topology {quoted(spec)}: {word} is written like "
                        f"{' or '.join(self._like(word))}, not {quoted(value)}"
                    )
        if sizes is None and 0 not in self.sizes:
            sizes = sizes_of(spec, "", self.example, self.sizes)
        return Wish(spec, sizes or [], options)

    def _like(self, option: str) -> list[str]:
        return [f"{option}={'x'.join('4' * count)}" for count in self.takes[option]]


def _dragonfly(wish: Wish) -> Wires:
    """Groups without routers, from two sizes; groups of routers from p, a and h."""
    if wish.sizes and wish.options:
        raise wish.refuse("give two sizes, or p, a, h and perhaps g, not both")
    return _routed_groups(wish) if wish.options else _full_groups(wish)


def _full_groups(wish: Wish) -> Wires:
    """Groups that are fully connected inside, with one link each way between every two.

    NPU = member + group·members. A group's links to the groups after it (cyclically) leave
    from its members in turn. Order of links: local ones group by group as in ``fc``, then
    global ones by source group, then by distance to the destination group.
    """
    members, groups = wish.sizes
    local, far = groups * members * (members - 1), groups * (groups - 1)
    check_size(wish.spec, members * groups, local + far)
    near = dimension_ends(Dimension("fc", members, 0), members * groups, 1, members * groups)
    return (members, groups), 0, [near, _between_groups(members, groups, groups - 1)]


def _between_groups(members: int, groups: int, ports: int) -> Ends:
    """Links from each group to those after it, so many times round; members take turns."""
    group, port = np.divmod(np.arange(groups * ports), max(ports, 1))
    ahead = port % max(groups - 1, 1)
    other = (group + ahead + 1) % groups
    back = port + groups - 2 - 2 * ahead
    return group * members + port % members, other * members + back % members


def _routed_groups(wish: Wish) -> Wires:
    """Groups of routers, all of a group connected, with links from group to group.

    NPUs are numbered router by router, routers and switches group by group. The global links of
    a group go round the others as often as there are links for a whole round, and leave from its
    routers in turn.
    """
    example = "dragonfly:p=4,a=8,h=4"
    npus, routers, links = (wish.number(name, example) for name in "pah")
    groups = wish.options.get("g", [routers * links + 1])[0]
    if groups > routers * links + 1:
        raise wish.refuse(
            f"{routers} routers with {links} links out of the group reach {routers * links} other "
            f"groups; g is at most {routers * links + 1}"
        )
    ports = routers * links // max(groups - 1, 1) * (groups - 1)
    all_routers = routers * groups
    count = npus * all_routers
    local = all_routers * (routers - 1)
    check_size(wish.spec, count, 2 * count + local + groups * ports)
    npu = np.arange(count)
    near = dimension_ends(Dimension("fc", routers, 0), all_routers, 1, all_routers)
    far = _between_groups(routers, groups, ports)
    ends = [_both_ways(npu, count + npu // npus), _moved(near, count), _moved(far, count)]
    return (npus, routers, groups), all_routers, ends


def _hyperx(wish: Wish) -> Wires:
    """Routers on a grid, each linked to all that differ from it in one coordinate only.

    NPUs are numbered router by router; routers as on the grid, the first dimension fastest.
    """
    each = wish.number("p", "hyperx:4x4,p=4")
    routers = math.prod(wish.sizes)
    count = each * routers
    check_size(wish.spec, count, 2 * count + routers * sum(size - 1 for size in wish.sizes))
    npu, stride = np.arange(count), 1
    ends = [_both_ways(npu, count + npu // each)]
    for size in wish.sizes:
        ends.append(_moved(dimension_ends(Dimension("fc", size, 0), routers, stride, 0), count))
        stride *= size
    return (each, *wish.sizes), routers, ends


def _moved(ends: Ends, by: int) -> Ends:
    """The same between switches, of which the first has this number."""
    return ends[0] + by, ends[1] + by


def _leaf_spine(wish: Wish) -> Wires:
    """NPUs on leaves, every leaf on every spine: as many equal ways between leaves as spines.

    Sizes are NPUs a leaf, leaves, spines. NPUs are numbered leaf by leaf; switches are the
    leaves, then the spines.
    """
    hosts, leaves, spines = wish.sizes
    npus = hosts * leaves
    check_size(wish.spec, npus, 2 * (npus + leaves * spines))
    npu = np.arange(npus)
    leaf = npus + np.arange(leaves)
    ends = [_both_ways(npu, leaf[npu // hosts]), _to_spines(leaf, spines)]
    return (hosts, leaves), leaves + spines, ends


def _rails(wish: Wish) -> Wires:
    """Boxes with a switch inside, and a leaf for each place in a box, its rail.

    Sizes are NPUs a box, boxes and, if the leaves are joined, spines. NPUs are numbered box by
    box; switches are those of the boxes, then the leaves, then the spines.
    """
    places, boxes, spines = (*wish.sizes, 0)[:3]
    npus = places * boxes
    check_size(wish.spec, npus, 2 * (2 * npus + places * spines))
    npu = np.arange(npus)
    leaf = npus + boxes + np.arange(places)
    ends = [_both_ways(npu, npus + npu // places), _both_ways(npu, leaf[npu % places])]
    if spines:
        ends.append(_to_spines(leaf, spines))
    return (places, boxes), boxes + places + spines, ends


def _clos(wish: Wish) -> Wires:
    """Leaves and spines in pods, cores above; without options nothing is oversubscribed."""
    hosts, leaves, _ = wish.sizes
    if len(wish.options) > 1:
        raise wish.refuse("give up or oversubscription, not both")
    spines, cores = wish.options.get("up", (hosts, leaves))
    ratios = (*wish.options.get("oversubscription", ()), 1, 1)
    for what, links, ratio in (("leaf", hosts, ratios[0]), ("spine", leaves, ratios[1])):
        if links % ratio:
            raise wish.refuse(
                f"{links} links down from a {what} are no multiple of its oversubscription "
                f"{ratio}; say how many lead up instead, such as up={hosts}x{leaves}"
            )
    return _tiers(wish.spec, wish.sizes, spines // ratios[0], cores // ratios[1])


def _fat_tree(wish: Wish) -> Wires:
    """The fat tree of switches with so many ports: a Clos network of as many pods."""
    (ports,) = wish.sizes
    if ports % 2:
        raise wish.refuse(
            f"of the ports of a switch half lead up and half down, but {ports} is odd; write it "
            "like fat-tree:8"
        )
    half = ports // 2
    return _tiers(wish.spec, (half, half, ports), half, half)


def _tiers(name: str, sizes: Sequence[int], spines: int, cores: int) -> Wires:
    """NPUs on leaves, every leaf on every spine of its pod, every spine on cores of its own.

    Sizes are NPUs a leaf, leaves a pod, pods; then spines a pod, and cores that a spine is on.
    Spines that have the same place in their pods share their cores. NPUs are numbered leaf by
    leaf; switches are the leaves, then the spines, both pod by pod, then the cores, those of the
    first spines first.
    """
    hosts, leaves, pods = sizes
    npus = hosts * leaves * pods
    check_size(name, npus, 2 * (npus + pods * spines * (leaves + cores)))
    npu = np.arange(npus)
    leaf = npus + np.arange(pods * leaves)
    spine = leaf[-1] + 1 + np.arange(pods * spines)
    core = spine[-1] + 1 + np.arange(spines * cores)
    of_pod = np.broadcast_to(spine.reshape(pods, 1, spines), (pods, leaves, spines))
    ends = [
        _both_ways(npu, leaf[npu // hosts]),
        _both_ways(np.repeat(leaf, spines), of_pod.reshape(-1)),
        _both_ways(np.repeat(spine, cores), np.tile(core, pods)),
    ]
    return sizes, len(leaf) + len(spine) + len(core), ends


def _twisted(wish: Wish) -> Wires:
    """A torus of n x n x 2n or n x 2n x 2n, twisted."""
    if not can_twist(wish.sizes):
        raise wish.refuse("only n x n x 2n and n x 2n x 2n, n from 2, can be twisted")
    npus = math.prod(wish.sizes)
    check_size(wish.spec, npus, 6 * npus)
    return tuple(wish.sizes), 0, twisted_ends(wish.sizes)


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
        summary="full groups, a link between every two; of routers with p=4,a=8,h=4",
        sizes=(0, 2),
        takes={"p": (1,), "a": (1,), "h": (1,), "g": (1,)},
        wires=_dragonfly,
        translates=False,  # groups do, but members differ in where their links lead
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
    Fabric(
        name="fat-tree",
        example="fat-tree:8",
        summary="three tiers of switches with so many ports each",
        sizes=(1,),
        wires=_fat_tree,
    ),
    Fabric(
        name="clos",
        example="clos:8x4x4",
        summary="NPUs a leaf, leaves a pod, pods; up=4x2 or oversubscription=2 for fewer links up",
        sizes=(3,),
        takes={"up": (2,), "oversubscription": (1, 2)},
        wires=_clos,
    ),
    Fabric(
        name="hyperx",
        example="hyperx:4x4,p=4",
        summary="routers on a grid, full in each dimension, p NPUs on each",
        sizes=(),
        takes={"p": (1,)},
        wires=_hyperx,
    ),
    Fabric(
        name="twisted",
        example="twisted:4x4x8",
        summary="a torus of n x n x 2n or n x 2n x 2n with twisted short rings",
        sizes=(3,),
        wires=_twisted,
        translates=False,  # not along its grid
    ),
)
