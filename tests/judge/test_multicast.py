"""Switches that copy: one transmission for several rows, and all that only looks like one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.strategies import COSTS, NAMED, irregular, reachable
from weft.algorithm import Algorithm, Buffer, Timing, place
from weft.collective import Collective
from weft.cost import CostModel
from weft.judge import verify
from weft.topology import Topology, load_topology

from . import handmade
from .handmade import LATENCY, SHARE
from .mutate import change, drop, pick
from .reference import is_right

PUSH = SHARE * 1000


def refused(algorithm: Algorithm, kind: str = "link") -> None:
    verdict = verify(algorithm)
    assert verdict.kind == kind, verdict.violation
    assert not is_right(algorithm)


def accepted(algorithm: Algorithm) -> None:
    verdict = verify(algorithm)
    assert verdict, verdict.violation
    assert is_right(algorithm)


def test_a_switch_that_does_not_copy() -> None:
    accepted(handmade.star_multicast())
    refused(handmade.star_multicast(copies=False))


@pytest.mark.parametrize("by", [1, PUSH - 1])
def test_another_start(by: int) -> None:
    refused(change(handmade.star_multicast(), 5, shift=by))


def test_another_chunk() -> None:
    refused(change(handmade.star_multicast(), 5, chunk=0))


def test_the_same_destination_twice() -> None:
    algorithm = handmade.star_multicast()
    refused(pick(algorithm, [0, 0, 1, 2, 3, 4, 5]))


def test_another_place() -> None:
    algorithm = handmade.star_multicast(places=True)
    accepted(algorithm)
    refused(change(algorithm, 4, src_place=place(Buffer.HOME, 1)))


def test_rows_in_any_order() -> None:
    accepted(pick(handmade.star_multicast(), [5, 1, 3, 0, 4, 2]))


def test_sums_are_not_multicast() -> None:
    """Two NPUs get NPU 0's part of a sum at once: each needs a transmission of its own."""
    collective = Collective("all-reduce", (0, 1, 2), SHARE, alignment=SHARE)
    duration = PUSH + 2 * LATENCY
    rows = [(0, 0, 1, True, 1, 0), (0, 0, 2, True, 2, 0)]
    network = handmade.star(3).with_switches(copying=[3])
    algorithm = Algorithm(
        (collective,),
        handmade.table(rows, duration),
        Timing(network, CostModel(), handmade.star_routes(3)),
    )
    refused(algorithm)


@pytest.mark.parametrize("copying", [(4, 5), (4, 6), (4,), (5, 6), (5,), (6,), ()])
def test_every_switch_where_ways_part_must_copy(copying: tuple[int, ...]) -> None:
    algorithm = handmade.tree_multicast(copying)
    if {4, 5} <= set(copying):
        accepted(algorithm)
    else:
        refused(algorithm)


def test_another_prefix() -> None:
    """Two ways to the second leaf: a link that both cross must come after the same links."""
    ends = [(0, 3), (3, 4), (3, 4), (4, 1), (4, 2)]
    network = Topology.from_links(
        "parallel", 3, [s for s, _ in ends], [d for _, d in ends], 10**9, 0, switches=2
    ).with_switches(copying=[3, 4])
    collective = Collective.of("broadcast", range(3), SHARE, root=0)

    def over(*paths: list[int]) -> Algorithm:
        rows = [(0, 0, d, False, d - 1, 0) for d in (1, 2)]
        routes = handmade.Routes(
            np.cumsum([0, *map(len, paths)], dtype=np.int64),
            np.array([link for path in paths for link in path], dtype=np.int32),
        )
        return Algorithm(
            (collective,), handmade.table(rows, PUSH), Timing(network, CostModel(), routes)
        )

    accepted(over([0, 1, 3], [0, 1, 4]))
    accepted(over([0, 1, 3], [0, 2, 4]))  # parts at the first switch
    refused(over([0, 1, 3], [0, 2, 4]).on(network.with_switches(copying=[4])))
    refused(over([0, 1, 3], [0, 1, 4]).on(network.with_switches(copying=[3])))


