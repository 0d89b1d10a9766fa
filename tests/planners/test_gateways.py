"""All-Reduce and its halves by gateways: right with boxes of any kind, and fast where NICs fail."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.planners.test_producers import check
from tests.strategies import COSTS
from weft.cost import CostModel
from weft.errors import InputError
from weft.topology import Topology, load_topology

_CUT = {"whole": None, "slow": 0.5, "dead": 0.0}


def _changed(network: Topology, link: str, how: str) -> Topology:
    share = _CUT[how]
    if share is None:
        return network
    return network.scaled([link], share) if share else network.without(links=[link])


@pytest.mark.parametrize("how", ["slow", "dead"])
def test_a_nic_that_is_slow_or_dead_costs_little(how: str) -> None:
    """Other NICs of the box, and other boxes, take over what it cannot carry."""
    network = _changed(load_topology("h100:8"), "0-s8", how)
    result = weft.synthesize(network, "all-reduce", "256MiB")
    check(result)
    assert result.algorithm.provenance["method"] == "gateways"
    assert result.time <= 1.04 * result.bound.ideal


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
def test_others_of_the_box_bring_what_a_dead_nic_cannot(kind: str) -> None:
    network = _changed(load_topology("h100:8"), "0-s8", "dead")
    result = weft.synthesize(network, kind, "64MiB")
    check(result)
    assert result.time <= 1.06 * result.bound.ideal


def test_all_take_part_where_a_leaf_is_dead() -> None:
    network = load_topology("h100:4", without_switches=["s4"])
    result = weft.synthesize(network, "all-reduce", "64MiB")
    check(result)
    assert result.time <= 1.1 * result.bound.ideal


@pytest.mark.parametrize(("size", "most"), [("256B", 1.02), ("4KiB", 1.02), ("64KiB", 1.1)])
def test_small_buffers_cross_once(size: str, most: float) -> None:
    """Odd GPUs send to the other box and even ones receive: each sums for its own use."""
    result = weft.synthesize("dgx2:2", "all-reduce", size)
    check(result)
    assert result.time <= most * result.bound.ideal


@given(
    spec=st.sampled_from(["h100:2", "dgx2:2", "ndv2:2", "ndv2:3", "a100:2", "mi250:2"]),
    kind=st.sampled_from(["all-reduce", "all-reduce", "all-gather", "reduce-scatter"]),
    how=st.sampled_from(sorted(_CUT)),
    gone=st.sets(st.integers(2, 7), max_size=2),
    size=st.integers(1, 1 << 20),
    chunks=st.sampled_from([None, 1, 3]),
    cost=COSTS,
)
@examples(12, deadline=None)
def test_boxes_of_any_kind(
    spec: str, kind: str, how: str, gone: set[int], size: int, chunks: int | None, cost: CostModel
) -> None:
    """Boxes may differ in size, links may be slow or gone: the judge accepts what is planned."""
    network = load_topology(spec)
    link = f"9-{network.dst[network.src == 9][0]}"
    if int(link.split("-")[1]) >= network.npus:
        link = f"9-s{int(link.split('-')[1]) - network.npus}"
    network = _changed(network, link, "slow" if how == "dead" else how).without(npus=gone)
    group = [npu for npu in range(network.npus) if npu not in gone]
    how_many = {} if chunks is None else {"chunks": chunks}
    given = {"group": group, "method": "gateways", **asdict(cost), **how_many}
    first, again = (
        weft.synthesize(network, kind, size, threads=threads, **given) for threads in (1, 2)
    )
    check(first)
    assert first.time == again.time


def test_what_has_no_boxes_is_refused() -> None:
    with pytest.raises(InputError, match="boxes"):
        weft.synthesize("ring:8", "all-reduce", "1MiB", method="gateways")
    with pytest.raises(InputError, match="boxes"):
        weft.synthesize("h100:2", "broadcast", "1MiB", method="gateways")


def test_where_no_boxes_can_be_reached_others_are_asked() -> None:
    """Every second NPU of boxes on rails: each box's neighbour rails are its own."""
    network = load_topology("rails:3x4")
    check(weft.synthesize(network, "all-gather", 1, group=range(0, 12, 2)))
    with pytest.raises(InputError, match="no way between all boxes"):
        weft.synthesize(network, "all-gather", 1, group=range(0, 12, 2), method="gateways")
