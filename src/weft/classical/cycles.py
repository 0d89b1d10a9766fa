"""Hamiltonian cycles that share no edge: covers by cycles, which are joined until each is one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Edges = NDArray[np.int64]
Order = NDArray[np.int64]
Swap = tuple[int, int, int, int, int, int]

_MOST_SWAPS = 20  # for each vertex
_TAKEN = 0.5  # of the swaps that gain nothing
_NONE = -1  # edges that no cover has
_MOST_VISITS = 8_000_000  # of vertices: some tenths of a second
_OVERHEAD = 100  # what a change of a cover costs beside, in visits


def join_cycles(edges: Edges) -> list[Order]:
    """Hamiltonian cycles of a graph, as orders of its vertices; none if none is found.

    Parameters
    ----------
    edges
        How many edges join two vertices: symmetric, with an empty diagonal.
    """
    best: list[Order] = []
    if not _connected(edges):
        return best
    covers = _covers(edges)
    for count in range(len(covers), 0, -1):
        if len(best) < count:
            joining = _Joining(edges, covers[:count], _MOST_VISITS // len(covers))
            best = max(best, joining.run(), key=len)
    return best


def _connected(edges: Edges) -> bool:
    seen = np.arange(len(edges)) == 0
    while (more := seen | (edges[seen] > 0).any(axis=0)).sum() > seen.sum():
        seen = more
    return bool(seen.all())


class _Joining:
    """Covers of all vertices by cycles, and swaps of edges that join cycles.

    If a-b and c-d are in one cover and b-c and d-a in another, or in none, they can change
    places; if a-b and c-d were in two cycles, these become one.
    """

    def __init__(self, edges: Edges, covers: list[Order], visits: int) -> None:
        self.n, self.visits = len(edges), visits
        self.near = [np.flatnonzero(row).tolist() for row in edges]
        self.free = edges.tolist()
        # By cover and vertex: the two beside it.
        self.beside: list[list[list[int]]] = [[[] for _ in range(self.n)] for _ in covers]
        self.cycle = [[0] * self.n for _ in covers]  # by cover, vertex: which of its cycles
        self.count = [0] * len(covers)  # by cover: how many cycles
        for number, cover in enumerate(covers):
            for one, other in enumerate(cover.tolist()):
                self._put(_NONE, one, other, -1)
                self._put(number, one, other, 1)
            self._count(number)

    def run(self) -> list[Order]:
        """Join until every cover is one cycle, or nothing helps; give those that are."""
        random = np.random.default_rng(0)
        for _ in range(_MOST_SWAPS * self.n):
            order = random.permutation(self.n).tolist()
            if max(self.count) == 1 or not (self._join(order) or self._try(order, random)):
                break
        return [np.array(self._walk(f, 0)) for f, count in enumerate(self.count) if count == 1]

    def _join(self, order: list[int]) -> bool:
        """Apply the first swap that is sure to join cycles and part none."""
        for swap in self._swaps(order):
            f, g, a, b, _, d = swap
            joins = self.cycle[f][a] != self.cycle[f][d]
            if joins and (g == _NONE or self.cycle[g][a] != self.cycle[g][b]):
                self._apply(swap)
                return True
        return False

    def _try(self, order: list[int], random: np.random.Generator) -> bool:
        """Apply a swap that joins more than it parts, or one that may open the way for others."""
        for swap in self._swaps(order):
            before = sum(self.count)
            self._apply(swap)
            gained = before - sum(self.count)
            if gained > 0 or (gained == 0 and random.random() < _TAKEN):
                return True
            f, g, a, b, c, d = swap
            self._apply((f, g, b, c, d, a))
        return False

    def _swaps(self, order: list[int]) -> Iterator[Swap]:
        """Covers f and g and vertices a, b, c, d: f has a-b and c-d, g has b-c and d-a."""
        for a in order:
            if self.visits <= 0:
                return
            for f, beside in enumerate(self.beside):
                for g in range(_NONE, len(self.beside)):
                    if f == g:
                        continue
                    for b in beside[a]:
                        self.visits -= 3 * len(self.near[a])  # a d, and two c
                        for d in self.near[a] if g == _NONE else self.beside[g][a]:
                            if d == b or not self._has(g, a, d):
                                continue
                            for c in beside[d]:
                                if c not in (a, b) and self._has(g, b, c):
                                    yield f, g, a, b, c, d

    def _has(self, number: int, one: int, other: int) -> bool:
        if number == _NONE:
            return bool(self.free[one][other] > 0)
        return other in self.beside[number][one]

    def _apply(self, swap: Swap) -> None:
        f, g, a, b, c, d = swap
        for gives, takes, one, other in ((f, g, a, b), (f, g, c, d), (g, f, b, c), (g, f, d, a)):
            self._put(gives, one, other, -1)
            self._put(takes, one, other, 1)
        for number in (f, g):
            if number != _NONE:
                self._count(number)

    def _put(self, number: int, one: int, other: int, count: int) -> None:
        """Put an edge into a cover, or take it out."""
        for u, v in ((one, other), (other, one)):
            if number == _NONE:
                self.free[u][v] += count
            elif count > 0:
                self.beside[number][u].append(v)
            else:
                self.beside[number][u].remove(v)

    def _count(self, number: int) -> None:
        """Number the cycles of a cover anew."""
        self.visits -= self.n + _OVERHEAD
        cycle = self.cycle[number] = [-1] * self.n
        self.count[number] = 0
        for start in range(self.n):
            if cycle[start] < 0:
                for vertex in self._walk(number, start):
                    cycle[vertex] = self.count[number]
                self.count[number] += 1

    def _walk(self, number: int, start: int) -> list[int]:
        """Once round the cycle of a vertex."""
        beside, walked, last = self.beside[number], [start], start
        vertex = beside[start][0]
        while vertex != start:
            walked.append(vertex)
            one, other = beside[vertex]
            last, vertex = vertex, other if one == last else one
        return walked


def _covers(edges: Edges) -> list[Order]:
    """Covers of all vertices by cycles, without common edges: who follows whom in each.

    If there is none with all edges given a direction, one in which a cycle may go to and fro.
    """
    covers: list[Order] = []
    left, found = edges.copy(), True
    while found:
        arcs, found = _directed(left), False
        while (cover := _perfect_matching(arcs)) is not None:
            vertex, found = np.arange(len(cover)), True
            arcs[vertex, cover] -= 1
            np.subtract.at(left, (vertex, cover), 1)
            np.subtract.at(left, (cover, vertex), 1)
            covers.append(cover)
    if not covers and (cover := _perfect_matching(edges)) is not None:
        covers.append(cover)
    return covers


def _directed(edges: Edges) -> Edges:
    """Every edge with a direction, so that as many go in as out, or one more or less.

    Vertices with an odd number of edges are joined to one more vertex; then all can be walked
    round trip by round trip.
    """
    n = len(edges)
    odd = edges.sum(axis=1) % 2
    left = np.zeros((n + 1, n + 1), dtype=np.int64)
    left[:n, :n], left[n, :n], left[:n, n] = edges, odd, odd
    arcs = np.zeros_like(left)
    for start in range(n + 1):
        vertex = start
        while left[vertex].any():
            following = int(left[vertex].argmax())
            left[vertex, following] -= 1
            left[following, vertex] -= 1
            arcs[vertex, following] += 1
            vertex = following
    return arcs[:n, :n]


def _perfect_matching(arcs: Edges) -> Order | None:
    """A follower for every vertex, each of another; None if there is no such choice."""
    n = len(arcs)
    after = [np.flatnonzero(row).tolist() for row in arcs]
    follower, leader = [_NONE] * n, [_NONE] * n
    for start in range(n):
        came_from: dict[int, int] = {}
        queue, end = [start], _NONE
        for vertex in queue:
            for following in after[vertex]:
                if following in came_from:
                    continue
                came_from[following] = vertex
                if leader[following] == _NONE:
                    end = following
                    break
                queue.append(leader[following])
            if end != _NONE:
                break
        if end == _NONE:
            return None
        while end != _NONE:
            vertex = came_from[end]
            leader[end], follower[vertex], end = vertex, end, follower[vertex]
    return np.array(follower)
