"""Switches with limited buffers: times worked out by hand, and what does not fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.strategies import irregular
from weft.errors import TopologyError, UnreachableError
from weft.judge import verify
from weft.topology import Topology, load_topology

from . import handmade
from .handmade import SHARE
from .reference import is_right

GB_S = 10**9
MS = 10**9


def chain(rates: list[int], buffers: list[int | None]) -> Topology:
    """NPUs 0 and 1 at the ends, switches between them, 100 us a link; both ways."""
    nodes = [0, *range(2, 2 + len(buffers)), 1]
    there, back = nodes[:-1], nodes[1:]
    network = Topology.from_links(
        "chain",
        2,
        [*there, *back],
        [*back, *there],
        [rate * GB_S for rate in rates] * 2,
        MS // 10,
        switches=len(buffers),
    )
    limits = {2 + i: size for i, size in enumerate(buffers) if size is not None}
    return network.with_switches(buffers=limits)


def second_start(network: Topology, root: int, latency_model: str = "pipelined") -> float:
    """When the second of two chunks of 1 MB starts, in ms."""
    result = weft.synthesize(
        network, "broadcast", 2 * 10**6, chunks=2, root=root, latency_model=latency_model
    )
    assert result.verified
    assert is_right(result.algorithm)
    return sorted(result.algorithm.transfers.start.tolist())[1] / MS


# Two chunks over 4, 2 and 1 GB/s. Whichever link is held longest lets the second chunk wait.
@pytest.mark.parametrize(
    ("rates", "buffers", "start"),
    [
        ([4, 1], [None], 1.0),
        ([1, 4], [0], 1.0),
        ([4, 2, 4], [None, None], 0.5),
        ([4, 2, 4], [0, 0], 0.5),
    ],
)
def test_the_slowest_link_sets_the_pace(
    rates: list[int], buffers: list[int | None], start: float
) -> None:
    for root in (0, 1):
        assert second_start(chain(rates, buffers), root) == start


def star(buffer: int | None) -> Topology:
    """A server with 4 GB/s and two clients with 1 GB/s on a switch."""
    ends = [(0, 3), (3, 0), (1, 3), (3, 1), (2, 3), (3, 2)]
    network = Topology.from_links(
        "star",
        3,
        [src for src, _ in ends],
        [dst for _, dst in ends],
        [4 * GB_S] * 2 + [GB_S] * 4,
        MS // 10,
        switches=1,
    )
    return network if buffer is None else network.with_switches(buffers={3: buffer})


@pytest.mark.parametrize("kind", ["scatter", "gather"])
@pytest.mark.parametrize(
    ("buffer", "pipelined", "blocking"),
    [
        (None, 1.45, 1.55),
        (10**6, 1.45, 1.55),
        (750_000, 1.45, 1.55),
        (500_000, 1.7, 1.8),
        (0, 2.2, 2.3),
    ],
)
def test_a_fast_link_waits_for_a_slow_one(
    kind: str, buffer: int | None, pipelined: float, blocking: float
) -> None:
    """1 MB for each client, from the server or to it: back-pressure works both ways."""
    for model, expected in (("pipelined", pipelined), ("blocking", blocking)):
        result = weft.synthesize(
            star(buffer), kind, 3 * 10**6, chunks=1, root=0, latency_model=model
        )
        assert result.verified, result.verdict.violation
        assert is_right(result.algorithm)
        assert result.algorithm.time / MS == expected
        assert result.bound.time <= result.algorithm.time


def test_the_buffers_on_the_way_add_up() -> None:
    """Two clients behind two switches: the second hop waits for the link held longest."""
    ends = [(0, 3), (3, 4), (4, 1), (4, 2)]
    network = Topology.from_links(
        "two switches",
        3,
        [src for src, _ in ends],
        [dst for _, dst in ends],
        [4 * GB_S, 4 * GB_S, GB_S, GB_S],
        0,
        switches=2,
    )
    for buffers, expected in (
        ({}, 1.25),
        ({3: 300_000}, 1.25),
        ({4: 200_000}, 1.8),
        ({3: 300_000, 4: 200_000}, 1.8),  # 0.5 ms the first link, 0.8 ms the second
        ({3: 0, 4: 600_000}, 1.4),
    ):
        limited = network.with_switches(buffers=buffers)
        result = weft.synthesize(limited, "scatter", 3 * 10**6, chunks=1, root=0)
        assert result.verified
        assert result.algorithm.time / MS == expected


def test_what_does_not_fit_cannot_cross() -> None:
    algorithm = handmade.star_all_gather(False, True, False)
    assert verify(handmade.with_buffer(algorithm, SHARE))
    verdict = verify(handmade.with_buffer(algorithm, SHARE - 1))
    assert verdict.kind == "route"
    assert verdict.violation == (
        "row 0 sends the 1600 B of chunk 0 through switch s0, which stores 1599 B and forwards "
        "whole chunks only"
    )


def test_chunks_are_made_to_fit() -> None:
    network = load_topology("switch:4").with_switches(buffers={4: 5000})
    for kind in ("all-reduce", "broadcast", "gather"):
        result = weft.synthesize(network, kind, 10**6, switching="store-and-forward")
        assert result.verified
        assert result.algorithm.chunks.bytes.max() <= 5000
    with pytest.raises(UnreachableError, match=r"chunks of 250000 B do not fit .* more chunks"):
        weft.synthesize(network, "all-gather", 10**6, chunks=1, switching="store-and-forward")


def test_small_buffers_are_gone_round() -> None:
    """Two ways through a switch each; only one can store the chunk."""
    ends = [(0, 2), (2, 1), (0, 3), (3, 1)]
    network = Topology.from_links(
        "two ways", 2, [s for s, _ in ends], [d for _, d in ends], GB_S, 0, switches=2
    ).with_switches(buffers={2: 10})
    result = weft.synthesize(network, "broadcast", 1000, chunks=1, switching="store-and-forward")
    assert result.verified
    assert set(result.algorithm.routes.links.tolist()) == {2, 3}


@examples(60)
@given(irregular(npus=6), st.integers(1, 10**6), st.integers(1, 3))
def test_smaller_buffers_never_help(network: Topology, size: int, chunks: int) -> None:
    """What is right with limits is right without: holds only get longer."""
    algorithm = weft.synthesize(network, "all-gather", size, chunks=chunks, threads=1).algorithm
    assert verify(algorithm)
    assert is_right(algorithm)
    assert verify(algorithm.on(network.with_switches(buffers={})))


@pytest.mark.parametrize(("switch", "size"), [(1, 5), (5, 5), (4, -1)])
def test_bad_buffers(switch: int, size: int) -> None:
    with pytest.raises(TopologyError, match="buffer"):
        load_topology("switch:4").with_switches(buffers={switch: size})
