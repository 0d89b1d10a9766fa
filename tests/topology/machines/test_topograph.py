"""Graphs and models of topograph, and NetQ's graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.topology.machines.fabric import (
    EXAMPLES,
    machine_of,
    named_links,
    refused,
    wires,
    write,
)
from weft.topology import load_topology

GRAPH, MODEL, NETQ = (
    EXAMPLES / name for name in ("topograph-graph.json", "topograph-model.yaml", "netq.json")
)
TREE = "no rates are in the file, and one link stands for all cables between two switches: "


def kinds_of(path: Path) -> dict[str, str]:
    return {part.name: part.kind for part in machine_of(path).parts if part.kind != "host"}


def test_a_graph() -> None:
    assert kinds_of(GRAPH) == {
        **dict.fromkeys(("leaf-a", "leaf-b", "leaf-c"), "leaf"),
        "spine-1": "spine",
        **dict.fromkeys(("domain-a", "domain-b"), "nvswitch"),
    }
    machine = machine_of(GRAPH)
    assert [part.name for part in machine.parts if part.kind == "host"] == [
        "gpu-a1",
        "gpu-a2",
        "gpu-b1",
        "gpu-b2",
        "gpu-c1",
    ]
    assert machine.notes[0].startswith(TREE)
    assert machine.notes[1] == (
        "2 NVLink domains of several hosts, such as domain-a: as fast as --bandwidth "
        "nvlink=900GB/s says"
    )
    fabric = {
        **{(f"gpu-{x}", f"leaf-{x[0]}"): 50 for x in ("a1", "a2", "b1", "b2", "c1")},
        **{(f"leaf-{x}", "spine-1"): 100 for x in "abc"},
    }
    assert "does not say how fast 8 nvlink links are" in refused(
        GRAPH, bandwidth="leaf=50GB/s,spine=100GB/s"
    )
    network = load_topology(GRAPH, bandwidth="leaf=50GB/s,spine=100GB/s,nvlink=900GB/s")
    # Leaf c has one host, and a domain two: what only passes on is one link with the next.
    expected = {ends: rate for ends, rate in fabric.items() if "leaf-c" not in ends}
    expected |= {("gpu-c1", "spine-1"): 50}
    assert named_links(network) == expected | {("gpu-a1", "gpu-a2"): 900, ("gpu-b1", "gpu-b2"): 900}


def test_a_graph_in_an_answer(tmp_path: Path) -> None:
    """Under ``graph``, whatever the file is called."""
    path = write(tmp_path, f'{{"graph": {GRAPH.read_text()}}}')
    assert wires(machine_of(path)) == wires(machine_of(GRAPH))


def test_a_model() -> None:
    assert kinds_of(MODEL) == {
        "core": "core",
        **dict.fromkeys(("pod1", "pod2"), "spine"),
        **dict.fromkeys(("leaf11", "leaf12", "leaf21"), "leaf"),
        **dict.fromkeys(("nvl1", "nvl2", "nvl3"), "nvswitch"),
    }
    links = wires(machine_of(MODEL))
    assert {ends for ends, (kind, *_) in links.items() if kind == "nvlink"} == {
        *((f"n{i}", "nvl1") for i in (11, 12, 15)),
        *((f"n{i}", "nvl2") for i in (21, 22)),
        *((f"n{i}", "nvl3") for i in (31, 32)),
    }
    assert {ends for ends, (kind, *_) in links.items() if kind != "nvlink"} == {
        *(("leaf11", f"n{i}") for i in (11, 12, 15)),
        *(("leaf12", f"n{i}") for i in (21, 22)),
        *(("leaf21", f"n{i}") for i in (31, 32, 33)),
        ("leaf11", "pod1"),
        ("leaf12", "pod1"),
        ("leaf21", "pod2"),
        ("core", "pod1"),
        ("core", "pod2"),
    }


def test_cables_of_netq_add_up() -> None:
    network = load_topology(NETQ, bandwidth="leaf=50GB/s,spine=100GB/s")
    assert network.labels is not None
    hosts = ["dgx-1", "dgx-2", "dgx-10", "dgx-11", "dgx-20", "dgx-21"]
    assert list(network.labels.names[:6]) == hosts
    leaves = [f"leaf-{1 + n // 2}" for n in range(6)]
    assert named_links(network) == {
        **dict.fromkeys(zip(hosts, leaves, strict=True), 200),
        ("dgx-11", "leaf-2"): 150,
        ("leaf-1", "spine-1"): 800,
        ("leaf-2", "spine-1"): 600,
        ("leaf-3", "spine-1"): 800,
    }


def test_a_list_of_hosts_is_no_network(tmp_path: Path) -> None:
    text = '[{"Name": "n1", "DomainUUID": "d", "GpuIDList": ["a", "b"]}]'
    assert refused(write(tmp_path, text, "nodes.json")) == (
        "nodes.json line 1: is a list of the hosts of an NVLink domain, not of what joins them; "
        "expected a graph with the network_layers of each host"
    )


@pytest.mark.parametrize(
    ("example", "before", "after", "sentence"),
    [
        (GRAPH, '"gpu-a2"', '"gpu-a1"', "line 9: instance 'gpu-a1' is there a second time"),
        (GRAPH, '["leaf-c", "spine-1"]', "[]", "line 27: instance 'gpu-c1' has no network_layers"),
        (GRAPH, '["leaf-c", "spine-1"]', '"leaf-c"', "line 29: network_layers is 'leaf-c'; expec"),
        (GRAPH, '["leaf-c", "spine-1"]', '["leaf-c", 1.5]', "line 29: a layer is '1.5'; expected"),
        (GRAPH, '["leaf-c", "spine-1"]', '["spine-1", "leaf-a"]', "line 6: switch 'leaf-a' is bel"),
        (GRAPH, '"instances": [', '"instance": [', "instances is 'None'; expected a list"),
        (GRAPH, '"id": "gpu-a1"', '"name": "gpu-a1"', "line 3: id is not there; expected a name"),
        (GRAPH, '{"nvlink": "domain-a"}', '["domain-a"]', "line 7: what is said of hosts is '['d"),
        (GRAPH, "]\n}", "]", "line 32: not valid JSON"),
        (MODEL, "pod2]", "pod3]", "line 3: switch 'pod3' below 'core' is not in the file; expect"),
        (MODEL, "[31-33]", "[31-9999999]", "line 14: 'n[31-9999999]' makes a list of more than"),
        (MODEL, '["n[31-33]"]', "n31", "line 14: nodes is 'n31'; expected a list"),
        (MODEL, "- switch: leaf11", "- leaf: leaf11", "line 16: switch is not there; expected a n"),
        (MODEL, "blocks:", "blocks: &a []\nmore: *a\nothers:", "line 16: aliases such as *a have"),
        (NETQ, '"target": "h2"', '"target": "h9"', "line 5: a link leads from 'l1' to 'h9'; expe"),
        (NETQ, '"target": "h2"', '"target": "l1"', "line 5: a link leads from 'l1' to 'l1'; expe"),
        (NETQ, '"size": 3', '"size": 5000', "line 7: size is '5000'; expected a whole number fro"),
        (NETQ, '"id": "h2", ', '"id": "h1", ', "line 33: node 'h1' is there a second time"),
        (NETQ, '"discovered_via_lldp"', '"switch"', "line 1: no host is in it; expected switches"),
    ],
)
def test_wrong_files(tmp_path: Path, example: Path, before: str, after: str, sentence: str) -> None:
    text = example.read_text()
    assert before in text
    every = "lldp" in before
    found = refused(write(tmp_path, text.replace(before, after, -1 if every else 1), example.name))
    assert found.startswith((f"{example.name} {sentence}", f"{example.name}: {sentence}")), found


def test_as_many_cables_as_a_cluster_may_have(tmp_path: Path) -> None:
    links = ",".join('{"src": "s", "target": "h", "size": 4096}' for _ in range(1000))
    nodes = (
        '{"compounded_nodes": [{"id": "s", "name": "s", "device_type": "switch"}, '
        '{"id": "h", "name": "h", "device_type": "host"}]}'
    )
    path = write(tmp_path, f'[{{"nodes": [{nodes}], "links": [{links}]}}]', "netq.json")
    assert "size is '4096'; expected a whole number from 1 to 0" in refused(path)


def test_weft_s_own_files_are_not_taken_for_a_model(tmp_path: Path) -> None:
    text = "weft: topology\nversion: 1\nnpus: 2\nswitches:\nlinks: []\n"
    assert refused(write(tmp_path, text, "own.yaml")) == (
        "own.yaml line 4: switches is wrong: expected int, got null"
    )
