"""One method only: right where it fits, and a sentence where it does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.planners.test_groups import check, run
from tests.strategies import COSTS, group_collectives, networks
from weft.collective import Move, custom
from weft.cost import CostModel
from weft.errors import InputError, UnreachableError
from weft.planners import method_names
from weft.topology import Topology


@examples(150)
@given(st.data(), networks(), COSTS, st.sampled_from(method_names()))
def test_right_or_refused(
    data: st.DataObject, network: Topology, cost: CostModel, method: str
) -> None:
    demands = data.draw(st.lists(group_collectives(network), min_size=1, max_size=2))
    try:
        result = run(network, demands, cost, method=method, threads=1)
    except InputError as error:
        assert method in str(error)  # noqa: PT017
        return
    check(result)


@pytest.mark.parametrize("method", ["auto", "trees"])
@pytest.mark.parametrize("reduce", [False, True])
def test_trees_to_takers_without_their_root(method: str, reduce: bool) -> None:
    """Who has it, or wants the sum, is none of the others."""
    others = tuple(npu for npu in range(9) if npu != 1)
    ends = (others, (1,)) if reduce else ((1,), others)
    result = weft.synthesize(
        "mesh:3x3", custom(range(9), [Move(1 << 20, *ends, reduce)]), method=method, chunks=16
    )
    check(result)


@pytest.mark.parametrize("method", ["trees", "matching", "steiner"])
@pytest.mark.parametrize("kind", ["all-reduce", "broadcast", "reduce"])
def test_no_way(kind: str, method: str) -> None:
    with pytest.raises(UnreachableError, match=r"chunk 0 cannot get from NPU \d to NPU \d"):
        weft.synthesize("line:3", kind, 1000, group=[0, 2], relay=False, method=method, chunks=2)


@pytest.mark.parametrize("method", ["trees", "matching", "steiner"])
@pytest.mark.parametrize("kind", ["all-reduce", "broadcast", "reduce"])
def test_sizes_that_do_not_divide(kind: str, method: str) -> None:
    """Among the chunk counts tried are some that cut a few units unevenly."""
    check(weft.synthesize("line:3", kind, 1000, group=[0, 2], method=method))


@pytest.mark.parametrize("method", method_names())
@pytest.mark.parametrize("kind", ["all-gather", "reduce", "send-recv"])
def test_a_switch_that_is_joined_to_nothing(kind: str, method: str) -> None:
    network = Topology.from_links("apart", 2, [0, 1], [1, 0], 10**9, 0, switches=1)
    try:
        result = weft.synthesize(network, kind, 4000, method=method, chunks=2)
    except InputError as error:
        assert method in str(error)  # noqa: PT017
        return
    check(result)
