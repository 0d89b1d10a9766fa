"""Tiny cases where the optimum is known by brute force: bound <= optimum <= synthesized."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from tests.bounds.exhaustive import Search
from tests.strategies import NAMED, Case
from weft.bounds import lower_bound, quick_bound
from weft.collective import PATTERNS, Chunks, Collective, Move, custom
from weft.cost import CostModel
from weft.topology import Topology
from weft.units import NEVER

UNIT = 1_000_000  # ps a chunk of 1000 B takes at 1 GB/s
CHUNK = 1000
RANDOM, VISITS = 150, 400  # networks, and how long each is searched
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
    root = 0 if PATTERNS[kind].rooted else None
    size = CHUNK * chunks * PATTERNS[kind].shares(npus)
    demand = Collective.of(kind, range(npus), size, chunks, root, alignment=CHUNK)
    network = network_of(npus, 0, ends)
    cost = CostModel("blocking" if blocking else "pipelined")
    best = UNIT * Search(network, [demand], cost, UNIT).optimum()
    bound = lower_bound(network, demand.chunks, cost)
    assert bound.ideal <= bound.time <= best
    assert Case(network, demand, cost, 0).run(trials=8).algorithm.time >= best


def network_of(npus: int, switches: int, ends: Ends) -> Topology:
    """Chunks of 1000, 2000 and 3000 B take whole units on every link."""
    return Topology.from_links(
        "small",
        npus,
        [src for src, *_ in ends],
        [dst for _, dst, *_ in ends],
        [-(-(10**9) // push) for *_, push, _ in ends],
        [alpha * UNIT for *_, alpha in ends],
        switches=switches,
    )


def random_network(random: Random) -> Topology:
    """A tour of two to four NPUs and up to two switches, or NPUs on a line of switches."""
    npus, switches = random.randint(2, 4), random.choice([0, 1, 1, 2])
    nodes = list(range(npus + switches))
    if switches and random.random() < 0.5:
        hubs = nodes[npus:]
        pairs = [*pairwise(hubs)]
        pairs += [(npu, random.choice(hubs)) for npu in range(npus)]
        pairs += [(dst, src) for src, dst in pairs]
    else:
        tour = random.sample(nodes, len(nodes))
        pairs = [*zip(tour, [*tour[1:], tour[0]], strict=True)]
    pairs += [tuple(random.sample(nodes, 2)) for _ in range(random.randint(0, 3))]
    pushes = random.choice([[1], [1, 2], [1, 2, 3], [2, 3]])
    alphas = random.choice([[0], [1], [0, 1, 2], [0, 3]])
    ends = [(src, dst, random.choice(pushes), random.choice(alphas)) for src, dst in pairs]
    buffers = {hub: CHUNK * random.choice([0, 1, 3]) for hub in nodes[npus:]}
    copying, adding = ([hub for hub in nodes[npus:] if random.random() < 0.6] for _ in range(2))
    network = network_of(npus, switches, ends).with_switches(copying=copying, adding=adding)
    return network.with_switches(buffers=buffers) if random.random() < 0.4 else network


def random_demand(random: Random, npus: int) -> Collective:
    """Copies that one or several have, and sums, of one to three sizes."""
    group = random.sample(range(npus), random.randint(2, npus))
    ranks = range(len(group))
    sizes = random.choice([[1], [1, 2], [1, 3]])
    moves = [
        Move(
            CHUNK * random.choice(sizes),
            tuple(random.sample(ranks, random.choice([1, 1, 2, len(group)]))),
            tuple(random.sample(ranks, random.choice([1, 1, 2, len(group)]))),
            random.random() < 0.4,
        )
        for _ in range(random.randint(1, 3))
    ]
    return custom(group, moves, alignment=CHUNK, relay=random.random() < 0.7)


def test_nothing_is_faster_than_the_bound() -> None:
    """Mixed demands through switches of all kinds; many bounds are the optimum, to the unit."""
    met = 0
    for seed in range(RANDOM):
        random = Random(seed)
        network = random_network(random)
        demands = [random_demand(random, network.npus) for _ in range(random.choice([1, 1, 2]))]
        switching = random.choice(["cut-through", "store-and-forward"])
        if network.buffers and switching == "store-and-forward":
            network = network.with_switches(buffers=dict.fromkeys(network.buffers, 3 * CHUNK))
        cost = CostModel(random.choice(["pipelined", "blocking"]), switching)
        chunks = Chunks.concatenate([demand.chunks for demand in demands])
        bound = lower_bound(network, chunks, cost).time
        if bound == NEVER:  # nobody else may relay, and there is no other way
            continue
        search = Search(network, demands, cost, UNIT)
        assert bound == 0 or not search.can_end_by((bound - 1) // UNIT, VISITS), seed
        met += search.can_end_by(-(-bound // UNIT), VISITS)
    assert met > RANDOM // 2


def test_sums_and_copies_for_all_are_no_faster() -> None:
    """Whole groups that sum or copy, others relay: the bound and that of planners hold."""
    kinds = ("all-reduce", "all-reduce", "broadcast", "reduce", "all-gather")
    found = set()
    for seed in range(RANDOM):
        random = Random(seed)
        network = random_network(random).with_switches(buffers={})
        group = random.sample(range(network.npus), random.randint(2, network.npus))
        kind, count = random.choice(kinds), random.choice([1, 2, 3])
        pattern = PATTERNS[kind]
        pieces = 1 if kind == "all-reduce" else pattern.shares(len(group))
        root = group[0] if pattern.rooted else None
        demand = Collective.of(kind, group, CHUNK * count * pieces, 1, root, CHUNK)
        models = random.choice(["pipelined", "blocking"]), "store-and-forward"
        cost = CostModel(*models[: random.choice([1, 2])])
        bound = lower_bound(network, demand.chunks, cost)
        proved = max(bound.time, quick_bound(network, demand.chunks, cost))
        search = Search(network, [demand], cost, UNIT)
        assert bound.ideal <= bound.time == proved
        assert not search.can_end_by((proved - 1) // UNIT, VISITS), seed
        found.add(bound.kind)
    assert {"cone", "ingress", "egress"} <= found
