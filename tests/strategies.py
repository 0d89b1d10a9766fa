"""Random networks, collectives and cost models for property tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from weft.algorithm import Algorithm
from weft.collective import PATTERNS, Collective, Move, all_to_allv, custom, permutation
from weft.cost import CostModel
from weft.result import Result
from weft.topology import Topology, load_topology

GB_S = 10**9
US = 10**6

# Patterns whose name says what moves.
NAMED = sorted(name for name, pattern in PATTERNS.items() if pattern.build is not None)

SPEEDS = st.sampled_from([10**6, 7_777_777, GB_S, 12_500_000_000, 25 * GB_S, 50 << 30, 10**15])
ALPHAS = st.sampled_from([0, 1, 700, 500_000, US, 10**9])
BUFFERS = st.sampled_from([0, 1, 100, 4096, 10**5, 10**8])
SPECS = st.sampled_from(
    [
        *("ring:1", "ring:2", "ring:5", "line:4", "fc:4", "mesh:3x3", "mesh:2x3x2", "torus:3x4"),
        *("hypercube:3", "switch:4", "dragonfly:2x3", "ring:3*switch:2", "fc:2*ring:3", "dgx1"),
        *("switch:2*switch:3", "line:2*fc:3"),
    ]
)


@st.composite
def _speeds(draw: st.DrawFn) -> st.SearchStrategy[tuple[int, int]]:
    """What each link's (bandwidth, latency) is drawn from: alike, of a few kinds, or any."""
    any_speed = st.tuples(SPEEDS, ALPHAS)
    if draw(st.booleans()):
        return any_speed
    usual = st.tuples(st.sampled_from([GB_S, 2 * GB_S, 3 * GB_S, 4 * GB_S]), st.just(draw(ALPHAS)))
    kinds = draw(st.lists(usual, min_size=1, max_size=3))
    return st.sampled_from(kinds)


@st.composite
def irregular(draw: st.DrawFn, npus: int = 12, switches: int = 3) -> Topology:
    """Any NPU reaches any other: a one-way tour of all nodes, and links between any others.

    Links are directed, some one-way, some parallel; switches, if any, lie in the middle.
    """
    count = draw(st.integers(2, npus))
    hubs = draw(st.integers(0, switches)) if draw(st.booleans()) else 0
    tour = draw(st.permutations(range(count + hubs)))
    node = st.integers(0, count + hubs - 1)
    pair = st.tuples(node, node).filter(lambda ends: ends[0] != ends[1])
    pairs = list(zip(tour, [*tour[1:], tour[0]], strict=True))
    pairs += draw(st.lists(pair, max_size=2 * (count + hubs)))
    if draw(st.booleans()):
        pairs += [(dst, src) for src, dst in pairs]
    each = draw(_speeds())
    speeds = draw(st.lists(each, min_size=len(pairs), max_size=len(pairs)))
    network = Topology.from_links(
        "irregular",
        count,
        [src for src, _ in pairs],
        [dst for _, dst in pairs],
        [rate for rate, _ in speeds],
        [delay for _, delay in speeds],
        switches=hubs,
    )
    if not hubs:
        return network
    some = st.sets(st.integers(count, count + hubs - 1))
    buffers = {switch: draw(BUFFERS) for switch in draw(some)}
    return network.with_switches(buffers=buffers, copying=draw(some), adding=draw(some))


@st.composite
def damaged(draw: st.DrawFn) -> Topology:
    """A mesh or torus with links and NPUs removed; what is left may fall apart."""
    network = load_topology(draw(st.sampled_from(["mesh:3x3", "mesh:4x3", "torus:3x3"])))
    pairs = sorted(set(zip(network.src.tolist(), network.dst.tolist(), strict=True)))
    gone = draw(st.lists(st.sampled_from(pairs), max_size=4, unique=True))
    npus = draw(st.sets(st.integers(0, network.npus - 1), max_size=2))
    return network.without(links=gone).without(npus=npus)


def reachable(network: Topology) -> bool:
    """Whether every NPU that is there reaches every other."""
    for start in network.members.tolist():
        seen, ends = {start}, list(zip(network.src.tolist(), network.dst.tolist(), strict=True))
        while new := {dst for src, dst in ends if src in seen} - seen:
            seen |= new
        if not seen.issuperset(network.members.tolist()):
            return False
    return True


def networks() -> st.SearchStrategy[Topology]:
    """Networks in which every NPU reaches every other."""
    return st.one_of(irregular(), damaged().filter(reachable), SPECS.map(load_topology))


SIZES = st.one_of(st.integers(1, 40), st.integers(1, 10**6), st.sampled_from([1 << 20, 1 << 30]))
COSTS = st.builds(
    CostModel,
    st.sampled_from(["pipelined", "blocking"]),
    st.sampled_from(["cut-through", "store-and-forward"]),
)


@st.composite
def collectives(draw: st.DrawFn, network: Topology) -> Collective:
    """Any pattern among all NPUs of a network, with sizes that do not divide."""
    kind = draw(st.sampled_from(NAMED))
    members = network.members.tolist()
    return Collective.of(
        kind,
        members,
        draw(SIZES),
        draw(st.integers(1, 4)),
        draw(st.sampled_from(members)) if PATTERNS[kind].rooted else None,
        draw(st.one_of(st.integers(1, 64), st.sampled_from([1, 4, 16]))),
    )


