"""Fabrics as ``ibnetdiscover`` prints them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.topology.machines.fabric import (
    EXAMPLES,
    GB,
    machine_of,
    named_links,
    refused,
    survives,
    wires,
    write,
)
from weft.topology import load_topology
from weft.topology.machines import Machine
from weft.topology.machines.infiniband import host_and_device
from weft.topology.rates import Rate

PATH = EXAMPLES / "ibnetdiscover.txt"
TEXT = PATH.read_text()
HOSTS = ("gpu01", "gpu02", "gpu10", "gpu11")
LEAVES = ("leaf-1-1", "leaf-1-2", "leaf-2-1", "leaf-2-2")
PAIR = """
Switch	4 "S-000000000000000a"		# "one" base port 0 lid 1 lmc 0
[1]	"H-000000000000001a"[1](1b) 		# "n1 mlx5_0" lid 3 4xEDR
[2]	"S-000000000000000b"[2]		# "two" lid 2 4xEDR

Switch	4 "S-000000000000000b"		# "two" base port 0 lid 2 lmc 0
[1]	"H-000000000000002a"[1](2b) 		# "n2 mlx5_0" lid 4 4xEDR
[2]	"S-000000000000000a"[2]		# "one" lid 1 4xEDR

Ca	1 "H-000000000000001a"		# "n1 mlx5_0"
[1](1b) 	"S-000000000000000a"[1]		# lid 3 lmc 0 "one" lid 1 4xEDR

