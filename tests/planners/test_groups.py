"""Groups of some NPUs, alone and several at once: right as a whole, by both judges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.judge.reference import is_right
from tests.strategies import COSTS, GB_S, US, group_collectives, networks, roomy, same
from weft.collective import Collective, Move, all_to_allv, custom
from weft.cost import CostModel
from weft.errors import InputError, UnreachableError
from weft.topology import Topology, load_topology

MIB = 1 << 20


def check(result: weft.Result) -> None:
    assert result.verified, result.verdict.violation
    if len(result.transfers) < 400:
        assert is_right(result.algorithm)
    assert result.bound.time <= result.algorithm.time
    assert max(group.time for group in result.groups) == result.algorithm.time
    for group in result.groups:
        assert group.bound.time <= group.time


def run(network: Topology, demands: list[Collective], cost: CostModel, **more) -> weft.Result:
    return weft.synthesize(
        roomy(network, demands, cost),
        demands,
        chunks=[demand.chunks_per_share for demand in demands],
        latency_model=cost.latency_model,
        switching=cost.switching,
        **more,
    )


@examples(150)
@given(st.data(), networks(), COSTS)
def test_any_patterns_at_once(data: st.DataObject, network: Topology, cost: CostModel) -> None:
    demands = data.draw(st.lists(group_collectives(network), min_size=1, max_size=3))
    result = run(network, demands, cost, seed=data.draw(st.integers(0, 9)), threads=1)
    check(result)
    assert list(result.algorithm.demands) == demands


@examples(30)
@given(st.data(), networks(), COSTS)
def test_threads_never_change_the_result(
    data: st.DataObject, network: Topology, cost: CostModel
) -> None:
    demands = data.draw(st.lists(group_collectives(network), min_size=1, max_size=3))
    one, two = (run(network, demands, cost, trials=2, threads=n) for n in (1, 2))
    assert same(one.algorithm, two.algorithm)


@examples(80)
@given(st.data(), networks(), COSTS)
def test_without_relays(data: st.DataObject, network: Topology, cost: CostModel) -> None:
    """Only members pass chunks on, or a sentence says that none can."""
    demand = data.draw(group_collectives(network, relay=False))
    try:
        result = run(network, [demand], cost, threads=1)
    except UnreachableError as error:
        assert "cannot get from NPU" in str(error)  # noqa: PT017
        assert not _is_strong(network, set(demand.group))
        return
    check(result)
    assert np.isin(result.transfers.dst, demand.group).all()


def _is_strong(network: Topology, group: set[int]) -> bool:
    """Whether all of the group reach each other over its own NPUs and switches."""
    inner = group | set(range(network.npus, network.nodes))
    pairs = list(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    for start in group:
        seen = {start}
        while new := {d for s, d in pairs if s in seen and d in inner} - seen:
            seen |= new
        if not seen >= group:
            return False
    return True


@pytest.mark.parametrize("kind", ["all-gather", "all-to-all", "all-reduce", "broadcast"])
def test_groups_of_one_and_two(kind: str) -> None:
    for group in ([5], [5, 10]):
        result = weft.synthesize("mesh:4x4", kind, "1MiB", group=group)
        check(result)
        assert (len(result.transfers) == 0) == (len(group) == 1)


def test_a_group_that_needs_relays() -> None:
    corners = [0, 3, 12, 15]
    check(weft.synthesize("mesh:4x4", "all-gather", "1MiB", group=corners))
    with pytest.raises(UnreachableError, match=r"chunk 0 cannot get from NPU 0 to NPU 3.*relay"):
        weft.synthesize("mesh:4x4", "all-gather", "1MiB", group=corners, relay=False)


def test_groups_apart_do_not_hinder_each_other() -> None:
    network = load_topology("switch:4*line:2")
    alone = weft.synthesize(network, "all-gather", "1MiB", group=range(4), chunks=2, relay=False)
    both = weft.synthesize(
        network,
        [
            Collective.of("all-gather", range(first, first + 4), 1 << 20, relay=False)
            for first in (0, 4)
        ],
        chunks=2,
    )
    check(both)
    assert both.algorithm.time == alone.algorithm.time


def test_methods_that_fit_each_but_not_the_mix() -> None:
    """Two sizes in the way of each other: laid over, they still are right."""
    demands = [Collective.of("all-gather", range(3), size) for size in (4000, 40000)]
    result = weft.synthesize("line:4", demands, method="matching", chunks=1)
    check(result)
    assert result.algorithm.provenance["method"] == "matching"


def test_large_chunks_beside_small_ones_through_a_small_buffer() -> None:
    """Both leave by one link; the large ones could not pass where the small ones must."""
    network = Topology.from_links(
        "fork", 4, [0, 1, 1, 4], [1, 3, 4, 2], GB_S, 0, switches=1
    ).with_switches(buffers={4: 1000})
    demands = [Collective.of("broadcast", [0, taker], 4000) for taker in (3, 2)]
    check(weft.synthesize(network, demands, chunks=[1, 5], switching="store-and-forward"))


def test_a_sum_of_some_for_others() -> None:
    """Many-to-many: contributors and takers have nothing in common."""
    demand = custom(range(16), [Move(1 << 20, (0, 1, 4, 5), (10, 11, 14, 15), reduce=True)])
    check(weft.synthesize("mesh:4x4", demand))


def test_different_collectives_at_once() -> None:
    matrix = [[0, 1 << 20, 1 << 19], [1 << 18, 0, 1 << 20], [1 << 20, 1 << 17, 0]]
    demands = [all_to_allv([0, 1, 2], matrix), Collective.of("all-gather", [6, 7, 8], 1 << 20)]
    result = weft.synthesize("mesh:3x3", demands)
    check(result)
    figures = result.to_dict()
    assert [group["members"] for group in figures["groups"]] == [[0, 1, 2], [6, 7, 8]]
    assert figures["collective"] is None
    with pytest.raises(InputError, match="several collectives"):
        result.collective  # noqa: B018


@pytest.mark.parametrize(
    ("method", "kinds"),
    [("trees", ("all-reduce", "all-reduce")), ("matching", ("all-gather", "all-reduce"))],
)
def test_a_method_that_fits_each_but_not_all(method: str, kinds: tuple[str, str]) -> None:
    groups = (range(8), range(4, 12))
    demands = [Collective.of(kind, group, MIB) for kind, group in zip(kinds, groups, strict=True)]
    result = weft.synthesize("mesh:4x4", demands, chunks=1, method=method)
    check(result)
    assert result.to_dict()["method"] == method


def test_what_goes_with_a_name() -> None:
    demand = Collective.of("all-gather", [0, 1], 100)
    with pytest.raises(InputError, match="go with a collective's name"):
        weft.synthesize("ring:4", demand, 100)
    with pytest.raises(InputError, match="needs a size"):
        weft.synthesize("ring:4", "all-gather")
    with pytest.raises(InputError, match="no collective"):
        weft.synthesize("ring:4", [])
    with pytest.raises(InputError, match="2 chunk counts for 1"):
        weft.synthesize("ring:4", [demand], chunks=[1, 2])


def test_islands_have_no_way_between_them() -> None:
    network = Topology.from_links("islands", 4, [0, 1, 2, 3], [1, 0, 3, 2], GB_S, US)
    near = Collective.of("all-to-all", [0, 1], 100)
    check(weft.synthesize(network, [near, Collective.of("all-gather", [2, 3], 100)]))
    with pytest.raises(UnreachableError, match=r"chunk \d+ cannot get from NPU \d+ to NPU \d+"):
        weft.synthesize(network, [near, Collective.of("all-gather", [1, 3], 100)])
