"""Switches that add: one transmission for several rows, and all that only looks like one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from weft.algorithm import Algorithm, Buffer, Timing, place
from weft.collective import Collective
from weft.cost import CostModel
from weft.engine import simulate
from weft.judge import verify
from weft.topology import Topology, load_topology

from . import handmade
from .handmade import LATENCY, SHARE
from .mutate import change, drop, pick
from .reference import is_right

PUSH = SHARE * 1000


def refused(algorithm: Algorithm, kind: str = "link") -> None:
    verdict = verify(algorithm)
    assert verdict.kind == kind, verdict.violation
    assert not is_right(algorithm)


def accepted(algorithm: Algorithm) -> None:
    verdict = verify(algorithm)
    assert verdict, verdict.violation
    assert is_right(algorithm)


def star_sum(adds: bool = True, **options: object) -> Algorithm:
    """Each chunk from all others to NPU 0, through one link into it."""
    return handmade.backwards(handmade.star_multicast(adds, **options))


def test_a_switch_that_does_not_add() -> None:
    accepted(star_sum())
    refused(star_sum(adds=False))
    network = star_sum().topology
    refused(star_sum().on(network.with_switches(adding=(), copying=network.adding)))


@pytest.mark.parametrize("by", [1, PUSH - 1])
def test_another_end(by: int) -> None:
    refused(change(star_sum(), 2, shift=by))


def test_another_chunk() -> None:
    refused(change(star_sum(), 5, chunk=0))


def test_the_same_part_twice() -> None:
    refused(pick(star_sum(), [0, 0, 1, 2, 3, 4, 5]))


def test_a_part_that_is_no_sum() -> None:
    refused(change(star_sum(), 1, reduce=0))


def test_rows_in_any_order() -> None:
    accepted(pick(star_sum(), [5, 1, 3, 0, 4, 2]))


def test_places() -> None:
    """Parts of one number go to one place."""
    algorithm = star_sum(places=True)
    rows = replace(algorithm.transfers, dst_place=algorithm.transfers.chunk.copy())
    algorithm = replace(algorithm, rows=rows)
    accepted(algorithm)
    refused(change(algorithm, 4, dst_place=place(Buffer.SCRATCH, 1)))


@pytest.mark.parametrize("adding", [(4, 5), (4, 6), (4,), (5, 6), (5,), (6,), ()])
def test_every_switch_where_ways_meet_must_add(adding: tuple[int, ...]) -> None:
    """Leaves add what comes from below, the leaf of the taker what comes from the other."""
    algorithm = handmade.backwards(handmade.tree_multicast(adding))
    if {4, 5} <= set(adding):
        accepted(algorithm)
    else:
        refused(algorithm)


def test_ways_that_meet_without_one_end() -> None:
    """From the near leaf as soon as from the far one: it arrives before the sum does."""
    algorithm = handmade.backwards(handmade.tree_multicast())
    near = int(np.argmin(algorithm.transfers.end - algorithm.transfers.start))
    start = int(algorithm.transfers.start.min())
    refused(change(algorithm, near, shift=start - int(algorithm.transfers.start[near])))


def test_one_pass_does_not_add_and_copy() -> None:
    """From everybody to everybody at once: every link once, if a switch did both at a time."""
    collective = Collective("all-reduce", (0, 1, 2), SHARE, alignment=SHARE)
    rows = [(0, s, d, True, 3 * s + d, 0) for s in range(3) for d in range(3) if s != d]
    network = handmade.star(3).with_switches(copying=[3], adding=[3])
    algorithm = Algorithm(
        (collective,),
        handmade.table(rows, PUSH + 2 * LATENCY),
        Timing(network, CostModel(), handmade.star_routes(3)),
    )
    refused(algorithm)


def between() -> Topology:
    """NPU 0 gets what a switch adds over one link, and what NPU 3 has over another."""
    ends = [(1, 4), (2, 4), (4, 0), (3, 0)]
    src, dst = zip(*ends, strict=True)
    return Topology.from_links("between", 4, src, dst, 10**9, 0, switches=1)


def test_nothing_is_written_between_the_parts() -> None:
    """A copy that ends when a sum arrives comes before it, or after it: not in the middle of it."""
    network = between().with_switches(adding=[4])
    group = Collective("reduce", (0, 1, 2, 3), SHARE, root=0, alignment=SHARE)
    routes = handmade.Routes(np.array([0, 2, 4, 5]), np.array([0, 2, 1, 2, 3], dtype=np.int32))
    parts = [(0, 1, 0, True, 0, 0), (0, 2, 0, True, 1, 0)]
    copy = (0, 3, 0, False, 2, 0)

    def ordered(*rows: tuple[int, int, int, bool, int, int]) -> Algorithm:
        return Algorithm((group,), handmade.table(rows, PUSH), Timing(network, CostModel(), routes))

    for rows in ((copy, *parts), (*parts, copy)):
        assert verify(ordered(*rows)).kind != "link"
    refused(ordered(parts[0], copy, parts[1]))


@st.composite
def summed(draw: st.DrawFn) -> Algorithm:
    """Sums that Weft plans for networks whose switches add."""
    spec = draw(st.sampled_from(["switch:4", "leaf-spine:2x2x2", "rails:3x3", "h100:1"]))
    options = draw(st.sampled_from([",adding", ",adding,multicast"]))
    network = load_topology(f"{spec}{options}", bandwidth="1GB/s", latency="1us")
    kind = draw(st.sampled_from(["reduce", "all-reduce", "reduce-scatter"]))
    chunks = draw(st.integers(1, 2))
    models = draw(st.sampled_from(["pipelined", "blocking"]))
    size = draw(st.sampled_from([SHARE, 5 * SHARE // 4])) * chunks * network.npus
    how = {"chunks": chunks, "threads": 1, "latency_model": models}
    return weft.synthesize(network, kind, size, **how).algorithm


@examples(60)
@given(summed(), st.data())
def test_broken_sums_are_caught(algorithm: Algorithm, data: st.DataObject) -> None:
    assert verify(algorithm)
    small = len(algorithm.transfers) < 150
    assert not small or is_right(algorithm)
    t = algorithm.transfers
    last = algorithm.routes.links[algorithm.routes.offsets[t.route + 1] - 1]
    keys = list(zip(t.chunk.tolist(), t.end.tolist(), last.tolist(), strict=True))
    moved = t.src != t.dst  # the others cross no link
    keys = [key if moved[row] else (row,) for row, key in enumerate(keys)]
    rows = [row for row, key in enumerate(keys) if t.reduce[row] and keys.count(key) > 1]
    if not rows:
        return
    row = data.draw(st.sampled_from(rows))
    way = data.draw(st.sampled_from(["shift", "drop", "adding", "twice", "copy"]))
    if way == "shift":
        broken = change(algorithm, row, shift=data.draw(st.integers(1, 1000)))
    elif way == "drop":
        broken = drop(algorithm, row)
    elif way == "adding":
        broken = algorithm.on(algorithm.topology.with_switches(adding=[]))
    elif way == "twice":
        broken = pick(algorithm, sorted([*range(len(t)), row]))
    else:
        broken = change(algorithm, row, reduce=0)
    assert not verify(broken)
    assert not small or not is_right(broken)


@examples(30)
@given(summed())
def test_runs_as_planned(algorithm: Algorithm) -> None:
    """Sums stay together in a run; one that adds slowly adds once for each."""
    run = simulate(algorithm, order="plan")
    assert run.time <= algorithm.time
    assert verify(run.timed())
    assert simulate(algorithm, order="plan", reducer=10**9).time >= run.time