Ca	1 "H-000000000000002a"		# "n2 mlx5_0"
[1](2b) 	"S-000000000000000b"[1]		# lid 4 lmc 0 "two" lid 2 4xEDR
"""


def test_the_example() -> None:
    machine = machine_of(PATH)
    kinds = {part.name: part.kind for part in machine.parts if part.kind not in ("nic", "host")}
    assert kinds == dict.fromkeys(LEAVES, "leaf") | {"spine-1": "spine", "spine-2": "spine"}
    assert [part.name for part in machine.parts if part.kind == "host"] == list(HOSTS)
    nics = {(part.host, part.name): part for part in machine.parts if part.kind == "nic"}
    assert {name for host, name in nics if host == "gpu10"} == {"mlx5_0", "mlx5_1"}
    assert nics["gpu10", "mlx5_1"].ids == ("c42a10300000121",)
    assert ("", "c42a10300000301") in nics
    rates = [cable.rate for cable in machine.cables if cable.kind == "spine"]
    assert rates.count(Rate(50 * GB, 48_600_000_000)) == 2 * 16, "cables side by side are several"
    assert rates.count(Rate(25 * GB, 24_300_000_000)) == 2
    assert machine.notes == [
        "left out: 6 aggregation nodes of SHARP; whether a job may have switches add is not in "
        "the file, so they are taken not to",
        "left out: 1 adapter of no known host, such as nic c42a10300000301; the name of an adapter "
        "is to begin with that of its host",
        "left out: ufm01 with 1 adapter; they manage the fabric, by their names",
    ]
    assert machine.doubts == [
        "of 1 link the two ends say different rates, such as on line 52, of switch c42a1030000a021 "
        "'MF0;leaf-2-2:MQM9700/U1'; the lower counts"
    ]


def test_its_network_has_hosts_as_npus() -> None:
    network = load_topology(PATH)
    assert (network.npus, network.switches) == (4, 6)
    links = named_links(network)
    rates = {
        (host, f"leaf-{1 + n // 2}-{rail}"): 50 for n, host in enumerate(HOSTS) for rail in (1, 2)
    }
    rates["gpu11", "leaf-2-2"] = 25
    rates |= {(leaf, spine): 100 for leaf in LEAVES for spine in ("spine-1", "spine-2")}
    assert links == rates
    assert set(network.latency.tolist()) == {1_000_000, 500_000}


def test_a_listing_of_switches_alone_is_the_same_fabric(tmp_path: Path) -> None:
    switches = TEXT.split("\n\nvendid=0x2c9\ndevid=0x1021")[0]
    cut = machine_of(write(tmp_path, switches))
    assert cut.notes[1].startswith(
        "10 adapters known only by the switches they hang on, such as adapter c42a10300000100 "
        "'gpu01 mlx5_0': the file may be cut short"
    )
    whole = machine_of(PATH)
    assert {part.ids for part in cut.parts} == {part.ids for part in whole.parts}
    assert len(cut.cables) == len(whole.cables)
    assert named_links(load_topology(write(tmp_path, switches))) == named_links(
        load_topology(PATH)
    ) | {("gpu11", "leaf-2-2"): 50}, "what only the other end said"


def test_a_pair(tmp_path: Path) -> None:
    machine = machine_of(write(tmp_path, PAIR))
    assert wires(machine) == {
        ("mlx5_0", "n1"): ("host", 12, 1),
        ("mlx5_0", "one"): ("leaf", 12, 1),
        ("one", "two"): ("leaf-beside", 12, 1),
        ("mlx5_0", "n2"): ("host", 12, 1),
        ("mlx5_0", "two"): ("leaf", 12, 1),
    }
    assert [part.ids for part in machine.parts if part.kind == "nic"] == [
        ("1a", "1b"),
        ("2a", "2b"),
    ]
    assert machine.notes == []
    assert load_topology(write(tmp_path, PAIR)).npus == 2


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        (
            "Switch\t4",
            "ibwarn: [71] mad_rpc: timed out\nSwitch\t4",
            "not read: 2 lines that are no",
        ),
        ('"n1 mlx5_0"', '"(none) mlx5_0"', "left out: (none) with 1 adapter; such a name is not"),
        ('"n1 mlx5_0"', '"localhost HCA-1"', "left out: localhost with 1 adapter; such a name is"),
        ('"n1 mlx5_0"', '"cl1-mgmt mlx5_0"', "left out: cl1-mgmt with 1 adapter; they manage"),
        ('"n1 mlx5_0"', '"MT27800 Family"', "left out: 1 adapter of no known host, such as nic 1a"),
        ('"n2 mlx5_0"', '"n1 mlx5_0"', "1 name of several adapters each, such as 'n1 mlx5_0'"),
        ('"H-000000000000002a"', '"R-000000000000002a"', "left out: 1 router to other subnets"),
        ("[2]\t", "[2][ext 12]\t", ""),
        ("4xEDR", "4xEDR s=4 w=2 v=4", ""),
    ],
)
def test_what_stands_in_real_files(tmp_path: Path, before: str, after: str, note: str) -> None:
    assert before in PAIR
    text = PAIR.replace(before, after).replace('Ca\t1 "R-', 'Rt\t1 "R-')
    machine = machine_of(write(tmp_path, text))
    assert [said.startswith(note) for said in machine.notes + machine.doubts] == (
        [True] if note else []
    )


@pytest.mark.parametrize(
    ("word", "megabytes"),
    [("1xSDR", 250), ("4xQDR", 4000), ("4xFDR10", 5000), ("12xHDR", 75000), ("4xXDR", 100_000)],
)
def test_rates(tmp_path: Path, word: str, megabytes: int) -> None:
    network = load_topology(write(tmp_path, PAIR.replace("4xEDR", word)))
    assert set(network.bandwidth.tolist()) == {megabytes * 10**6}


def test_a_rate_that_the_tool_does_not_know_is_asked_for(tmp_path: Path) -> None:
    """Older versions print XDR as ``4x???``."""
    path = write(tmp_path, PAIR.replace("4xEDR", "4x???"))
    sentence = refused(path)
    assert "does not say how fast" in sentence
    said = "--bandwidth host=50GB/s,leaf=50GB/s,leaf-beside=50GB/s"
    assert said in sentence
    network = load_topology(path, bandwidth=said.split()[1])
    assert set(network.bandwidth.tolist()) == {50 * GB}


def test_what_manages_the_fabric_may_hang_on_a_spine(tmp_path: Path) -> None:
    """As do aggregation nodes, which are on every switch: neither makes a spine a leaf."""
    spines = {part.name for part in machine_of(PATH).parts if part.kind == "spine"}
    assert spines == {"spine-1", "spine-2"}
    named = TEXT.replace("ufm01", "store01")
    machine = machine_of(write(tmp_path, named))
    assert {part.name for part in machine.parts if part.kind == "spine"} == {"spine-2"}


def test_equal_names_of_switches_are_told_apart(tmp_path: Path) -> None:
    text = PAIR.replace('"one"', '"MF0;core:CS8500/L01/U1"').replace(
        '"two"', '"MF0;core:CS8500/L02/U1"'
    )
    names = {part.name for part in machine_of(write(tmp_path, text)).parts if part.kind == "leaf"}
    assert names == {"MF0;core:CS8500/L01/U1", "MF0;core:CS8500/L02/U1"}
    text = PAIR.replace('"one"', '"Quantum Mellanox Technologies"').replace(
        '"two"', '"Quantum Mellanox Technologies"'
    )
    names = {part.name for part in machine_of(write(tmp_path, text)).parts if part.kind == "leaf"}
    assert names == {"a", "b"}


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (
            '\nSwitch\t4 "S-000000000000000b"',
            '\nSwitch\t4 "S-000000000000000c"',
            "fabric.txt line 4: a link leads to switch b 'two', which the file does not list; "
            "expected all switches with their ports: the file may be cut short",
        ),
        (
            '[1]\t"H-000000000000002a"',
            '[1]\t"H-000000000000001a"',
            "fabric.txt line 7: port 1 of switch b 'two' leads to port 1 of adapter 1a 'n1 "
            "mlx5_0', which line 11 says leads to port 1 of switch a 'one'",
        ),
        ("lid 2 4xEDR", "lid 2 4xEDX", "fabric.txt line 4: '4xEDX' is no rate of InfiniBand"),
        ("lid 2 4xEDR", "lid 2 5xEDR", "fabric.txt line 4: '5xEDR' is no rate of InfiniBand"),
        ("lid 2 4xEDR", "lid 2 4 EDR", "fabric.txt line 4: '4' is no rate of InfiniBand"),
        ("[2]\t", "[2\t", 'fabric.txt line 4: \'[2\\t"S-000000000000000b"[2]'),
        ("[2]\t", "[1]\t", "fabric.txt line 4: port 1 of switch a 'one' is listed a second time"),
        ("\nSwitch", "\n[1]\nSwitch", "fabric.txt line 2: port '[1]' comes before any node"),
        ("\nCa\t1", "\nCa\tx", "fabric.txt line 10: 'Ca"),
        ("\nCa\t1", PAIR + "\nCa\t1", "fabric.txt line 10: switch a 'one' is listed a second"),
        ('\t"H-000000000000001a"', '\t"S-000000000000001a"', "fabric.txt line 10: switch 1a 'n1"),
    ],
)
def test_wrong_files(tmp_path: Path, before: str, after: str, sentence: str) -> None:
    assert before in PAIR
    found = refused(write(tmp_path, PAIR.replace(before, after, 1)))
    assert found.startswith(sentence), found


def test_a_list_of_nodes_is_no_fabric(tmp_path: Path) -> None:
    text = 'Switch\t : 0x000000000000000a ports 4 devid 0xd2f2 vendid 0x2c9 "one"\n'
    assert refused(write(tmp_path, text)) == (
        "fabric.txt line 1: is a list of nodes without their links; expected what ibnetdiscover "
        "prints without -l, -S or -H"
    )


def test_an_adapter_without_a_link_is_no_fabric(tmp_path: Path) -> None:
    text = 'Ca\t1 "H-000000000000001a"\t\t# "n1 HCA-1"\n'
    assert refused(write(tmp_path, text)) == (
        "fabric.txt line 1: no link is listed, of 1 adapter; expected the ports of adapter 1a "
        "'n1 HCA-1' and where they lead"
    )


def ends_of(machine: Machine) -> set[tuple[str, str, str, str]]:
    parts = [(part.host, part.ids[0] if part.ids else part.name) for part in machine.parts]
    return {(*parts[cable.src], *parts[cable.dst]) for cable in machine.cables}


def test_cut_short_anywhere(tmp_path: Path) -> None:
    """Every link of a file that is still read is one of the whole file."""
    whole = ends_of(machine_of(PATH))
    lines = TEXT.splitlines(keepends=True)
    read = 0
    for end in range(0, len(lines), 3):
        path = write(tmp_path, "".join(lines[:end]))
        if survives(path):
            read += 1
            assert ends_of(machine_of(path)) <= whole
            assert any("cut short" in note for note in machine_of(path).notes) or end > 140
    assert read > 4


def test_damaged_anywhere(tmp_path: Path) -> None:
    rng = random.Random(17)
    for _ in range(100):
        text = list(TEXT)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text))
            text[at] = rng.choice(
                ["", "\n", '"', "[", "0", "x", "\x00", "é", "9" * 40, text[at] * 2]
            )
        survives(write(tmp_path, "".join(text)))


@pytest.mark.parametrize(
    ("called", "host", "device"),
    [
        ("node01 mlx5_0", "node01", "mlx5_0"),
        ("nvidia-gpu01.cluster  HCA-12", "nvidia-gpu01.cluster", "HCA-12"),
        ("node01", "node01", ""),
        ("node01 rdma0", "node01", "rdma0"),
        ("MT4129 ConnectX7   Mellanox Technologies", "", ""),
        ("MT27800 Family", "", ""),
        ("MT4129", "", ""),
        ("Mellanox Technologies", "", ""),
        ("NVIDIA ConnectX-7", "", ""),
        ("Quantum Mellanox Technologies", "", ""),
        ("", "", ""),
    ],
)
def test_what_an_adapter_says_of_its_host(called: str, host: str, device: str) -> None:
    assert host_and_device(called) == (host, device)