def test_another_hold() -> None:
    """To a near and to a slow client: back-pressure holds the server's link longer for one."""
    ends = [(0, 3), (3, 1), (3, 2)]
    rates = [2 * 10**9, 2 * 10**9, 10**9]
    network = Topology.from_links(
        "unequal", 3, [s for s, _ in ends], [d for _, d in ends], rates, 0, switches=1
    ).with_switches(copying=[3])
    collective = Collective.of("broadcast", range(3), SHARE, root=0)
    rows = [(0, 0, 1, False, 0, 0), (0, 0, 2, False, 1, 0)]
    routes = handmade.Routes(np.array([0, 2, 4]), np.array([0, 1, 0, 2], dtype=np.int32))
    transfers = handmade.table(rows, [PUSH // 2, PUSH])
    algorithm = Algorithm((collective,), transfers, Timing(network, CostModel(), routes))
    accepted(algorithm)
    refused(algorithm.on(network.with_switches(buffers={3: 0})))


@pytest.mark.parametrize("spec", ["dgx2", "switch:16", "leaf-spine:8x4x2"])
@pytest.mark.parametrize("chunks", [1, 3, None])
def test_a_broadcast_is_one_transmission(spec: str, chunks: int | None) -> None:
    network = load_topology(f"{spec},multicast")
    result = weft.synthesize(network, "broadcast", "64MiB", chunks=chunks)
    assert result.verified, result.verdict.violation
    assert result.efficiency > 0.999
    plain = weft.synthesize(load_topology(spec), "broadcast", "64MiB", chunks=chunks)
    assert result.time_us < plain.time_us


@pytest.mark.parametrize(
    ("spec", "kind"), [("rails:4x4x2", "broadcast"), ("dgx2:4", "all-gather"), ("rails:4x4", None)]
)
def test_copying_is_never_worse(spec: str, kind: str | None) -> None:
    for pattern in [kind] if kind else ["broadcast", "all-gather", "all-reduce", "reduce"]:
        times = [
            weft.synthesize(load_topology(text), pattern, "4MiB", chunks=2, threads=1).time_us
            for text in (f"{spec},multicast", spec)
        ]
        assert times[0] <= times[1]


def test_unequal_chunks_stay_together() -> None:
    """Sizes that do not divide are timed anew; every chunk still crosses NPU 0's link once."""
    network = load_topology("switch:5,multicast", bandwidth="1GB/s", latency="1us")
    result = weft.synthesize(network, "broadcast", 1000, chunks=3, alignment=16)
    assert result.verified
    sizes = result.algorithm.chunks.bytes
    assert len(set(sizes.tolist())) > 1
    assert result.algorithm.time == 1000 * 1000 + 2 * 10**6
    assert len(set(result.algorithm.transfers.start.tolist())) == 3


def _multicasts(algorithm: Algorithm) -> list[int]:
    """Rows that start with another of the same chunk over the same first link."""
    t = algorithm.transfers
    first = algorithm.routes.links[algorithm.routes.offsets[t.route]]
    keys = list(zip(t.chunk.tolist(), t.start.tolist(), first.tolist(), strict=True))
    return [row for row, key in enumerate(keys) if keys.count(key) > 1]


@st.composite
def switched(draw: st.DrawFn) -> Topology:
    """Networks where much goes through switches, some of which copy or have small buffers."""
    spec = draw(
        st.sampled_from(["switch:5", "leaf-spine:2x3x2", "rails:2x3", "rails:2x2x1", "dgx2", "any"])
    )
    if spec == "any":
        return draw(irregular(npus=6).filter(lambda network: network.switches > 0))
    network = load_topology(spec)
    some = st.sets(st.integers(network.npus, network.nodes - 1))
    sizes = st.sampled_from([0, 500, 4096, 10**6])
    buffers = {switch: draw(sizes) for switch in draw(some)}
    return network.with_switches(buffers=buffers, copying=draw(some), adding=draw(some))


@examples(80)
@given(switched(), st.sampled_from(NAMED), COSTS, st.integers(1, 10**5), st.data())
def test_random_switched_networks(
    network: Topology, kind: str, cost: CostModel, size: int, data: st.DataObject
) -> None:
    chunks = data.draw(st.integers(1, 3))
    if cost.switching == "store-and-forward":
        network = network.with_switches(buffers={})
    result = weft.synthesize(
        network,
        kind,
        size,
        chunks=chunks,
        latency_model=cost.latency_model,
        switching=cost.switching,
        alignment=data.draw(st.sampled_from([1, 16])),
        threads=1,
    )
    assert reachable(network)
    assert result.verified, result.verdict.violation
    assert result.bound.time <= result.algorithm.time
    if len(result.algorithm.transfers) < 150:
        assert is_right(result.algorithm)


@examples(60)
@given(st.sampled_from(["switch:4", "leaf-spine:2x2x2", "rails:3x3"]), st.data())
def test_broken_multicasts_are_caught(spec: str, data: st.DataObject) -> None:
    network = load_topology(f"{spec},multicast", bandwidth="1GB/s", latency="1us")
    chunks = data.draw(st.integers(1, 3))
    algorithm = weft.synthesize(
        network, "broadcast", chunks * SHARE, chunks=chunks, threads=1
    ).algorithm
    rows = _multicasts(algorithm)
    assert rows
    row = data.draw(st.sampled_from(rows))
    way = data.draw(st.sampled_from(["start", "chunk", "drop", "copying"]))
    if way == "start":
        broken = change(algorithm, row, shift=data.draw(st.integers(1, PUSH - 1)))
    elif way == "chunk":
        other = (int(algorithm.transfers.chunk[row]) + 1) % chunks
        broken = change(algorithm, row, chunk=other) if chunks > 1 else drop(algorithm, row)
    elif way == "drop":
        broken = drop(algorithm, row)
    else:
        broken = algorithm.on(network.with_switches(copying=[]))
    assert not verify(broken)
    assert not is_right(broken)
