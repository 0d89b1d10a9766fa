"""Running algorithms: never later than planned in the planned order, and right first come first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.engine.paths import check_path
from tests.examples import examples
from tests.strategies import COSTS, GB_S, group_collectives, networks, roomy
from weft.algorithm import Algorithm, Transfers
from weft.classical import baseline
from weft.collective import Collective, Move, custom
from weft.cost import CostModel
from weft.engine import CAUSES, simulate
from weft.errors import InputError
from weft.judge import verify
from weft.language import program
from weft.planners import produce
from weft.topology import Topology, load_topology

US = 10**6
KB = 1000


@examples(80)
@given(networks(), COSTS, st.data())
def test_planned_order_is_never_later_than_planned(
    network: Topology, cost: CostModel, data: st.DataObject
) -> None:
    demands = data.draw(st.lists(group_collectives(network), min_size=1, max_size=2))
    algorithm = produce(roomy(network, demands, cost), demands, cost=cost, threads=1)
    run = simulate(algorithm)
    assert run.order == "plan"
    assert run.planned == algorithm.time
    assert (run.start <= algorithm.transfers.start).all()
    assert (run.end <= algorithm.transfers.end).all()
    assert verify(run.timed()).ok
    check_path(run)


@examples(80)
@given(networks(), COSTS, st.data())
def test_first_come_first_served_is_right(
    network: Topology, cost: CostModel, data: st.DataObject
) -> None:
    demands = data.draw(st.lists(group_collectives(network), min_size=1, max_size=2))
    algorithm = produce(roomy(network, demands, cost), demands, cost=cost, threads=1)
    run = simulate(algorithm, order="fifo")
    verdict = verify(run.timed())
    assert verdict.ok, verdict.violation
    check_path(run)
    slower = simulate(algorithm, order="fifo", reducer=GB_S)
    check_path(slower)
    if not algorithm.chunks.reduce.any():
        assert slower.time == run.time


def ring_all_gather(ranks: int, size: int) -> Algorithm:
    with program("all-gather", size, ranks=ranks, in_place=True) as p:
        for owner in range(ranks):
            chunk = p.chunk(owner)
            for step in range(1, ranks):
                chunk = chunk.copy((owner + step) % ranks, "output", owner)
    return p.algorithm()


def test_an_algorithm_without_a_network_runs_on_any() -> None:
    ring = ring_all_gather(4, 4096)
    alpha_beta = 3 * (US + 1024 * KB)  # ps: three steps of 1 KiB over 1 GB/s and 1 us
    on_ring = simulate(ring, load_topology("ring:4", bandwidth=[GB_S], latency=[US]))
    assert on_ring.time == alpha_beta
    # 3>0 goes back over 3>2, 2>1 and 1>0, which nobody else uses.
    on_line = simulate(ring, load_topology("line:4", bandwidth=[GB_S], latency=[US]))
    assert on_line.time > on_ring.time
    assert len(on_line.transfers) == 3 * (3 + 3)
    assert verify(on_line.timed()).ok
    assert simulate(ring, "line:4").time == simulate(ring, load_topology("line:4")).time


def test_adding_takes_time() -> None:
    network = load_topology("switch:3", bandwidth=[GB_S], latency=[0])
    reduce = baseline("direct", network, [Collective.of("reduce", range(3), KB)])
    free = simulate(reduce, order="fifo")
    slow = simulate(reduce, order="fifo", reducer=GB_S // 10)
    each = 10 * KB * KB  # ps to add 1 KB at 0.1 GB/s
    assert slow.time == KB * KB + 2 * each  # the first part comes after 1 us, both add in turn
    assert CAUSES[slow.critical_path.cause[-1]] == "adding"
    assert simulate(reduce, reducer=GB_S // 10).time == slow.time
    assert free.time == 2 * KB * KB
    with pytest.raises(InputError, match="adding takes time"):
        slow.timed()


def test_links_tell_how_long_they_were_held() -> None:
    network = load_topology("line:3", bandwidth=[GB_S], latency=[0])
    pairs = Collective.of("all-to-all", range(3), 3 * KB, 1, None, 1)
    run = simulate(baseline("direct", network, [pairs]))
    assert run.time == 3 * KB * KB
    assert np.bincount(run.busy // (KB * KB)).tolist() == [0, 0, 4]
    assert run.utilisation == pytest.approx(2 / 3)


def test_refusals() -> None:
    ring = ring_all_gather(4, 4096)
    with pytest.raises(InputError, match="made for no network"):
        simulate(ring)
    with pytest.raises(InputError, match="no plan whose order"):
        simulate(ring, load_topology("ring:4"), order="plan")
    with pytest.raises(InputError, match="names NPU 3, which ring:3 does not have"):
        simulate(ring, load_topology("ring:3"))
    nothing = baseline("direct", load_topology("ring:4"), [Collective.of("all-gather", [3], KB)])
    with pytest.raises(InputError, match="names NPU 3, which ring:3 does not have"):
        simulate(nothing, load_topology("ring:3"))
    with pytest.raises(InputError, match="expected 1 B/s or more"):
        simulate(ring, load_topology("ring:4"), reducer=0)
    with pytest.raises(weft.WeftError, match="order"):
        simulate(ring, load_topology("ring:4"), order="soon")  # type: ignore[arg-type]


def test_plans_whose_later_rows_hold_links_first_are_kept() -> None:
    """Rows of a far NPU start long before those of a near one that cross the switch before them."""
    network = Topology.from_links(
        "merge", 3, [0, 1, 3], [3, 3, 2], [GB_S] * 3, [100 * US, 0, 0], switches=1
    )
    turns = 3000
    chunk = np.arange(turns, dtype=np.int32)
    moves = [Move(KB, (k % 2,), (2,), False) for k in range(turns)]
    rows = Transfers(chunk, chunk % 2, np.full_like(chunk, 2), np.zeros(turns, dtype=np.bool_))
    plan = simulate(Algorithm((custom(range(3), moves),), rows), network).timed()
    run = simulate(plan)
    assert verify(plan).ok
    assert run.order == "plan"
    assert plan.transfers.start is not None
    assert (run.start <= plan.transfers.start).all()