@st.composite
def moves(draw: st.DrawFn, ranks: int) -> Move:
    """One part of a custom pattern: a copy from some to some, or a sum."""
    ends = st.lists(st.integers(0, ranks - 1), min_size=1, max_size=ranks, unique=True)
    size = draw(st.integers(1, 5000))
    return Move(size, tuple(draw(ends)), tuple(draw(ends)), draw(st.booleans()))


@st.composite
def group_collectives(
    draw: st.DrawFn,
    network: Topology,
    *,
    relay: bool = True,
    kinds: Sequence[str] = tuple(PATTERNS),
) -> Collective:
    """Any pattern, listed or named, among any group of a network's NPUs."""
    members = network.members.tolist()
    group = draw(st.lists(st.sampled_from(members), min_size=1, max_size=8, unique=True))
    n = len(group)
    shape = {
        "chunks_per_share": draw(st.integers(1, 3)),
        "alignment": draw(st.sampled_from([1, 4, 16])),
        "relay": relay,
    }
    kind = draw(st.sampled_from(sorted(kinds)))
    if kind == "custom":
        return custom(group, draw(st.lists(moves(n), min_size=1, max_size=6)), **shape)
    if kind == "permutation":
        return permutation(group, draw(SIZES), draw(st.permutations(range(n))), **shape)
    if kind == "all-to-allv":
        row = st.lists(st.integers(0, 5000), min_size=n, max_size=n)
        sizes = draw(st.lists(row, min_size=n, max_size=n).filter(lambda rows: any(map(any, rows))))
        return all_to_allv(group, sizes, **shape)
    return Collective.of(kind, group, draw(SIZES), **shape)


@dataclass(frozen=True)
class Case:
    """One job for `weft.synthesize`."""

    network: Topology
    collective: Collective
    cost: CostModel
    seed: int

    def run(self, *, trials: int = 1, threads: int = 1) -> Result:
        from weft import synthesize

        return synthesize(
            self.network,
            self.collective,
            chunks=self.collective.chunks_per_share,
            seed=self.seed,
            trials=trials,
            threads=threads,
            latency_model=self.cost.latency_model,
            switching=self.cost.switching,
        )

    def __repr__(self) -> str:
        """As code that makes the same case again."""
        net, job = self.network, self.collective
        links = [column.tolist() for column in (net.src, net.dst, net.bandwidth, net.latency)]
        return (
            f"Case(Topology.from_links('{net.name}', {net.npus}, {', '.join(map(str, links))}, "
            f"switches={net.switches}).without(npus={sorted(net.removed)})"
            f".with_switches(buffers={dict(net.buffers)}, copying={sorted(net.copying)}, "
            f"adding={sorted(net.adding)}), "
            f"Collective({job.kind!r}, {job.group}, {job.size}, {job.chunks_per_share}, "
            f"{job.root}, {job.alignment}, {job.relay}), "
            f"{self.cost!r}, {self.seed})"
        )


@st.composite
def cases(draw: st.DrawFn, source: st.SearchStrategy[Topology] | None = None) -> Case:
    network = draw(networks() if source is None else source)
    seed = draw(st.integers(0, 2**63 - 1000))
    collective, cost = draw(collectives(network)), draw(COSTS)
    return Case(roomy(network, [collective], cost), collective, cost, seed)


def roomy(network: Topology, demands: Sequence[Collective], cost: CostModel) -> Topology:
    """The network with buffers in which whole chunks fit if they must: others are refused."""
    if cost.switching != "store-and-forward":
        return network
    largest = max(demand.chunks.largest for demand in demands)
    fitting = {switch: max(size, largest) for switch, size in network.buffers.items()}
    return network.with_switches(buffers=fitting)


def same(one: Algorithm, two: Algorithm) -> bool:
    """Whether two algorithms are the same, to the last bit of each column."""
    if one.demands != two.demands:
        return False
    left, right = one.transfers.columns(), two.transfers.columns()
    return left.keys() == right.keys() and all(
        (left[name] == right[name]).all() if len(left[name]) == len(right[name]) else False
        for name in left
    )


def shuffled(whole: Topology, seed: int) -> tuple[Topology, NDArray[np.int64]]:
    """A network with its nodes in another order and no dimensions; and what NPU each was before."""
    rng = np.random.default_rng(seed)
    order, hubs = rng.permutation(whole.npus), rng.permutation(whole.switches)
    node = np.concatenate([order, whole.npus + hubs])
    links = rng.permutation(whole.links)
    src, dst, rate, delay = (column[links] for column in whole.columns)
    mixed = Topology.from_links(
        "mixed", whole.npus, node[src], node[dst], rate, delay, switches=whole.switches
    )
    return _with_abilities_of(whole, mixed, node), np.argsort(order)


def _with_abilities_of(whole: Topology, mixed: Topology, node: NDArray[np.int64]) -> Topology:
    return mixed.with_switches(
        copying=[int(node[switch]) for switch in whole.copying],
        buffers={int(node[switch]): size for switch, size in whole.buffers.items()},
    )
