"""Networks are values: read-only, short to print, pickled and copied without their caches."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import weft
from tests.examples import examples
from tests.topology.helpers import assert_same, topologies
from weft.collective import Collective
from weft.cost import CostModel
from weft.topology import Topology, load_topology
from weft.topology.translations import Translations

AGAIN = [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]


@pytest.mark.parametrize("column", ["src", "dst", "bandwidth", "latency", "members"])
def test_arrays_are_read_only(column: str) -> None:
    network = load_topology("mesh:2x2")
    with pytest.raises(ValueError, match="read-only"):
        getattr(network, column)[:] = 1
    assert not network.without(npus=[0]).src.flags.writeable
    assert not network.reversed().src.flags.writeable


def test_what_it_was_made_of_is_copied() -> None:
    rates = np.array([5, 5])
    ends = np.array([0, 1], dtype=np.int32)
    made = (
        Topology.from_links("pair", 2, ends, ends[::-1], rates, 0),
        Topology("pair", 2, 0, ends, ends[::-1], rates, np.zeros(2, dtype=np.int64)),
    )
    rates[:] = 7
    ends[:] = 9
    for network in made:
        assert network.bandwidth.tolist() == [5, 5]
        assert network.src.tolist() == [0, 1]


def test_switches_are_read_only() -> None:
    network = load_topology("switch:4,buffer=64KiB")
    with pytest.raises(TypeError):
        network.buffers[4] = 1  # type: ignore[index]


@pytest.mark.parametrize("again", AGAIN)
@examples(20)
@given(network=topologies())
def test_copies_are_the_same(again: Callable[[Any], Any], network: Topology) -> None:
    assert network.core is not None
    other = again(network)
    assert_same(network, other)
    assert other.title == network.title
    assert not other.bandwidth.flags.writeable
    assert other.core is not network.core


@pytest.mark.parametrize("again", AGAIN)
def test_what_goes_with_networks_is_copied_too(again: Callable[[Any], Any]) -> None:
    demand = Collective.of("all-gather", range(9), 1 << 20, 2)
    assert len(demand.chunks) == 18
    assert again(demand) == demand
    assert again(demand).chunks == again(demand.chunks) == demand.chunks
    cost = CostModel("blocking")
    assert cost.core is not None
    assert again(cost) == cost
    moves = Translations.of(load_topology("torus:3x3"))
    assert again(moves).shift.tolist() == moves.shift.tolist()
    torn = load_topology("torus:3x3", without_links=["0-1"])
    assert_same(again(torn).whole, torn.whole)  # type: ignore[arg-type]


def test_a_copy_gives_the_same_algorithm() -> None:
    network = load_topology("torus:4x4", without_links=["0-1"])
    one = weft.synthesize(network, "all-gather", "1MiB", chunks=1)
    two = weft.synthesize(pickle.loads(pickle.dumps(network)), "all-gather", "1MiB", chunks=1)
    assert one.time_us == two.time_us


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (load_topology("mesh:8x8"), "<Topology mesh:8x8: 64 NPUs, 224 links>"),
        (load_topology("switch:4"), "<Topology switch:4: 4 NPUs, 1 switch, 8 links>"),
        (
            load_topology("h100:2", without_npus=[3]),
            "<Topology h100:2 without NPU 3: 15 NPUs, 11 switches, 92 links>",
        ),
        (
            Collective.of("broadcast", range(64), 1 << 20, 2),
            "<Collective broadcast of 1MiB among 64 NPUs, root 0, 2 chunks per share>",
        ),
        (Collective.of("all-gather", [3], 5).chunks, "<Chunks: 1 chunk, 5B in all>"),
    ],
)
def test_a_repr_is_one_line(value: object, text: str) -> None:
    assert repr(value) == text


def test_a_table_for_notebooks() -> None:
    network = Topology.from_links("<b>&", 2, [0, 1], [1, 0], ["50GB/s", "25GB/s"], "0.5us")
    shown = network.without(links=["0>1"])._repr_html_()
    assert "<caption>&lt;b&gt;&amp;</caption>" in shown
    assert "<th>links</th><td>1</td>" in shown
    assert "<th>changed</th><td>without 0&gt;1</td>" in shown
    assert "<td>25GB/s to 50GB/s</td>" in network._repr_html_()


def test_columns_for_data_frames() -> None:
    columns = load_topology("line:2", "50GB/s", "2us").to_columns()
    assert {name: column.tolist() for name, column in columns.items()} == {
        "src": [0, 1],
        "dst": [1, 0],
        "bandwidth_GBps": [50.0, 50.0],
        "latency_us": [2.0, 2.0],
    }
