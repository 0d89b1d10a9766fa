"""What `weft.runtime.probing` concludes from measurements: made up with noise, and of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from weft.errors import InputError
from weft.progress import Tracker
from weft.runtime import Wanted, local, probe
from weft.runtime.flows import Floats, Pair, rate_of
from weft.runtime.probing import Probed, probed
from weft.topology import Topology, parse_topology

Route = tuple[int, ...]


@dataclass
class Told:
    """Ranks on a network that is known: flows share links fairly, times have noise."""

    net: Topology
    noise: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        self.ranks = self.net.npus
        self.random = np.random.default_rng(self.seed)
        self.routes = {
            (a, b): self.route(a, b) for a in range(self.ranks) for b in range(self.ranks) if a != b
        }

    def route(self, a: int, b: int) -> Route:
        """The first of the shortest ways; also through other NPUs, as packets are forwarded."""
        ways: list[Route] = [()]
        reached = {a}
        ends = list(zip(self.net.src.tolist(), self.net.dst.tolist(), strict=True))
        while ways:
            longer = []
            for way in ways:
                at = ends[way[-1]][1] if way else a
                for link, (src, dst) in enumerate(ends):
                    if src == at and dst == b:
                        return (*way, link)
                    if src == at and dst not in reached:
                        reached.add(dst)
                        longer.append((*way, link))
            ways = longer
        raise AssertionError("not connected")

    def expect(self, experiments: int) -> bool:
        return experiments > 0

    def rates(self, flows: Sequence[Pair], weights: Floats | None = None) -> Floats:
        left, open_flows = self.net.bandwidth.astype(float), {*range(len(flows))}
        rate = np.zeros(len(flows))
        while open_flows:  # the tightest link first
            load = np.zeros(self.net.links)
            for flow in open_flows:
                load[list(self.routes[flows[flow]])] += 1
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(load > 0, left / load, np.inf)
            tight = int(np.argmin(share))
            for flow in [f for f in open_flows if tight in self.routes[flows[f]]]:
                rate[flow] = share[tight]
                left[list(self.routes[flows[flow]])] -= share[tight]
                open_flows.remove(flow)
        found = rate if weights is None else weights @ rate
        return found * self.random.uniform(1 - self.noise, 1 + self.noise, (5, len(found)))

    def delays(self, pairs: tuple[Pair, ...]) -> Floats:
        assert len({rank for pair in pairs for rank in pair}) == 2 * len(pairs)
        both = [[self.routes[pair], self.routes[pair[::-1]]] for pair in pairs]
        total = [sum(self.net.latency[list(way)].sum() for way in ways) / 2e12 for ways in both]
        return np.array(total) * self.random.uniform(1 - self.noise, 1 + self.noise, len(pairs))


def ways_of(net: Topology) -> dict[Pair, list[Route]]:
    """What addresses tell of neighbours."""
    ends = enumerate(zip(net.src.tolist(), net.dst.tolist(), strict=True))
    found: dict[Pair, list[Route]] = {}
    for link, pair in ends:
        found.setdefault(pair, []).append((link,))
    return found


def same_links(found: Probed, net: Topology, within: float = 0.05) -> None:
    """The links are the right ones, and so are their rates where they can be told."""
    assert (found.topology.npus, found.topology.switches) == (net.npus, net.switches)
    assert found.topology.src.tolist() == net.src.tolist()
    assert found.topology.dst.tolist() == net.dst.tolist()
    off = found.topology.bandwidth / net.bandwidth - 1
    assert np.abs(off[~found.at_least]).max() <= within, (off, found.doubts)
    assert (off[found.at_least] <= within).all()


def network(npus: int, links: Sequence[tuple[int, int, int]], switches: int = 0) -> Topology:
    src, dst, rate = zip(*links, strict=True)
    return Topology.from_links("true", npus, src, dst, rate, 5_000_000, switches=switches)


def find(net: Topology, ways: dict[Pair, list[Route]] | None = None, seed: int = 0) -> Probed:
    return probed(Told(net, seed=seed), None, ways or {}, Tracker())


@examples(15)
@given(st.integers(3, 8), st.data())
def test_links_of_neighbours(ranks: int, data: st.DataObject) -> None:
    """A ring and chords of any speeds, as the addresses of neighbours tell them."""
    chords = data.draw(st.sets(st.tuples(st.integers(0, ranks - 1), st.integers(0, ranks - 1))))
    ring = {(rank, (rank + 1) % ranks) for rank in range(ranks)}
    pairs = sorted(ring | {(a, b) for a, b in chords if a != b})
    speeds = st.lists(st.integers(10**6, 10**10), min_size=len(pairs), max_size=len(pairs))
    links = [(a, b, speed) for (a, b), speed in zip(pairs, data.draw(speeds), strict=True)]
    net = network(ranks, links)
    found = find(net, ways_of(net), data.draw(st.integers(0, 99)))
    same_links(found, net)
    assert not found.doubts
    assert not found.at_least.any()


@examples(15)
@given(st.lists(st.sampled_from([10**6, 2 * 10**6, 3 * 10**6]), min_size=4, max_size=8), st.data())
def test_ports_of_a_switch(speeds: list[int], data: st.DataObject) -> None:
    """Unequal ports: what a port can do beyond all others together is not claimed."""
    ranks = len(speeds)
    down = data.draw(st.permutations(speeds))
    links = [(rank, ranks, speed) for rank, speed in enumerate(speeds)]
    links += [(ranks, rank, speed) for rank, speed in enumerate(down)]
    net = network(ranks, links, 1)
    given_net = probed(Told(net), net, {}, Tracker())
    same_links(given_net, net)
    if len({*speeds}) == 1:
        found = find(net)
        same_links(found, net)
        assert found.structure == "ports of a switch"
        assert found.topology.latency.sum() == pytest.approx(2 * ranks * 5_000_000, rel=0.1)


def test_ports_of_two_speeds() -> None:
    links = [(rank, 5, 6 - rank) for rank in range(5)] + [(5, rank, 4) for rank in range(5)]
    net = network(5, [(a, b, speed * 10**6) for a, b, speed in links], 1)
    same_links(find(net), net)


def test_a_switch_that_carries_less_than_its_ports() -> None:
    ports = [(rank, 4, 10**9) for rank in range(4)]
    net = network(4, [*ports, (4, 5, 2 * 10**9), *((5, rank, 10**9) for rank in range(4))], 2)
    same_links(find(net), net)


def test_a_link_for_each_pair() -> None:
    net = parse_topology("fc:5")
    found = find(net)
    assert found.topology.switches == 0
    assert found.topology.links == 20
    assert np.abs(found.topology.bandwidth / net.bandwidth - 1).max() <= 0.05


@pytest.mark.parametrize("boxes", [2, 3])
@pytest.mark.parametrize("own_nics", [False, True])
@pytest.mark.parametrize("own_links", [False, True])
def test_boxes_behind_nics(boxes: int, own_nics: bool, own_links: bool) -> None:
    """Inside a box links or ports of 90, outside one NIC of 10 for all or for each."""
    size, links = 4, []
    ranks, spine = boxes * 4, boxes * 4
    node = spine + 1
    for first in range(0, ranks, size):
        box, inner = range(first, first + size), node
        node += 1
        if own_links:
            links += [(a, b, 90) for a in box for b in box if a != b]
        else:
            links += [one for a in box for one in ((a, inner, 90), (inner, a, 90))]
        if own_nics:
            links += [one for a in box for one in ((a, spine, 10), (spine, a, 10))]
        else:
            if own_links:
                links += [one for a in box for one in ((a, inner, 99), (inner, a, 99))]
            links += [(inner, spine, 10), (spine, inner, 10)]
    net = network(ranks, [(a, b, speed * 10**8) for a, b, speed in links], node - spine)
    truth, noisy = Told(net, noise=0), Told(net)
    if own_nics and not own_links:  # bytes inside a box do not take the NICs
        for a, b in truth.routes:
            if a // size != b // size:
                up, down = (
                    [*zip(net.src, net.dst, strict=True)].index(e) for e in ((a, spine), (spine, b))
                )
                truth.routes[a, b] = (up, down)
    noisy.routes = truth.routes
    found = probed(noisy, None, {}, Tracker())
    inside = "a link for each pair" if own_links else "ports of a switch"
    outside = "a NIC for each rank" if own_nics else "a NIC for each"
    assert found.structure == f"{boxes} boxes of {size}: {inside} inside, {outside} outside"
    probe_of = Told(found.topology, noise=0)
    for pair in truth.routes:
        assert probe_of.rates([pair])[0] == pytest.approx(truth.rates([pair])[0], rel=0.05)
    across = [(rank, (rank + size) % ranks) for rank in range(ranks)]
    all_across = probe_of.rates(across).mean(0).sum(), truth.rates(across).mean(0).sum()
    assert all_across[0] == pytest.approx(all_across[1], rel=0.05)


def test_forwarded_ways_are_no_links() -> None:
    """A ring whose packets are forwarded, without addresses: it is said that it is no switch."""
    found = find(parse_topology("ring:6"))
    assert found.doubts


def test_links_that_nothing_crosses_are_kept() -> None:
    """Parallel links: the first is measured, the other taken to be alike."""
    net = network(3, [(0, 1, 10**9), (0, 1, 10**9), (1, 2, 10**9), (2, 0, 10**9)])
    found = probed(Told(net), net, ways_of(net), Tracker())
    assert found.topology.bandwidth[0] == found.topology.bandwidth[1]
    assert np.isnan(found.spread[1])
    assert "0 > 1" in found.doubts[0]


def test_links_that_share_something() -> None:
    """A ring whose ranks send no faster to two neighbours than to one."""
    ring = network(4, [(a, (a + step) % 4, 10**9) for a in range(4) for step in (1, 3)])
    truth = Told(_behind_ports(4))
    truth.routes = {(a, b): (a, 4 + b) for a in range(4) for b in range(4) if a != b}
    found = probed(truth, ring, ways_of(ring), Tracker())
    assert np.abs(found.topology.bandwidth / 5e8 - 1).max() <= 0.05
    assert "slower when all links are busy" in found.doubts[0]


def _behind_ports(ranks: int) -> Topology:
    links = [(a, ranks, 10**9) for a in range(ranks)] + [(ranks, a, 10**9) for a in range(ranks)]
    return network(ranks, links, 1)


def test_nothing_to_measure() -> None:
    net = Topology.from_links("apart", 2, [0], [2], "1GB/s", "0", switches=1)
    with pytest.raises(InputError, match="joins no two"):
        probed(Told(network(2, [(0, 1, 1), (1, 0, 1)])), net, {}, Tracker())


def test_rates_are_those_of_bytes_seen_late() -> None:
    """A reader that sleeps sees bytes late; a burst at the start is no rate."""
    ends = np.arange(1, 33) * 0.01
    late = ends.copy()
    late[5:9], late[-2:] = late[9], late[-1] + 0.03
    late[:3] = 0.0
    one = np.array([1.0])
    assert rate_of(late[None], np.array([10**4]), one) == pytest.approx(10**6)
    first, second = np.split(np.arange(1, 65) * 0.005, 2)  # one after the other
    both = np.array([first, second])
    assert rate_of(both, np.array([5000, 5000]), np.ones(2)) == pytest.approx(10**6)


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_ranks_of_this_machine(transport: str) -> None:
    """All ranks find the same; how fast this machine is nobody knows."""
    with local(3, transport) as ranks:
        found = ranks.run(probe, Wanted(parse_topology("switch:3"), time_s=0.1, repeats=1))
    first = found[0]
    assert all(one.to_dict() == first.to_dict() for one in found)
    assert (first.topology.bandwidth > 10**5).all()
    assert (first.topology.latency < 10**12).all()
    assert first.topology.notes[0].startswith("probed over ")


def test_bad_wishes() -> None:
    for bad in ({"time_s": 0}, {"repeats": 0}, {"scale": 0}, {"time_s": float("nan")}):
        with pytest.raises(InputError, match="expected"):
            Wanted(**bad)
    with (
        local(2) as ranks,
        pytest.raises(InputError, match="has 3 NPUs, but there are 2 ranks"),
    ):
        ranks.run(probe, Wanted(parse_topology("ring:3")))
