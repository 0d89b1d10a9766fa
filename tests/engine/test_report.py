"""Reports: what they say adds up, and is right where it can be worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.strategies import COSTS, GB_S, group_collectives, networks, roomy
from weft.classical import baseline
from weft.collective import Collective
from weft.cost import CostModel
from weft.engine import Report, Simulation, simulate
from weft.errors import InputError
from weft.planners import produce
from weft.synthesis import bound_of
from weft.topology import Topology, load_topology

US = 10**6
KB = 1000


@examples(40)
@given(networks(), COSTS, st.sampled_from([None, GB_S, 10**6]), st.data())
def test_everything_adds_up(
    network: Topology, cost: CostModel, reducer: int | None, data: st.DataObject
) -> None:
    demands = data.draw(st.lists(group_collectives(network), min_size=1, max_size=2))
    algorithm = produce(roomy(network, demands, cost), demands, cost=cost, threads=1)
    for order in ("plan", "fifo"):
        report = Report.of(simulate(algorithm, order=order, reducer=reducer))
        check(report)
        assert report.plan is not None
        if order == "plan" and reducer is None:
            assert report.plan.later == 0


def check(report: Report) -> None:
    run, path, held = report.run, report.path, report.run.occupied
    # The path leads back to the start, and its time is the run's, whichever way it is split.
    assert not run.start[run.critical_path.row[:1]].any()
    assert (path.took >= 0).all()
    assert path.moving + path.latency + path.waiting + path.adding == run.time
    assert int(path.took.sum()) == run.time
    assert min(path.moving, path.latency, path.waiting, path.adding) >= 0
    assert path.waiting_for.sum() == path.waiting
    assert path.moving_on.sum() == pytest.approx(path.moving)
    assert run.reducer is not None or path.adding == 0
    # Links.
    assert np.bincount(held.link, held.length, run.topology.links) == pytest.approx(run.busy)
    same = held.link[1:] == held.link[:-1]
    assert (held.begin[1:] >= (held.begin + held.length)[:-1])[same].all()
    assert report.links.idle + sum(report.links.quarters) == run.topology.links
    # The rest.
    assert report.bound.time <= run.time
    assert max(run.times) == run.time
    json.dumps(report.to_dict(), allow_nan=False)


def line(reducer: int | None = None) -> Simulation:
    """Two parts of 1 KB go through the middle of a line to the end, which sums all three."""
    network = load_topology("line:3", bandwidth=[GB_S], latency=[US])
    sums = Collective.of("reduce", range(3), KB, 1, 2, 1)
    return simulate(baseline("direct", network, [sums]), reducer=reducer)


def test_the_path_of_a_sum() -> None:
    # 0 > 1 takes 2 us, while 1 > 2 sends its own; then the relayed part goes on.
    report = Report.of(line())
    assert report.run.time == 4 * US
    assert (report.path.moving, report.path.latency) == (2 * US, 2 * US)
    assert (report.path.waiting, report.path.adding) == (0, 0)
    assert report.links.bytes.tolist() == [
        KB if dst == 1 else 2 * KB if dst == 2 else 0 for dst in _forward(report)
    ]
    slow = Report.of(line(GB_S // 10))  # 10 us to add 1 KB: the second part waits for the first
    assert slow.run.time == 2 * US + 2 * 10 * US
    assert slow.path.adding == 20 * US
    assert [step["cause"] for step in slow.to_dict()["critical_path"]["steps"]] == [
        "start",
        "adding",
    ]


def _forward(report: Report) -> list[int]:
    network = report.run.topology
    ends = zip(network.src.tolist(), network.dst.tolist(), strict=True)
    return [dst if dst > src else -1 for src, dst in ends]


def test_waiting_for_links_is_told_from_moving() -> None:
    # Two chunks of 1 KB for NPU 1: the second waits 1 us for the link, then takes 2 us.
    network = load_topology("line:2", bandwidth=[GB_S], latency=[US])
    pair = produce(network, [Collective.of("broadcast", range(2), 2 * KB, 2, 0, 1)], threads=1)
    report = Report.of(simulate(pair))
    assert report.run.time == 3 * US
    assert (report.path.waiting, report.path.moving, report.path.latency) == (US, US, US)
    link = int(np.flatnonzero(network.src == 0)[0])
    assert report.path.waiting_for[link] == report.path.moving_on[link] == US
    assert (report.links.mean, report.links.least, report.links.idle) == (1 / 3, 0.0, 1)
    assert report.links.quarters == (0, 0, 1, 0)
    assert report.links.busiest[0] == link
    assert report.algbw_GBps == pytest.approx(2 / 3)
    assert report.efficiency == 1.0


def test_store_and_forward_moves_link_after_link() -> None:
    network = load_topology("switch:2", bandwidth=[GB_S], latency=[US])
    pair = [Collective.of("broadcast", range(2), KB, 1, 0, 1)]
    for switching, moves in (("cut-through", [US]), ("store-and-forward", [US, US])):
        cost = CostModel("pipelined", switching)
        report = Report.of(simulate(produce(network, pair, cost=cost, threads=1)))
        assert sorted(report.path.moving_on[report.path.moving_on > 0]) == moves
        assert report.path.latency == 2 * US


def test_what_differs_from_the_plan() -> None:
    network = load_topology("ring:4", bandwidth=[GB_S], latency=[US])
    demand = Collective.of("all-gather", range(4), 4 * KB)
    algorithm = produce(network, [demand], threads=1, method="matching")  # as early as can be
    assert Report.of(simulate(algorithm)).plan == replace(
        Report.of(simulate(algorithm)).plan, earlier=0, later=0, first=None
    )
    rows = algorithm.transfers
    late = replace(rows, start=rows.start + US, end=rows.end + US)
    report = Report.of(simulate(replace(algorithm, rows=late)))
    plan = report.plan
    assert plan is not None
    assert (plan.earlier, plan.later, plan.most_earlier, plan.most_later) == (len(rows), 0, US, 0)
    assert plan.first == int(np.argmin(late.start))
    assert plan.planned - report.run.time == US
    first = report.to_dict()["plan"]["first"]
    assert (first["planned_us"], first["start_us"]) == (1.0, 0.0)
    assert len(first["route"]) == 1
    # Blocking α is another model than the plan's: what waits for a link is later.
    blocked = Report.of(simulate(algorithm, cost=CostModel("blocking"))).plan
    assert blocked is not None
    assert blocked.later == 0 or blocked.most_later > 0


def test_several_collectives_have_a_bound_each() -> None:
    network = load_topology("mesh:2x2", bandwidth=[GB_S], latency=[0])
    rows = [Collective.of("all-gather", group, 2 * KB) for group in ((0, 1), (2, 3))]
    report = Report.of(simulate(produce(network, rows, threads=1)))
    assert [group.collective.group for group in report.groups] == [(0, 1), (2, 3)]
    assert report.algbw_GBps == min(group.algbw_GBps for group in report.groups)
    assert report.bound.time == bound_of(report.run.timed()).time


def test_a_reducer_beyond_the_clock_is_refused() -> None:
    with pytest.raises(InputError, match="clock"):
        simulate(
            baseline(
                "direct",
                load_topology("ring:4"),
                [Collective.of("all-reduce", range(4), 1 << 40)],
            ),
            reducer=1,
        )


def test_nothing_to_move() -> None:
    alone = produce(load_topology("ring:1"), [Collective.of("all-gather", [0], KB)], threads=1)
    report = Report.of(simulate(alone))
    check(report)
    assert (report.run.time, report.efficiency, report.links.mean) == (0, 1.0, 0.0)
    assert len(report.run.critical_path) == 0
