"""Networks that only the benchmarks need."""

from __future__ import annotations

import numpy as np

from weft.reproduce.networks import without_some
from weft.topology import Topology, load_topology


def irregular_mesh(width: int, height: int, seed: int) -> Topology:
    """A mesh with an eighth of its connections removed and 1x to 4x of 50 GiB/s a direction."""
    random = np.random.default_rng(seed)
    mesh = load_topology(f"mesh:{width}x{height}", "50GiB/s", "0.5us")
    left = without_some(mesh, width * height // 8, random)
    rate = (left.bandwidth * random.uniform(1, 4, left.links)).astype(np.int64)
    name = f"irregular {width}x{height}, seed {seed}"
    return Topology.from_links(name, left.npus, left.src, left.dst, rate, left.latency)
