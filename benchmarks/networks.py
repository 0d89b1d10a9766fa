"""Networks that only the benchmarks need."""

from __future__ import annotations

import numpy as np

from weft.topology import Topology, load_topology, summarize


def irregular_mesh(width: int, height: int, seed: int) -> Topology:
    """A mesh with an eighth of its connections removed and 1x to 4x of 50 GiB/s a direction."""
    random = np.random.default_rng(seed)
    mesh = load_topology(f"mesh:{width}x{height}", "50GiB/s", "0.5us")
    pairs = np.flatnonzero(mesh.src < mesh.dst)
    while True:
        removed = random.choice(pairs, width * height // 8, replace=False)
        failed = [(int(mesh.src[link]), int(mesh.dst[link])) for link in removed]
        left = mesh.without(links=[*failed, *((b, a) for a, b in failed)])
        if summarize(left).unreachable is None:
            break
    rate = (left.bandwidth * random.uniform(1, 4, left.links)).astype(np.int64)
    name = f"irregular {width}x{height}, seed {seed}"
    return Topology.from_links(name, left.npus, left.src, left.dst, rate, left.latency)
