"""InfraGraph: what its slices and schemes stand for, what is asked for, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.topology.machines.reading import (
    EXAMPLES,
    both_ways,
    links,
    machine_of,
    refused,
    wires,
    write,
)
from weft.documents import PlacedError
from weft.topology import Topology, load_topology
from weft.topology.machines.expansion import expand
from weft.topology.machines.infragraph import records

EXAMPLE = EXAMPLES / "infragraph.yaml"
Plain = dict[str, Any]


def example() -> Plain:
    plain: Plain = yaml.safe_load(EXAMPLE.read_text())
    return plain


def saved(folder: Path, plain: Any, name: str = "graph.json") -> Path:
    """A file with these values."""
    return write(folder, json.dumps(plain), name)


def device(*edges: tuple[str, str, str], counts: dict[str, int], **more: Any) -> Plain:
    """A device with components of these counts, and edges as (one end, other end, scheme)."""
    choices = {"x": "xpu", "s": "switch", "c": "cpu"}
    link = {"name": "wire"}
    rate = {"choice": "gigabytes_per_second", "gigabytes_per_second": 10}
    return {
        "name": "box",
        "components": [
            {"name": name, "count": count, "choice": choices[name[0]]}
            for name, count in counts.items()
        ],
        "links": [link | {"physical": {"bandwidth": rate} | more}],
        "edges": [
            {"ep1": {"component": a}, "ep2": {"component": b}, "scheme": scheme, "link": "wire"}
            for a, b, scheme in edges
        ],
    }


def pairs(*edges: tuple[str, str, str], **counts: int) -> set[tuple[str, str]]:
    """Names of the components that edges of a device join."""
    graph = expand(*records(device(*edges, counts=counts)))
    return {(graph.names[a], graph.names[b]) for a, b in graph.edges}


def test_two_hosts() -> None:
    machine = machine_of(EXAMPLE)
    gb = 10**9
    assert [part.described for part in machine.parts if part.kind == "gpu"] == [
        f"gpu xpu.{i} of host.{host}" for host in range(2) for i in range(4)
    ]
    assert len(machine.parts) == 2 * (1 + 4 + 1 + 2 + 2 * 3) + 2
    one = machine_of(EXAMPLE)
    one.cables = [c for c in machine.cables if {c.src, c.dst} <= set(range(14))]
    assert wires(one) == both_ways(
        *(("nvlink", f"gpu xpu.{i}", "switch nvsw.0", 300 * gb, 1) for i in range(4)),
        *(("pcie", "cpu cpu.0", f"pcie-switch pciesw.{i}", None, 1) for i in range(2)),
        *(("pcie", f"pcie-switch pciesw.{i // 2}", f"gpu xpu.{i}", None, 1) for i in range(4)),
        *(("pcie", f"pcie-switch pciesw.{i}", f"nic card.{i}.chip.0", None, 1) for i in range(2)),
        *(
            ("board", f"nic card.{i}.chip.0", f"port card.{i}.port.{k}", 50 * gb, 1)
            for i in range(2)
            for k in range(2)
        ),
    )
    between = [c for c in machine.cables if c.kind == "eth"]
    assert len(between) == 2 * 4
    assert {(c.rate and c.rate.nominal, c.latency) for c in between} == {(25 * gb, 1_500_000)}


def test_the_network() -> None:
    network = load_topology(EXAMPLE, bandwidth="pcie=32GB/s")
    assert (network.npus, network.switches, network.links) == (8, 6, 40)
    # From one host's PCI switch over adapter, port and leaf to the other's: one link.
    through = (network.bandwidth == 25 * 10**9).nonzero()[0]
    assert network.latency[through].tolist() == [2 * (150_000 + 50_000 + 1_500_000)] * 4


def test_rates_that_are_asked_for(tmp_path: Path) -> None:
    assert "32 pcie links are" in refused(EXAMPLE)
    assert "say it with --bandwidth pcie=50GB/s" in refused(EXAMPLE)
    assert "--bandwidth eth=" not in refused(EXAMPLE)
    plain = example()
    plain["devices"][0]["links"][1]["physical"] = {
        "bandwidth": {"choice": "gigatransfers_per_second", "gigatransfers_per_second": 16}
    }
    assert "say it with --bandwidth pcie=50GB/s" in refused(saved(tmp_path, plain))


def test_dead_ends_need_no_rate(tmp_path: Path) -> None:
    plain = device(("x", "s", "many2many"), counts={"x": 2, "s": 1, "c": 1})
    plain["links"].append({"name": "side"})
    plain["edges"].append(
        {"ep1": {"component": "c"}, "ep2": {"component": "s"}, "scheme": "one2one", "link": "side"}
    )
    network = load_topology(saved(tmp_path, plain))
    assert (network.npus, network.links) == (2, 2)
    assert any("left out: 2 side links of unknown rate" in note for note in network.notes)
    plain["links"][0] = {"name": "wire"}
    sentence = refused(saved(tmp_path, plain))
    assert "4 wire links are" in sentence
    assert "side" not in sentence


def test_slices_are_those_of_python() -> None:
    star = pairs(("x[1:7:3]", "s", "many2many"), x=8, s=1)
    assert star == {("x.1", "s.0"), ("x.4", "s.0")}
    assert pairs(("x[-1]", "s[0]", "one2one"), x=4, s=2) == {("x.3", "s.0")}
    assert pairs(("x[::-1]", "s[:]", "one2one"), x=2, s=2) == {("x.1", "s.0"), ("x.0", "s.1")}
    assert pairs(("x[]", "s[:-1]", "many2many"), x=1, s=3) == {("x.0", "s.0"), ("x.0", "s.1")}


def test_schemes() -> None:
    assert pairs(("x", "x", "many2many"), x=3) == {("x.0", "x.1"), ("x.0", "x.2"), ("x.1", "x.2")}
    assert pairs(("x", "s", "one2one"), x=2, s=5) == {("x.0", "s.0"), ("x.1", "s.1")}
    assert len(pairs(("x", "x", "ring"), x=6)) == 6
    assert pairs(("x", "x", "ring"), x=2) == {("x.0", "x.1")}
    assert pairs(("x", "x", "one2one"), x=2) == set()


@given(
    count=st.integers(1, 9),
    parts=st.lists(st.one_of(st.none(), st.integers(-12, 12)), min_size=2, max_size=3),
)
def test_any_slice(count: int, parts: list[int | None]) -> None:
    text = ":".join("" if part is None else str(part) for part in parts)
    plain = device((f"x[{text}]", "s", "many2many"), counts={"x": count, "s": 1})
    if parts[2:] == [0] or not (wanted := list(range(count))[slice(*parts)]):
        with pytest.raises(PlacedError, match=r"expected one such as|is none of the"):
            expand(*records(plain))
        return
    graph = expand(*records(plain))
    assert sorted(a for a, _ in graph.edges) == sorted(wanted)


def test_the_forms_of_a_file(tmp_path: Path) -> None:
    network = load_topology(EXAMPLE, bandwidth="pcie=32GB/s")
    inner = saved(tmp_path, {"infrastructure": example(), "annotations": {}})
    assert links(load_topology(inner, bandwidth="pcie=32GB/s")) == links(network)
    alone = device(("x", "s", "many2many"), counts={"x": 4, "s": 1})
    assert load_topology(saved(tmp_path, alone)).npus == 4
    text = yaml.safe_dump(example(), sort_keys=True)
    again = load_topology(write(tmp_path, text, "graph.yml"), bandwidth="pcie=32GB/s")
    assert links(again) == links(network)


def test_ranks_order_npus(tmp_path: Path) -> None:
    def annotated(*ranks: str) -> Path:
        plain = device(("x", "s", "many2many"), counts={"x": 3, "s": 1})
        nodes = [
            {"name": f"box.0.x.{i}", "attributes": [{"attribute": "rank", "value": rank}]}
            for i, rank in enumerate(ranks)
        ]
        instances = [{"name": "box", "device": "box", "count": 1}]
        graph = {"devices": [plain], "instances": instances}
        return saved(tmp_path, {"infrastructure": graph, "annotations": {"nodes": nodes}})

    def order(path: Path) -> tuple[str, ...]:
        labels = load_topology(path).labels
        assert labels is not None
        return labels.names[:3]

    assert order(annotated("2", "0", "1")) == ("x.1", "x.2", "x.0")
    assert order(annotated("2", "0")) == ("x.0", "x.1", "x.2")
    assert any("not every xpu has a rank" in n for n in load_topology(annotated("1")).notes)
    assert "rank 1 is that of two xpus" in refused(annotated("1", "1", "0"))


def test_edges_that_contradict_each_other(tmp_path: Path) -> None:
    plain = example()
    plain["links"].append({"name": "other", "physical": plain["links"][0]["physical"]})
    plain["edges"].append(plain["edges"][0] | {"link": "other"})
    network = load_topology(saved(tmp_path, plain), bandwidth="pcie=32GB/s")
    assert any("2 pairs joined by edges with links that differ" in n for n in network.notes)
    plain["edges"].append(plain["edges"][0])
    assert len(machine_of(saved(tmp_path, plain)).cables) == len(machine_of(EXAMPLE).cables)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("xpu[:2]", "xpu[4:]", "'xpu'[4:] is none of the 4 there are"),
        ("xpu[:2]", "xpu[4]", "'xpu'[4] is none of the 4 there are"),
        ("xpu[:2]", "xpu[a]", "'xpu' has slice 'a'; expected one such as 0:2"),
        ("xpu[:2]", "xpu[::0]", "expected one such as 0:8:2"),
        ("xpu[:2]", "xpu[0", "'xpu[0' is no name with a slice"),
        ("xpu[:2]", "gpu", "line 17: device 'host' has no component 'gpu'"),
        ("xpu[:2]", "card", "'card' is a device; expected a component of it"),
        ("xpu[:2]", "xpu.port", "'xpu' has no components"),
        ("leaf[0]", "spine[0]", "instance 'spine' is not in the file"),
        ("link: eth", "link: pcie", "link 'pcie' is not among the links beside it"),
        ("name: leaf,", "name: host,", "a second instance is called 'host'"),
        ("- name: card", "- name: host", "a second device is called 'host'"),
        ("name: nvsw,", "name: xpu,", "a second component is called 'xpu'"),
        ("device: switch", "device: router", "device 'router' is not among the devices"),
        (
            "{name: port, count: 2, choice: port}",
            "{name: host, count: 1, choice: device}",
            "device 'host' contains itself",
        ),
        ("choice: xpu", "choice: gpu", "choice is wrong: invalid enum value 'gpu'"),
        ("count: 4", "count: -4", "count is wrong: expected int >= 0"),
        ("count: 4", "count: four", "count is wrong: expected int, got str"),
        ("choice: xpu", "choice: nic", "no component with choice xpu is in it"),
        ("scheme: one2one", "scheme: ring", "a ring has ends that differ"),
        ("scheme: one2one", "scheme: star", "scheme is wrong: invalid enum value 'star'"),
        (", scheme: one2one", "", "has no scheme"),
        ("gigabits_per_second: 200", "gigabits_per_second: 0", "expected 1 to"),
        ("gigabits_per_second: 200", "gigabits_per_second: .nan", "'nan'; expected 1 to"),
        ("us: 1.5", "us: -1.5", "link 'eth' has us '-1.5'; expected 0 to"),
        ("us: 1.5", "us: 1e300", "expected 0 to"),
        ("us: 1.5", "us: fast", "is wrong: expected"),
        ("choice: device", "type: device", "is an older form of InfraGraph"),
    ],
)
def test_what_is_refused(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    text = EXAMPLE.read_text()
    assert old in text
    path = write(tmp_path, text.replace(old, new, 1), "graph.yaml")
    assert sentence in refused(path, bandwidth="pcie=32GB/s")


@pytest.mark.parametrize("many", [10**7, 10**12, 10**18, 10**30])
@pytest.mark.parametrize("where", ["count: 4, choice: xpu", "count: 2}\n- {name: leaf"])
def test_counts_that_explode(tmp_path: Path, many: int, where: str) -> None:
    text = EXAMPLE.read_text()
    more = "count: " + str(many) + where[len("count: 4") :]
    assert where in text
    sentence = refused(write(tmp_path, text.replace(where, more), "graph.yaml"))
    assert "expected" in sentence
    assert len(sentence) < 300


def test_devices_that_explode(tmp_path: Path) -> None:
    """A thousand in a thousand in a thousand; empty ones; edges of all with all."""
    nested = [
        {"name": f"d{i}", "components": [{"name": f"d{i + 1}", "count": 1000, "choice": "device"}]}
        for i in range(9)
    ]
    last = {"name": "d9", "components": [{"name": "x", "count": 1, "choice": "xpu"}]}
    instances = [{"name": "top", "device": "d0", "count": 1}]
    plain: Plain = {"devices": [*nested, last], "instances": instances}
    assert "the graph has 1e+06 nodes; expected up to" in refused(saved(tmp_path, plain))
    last["components"] = []
    assert "no component with choice xpu" in refused(saved(tmp_path, plain))
    full = device(("x", "x", "many2many"), counts={"x": 10**5})
    assert "the graph has 1e+10 edges; expected up to" in refused(saved(tmp_path, full))
    plain = {
        "devices": [
            {"name": f"d{i}", "components": [{"name": f"d{i + 1}", "count": 1, "choice": "device"}]}
            for i in range(50)
        ],
        "instances": instances,
    }
    assert "is more than 16 devices deep" in refused(saved(tmp_path, plain))


def test_a_network_is_one(tmp_path: Path) -> None:
    network = load_topology(saved(tmp_path, device(("x", "x", "ring"), counts={"x": 5})))
    assert isinstance(network, Topology)
    assert links(network) == {
        (i, j): 10 for i in range(5) for j in range(5) if (i - j) % 5 in (1, 4)
    }
