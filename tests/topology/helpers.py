"""What the topology tests share."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from weft.topology import Topology


def pairs(topology: Topology) -> list[tuple[int, int]]:
    return list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))


def neighbours(topology: Topology, node: int) -> set[int]:
    return set(topology.dst[topology.src == node].tolist())


def assert_same(a: Topology, b: Topology) -> None:
    assert (a.name, a.npus, a.switches, a.removed) == (b.name, b.npus, b.switches, b.removed)
    assert (a.buffers, a.copying, a.dimensions) == (b.buffers, b.copying, b.dimensions)
    for column in ("src", "dst", "bandwidth", "latency"):
        left, right = getattr(a, column), getattr(b, column)
        assert left.dtype == right.dtype
        assert np.array_equal(left, right)


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    npus, switches = draw(st.integers(1, 6)), draw(st.integers(0, 3))
    node = st.integers(0, npus + switches - 1)
    ends = st.tuples(node, node).filter(lambda pair: pair[0] != pair[1])
    speeds = st.sampled_from([(50 * 10**9, 0), (1, 10**18), (10**18, 7), (25 << 30, 500_000)])
    some = st.lists(st.tuples(ends, speeds), max_size=12) if npus + switches > 1 else st.just([])
    links = draw(some)
    topology = Topology.from_links(
        draw(st.text(max_size=12)),
        npus,
        [src for (src, _), _ in links],
        [dst for (_, dst), _ in links],
        [rate for _, (rate, _) in links],
        [delay for _, (_, delay) in links],
        switches=switches,
        dimensions=draw(st.sampled_from([(), (npus,), (1, npus), (npus, 1)])),
    )
    gone = draw(st.sets(st.integers(0, npus - 1), max_size=npus - 1))
    if switches:
        switch = st.integers(npus, npus + switches - 1)
        sizes = st.sampled_from([0, 1, 1000, 65536, 10**7, 1 << 60])
        buffers = draw(st.dictionaries(switch, sizes))
        topology = topology.with_switches(buffers=buffers, copying=draw(st.sets(switch)))
    return topology.without(npus=gone)
