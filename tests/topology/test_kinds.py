"""Kinds of networks that users add are found, listed and refused like Weft's own."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

import weft
from weft.cli.topo import topo
from weft.errors import InputError
from weft.topology import TOPOLOGIES, Builder, Topology, load_topology


def wheel(parameters: str) -> Topology:
    spokes = int(parameters)
    rim = [(npu, npu % spokes + 1) for npu in range(1, spokes + 1)]
    cables = [*rim, *((0, npu) for npu in range(1, spokes + 1))]
    ends = [*cables, *((b, a) for a, b in cables)]
    src, dst = zip(*ends, strict=True)
    return Topology.from_links("wheel", spokes + 1, src, dst, "50GB/s", "0.5us")


WHEEL = Builder(name="wheel", example="wheel:8", summary="a hub and a rim", build=wheel)


@pytest.fixture(autouse=True)
def _added() -> Iterator[None]:
    TOPOLOGIES.add(WHEEL.name, WHEEL, rank=WHEEL.rank)
    yield
    TOPOLOGIES.remove(WHEEL.name)


def test_a_kind_of_ones_own() -> None:
    network = load_topology("Wheel:5", "25GB/s")
    assert (network.name, network.npus, network.links) == ("Wheel:5", 6, 20)
    assert set(network.bandwidth.tolist()) == {25 * 10**9}
    assert WHEEL.table is TOPOLOGIES
    result = weft.synthesize("wheel:4", "all-reduce", "1MiB")
    assert weft.judge.verify(result.algorithm)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("wheel:a", "topology 'wheel:a': invalid literal .*; write it like wheel:8"),
        ("wheel:", "topology 'wheel:' ends early; write it like wheel:8"),
        ("wheel:4*ring:2", "wheel cannot be multiplied; only fc, hypercube, line, mesh, ring"),
        ("wheal:4", "unknown topology 'wheal'; did you mean 'wheel'?"),
        ("wheel:4,multicast", "has no switches for 'multicast'"),
    ],
)
def test_wrong_specs_of_it(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_topology(spec)


def test_names_that_no_spec_can_have() -> None:
    for name in ("Wheel", "a:b", "", "a*b", "x,y"):
        with pytest.raises(InputError, match="a topology cannot be called"):
            Builder(name=name, example="", build=wheel)
    with pytest.raises(InputError, match="there is a topology 'ring' already"):
        TOPOLOGIES.add("ring", WHEEL)


def test_the_command_lists_them() -> None:
    shown = CliRunner().invoke(topo, ["list"]).output
    assert "wheel:8" in shown
    assert "a hub and a rim" in shown
    listed = json.loads(CliRunner().invoke(topo, ["list", "--json"]).output)["topologies"]
    assert [kind["name"] for kind in listed] == list(TOPOLOGIES)
    assert listed[-1] == {"name": "wheel", "example": "wheel:8", "summary": "a hub and a rim"}


def test_every_example_is_a_network() -> None:
    for name, kind in TOPOLOGIES.items():
        assert kind.summary
        assert load_topology(kind.example).npus > 1, name
