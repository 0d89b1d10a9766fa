"""Which links the bytes of each pair of NPUs cross, and which pairs can go together."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from weft.runtime.flows import Floats, Pair
from weft.topology import Topology

Steps = tuple[int, ...]
Ways = Mapping[Pair, Sequence[Steps]]
"""The links of each way of a pair; bytes take the first."""


def fits(net: Topology, ways: Ways) -> bool:
    """Whether the links of all ways are those of this network."""
    return all(
        max(steps) < net.links and (net.src[steps[0]], net.dst[steps[-1]]) == pair
        for pair, some in ways.items()
        for steps in some
    )


def crossings(net: Topology, ways: Ways) -> tuple[list[Pair], Floats]:
    """Pairs of NPUs with no NPU between them, and which share of their bytes crosses each link.

    Unless it is known, bytes are taken to spread over all shortest ways.
    """
    near: list[list[tuple[int, int]]] = [[] for _ in range(net.nodes)]
    behind: list[list[tuple[int, int]]] = [[] for _ in range(net.nodes)]
    for link, (src, dst) in enumerate(zip(net.src.tolist(), net.dst.tolist(), strict=True)):
        near[src].append((link, dst))
        behind[dst].append((link, src))
    members = net.members.tolist()
    back = {npu: _reached(net.npus, behind, npu) for npu in members}
    pairs, rows = [], []
    for a in members:
        far, count = _reached(net.npus, near, a)
        for b in members:
            if a == b or not count[b]:
                continue
            pairs.append((a, b))
            if (a, b) in ways:
                row = np.zeros(net.links)
                row[list(ways[a, b][0])] = 1
            else:
                left, others = back[b]
                on_way = far[net.src] + 1 + left[net.dst] == far[b]
                row = on_way * count[net.src] * others[net.dst] / count[b]
            rows.append(row)
    return pairs, np.array(rows).reshape(len(pairs), net.links)


def _reached(
    npus: int, near: Sequence[Sequence[tuple[int, int]]], npu: int
) -> tuple[Floats, Floats]:
    """How far each node is without an NPU in between, and over how many shortest ways."""
    far, count = np.full(len(near), np.inf), np.zeros(len(near))
    far[npu], count[npu] = 0, 1
    queue = deque([npu])
    while queue:
        node = queue.popleft()
        if node < npus and node != npu:
            continue
        for _, to in near[node]:
            if far[to] == np.inf:
                far[to] = far[node] + 1
                queue.append(to)
            if far[to] == far[node] + 1:
                count[to] += count[node]
    return far, count


def apart(pairs: Sequence[Pair]) -> list[NDArray[np.intp]]:
    """Rounds in which no rank has two pairs: of each, which pairs are in it."""
    rounds: list[tuple[list[int], set[int]]] = []
    size = max((max(pair) for pair in pairs), default=0) + 1
    # As in a tournament: pairs whose ranks have the same sum never meet.
    for at in sorted(range(len(pairs)), key=lambda at: (sum(pairs[at]) % size, at)):
        ends = set(pairs[at])
        for chosen, busy in rounds:
            if not busy & ends:
                chosen.append(at)
                busy |= ends
                break
        else:
            rounds.append(([at], ends))
    return [np.array(chosen) for chosen, _ in rounds]
