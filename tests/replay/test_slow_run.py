"""Runs of random tables take the times of a slow model; their critical paths are chains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.paths import check_path
from tests.examples import examples
from tests.replay.slow_run import slow_run
from tests.strategies import ALPHAS, COSTS, SPEEDS
from weft.algorithm import Algorithm, Buffer, Transfers, place
from weft.collective import Move, custom
from weft.cost import CostModel
from weft.engine import simulate
from weft.topology import Topology


@dataclass
class Table:
    """Rows over single links, with the link of each; local rows have none."""

    algorithm: Algorithm
    network: Topology
    link_of: list[int | None]


@st.composite
def all_to_all_links(draw: st.DrawFn) -> Topology:
    """A few NPUs, a link from each to each, of one speed or of any."""
    npus = draw(st.integers(2, 4))
    pairs = [(a, b) for a in range(npus) for b in range(npus) if a != b]
    any_speed = st.tuples(SPEEDS, ALPHAS)
    alike = any_speed.map(lambda one: [one] * len(pairs))
    speeds = draw(alike | st.lists(any_speed, min_size=len(pairs), max_size=len(pairs)))
    src, dst = zip(*pairs, strict=True)
    rates, delays = zip(*speeds, strict=True)
    return Topology.from_links("all", npus, src, dst, rates, delays)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Rows that copy and add in any order, some local, some to scratch, some told to wait."""
    network = draw(all_to_all_links())
    link_of = {(int(network.src[k]), int(network.dst[k])): k for k in range(network.links)}
    group = range(network.npus)
    sizes = draw(st.lists(st.sampled_from([1, 1000, 4096]), min_size=1, max_size=3))
    demand = custom(group, [Move(size, group, group, draw(st.booleans())) for size in sizes])
    count = draw(st.integers(1, 24))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    chunk = np.array(column(st.integers(0, len(demand.chunks) - 1)), dtype=np.int32)
    ends = column(st.sampled_from([*link_of, (0, 0)]))
    src, dst = np.array(ends, dtype=np.int32).T.copy()
    reduce = np.array(column(st.booleans())) & demand.chunks.reduce[chunk]
    rows = Transfers(chunk, src, dst, reduce)
    if draw(st.booleans()):
        scratch = np.int32(place(Buffer.SCRATCH, 0))
        slots = [np.array(column(st.integers(-2, 1)), dtype=np.int32) for _ in range(2)]
        places = [np.where(slot < 0, chunk, scratch + slot).astype(np.int32) for slot in slots]
        rows = replace(rows, src_place=places[0], dst_place=places[1])
    if draw(st.booleans()):
        waits = [draw(st.sets(st.integers(0, row - 1), max_size=2)) for row in range(1, count)]
        deps = np.array([one for some in waits for one in sorted(some)], dtype=np.int64)
        offsets = np.cumsum([0, 0, *map(len, waits)], dtype=np.int64)
        rows = replace(rows, dep_offsets=offsets, deps=deps)
    return Table(Algorithm((demand,), rows), network, [link_of.get(pair) for pair in ends])


@examples(150)
@given(tables(), COSTS, st.sampled_from([None, 10**6, 10**9, 3 * 10**12]))
def test_times_are_those_of_the_slow_model(
    table: Table, cost: CostModel, reducer: int | None
) -> None:
    run = simulate(table.algorithm, table.network, cost, reducer=reducer)
    slow = slow_run(table.algorithm, table.network, table.link_of, cost, reducer)
    assert run.start.tolist() == slow.start
    assert run.end.tolist() == slow.end
    check_path(run)


def test_critical_paths_of_long_sums_are_found_in_a_moment() -> None:
    """A sum that is read after each part: what readers wait for is as long as the table."""
    network = Topology.from_links("three", 3, [0, 1], [1, 2], [10**12] * 2, [0] * 2)
    demand = custom((0, 1, 2), [Move(1, (0, 1, 2), (0, 1, 2), True)], chunks_per_share=1)
    turns = 200_000
    rows = Transfers(
        np.zeros(2 * turns, dtype=np.int32),
        np.tile(np.array([0, 1], dtype=np.int32), turns),
        np.tile(np.array([1, 2], dtype=np.int32), turns),
        np.tile(np.array([True, False]), turns),
    )
    run = simulate(Algorithm((demand,), rows), network)
    assert run.time == 2 * turns
    assert len(run.critical_path) == 2 * turns
