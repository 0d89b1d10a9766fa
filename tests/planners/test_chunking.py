"""How many chunks: about as good as the best of a sweep, few where α rules, many where bytes do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

import weft
from weft.collective import Collective, all_reduce_of
from weft.cost import CostModel
from weft.planners import Problem
from weft.planners.chunking import ladders
from weft.topology import Topology, load_topology

SWEEP = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)


@pytest.mark.parametrize(
    ("spec", "kind", "size"),
    [
        ("mesh:3x3", "all-reduce", "256KiB"),
        ("ring:6", "broadcast", "1MiB"),
        ("switch:6", "all-to-all", "64KiB"),
        ("dgx1", "all-gather", "16MiB"),
        ("torus:3x3", "reduce-scatter", "2KiB"),
        ("dragonfly:2x3", "reduce", "1MiB"),
    ],
)
def test_near_the_best_of_a_sweep(spec: str, kind: str, size: str) -> None:
    chosen = weft.synthesize(spec, kind, size)
    swept = [weft.synthesize(spec, kind, size, chunks=k).algorithm.time for k in SWEEP]
    assert chosen.verified
    assert chosen.algorithm.time <= 1.03 * min(swept)


def test_more_bytes_more_chunks() -> None:
    """Where α blocks the link, few bytes go in one chunk."""
    few, many = (
        weft.synthesize("line:5", "broadcast", size, latency_model="blocking").algorithm
        for size in ("1KiB", "64MiB")
    )
    assert len(few.chunks) == 1
    assert len(many.chunks) >= 16


def all_cut(
    network: Topology, cost: CostModel, jobs: Sequence[tuple[Collective, bool]]
) -> list[list[list[Collective]]]:
    problem = Problem.of(network, [demand for demand, _ in jobs], cost)
    problem = replace(problem, free=tuple(free for _, free in jobs))
    return [[list(step.demands) for step in ladder] for ladder in ladders(problem)]


def test_buffers_are_cut_in_fewer_parts_than_npus() -> None:
    network, cost = load_topology("ring:5"), CostModel()
    demand = Collective.of("all-reduce", range(5), 160, relay=False)
    few, many = all_cut(network, cost, [(demand, True)])
    assert [len(cut.chunks) for (cut,) in few] == [1, 2, 3, 4]
    assert [len(cut.chunks) for (cut,) in many] == [5, 10]
    assert not any(cut.relay for (cut,) in few)
    gather = Collective.of("all-gather", range(5), 160)
    assert [
        [len(cut.chunks) for (cut,) in ladder]
        for ladder in all_cut(network, cost, [(gather, True)])
    ] == [[5, 10]]


def test_given_numbers_of_chunks_stay() -> None:
    network, cost = load_topology("ring:5"), CostModel()
    given = Collective.of("all-reduce", range(5), 1600, 3)
    chosen = Collective.of("all-gather", range(5), 1600)
    assert all_cut(network, cost, [(given, False)]) == [[[given]]]
    for ladder in all_cut(network, cost, [(given, False), (chosen, True)]):
        assert all(first == given for first, _ in ladder)


@pytest.mark.parametrize("method", ["auto", "steiner", "trees", "one-shot"])
def test_all_reduce_of_given_pieces(method: str) -> None:
    demand = all_reduce_of(range(9), 1 << 20, 3)
    result = weft.synthesize("mesh:3x3", demand, chunks=1, method=method)
    assert result.verified
    assert len(result.algorithm.chunks) == 3
