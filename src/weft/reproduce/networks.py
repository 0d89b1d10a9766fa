"""Networks that have no name of their own."""

from __future__ import annotations

import numpy as np

from weft.topology import Topology, load_topology, summarize


def torn_mesh(width: int, height: int, seed: int) -> Topology:
    """A mesh with a tenth of its connections removed, all links alike."""
    mesh = load_topology(f"mesh:{width}x{height}")
    return without_some(mesh, mesh.links // 20, np.random.default_rng(seed))


def without_some(mesh: Topology, count: int, random: np.random.Generator) -> Topology:
    """The network with so many of its connections removed, drawn until it holds together."""
    pairs = np.flatnonzero(mesh.src < mesh.dst)
    while True:
        removed = random.choice(pairs, count, replace=False)
        failed = [(int(mesh.src[link]), int(mesh.dst[link])) for link in removed]
        left = mesh.without(links=[*failed, *((b, a) for a, b in failed)])
        if summarize(left).unreachable is None:
            return left
