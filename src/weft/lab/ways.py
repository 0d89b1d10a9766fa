"""Ways: how the bytes of two NPUs travel, along a link or through switches, by their addresses.

A router looks at where a packet goes to. So each way has addresses of its own, and all routers on
it have a route to them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

import numpy as np

from weft.algorithm import Algorithm
from weft.errors import InputError
from weft.lab.wires import MOST_WAYS, Wire, way_addresses
from weft.topology import Topology

Steps = tuple[int, ...]  # the links of a way, in order
Adjacent = dict[int, list[tuple[int, int]]]  # by node: links, and where they lead
_MOST_A_PAIR = 16  # as in cpp/base/hops.h


@dataclass(frozen=True)
class Way:
    """A connection of two NPUs, and the links that it takes.

    Attributes
    ----------
    ends, addresses
        The two NPUs, and the address of each.
    links
        Those from the first to the second, and those back; none in a direction that only
        acknowledges, along the wires of the other.
    """

    ends: tuple[int, int]
    addresses: tuple[str, str]
    links: tuple[Steps, Steps]


def ways_of(topology: Topology, wire_of: dict[int, Wire], more: Iterable[Steps] = ()) -> list[Way]:
    """All links between NPUs, the shortest ways through switches, and `more`, such as a plan's.

    Those of `more` are the first of each pair of NPUs.
    """
    planned = set(more)
    routes: defaultdict[tuple[int, int], list[Steps]] = defaultdict(list)
    for steps in dict.fromkeys([*more, *_shortest(topology)]):
        routes[int(topology.src[steps[0]]), int(topology.dst[steps[-1]])].append(steps)
    found: list[Way] = []
    for a, b in sorted({(min(pair), max(pair)) for pair in routes}):
        for there, back in _paired(routes[a, b], routes[b, a], planned, wire_of):
            wire, *others = {wire_of[link] for link in (*there, *back)}
            addresses = way_addresses(len(found)) if others else wire.addresses(a)
            found.append(Way((a, b), addresses, (there, back)))
    if len(found) > MOST_WAYS:
        raise InputError(
            f"{topology.name} has {len(found)} ways between NPUs; a lab has at most {MOST_WAYS}"
        )
    return found


def ways_of_algorithm(algorithm: Algorithm) -> list[Steps]:
    """The ways that its rows take."""
    if algorithm.timing is None:
        raise InputError("an algorithm without times has no routes; give one planned for a network")
    routes, named = algorithm.routes, algorithm.transfers.route
    used = [] if named is None else np.unique(named).tolist()
    ends = [(int(routes.offsets[route]), int(routes.offsets[route + 1])) for route in used]
    # Copies inside an NPU take no link.
    return [tuple(routes.links[first:last].tolist()) for first, last in ends if first < last]


def _paired(
    there: Sequence[Steps], back: Sequence[Steps], planned: set[Steps], wire_of: dict[int, Wire]
) -> Iterator[tuple[Steps, Steps]]:
    """Ways there with ways back, those that are planned first.

    Along the same wires if both are planned or neither, then any two that are planned, then along
    the same wires, then any.
    """

    def mirrored(some: Iterable[Steps], others: Iterable[Steps]) -> list[tuple[Steps, Steps]]:
        wires = {tuple(wire_of[link].number for link in steps)[::-1]: steps for steps in others}
        keys = {steps: tuple(wire_of[link].number for link in steps) for steps in some}
        return [(steps, wires[key]) for steps, key in keys.items() if key in wires]

    left = list(there), list(back)
    plans = [[steps for steps in side if steps in planned] for side in left]
    for find in (
        lambda: mirrored(*plans),
        lambda: list(zip(*plans, strict=False)),
        lambda: mirrored(*left),
        lambda: list(zip_longest(*left, fillvalue=())),
    ):
        for pair in find():
            yield pair
            for side, plan, steps in zip(left, plans, pair, strict=True):
                for some in (side, plan):
                    if steps in some:
                        some.remove(steps)


def _shortest(topology: Topology) -> Iterator[Steps]:
    """Links between NPUs, then some of the shortest ways through switches."""
    near: Adjacent = defaultdict(list)
    for link, (src, dst) in enumerate(zip(topology.src, topology.dst, strict=True)):
        near[int(src)].append((link, int(dst)))
        if max(src, dst) < topology.npus:
            yield (link,)
    if topology.switches:
        for npu in topology.members.tolist():
            yield from _through_switches(topology.npus, near, npu)


def _through_switches(npus: int, near: Adjacent, npu: int) -> Iterator[Steps]:
    distance = {npu: 0}
    before: Adjacent = defaultdict(list)
    queue = deque([npu])
    while queue:
        node = queue.popleft()
        for link, to in near[node]:
            if to < npus and node == npu:
                continue  # no switch on the way
            if to not in distance:
                distance[to] = distance[node] + 1
                if to >= npus:
                    queue.append(to)
            if distance[to] == distance[node] + 1:
                before[to].append((link, node))

    def leading_to(node: int) -> Iterator[Steps]:
        if node == npu:
            yield ()
        for link, previous in before[node]:
            for steps in leading_to(previous):
                yield (*steps, link)

    for end in sorted(node for node in distance if node < npus and node != npu):
        yield from islice(leading_to(end), _MOST_A_PAIR)


def next_hops(wires: Sequence[Wire], npu: int) -> dict[int, Wire]:
    """The wire by which each node sends to this NPU, along a shortest path.

    Where there are several, different NPUs are reached by different ones.
    """
    into: defaultdict[int, list[tuple[Wire, int]]] = defaultdict(list)
    for wire in wires:
        for node in wire.ends:
            if wire.link_from(node) is not None:
                into[wire.other(node)].append((wire, node))
    distance = {npu: 0}
    queue = deque([npu])
    choices: defaultdict[int, list[Wire]] = defaultdict(list)
    while queue:
        node = queue.popleft()
        for wire, source in into[node]:
            if source not in distance:
                distance[source] = distance[node] + 1
                queue.append(source)
            if distance[source] == distance[node] + 1:
                choices[source].append(wire)
    return {node: wires[npu % len(wires)] for node, wires in choices.items()}
