"""Networks that have no name of their own."""

from __future__ import annotations

import numpy as np

from weft.topology import Topology, load_topology
from weft.topology.summary import summarize


def torn_mesh(width: int, height: int, seed: int) -> Topology:
    """A mesh with a tenth of its connections removed, all links alike."""
    mesh = load_topology(f"mesh:{width}x{height}")
    return _without_some(mesh, mesh.links // 20, np.random.default_rng(seed))


def irregular_mesh(width: int, height: int, seed: int) -> Topology:
    """A mesh with an eighth of its connections removed and 1x to 4x of 50 GiB/s a direction."""
    random = np.random.default_rng(seed)
    mesh = load_topology(f"mesh:{width}x{height}", "50GiB/s", "0.5us")
    left = _without_some(mesh, width * height // 8, random)
    rate = (left.bandwidth * random.uniform(1, 4, left.links)).astype(np.int64)
    name = f"irregular {width}x{height}, seed {seed}"
    return Topology.from_links(name, left.npus, left.src, left.dst, rate, left.latency)


def _without_some(mesh: Topology, count: int, random: np.random.Generator) -> Topology:
    """The network with so many of its connections removed, drawn until it holds together."""
    pairs = np.flatnonzero(mesh.src < mesh.dst)
    while True:
        removed = random.choice(pairs, count, replace=False)
        failed = [(int(mesh.src[link]), int(mesh.dst[link])) for link in removed]
        left = mesh.without(links=[*failed, *((b, a) for a, b in failed)])
        if summarize(left).unreachable is None:
            return left
