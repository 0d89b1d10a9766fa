"""Algorithms of log n rounds: who meets whom, how often, and known times."""

from __future__ import annotations

import numpy as np
import pytest

from tests.strategies import GB_S, US
from weft.classical import BASELINES, baseline
from weft.collective import Collective
from weft.topology import Topology, load_topology

KB_PUSH = US  # of a kilobyte over a link of 1 GB/s


def net(spec: str) -> Topology:
    """Links of 1 GB/s and 3 µs."""
    return load_topology(spec, bandwidth=[GB_S], latency=[3 * US])


def rounds(name: str, kind: str, spec: str, chunks: int = 1) -> list[set[int]]:
    """The distances that are crossed in each step, in ranks."""
    network = load_topology(spec)
    demand = Collective.of(kind, range(network.npus), 1000 * network.npus, chunks, None, 1)
    sends = BASELINES[name].sends(network, demand)
    away = (sends.dst - sends.src) % network.npus
    near = np.minimum(away, network.npus - away)
    return [set(near[sends.step == step].tolist()) for step in np.unique(sends.step)]


@pytest.mark.parametrize(
    ("name", "kind", "spec", "distances"),
    [
        ("rhd", "reduce-scatter", "switch:8", [1, 2, 4]),
        ("rhd", "all-gather", "switch:8", [4, 2, 1]),
        ("rhd", "all-reduce", "switch:16", [1, 2, 4, 8, 8, 4, 2, 1]),
        ("swing", "reduce-scatter", "ring:8", [1, 1, 3]),
        ("swing", "all-gather", "ring:16", [5, 3, 1, 1]),
        ("swing", "all-reduce", "ring:8", [1, 1, 3, 3, 1, 1]),
        ("bruck", "all-gather", "ring:16", [1, 2, 4, 8]),
        ("bruck", "all-to-all", "ring:16", [1, 2, 4, 8]),
    ],
)
def test_distances(name: str, kind: str, spec: str, distances: list[int]) -> None:
    assert rounds(name, kind, spec) == [{distance} for distance in distances]


def test_swing_takes_dimensions_in_turn() -> None:
    """Chunks begin with either; the longer dimension has one round more, three apart."""
    network = load_topology("torus:8x4")
    demand = Collective.of("reduce-scatter", range(32), 128_000, 4, None, 1)
    sends = BASELINES["swing"].sends(network, demand)
    across, up = (sends.dst - sends.src) % 8, (sends.dst // 8 - sends.src // 8) % 4
    apart = np.stack([np.minimum(across, 8 - across), np.minimum(up, 4 - up)], axis=1)
    met = [set(map(tuple, apart[sends.step == step].tolist())) for step in range(5)]
    assert met == [{(1, 0), (0, 1)}] * 4 + [{(3, 0)}]


@pytest.mark.parametrize("ranks", [*range(2, 21), 33])
def test_bruck_takes_log_rounds(ranks: int) -> None:
    for kind in ("all-gather", "all-to-all"):
        assert len(rounds("bruck", kind, f"switch:{ranks}")) == (ranks - 1).bit_length()


@pytest.mark.parametrize("name", ["rhd", "swing", "bruck"])
@pytest.mark.parametrize("ranks", [2, 6, 7, 12, 16, 40])
def test_nothing_is_received_twice(name: str, ranks: int) -> None:
    network = load_topology(f"switch:{ranks}")
    demand = Collective.of("all-gather", range(ranks), 1000 * ranks, 2, None, 1)
    sends = BASELINES[name].sends(network, demand)
    pairs = set(zip(sends.chunk.tolist(), sends.dst.tolist(), strict=True))
    assert len(pairs) == len(sends) == 2 * ranks * (ranks - 1)


@pytest.mark.parametrize(
    ("name", "spec", "time"),
    [
        # Three exchanges, each of one chunk over one link.
        ("recursive-doubling", "hypercube:3", 3 * (3 * US + KB_PUSH)),
        # Of 5 ranks one hands over its part, four exchange twice, and it gets the sum back.
        ("recursive-doubling", "fc:5", 4 * (3 * US + KB_PUSH)),
        # Up a tree of three levels below the root, and down again.
        ("double-binary-tree", "fc:8", 2 * 3 * (3 * US + KB_PUSH)),
        ("c-cube", "fc:8", 2 * 3 * (3 * US + KB_PUSH)),
        ("rhd", "hypercube:3", 2 * 3 * (3 * US + KB_PUSH)),
    ],
)
def test_times_of_one_chunk(name: str, spec: str, time: int) -> None:
    network = net(spec)
    demand = Collective.of("all-reduce", range(network.npus), 1000, 1, None, 1000)
    assert len(demand.chunks) == 1
    assert baseline(name, network, [demand]).time == time


def test_halving_doubling_on_a_hypercube() -> None:
    """Ports of the first exchange carry half the buffer each way: they are never idle."""
    demand = Collective.of("all-reduce", range(8), 8000, 1, None, 1)
    algorithm = baseline("rhd", net("hypercube:3"), [demand])
    links = np.bincount(algorithm.transfers.route)
    assert sorted(set(links.tolist())) == [2, 4, 8]


def test_bruck_sends_what_its_bits_say() -> None:
    demand = Collective.of("all-to-all", range(6), 6000, 1, None, 1)
    sends = BASELINES["bruck"].sends(load_topology("switch:6"), demand)
    assert len(sends) == 6 * sum(distance.bit_count() for distance in range(6))


def test_exchanged_sums_wait_in_memory_of_their_own() -> None:
    demand = Collective.of("all-reduce", range(4), 4000, 1, None, 1)
    sends = BASELINES["recursive-doubling"].sends(load_topology("ring:4"), demand)
    local = sends.src == sends.dst
    assert local.sum() == (~local).sum() == 4 * 4 * 2
    assert sends.src_place is not None
    assert len(set(sends.src_place[local].tolist())) == 4 * 2
