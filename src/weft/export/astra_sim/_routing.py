"""Routes of rows; for algorithms made for no network the fewest links from NPU to NPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.algorithm import Algorithm, Routes
from weft.arrays import Int64
from weft.errors import InputError
from weft.export.astra_sim._messages import Pieces, Rows, cut, rows_of
from weft.ragged import offsets_of
from weft.topology import Topology


def routed(algorithm: Algorithm, topology: Topology) -> tuple[Rows, bool]:
    """Rows that go from NPU to NPU through switches, and whether NPUs had to relay some.

    Those of a timed algorithm go over its own routes.
    """
    table = algorithm.transfers
    if algorithm.timed:
        return rows_of(algorithm, table.require_times().route, algorithm.routes), False
    nodes = np.concatenate([table.src, table.dst])
    if nodes.max(initial=0) >= topology.npus:
        raise InputError(
            f"the algorithm names NPU {nodes.max()}, but {topology.name} has NPUs 0 to "
            f"{topology.npus - 1}"
        )
    width = np.int64(topology.npus)
    pairs, route = np.unique(table.src * width + table.dst, return_inverse=True)
    paths = _paths(topology, pairs // width, pairs % width)
    links = np.array([link for path in paths for link in path], dtype=np.int32)
    whole = Routes(offsets_of([*map(len, paths)]), links)
    rows = rows_of(algorithm, route.reshape(-1).astype(np.int32), whole)
    messages, parts = cut(rows, _between_npus(topology, whole))
    return messages, not bool((parts.first & parts.last).all())


def _paths(topology: Topology, sources: Int64, targets: Int64) -> list[list[int]]:
    """The links of a shortest path for each pair; ties go to the lowest link numbers."""
    leaving: list[list[tuple[int, int]]] = [[] for _ in range(topology.nodes)]
    for link, ends in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
        leaving[ends[0]].append((link, ends[1]))
    paths: list[list[int]] = []
    tree: list[int] = []
    last = -1
    for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
        if source != last:
            tree, last = _tree(leaving, source), source
        paths.append(_path(topology, tree, source, target))
    return paths


def _tree(leaving: Sequence[Sequence[tuple[int, int]]], source: int) -> list[int]:
    """The link over which each node is first reached; -1 where none is."""
    over = [-1] * len(leaving)
    reached, front = {source}, [source]
    while front:
        after = []
        for node in front:
            for link, other in leaving[node]:
                if other not in reached:
                    reached.add(other)
                    over[other] = link
                    after.append(other)
        front = after
    return over


def _path(topology: Topology, tree: Sequence[int], source: int, target: int) -> list[int]:
    links: list[int] = []
    node = target
    while node != source:
        if tree[node] < 0:
            raise InputError(f"{topology.name}: NPU {source} cannot reach NPU {target}")
        links.append(tree[node])
        node = int(topology.src[tree[node]])
    return links[::-1]


def _between_npus(topology: Topology, routes: Routes) -> Pieces:
    """Each route, all of which end at NPUs, cut at those it crosses."""
    links = routes.links
    at_npu = topology.dst[links] < topology.npus
    marks = np.concatenate([[0], np.flatnonzero(at_npu) + 1])
    src, dst = topology.src[links[marks[:-1]]], topology.dst[links[marks[1:] - 1]]
    return Pieces(offsets_of(at_npu)[routes.offsets], src, dst, Routes(marks, links))
