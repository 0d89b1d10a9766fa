"""Chunks that only some NPUs may hold: planners keep to them, or say what cannot be reached."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.planners.by_chunks import plan, problem_of
from tests.strategies import networks
from weft.collective import Chunks, Collective
from weft.errors import UnreachableError
from weft.planners.schedule import Schedule
from weft.topology import Topology, load_topology


def within(kind: str, group: list[int], reach: list[int], count: int = 2) -> Chunks:
    chunks = Collective.of(kind, group, 6_000_000, count).chunks
    return chunks.within(np.array(sorted(reach), dtype=np.int32))


def serves(schedule: Schedule, chunks: Chunks) -> bool:
    """Whether rows, in order, bring each chunk to its takers and only where it may go."""
    for chunk in range(len(chunks)):
        held = {int(npu): 0 for npu in chunks.members(int(chunks.pre[chunk]))}
        for row in np.flatnonzero(schedule.chunk == chunk):
            src, dst = int(schedule.src[row]), int(schedule.dst[row])
            if held.get(src, 1 << 62) > schedule.start[row]:
                return False
            held.setdefault(dst, int(schedule.end[row]))
        if not set(chunks.members(int(chunks.post[chunk])).tolist()) <= held.keys():
            return False
        number = int(chunks.reach[chunk])
        if number >= 0 and not held.keys() <= set(chunks.members(number).tolist()):
            return False
    return True


def can_be_served(network: Topology, chunks: Chunks) -> bool:
    links = list(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    for chunk in range(len(chunks)):
        number = int(chunks.reach[chunk])
        allowed = set(range(network.nodes))
        if number >= 0:
            allowed -= set(range(network.npus)) - set(chunks.members(number).tolist())
        reached, before = set(chunks.members(int(chunks.pre[chunk])).tolist()), 0
        while len(reached) > before:
            before = len(reached)
            reached |= {dst for src, dst in links if src in reached and dst in allowed}
        if not set(chunks.members(int(chunks.post[chunk])).tolist()) <= reached:
            return False
    return True


@examples(100)
@given(networks(), st.sampled_from(["all-gather", "broadcast"]), st.data())
def test_chunks_stay_within_reach(network: Topology, kind: str, data: st.DataObject) -> None:
    """Several groups at once, overlapping or not, each with its own reach or none."""
    tables = []
    for _ in range(data.draw(st.integers(1, 3))):
        npu = st.sampled_from(network.members.tolist())
        group = data.draw(st.lists(npu, min_size=1, max_size=5, unique=True))
        more = data.draw(st.lists(npu, max_size=6))
        tables.append(
            within(kind, group, [*{*group, *more}])
            if data.draw(st.booleans())
            else Collective.of(kind, group, 6000, 2).chunks
        )
    chunks = Chunks.concatenate(tables)
    if can_be_served(network, chunks):
        schedule = plan(problem_of(network, chunks))
        assert serves(schedule, chunks)
    else:
        with pytest.raises(UnreachableError, match="relaying outside is forbidden"):
            plan(problem_of(network, chunks))


def test_regions_do_not_lead_out_of_reach() -> None:
    """Chunks should enter each side of a cut once; not by way of an NPU they may not visit."""
    network = load_topology("torus:3x3").without(links=[(5, 3), (0, 6)]).without(npus={4, 7})
    tables = [within("all-gather", [0, 2, 6, 8], [0, 2, 6, 8]), within("all-gather", [0], [0, 3])]
    chunks = Chunks.concatenate(tables)
    schedule = plan(problem_of(network, chunks))
    assert serves(schedule, chunks)


def test_broadcast_by_trees_within_reach() -> None:
    """A row of a mesh alone is a line; with one more row beside it there are two ways."""
    mesh = load_topology("mesh:4x4", "1GB/s", "1us")
    line = within("broadcast", [0, 1, 2, 3], [0, 1, 2, 3], 32)
    wide = within("broadcast", [0, 1, 2, 3], list(range(8)), 32)
    times = []
    for chunks in (line, wide):
        schedule = plan(problem_of(mesh, chunks))
        assert serves(schedule, chunks)
        times.append(schedule.time)
    assert times[1] < 0.7 * times[0]


@pytest.mark.parametrize("kind", ["all-gather", "broadcast"])
def test_a_forbidden_relay_is_named(kind: str) -> None:
    line = load_topology("line:3")
    with pytest.raises(
        UnreachableError,
        match="chunk 0 cannot get from NPU 0 to NPU 2: no path of links leads there through its "
        "group of 2 NPUs, and relaying outside is forbidden",
    ):
        plan(problem_of(line, within(kind, [0, 2], [0, 2])))
    schedule = plan(problem_of(line, within(kind, [0, 2], [0, 1, 2])))
    assert serves(schedule, within(kind, [0, 2], [0, 1, 2]))
