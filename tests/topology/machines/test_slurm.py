"""Slurm's ``topology.conf`` and ``topology.yaml``."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.topology.machines.fabric import (
    EXAMPLES,
    GB,
    machine_of,
    named_links,
    refused,
    wires,
    write,
)
from weft.errors import InputError
from weft.topology import load_topology
from weft.topology.machines.hostlist import names_of, natural

CONF, YAML, TORUS = (
    EXAMPLES / name for name in ("slurm-topology.conf", "slurm-topology.yaml", "slurm-torus.yaml")
)
TREE = "no rates are in the file, and one link stands for all cables between two switches: "
PAIR = "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4]\nSwitchName=c Switches=a,b\n"


def test_the_tree_of_a_conf() -> None:
    machine = machine_of(CONF)
    kinds = {part.name: part.kind for part in machine.parts if part.kind != "host"}
    assert kinds == {
        **dict.fromkeys(("leaf1", "leaf2", "leaf3", "leaf4"), "leaf"),
        **dict.fromkeys(("spine1", "spine2"), "spine"),
        "core": "core",
    }
    hosts = [part.name for part in machine.parts if part.kind == "host"]
    first = [f"gpu0{i}" for i in range(1, 7)] + ["gpu10", "gpu11"]
    racks = [f"rack{i}node{j}" for i in (1, 2) for j in (1, 2)]
    assert hosts == [*first, "gpu20", "gpu21", "gpu22", "gpu23", *racks]
    links = wires(machine)
    assert {ends for ends, (kind, *_) in links.items() if kind == "core"} == {
        ("core", "spine1"),
        ("core", "spine2"),
    }
    assert {host for host, leaf in links if leaf == "leaf2"} == {"gpu04", "gpu05", "gpu06", "gpu11"}
    assert set(links.values()) == {("leaf", None, 1), ("spine", None, 1), ("core", None, 1)}
    assert machine.notes[0].startswith(TREE)
    assert machine.notes[1:] == ["not read: LinkSpeed on 2 lines, whose unit Slurm leaves open"]


def test_rates_are_asked_for() -> None:
    sentence = refused(CONF)
    assert sentence.startswith(
        "slurm-topology.conf: slurm-topology: a topology.conf of Slurm does not say how fast"
    )
    option = "core=50GB/s,leaf=50GB/s,spine=50GB/s"
    assert sentence.endswith(f"say it with --bandwidth {option}")
    network = load_topology(CONF, bandwidth="leaf=50GB/s,spine=100GB/s,core=150GB/s")
    assert (network.npus, network.switches) == (16, 6), "a core of two spines only passes on"
    links = named_links(network)
    assert links["gpu01", "leaf1"] == 50
    assert links["leaf3", "spine2"] == 100
    assert links["spine1", "spine2"] == 150


def test_the_default_of_a_yaml() -> None:
    machine = machine_of(YAML)
    assert machine.notes[1] == (
        "read: topology 'fabric', the default of the cluster; not read: 'blocks' (block), 'plain' "
        "(flat)"
    )
    network = load_topology(YAML, bandwidth="leaf=50GB/s,spine=150GB/s")
    assert named_links(network) == {
        **{(f"gpu{n}", f"leaf{1 + (n - 1) // 3}"): 50 for n in range(1, 9)},
        ("leaf3", "login"): 50,
        **{(f"leaf{n}", "top"): 150 for n in (1, 2, 3)},
    }


def test_a_torus() -> None:
    """Along x first, and around where there are more than two."""
    sides = (3, 2, 2)
    network = load_topology(TORUS, bandwidth="x=1GB/s,y=2GB/s,z=3GB/s")
    expected = {}
    places = list(itertools.product(*map(range, sides[::-1])))
    number = {place[::-1]: i for i, place in enumerate(places)}
    for place, i in number.items():
        for side, rate in zip(range(3), (1, 2, 3), strict=True):
            for step in (-1, 1):
                near = list(place)
                near[side] = (near[side] + step) % sides[side]
                expected[i, number[tuple(near)]] = rate * GB
    rows = zip(network.src.tolist(), network.dst.tolist(), network.bandwidth.tolist(), strict=True)
    assert {(a, b): rate for a, b, rate in rows} == expected


def test_rings(tmp_path: Path) -> None:
    text = "RingName=r Nodes=n[3-6]\n"
    network = load_topology(write(tmp_path, text), bandwidth="ring=5GB/s")
    assert named_links(network) == {
        ("n3", "n4"): 5,
        ("n4", "n5"): 5,
        ("n5", "n6"): 5,
        ("n3", "n6"): 5,
    }
    rings = "[{ring: a, nodes: 'n[1-3]'}, {ring: b, nodes: 'm[1-2]'}]"
    two = f"- topology: t\n  ring:\n    rings: {rings}\n"
    machine = machine_of(write(tmp_path, two, "rings.yaml"))
    assert len(machine.cables) == 2 * 3 + 2
    assert machine.notes == ["2 parts of the network that nothing joins"]


def test_parts_that_nothing_joins(tmp_path: Path) -> None:
    machine = machine_of(write(tmp_path, PAIR[: PAIR.index("SwitchName=c")]))
    assert machine.notes[1] == "2 parts of the fabric that nothing joins, below a, b"
    joined = machine_of(write(tmp_path, PAIR.replace("n[3-4]", "n[2-4]")))
    assert len(joined.notes) == 1


def test_a_file_that_includes_another(tmp_path: Path) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    write(folder, "SwitchName=a Nodes=n[1-2]\nInclude b.conf\n", "a.conf")
    write(folder, "SwitchName=b Nodes=n[3-4]", "b.conf")
    path = write(tmp_path, "include more/a.conf\nSwitchName=c Switches=a,b", "topology.conf")
    assert wires(machine_of(path)) == wires(machine_of(write(tmp_path, PAIR)))
    write(folder, "Switch", "b.conf")
    assert refused(path).startswith("topology.conf line 1: 'Switch' does not belong there")
    write(folder, "Include b.conf", "b.conf")
    assert refused(path) == "topology.conf line 1: includes more than 100 files"
    (folder / "b.conf").unlink()
    assert "line 1: includes 'b.conf', which cannot be read" in refused(path)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("a,b", "a,d", "line 3: switch 'd' below 'c' is not in the file; expected every switch"),
        ("Name=b", "Name=a", "line 2: switch 'a' is there a second time"),
        ("a,b", "a,b,c", "line 3: switch 'c' is below itself; expected a tree"),
        ("Name=b Nodes=n[3-4]", "Name=b Switches=c", "line 2: switch 'b' is below itself"),
        ("Nodes=", "Hosts=", "line 1: 'Hosts' does not belong there; expected SwitchName="),
        ("SwitchName=b", "Nodes=b", "line 2: 'Nodes' does not belong there"),
        ("n[1-2]", "n[1-2] and more", "line 1: 'and more' does not belong there"),
        ("n[1-2]", "n[2-1]", "line 1: '2-1' in '[2-1]' is no range; expected such as 01-16"),
        ("n[1-2]", "n[1-", "line 1: 'n[1-' is no list of names; expected such as node[01-16"),
        ("n[1-2]", "n[1-2],", "line 1: 'n[1-2],' is no list of names"),
        ("n[1-2]", "n[1-999999999]", "line 1: 'n[1-999999999]' makes a list of more than 262144"),
        ("n[1-2]", f"n[1-{'9' * 30}]", "line 1: '1-999999999999999999999999999999' in "),
        ("n[1-2]", "[1-999][1-999]n[1-999]", "line 1: '[1-999][1-999]n[1-999]' makes a list of"),
        ("n[1-2]", "ALL", "line 1: ALL stands for hosts that another file names"),
        ("Name=a ", "Name=a[1-2] ", "line 1: SwitchName=a[1-2] is several; expected a line for"),
        ("Nodes=n[1-2]", "", "line 3: "),
    ],
)
def test_wrong_trees(tmp_path: Path, before: str, after: str, sentence: str) -> None:
    assert before in PAIR
    text = PAIR.replace(before, after, 1)
    if sentence == "line 3: ":
        text, sentence = "SwitchName=a\nSwitchName=b\n", "line 1: no host is in it; expected"
    found = refused(write(tmp_path, text))
    assert found.startswith(f"fabric.txt {sentence}"), found


def test_what_is_no_network(tmp_path: Path) -> None:
    blocks = "BlockSizes=4\nBlockName=b1 Nodes=n[1-4]\n"
    why = "blocks say which hosts are near each other, not what joins them; expected a tree of "
    assert refused(write(tmp_path, blocks)).startswith(f"fabric.txt line 1: {why}")
    machine = machine_of(write(tmp_path, PAIR + blocks))
    assert machine.notes[1:] == ["not read: blocks on 2 lines"]
    text = YAML.read_text().replace("default: true", "default: false")
    assert refused(write(tmp_path, text, "topology.yaml")) == (
        f"topology.yaml line 4: topology 'blocks': {why}switches, such as SwitchName=leaf1 "
        "Nodes=node[01-16]; cluster_default: true can choose 'fabric' instead"
    )
    flat = "- topology: plain\n  flat: true\n"
    assert refused(write(tmp_path, flat, "topology.yaml")) == (
        "topology.yaml line 2: topology 'plain': a flat topology says nothing of the network; "
        "expected a tree of switches"
    )


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("x: 3", "x: 4", "line 4: torus 'pod1' has 12 hosts; expected 4x2x2"),
        ("x: 3", "x: 0", "line 6: x is '0'; expected a whole number from 1 to 65536"),
        ("x: 3", "w: 3", "line 5: x is 'None'; expected a whole number from 1 to 65536"),
        ("dims:", "dims: 3\n        other:", "line 5: dims is '3'; expected keys and values"),
        ("[01-12]", "[01-11],tray01", "line 4: torus 'pod1' has host 'tray01', which is in one"),
        ("nodes:", "regions:", "line 9: torus 'pod1' places its hosts by regions, which are not"),
        ("name: pod1", "title: pod1", "line 4: name is not there; expected a name"),
        ("toruses:", "tori:", "line 2: toruses is 'None'; expected a list"),
        ("torus3d:", "hypercube:", "line 1: topology 'pod' is of no known kind; expected one of"),
        ("torus3d:", "flat: true\n  torus3d:", "line 1: topology 'pod' is flat and torus3d; expec"),
        ("- topology: pod", "- topology: &a pod\n  x: *a", "line 2: aliases such as *a have no"),
    ],
)
def test_wrong_yaml(tmp_path: Path, before: str, after: str, sentence: str) -> None:
    text = TORUS.read_text()
    assert before in text
    found = refused(write(tmp_path, text.replace(before, after, 1), "topology.yaml"))
    assert found.startswith(f"topology.yaml {sentence}"), found


def test_a_list_of_lists_is_bounded(tmp_path: Path) -> None:
    lines = "".join(f"SwitchName=s{i} Nodes=n[1-100000]\n" for i in range(1000))
    assert "line 3: 'n[1-100000]' makes a list of more than" in refused(write(tmp_path, lines))


@examples(60)
@given(
    st.lists(
        st.tuples(
            st.text("abz-.", min_size=1, max_size=4),
            st.lists(st.tuples(st.integers(0, 120), st.integers(0, 5)), max_size=3),
            st.integers(1, 4),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_lists_are_what_they_say(items: list[tuple[str, list[tuple[int, int]], int]]) -> None:
    text, names = [], []
    for prefix, ranges, width in items:
        inner = ",".join(
            f"{first:0{width}}-{first + more:0{width}}" if more else f"{first:0{width}}"
            for first, more in ranges
        )
        text.append(f"{prefix}[{inner}]" if ranges else prefix)
        names += [prefix] if not ranges else []
        for first, more in ranges:
            names += [f"{prefix}{n:0{width}}" for n in range(first, first + more + 1)]
    assert names_of(",".join(text)) == names


@examples(100)
@given(st.text("n0[19]-, \\", max_size=12))
def test_any_text_is_a_list_or_refused(text: str) -> None:
    error, names = "", [""]
    try:
        names = names_of(text, 500)
    except InputError as raised:
        error = str(raised)
    assert len(error) < 400
    assert 0 < len(names) <= 500


def test_the_order_of_names() -> None:
    names = ["n10", "n2", "n02", "a", "n1x9", "n1x10", "10", "n"]
    assert sorted(names, key=natural) == ["10", "a", "n", "n1x9", "n1x10", "n02", "n2", "n10"]
