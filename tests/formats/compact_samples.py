"""Small algorithms with compact rows, made by hand."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from chakra_samples import assert_same_columns

from weft.algorithm import (
    Algorithm,
    LevelPart,
    LevelRows,
    LevelStep,
    RoundLog,
    SpreadRows,
    SpreadStep,
    SymmetricRows,
    Timing,
)
from weft.algorithm.rounds import NARROW_CHUNKS
from weft.collective import Collective
from weft.cost import CostModel
from weft.topology import load_topology
from weft.topology.grid import grid_of
from weft.topology.ladders import ladders_of

RATE, DELAY, CHUNK = 10**9, 1000, 1000
SLOT = CHUNK * 1000 + DELAY  # with a latency that blocks
COST = CostModel("blocking")


def encode(rounds: list[dict[int, int]], links: int, chunks: int) -> tuple[np.ndarray, np.ndarray]:
    """Log and offsets of rounds, each given as the chunk by link."""
    parts, offsets = [], [0]
    for carried in rounds:
        bits = np.zeros(-(-links // 64) * 64, dtype=np.uint8)
        bits[list(carried)] = 1
        width = "<u2" if chunks <= NARROW_CHUNKS else "<u4"
        numbers = np.array([carried[link] for link in sorted(carried)], dtype=width)
        data = np.packbits(bits, bitorder="little").tobytes() + numbers.tobytes()
        parts.append(data + bytes(-len(data) % 8))
        offsets.append(offsets[-1] + len(parts[-1]))
    return np.frombuffer(b"".join(parts), dtype=np.uint8), np.array(offsets, dtype=np.int64)


def network(spec: str):
    return load_topology(spec).with_links(bandwidth=RATE, latency=DELAY)


def logged(npus: int = 5, kind: str = "all-gather") -> Algorithm:
    """Round the ring: in round r NPU i passes on the chunk of NPU i - r."""
    topology = network(f"ring:{npus}")
    onward = {
        int(s): i
        for i, (s, d) in enumerate(zip(topology.src, topology.dst, strict=True))
        if d == (s + 1) % npus
    }
    rounds = [{onward[i]: (i - r) % npus for i in range(npus)} for r in range(npus - 1)]
    demand = Collective.of(kind, range(npus), CHUNK * npus, alignment=1)
    rows = RoundLog(SLOT, npus * (npus - 1), *encode(rounds, topology.links, npus))
    return Algorithm((demand,), rows, Timing(topology, COST), {"method": "rounds", "seed": 3})


def symmetric(npus: int = 6, kind: str = "all-gather") -> Algorithm:
    """NPU 0's chunk goes round the ring."""
    steps = np.arange(npus - 1)
    rows = SymmetricRows(
        np.zeros(npus - 1, np.int32),
        steps.astype(np.int32),
        (steps + 1).astype(np.int32),
        np.zeros(npus - 1, np.bool_),
        steps.astype(np.int64) * SLOT,
        npus,
    )
    demand = Collective.of(kind, range(npus), CHUNK * npus, alignment=1)
    return Algorithm(
        (demand,), rows, Timing(network(f"ring:{npus}"), COST), {"method": "symmetric"}
    )


def levels() -> Algorithm:
    """Two NPUs on each of two leaves under one spine, across leaves first."""
    topology = load_topology("leaf-spine:2x2x1", bandwidth="1GB/s", latency="10ns")
    grid = grid_of(topology, range(4))
    part = LevelPart((LevelStep((0,), True, 0), LevelStep((1,), True, 0)), 1)
    start = np.array([0, 244, 356], dtype=np.int64) * 1000
    ladders = tuple(ladders_of(topology, grid))
    rows = LevelRows(grid.sizes, grid.npus, ladders, (part,), start, sums=False)
    demand = Collective.of("all-gather", range(4), 400)
    return Algorithm((demand,), rows, Timing(topology, CostModel()), {"method": "by-level"})


def spread(kind: str = "broadcast") -> Algorithm:
    """Four NPUs on two leaves: the root scatters on its leaf, both copy across leaves, then gather.

    Two chunks of 112 B: a hop in a leaf takes 132 ns, between leaves 152 ns. The second is
    scattered when the first is gathered.
    """
    topology = load_topology("leaf-spine:2x2x2", bandwidth="1GB/s", latency="10ns")
    grid = grid_of(topology, range(4))
    leaf = SpreadStep("scatter", (0,), 0)
    part = (leaf, SpreadStep("copy", (1,), 0), leaf._replace(act="gather"))
    start = np.array([0, 132, 284] if kind == "broadcast" else [284, 132, 0]) * 1000
    ladders = tuple(ladders_of(topology, grid))
    rows = SpreadRows(
        grid.sizes, grid.npus, ladders, (part,), 2, 284_000, start, sums=kind == "reduce"
    )
    demand = Collective.of(kind, range(4), 224, 2, root=0)
    return Algorithm((demand,), rows, Timing(topology, CostModel()), {"method": "spread"})


def assert_same_compact(a: Algorithm, b: Algorithm) -> None:
    """Equal in everything, rows as they are."""
    assert a.demands == b.demands
    assert a.cost == b.cost
    assert dict(a.provenance) == dict(b.provenance)
    assert type(a.rows) is type(b.rows)
    left, right = (
        {field.name: getattr(one.rows, field.name) for field in fields(one.rows)} for one in (a, b)
    )
    left.pop("file", None), right.pop("file", None)
    assert_same_columns(left, right)
    assert_same_columns(vars(a.topology), vars(b.topology))
