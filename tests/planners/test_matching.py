"""The matching: groups that relay, groups side by side, machines of two levels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.planners.by_chunks import plan, problem_of
from tests.strategies import networks
from weft.collective import Chunks, Collective
from weft.topology import Topology, load_topology

MESH = load_topology("mesh:8x8", "50GiB/s", "0.5us")


def gathers(groups: list[list[int]], count: int) -> list[Chunks]:
    return [Collective.of("all-gather", group, 1 << 27, count).chunks for group in groups]


def time_of(network: Topology, chunks: Chunks) -> int:
    return plan(problem_of(network, chunks)).time


@pytest.mark.parametrize(("column", "most"), [(0, 1.08), (3, 1.11)])
def test_a_column_gathers_through_the_whole_mesh(column: int, most: float) -> None:
    group = list(range(column, 64, 8))
    result = weft.synthesize(MESH, "all-gather", "1GiB", chunks=4, group=group)
    assert result.verified
    assert 1 / result.efficiency <= most


def test_scattered_groups() -> None:
    ratios = []
    for seed in range(10):
        group = np.random.default_rng(seed).choice(64, 8, replace=False).tolist()
        result = weft.synthesize(MESH, "all-gather", "1GiB", chunks=4, group=group)
        assert result.verified
        ratios.append(1 / result.efficiency)
    assert sum(ratios) / len(ratios) <= 1.12


@pytest.mark.parametrize("count", [1, 2, 4])
def test_rows_side_by_side_are_no_slower_than_one_alone(count: int) -> None:
    rows = [list(range(first, first + 8)) for first in range(0, 64, 8)]
    tables = gathers(rows, count)
    alone = time_of(MESH, tables[3].within(np.array(rows[3], dtype=np.int32)))
    assert time_of(MESH, Chunks.concatenate(tables)) <= alone


def test_groups_that_are_not_joined_relay_for_each_other() -> None:
    """Every other NPU of a ring: neither group can do without the other."""
    ring = load_topology("ring:6")
    groups = [[0, 2, 4], [1, 3, 5]]
    assert time_of(ring, Chunks.concatenate(gathers(groups, 2))) > 0


@pytest.mark.parametrize(
    ("kind", "spec", "chunks", "least"),
    [
        ("all-gather", "ndv2:2", 24, 0.99),
        ("all-gather", "mi250:2", 16, 0.88),
        ("all-gather", "a100:2", 24, 0.99),
        ("all-gather", "h100:2", 24, 0.99),
        ("all-gather", "h100:4", 24, 0.94),
        ("broadcast", "h100:4", 256, 0.80),
        ("reduce", "mi250:2", 256, 0.75),
    ],
)
def test_machines_of_two_levels(kind: str, spec: str, chunks: int, least: float) -> None:
    """Chunks enter a box once, so that the slow links between boxes carry what they must."""
    result = weft.synthesize(spec, kind, "64MiB", chunks=chunks, threads=1)
    assert result.verified
    assert result.efficiency >= least


@examples(60)
@given(networks(), st.data())
def test_threads_do_not_change_joint_plans(network: Topology, data: st.DataObject) -> None:
    """Groups of one NPU or more, overlapping or not."""
    npu = st.sampled_from(network.members.tolist())
    group = st.lists(npu, min_size=1, max_size=6, unique=True)
    groups = data.draw(st.lists(group, min_size=1, max_size=4))
    chunks = Chunks.concatenate(gathers(groups, data.draw(st.integers(1, 3))))
    one, two = (plan(problem_of(network, chunks, seed=1, threads=n)) for n in (1, 2))
    for column in ("chunk", "src", "dst", "route", "start", "end"):
        assert np.array_equal(getattr(one, column), getattr(two, column))
