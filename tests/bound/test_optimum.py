"""Tiny cases where the optimum is known by brute force: bound <= optimum <= synthesized."""

from __future__ import annotations

import pytest

from tests.bound.exhaustive import Link, optimum
from tests.strategies import NAMED, Case
from weft.bound import lower_bound
from weft.collective import PATTERNS, Collective
from weft.cost import CostModel
from weft.topology import Topology

UNIT = 1_000_000  # ps a chunk of 1000 B takes at 1 GB/s
CHUNK = 1000
Ends = list[tuple[int, int, int, int]]  # src, dst, units a chunk holds the link, units of α

NETWORKS: dict[str, tuple[int, Ends]] = {
    "pair": (2, [(0, 1, 1, 0), (1, 0, 1, 0)]),
    "slow back": (2, [(0, 1, 1, 0), (1, 0, 3, 0)]),
    "parallel": (2, [(0, 1, 1, 0), (0, 1, 2, 0), (1, 0, 2, 0), (1, 0, 2, 0)]),
    "distant": (2, [(0, 1, 1, 2), (1, 0, 2, 1)]),
    "one-way ring": (3, [(0, 1, 1, 0), (1, 2, 1, 0), (2, 0, 1, 0)]),
    "line": (3, [(0, 1, 1, 0), (1, 0, 1, 0), (1, 2, 1, 0), (2, 1, 1, 0)]),
    "line with α": (3, [(0, 1, 1, 1), (1, 0, 1, 1), (1, 2, 1, 1), (2, 1, 1, 1)]),
    "lame ring": (3, [(0, 1, 1, 0), (1, 2, 1, 0), (2, 0, 3, 0), (1, 0, 2, 0)]),
    "detour": (3, [(0, 1, 4, 0), (0, 2, 1, 0), (2, 1, 1, 0), (1, 0, 1, 0)]),
}


def _pieces(kind: str, npus: int, chunks: int) -> int:
    return chunks * PATTERNS[kind].parts(npus)


def _is_small(kind: str, npus: int, chunks: int) -> bool:
    """Whether every choice can be tried in a moment; sums have many more."""
    pieces = _pieces(kind, npus, chunks)
    return npus * pieces <= 4 if "reduce" in kind else pieces <= 4


CASES = [
    (name, kind, chunks, blocking)
    for name, (npus, ends) in NETWORKS.items()
    for kind in NAMED
    for chunks in (1, 2)
    for blocking in ([False, True] if any(alpha for *_, alpha in ends) else [False])
    if _is_small(kind, npus, chunks)
]


@pytest.mark.parametrize(("name", "kind", "chunks", "blocking"), CASES)
def test_optimum_lies_between(name: str, kind: str, chunks: int, blocking: bool) -> None:
    npus, ends = NETWORKS[name]
    links = [
        Link(src, dst, push + (alpha if blocking else 0), push + alpha)
        for src, dst, push, alpha in ends
    ]
    root = 0 if PATTERNS[kind].rooted else None
    size = CHUNK * chunks * PATTERNS[kind].shares(npus)
    demand = Collective.of(kind, range(npus), size, chunks, root, alignment=CHUNK)
    best = UNIT * optimum(links, *_values(demand, npus))
    network = Topology.from_links(
        name,
        npus,
        [src for src, *_ in ends],
        [dst for _, dst, *_ in ends],
        [10**9 // push if push != 3 else 333_333_334 for *_, push, _ in ends],
        [alpha * UNIT for *_, alpha in ends],
    )
    cost = CostModel("blocking" if blocking else "pipelined")
    bound = lower_bound(network, demand.chunks, cost)
    assert bound.ideal <= bound.time <= best
    # A third of 1 GB/s is not a whole number: a slow chunk takes a few ps less than three units.
    assert Case(network, demand, cost, 0).run(trials=8).algorithm.time >= best - 100


def _values(demand: Collective, npus: int) -> tuple[tuple, tuple]:
    """What each NPU has of each chunk at the start, and what it must have."""
    table = demand.chunks
    start, goal = [], []
    for npu in range(npus):
        has, wants = [], []
        for chunk in range(len(table)):
            pre, post = table.members(table.pre[chunk]), table.members(table.post[chunk])
            sums = table.reduce[chunk]
            has.append(frozenset([npu if sums else 0]) if npu in pre else None)
            wants.append(frozenset(pre.tolist() if sums else [0]) if npu in post else None)
        start.append(tuple(has))
        goal.append(tuple(wants))
    return tuple(start), tuple(goal)
