"""Orders of ranks that may suit algorithms which know nothing of the network."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

from weft.lab.plan import LabPlan

_TRIES = 100


def orders(plan: LabPlan) -> dict[str, list[int]]:
    """NPUs by rank: as they are numbered, along a short tour, and at random."""
    members = plan.topology.members.tolist()
    distance = {npu: _distances(plan, npu) for npu in members}
    mixed = members[:]
    random.Random(0).shuffle(mixed)
    found = {"numbered": members, "tour": _tour(members, distance), "random": mixed}
    return {name: order for name, order in found.items() if name == "numbered" or order != members}


def _distances(plan: LabPlan, npu: int) -> dict[int, int]:
    """Links on a shortest path to each node."""
    out: dict[int, list[int]] = {node: [] for node in plan.nodes}
    for src, dst in zip(plan.topology.src.tolist(), plan.topology.dst.tolist(), strict=True):
        out[src].append(dst)
    distance, queue = {npu: 0}, deque([npu])
    while queue:
        node = queue.popleft()
        for near in out[node]:
            if near not in distance:
                distance[near] = distance[node] + 1
                queue.append(near)
    return distance


def _tour(members: list[int], distance: dict[int, dict[int, int]]) -> list[int]:
    """A closed tour of few links: the best of some that are short in themselves."""
    far = len(distance) ** 2

    def between(a: int, b: int) -> int:
        return distance[a].get(b, far)

    chance = random.Random(0)
    best: list[int] = []
    least = far * far
    for _ in range(_TRIES):
        tour = _shortened(_nearest(members, between, chance), between)
        length = sum(between(a, b) for a, b in zip(tour, [*tour[1:], tour[0]], strict=True))
        if length < least:
            best, least = tour, length
        if least == len(members):
            break  # each is a neighbour of the next
    return best


def _nearest(
    members: list[int], between: Callable[[int, int], int], chance: random.Random
) -> list[int]:
    """From the first NPU, to one of the nearest that are left."""
    tour, left = [members[0]], members[1:]
    while left:
        chance.shuffle(left)
        near = min(left, key=lambda npu: between(tour[-1], npu))
        left.remove(near)
        tour.append(near)
    return tour


def _shortened(tour: list[int], between: Callable[[int, int], int]) -> list[int]:
    """Pieces turned round while it helps."""
    improved = True
    while improved:
        improved = False
        for i in range(1, len(tour) - 1):
            for j in range(i + 1, len(tour)):
                before, after = tour[i - 1], tour[(j + 1) % len(tour)]
                old = between(before, tour[i]) + between(tour[j], after)
                new = between(before, tour[j]) + between(tour[i], after)
                if new < old:
                    tour[i : j + 1] = tour[i : j + 1][::-1]
                    improved = True
    return tour
