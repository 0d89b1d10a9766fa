"""The one way in, failures, and the facts about a network."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given

import weft.topology
from tests.topology.helpers import assert_same, pairs, topologies
from weft.cli.topo import topo
from weft.errors import FormatError, InputError, TopologyError
from weft.topology import Topology, load_topology, parse_topology
from weft.topology import summary as summary_module
from weft.topology.builders import ALSO_CALLED
from weft.topology.files import write_topology
from weft.topology.links import find_links
from weft.topology.summary import summarize

GB_S = 10**9


def test_public_names() -> None:
    for name in weft.topology.__all__:
        assert getattr(weft.topology, name) is not None


def test_load_takes_specs_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_topology(parse_topology("ring:4"), "net.json")
    assert_same(load_topology("net.json"), parse_topology("ring:4"))
    assert_same(load_topology(tmp_path / "net.json"), load_topology("ring:4"))
    Path("bare").write_bytes(Path("net.json").read_bytes())
    assert load_topology("bare", bandwidth=[7], latency=[1]).bandwidth.tolist() == [7] * 8
    with pytest.raises(InputError, match="give one bandwidth for all of them or none, not 2"):
        load_topology("net.json", bandwidth=[1, 2])
    with pytest.raises(InputError, match="out of range"):
        load_topology("net.json", bandwidth=[10**19])
    with pytest.raises(FormatError, match="no such file"):
        load_topology("gone.yaml")
    with pytest.raises(InputError, match="unknown topology"):
        load_topology("gone\0")


def test_load_takes_failures_out() -> None:
    topology = load_topology("switch:4", without_links=["0>s0", "s0-1", "1-s0"], without_npus=[3])
    assert pairs(topology) == [(2, 4), (4, 0), (4, 2)]
    assert topology.removed == {3}


def test_link_removal() -> None:
    ring = parse_topology("ring:4")
    assert find_links(ring, "3-0", "remove")[0] == [(0, 3), (3, 0)]
    assert find_links(ring, " 3 > 0 ", "remove")[0] == [(3, 0)]
    one_way = ring.without(links=[(3, 0)])
    assert find_links(one_way, ["3-0"], "remove")[0] == [(0, 3)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3", "link '3' is not one; write it like 3-4, 3>4 or 0-s1"),
        ("a-b", "is not one"),
        ("0-2", "ring:4 has no link 0-2 to remove"),
        ("0-9", "names 9, which ring:4 does not have; NPUs are 0 to 3"),
        ("0-s0", "names s0, which ring:4 does not have"),
    ],
)
def test_wrong_link_removal(text: str, message: str) -> None:
    with pytest.raises(TopologyError) as caught:
        parse_topology("ring:4").without(links=[text])
    assert message in str(caught.value)


@given(topologies())
def test_without_keeps_the_rest_in_order(topology: Topology) -> None:
    for pair in set(pairs(topology)):
        rest = topology.without(links=[pair])
        assert pairs(rest) == [p for p in pairs(topology) if p != pair]


@given(topologies())
def test_diameter_and_bisection_agree_with_plain_search(topology: Topology) -> None:
    facts = summarize(topology)
    hops = np.full((topology.nodes, topology.nodes), np.inf)
    np.fill_diagonal(hops, 0)
    hops[topology.src, topology.dst] = 1
    for via in range(topology.nodes):
        hops = np.minimum(hops, hops[:, via, None] + hops[via])
    between = hops[np.ix_(topology.members, topology.members)]
    if facts.unreachable is None:
        assert facts.diameter == between.max()
    else:
        assert facts.diameter is None
        assert hops[facts.unreachable] == np.inf
    best = thinnest_cut(topology)
    if best is None or facts.bisection is None:
        assert facts.bisection is best is None
    elif facts.bisection_exact:
        assert facts.bisection == pytest.approx(best, rel=1e-12)
    else:
        assert facts.bisection >= best * (1 - 1e-12)


def thinnest_cut(topology: Topology) -> int | None:
    members = topology.members.tolist()
    if len(members) < 2:
        return None
    switches = range(topology.npus, topology.nodes)
    cuts = []
    for size in {len(members) // 2, (len(members) + 1) // 2}:
        for half in combinations(members, size):
            for count in range(topology.switches + 1):
                for also in combinations(switches, count):
                    inside = np.isin(np.arange(topology.nodes), [*half, *also])
                    crossing = inside[topology.src] & ~inside[topology.dst]
                    cuts.append(sum(topology.bandwidth[crossing].tolist()))
    return min(cuts)


@pytest.mark.parametrize(
    ("spec", "diameter", "bisection", "exact"),
    [
        ("ring:1", 0, None, True),
        ("ring:8", 4, 2, True),
        ("mesh:4x4", 6, 4, True),
        ("mesh:8x6", 12, 6, False),
        ("torus:4x4x8", 8, 32, False),
        ("hypercube:7", 7, 64, False),
        ("fc:20", 1, 100, False),
        ("switch:64", 2, 32, False),
        ("ring:4*fc:8*switch:4", 5, 64, False),
        ("h100:4", 4, 16, False),
    ],
)
def test_known_facts(spec: str, diameter: int, bisection: int | None, exact: bool) -> None:
    facts = summarize(parse_topology(spec))
    assert facts.diameter == diameter
    assert facts.bisection == (None if bisection is None else bisection * 50 * GB_S)
    assert facts.bisection_exact is exact


def test_a_diameter_by_sample_is_a_lower_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary_module, "SEARCH_BUDGET", 1)
    facts = summarize(parse_topology("mesh:9x9"))
    assert (facts.diameter, facts.diameter_exact) == (16, False)


def test_show_prints_a_table() -> None:
    result = CliRunner().invoke(topo, ["show", "mesh:4x4", "--without-npu", "0"])
    assert result.exit_code == 0
    for text in ("mesh:4x4", "removed NPUs", "15", "6 links", "bisection", "50GB/s, 500ns"):
        assert text in result.output
    cut = CliRunner().invoke(topo, ["show", "line:3", "--without-link", "0>1"])
    assert "none: NPU 0 cannot reach NPU 1" in cut.output
    assert "upper bound on bisection" in CliRunner().invoke(topo, ["show", "fc:20"]).output


def test_show_writes_json_and_files(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    args = ["show", "mesh:2x2", "--bandwidth", "1GiB/s,2GiB/s", "--latency", "0", "--json"]
    result = CliRunner().invoke(topo, [*args, "-o", str(path)])
    facts = json.loads(result.output)
    assert facts["npus"] == 4
    assert [speed["bandwidth_Bps"] for speed in facts["speeds"]] == [2 << 30, 1 << 30]
    assert load_topology(path).links == 8


def test_show_lets_errors_through() -> None:
    for args in (["show", "msh:4"], ["show", "ring:4", "--bandwidth", ""]):
        assert isinstance(CliRunner().invoke(topo, args).exception, InputError)


@pytest.mark.parametrize(
    ("spec", "advice"),
    [
        ("fattree:16", "fat-tree:8, leaf-spine:8x4x2 for two tiers, clos:8x4x4"),
        ("spine-leaf:4x4x4", "leaf-spine:8x4x2"),
        ("full-mesh:8", "write fc:8"),
        ("grid:4x4", "write mesh:8x8"),
    ],
)
def test_other_names_lead_to_what_exists(spec: str, advice: str) -> None:
    with pytest.raises(InputError, match=f"unknown topology.*{advice}.*known: .*leaf-spine"):
        load_topology(spec)


def test_every_advice_is_a_network() -> None:
    for advice in ALSO_CALLED.values():
        specs = re.findall(r"[a-z0-9-]+:[0-9x]+(?:,[a-z]=[0-9]+)*", advice)
        assert specs
        for spec in specs:
            load_topology(spec)


def test_a_folder_is_called_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("adir").mkdir()
    for name in ("adir", "./adir"):
        with pytest.raises(InputError, match="adir is a folder, not a network"):
            load_topology(name)
    (Path("adir") / "algorithm.0.et").touch()
    with pytest.raises(InputError, match=r"folder of traces, .*`weft simulate adir`.*`weft show"):
        load_topology("adir")
    Path("dgx1").mkdir()
    assert load_topology("dgx1").npus == 8


def test_links_with_units() -> None:
    def made(bandwidth: object, latency: object) -> Topology:
        return Topology.from_links("pair", 2, [0, 1], [1, 0], bandwidth, latency)  # type: ignore[arg-type]

    plain = made(50 * 10**9, 500_000)
    for other in (
        made("50GB/s", "0.5us"),
        made(["50GB/s", 50 * 10**9], ["500ns", 500_000]),
        made(50e9, 5e5),
    ):
        assert (other.bandwidth == plain.bandwidth).all()
        assert (other.latency == plain.latency).all()
    with pytest.raises(TopologyError, match=r"latency 5e-07 is not a whole number of picosec"):
        made(50e9, 0.5e-6)
    with pytest.raises(TopologyError, match=r"bandwidth nan is not a whole number of bytes per s"):
        made(float("nan"), 0)
    with pytest.raises(InputError, match="has no unit Weft knows"):
        made("50", 0)
    with pytest.raises(TopologyError, match="a bandwidth is no number"):
        made(None, 0)
