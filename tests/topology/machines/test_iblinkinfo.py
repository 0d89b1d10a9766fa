"""Fabrics as ``iblinkinfo`` prints them."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.topology.machines.fabric import (
    EXAMPLES,
    GB,
    machine_of,
    named_links,
    refused,
    survives,
    write,
)
from weft.topology import load_topology

PATH = EXAMPLES / "iblinkinfo.txt"
TEXT = PATH.read_text()
PAIR = """\
Switch: 0x000000000000000a one:
     1    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>    3    1[  ] "n1 mlx5_0" ( )
     1    2[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>    4    1[  ] "n2 mlx5_0" ( )
     1    3[  ] ==(                Down/ Polling)==>             [  ] "" ( )
CA: n1 mlx5_0:
  0x000000000000001b  3    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>  1    1[  ] "one" ( )
CA: n2 mlx5_0:
  0x000000000000002b  4    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>  1    2[  ] "one" ( )
"""


def by_line(text: str) -> str:
    """The listing as ``-l`` prints it: each port on its own line, with the GUIDs of both ends."""
    guids: dict[str, str] = {}
    rows, head = [], ""
    for line in text.splitlines():
        match = re.match(r"(?:Switch: 0x(\w+)|CA:) (.*):$", line)
        if match:
            switch, head = match.groups()
            continue
        own = re.match(r"\s+(?:0x(\w+)\s+)?([0-9]+) (.*)$", line)
        assert own is not None
        guid = switch or own[1]
        guids[own[2]] = guid
        rows.append((guid, head, own[2], own[3]))
    lines = []
    for guid, head, lid, rest in rows:
        link, _, peer = rest.partition("==>")
        far = re.match(r"\s+([0-9]+) +[0-9]+\[", peer)
        peer = f"  0x{guids[far[1]]} {peer.lstrip()}" if far else peer
        lines.append(f'0x{guid} "{head:>30}" {lid:>6} {link}==>{peer}\n')
    return "".join(lines)


def test_it_is_the_fabric_that_ibnetdiscover_tells() -> None:
    machine, other = machine_of(PATH), machine_of(EXAMPLES / "ibnetdiscover.txt")
    assert machine.parts == other.parts
    assert set(machine.cables) == set(other.cables)
    assert machine.notes == [*other.notes, "6 ports without a link"]
    assert machine.doubts == [
        "at 3 ports a link is slower than its ends can, such as port 60 of "
        "MF0;spine-1:MQM9700/U1, line 47: Could be 4X",
        "of 1 link the two ends say different rates, such as on line 31, of switch c42a1030000a021 "
        "'MF0;leaf-2-2:MQM9700/U1'; the lower counts",
    ]


def test_listings_by_line_say_the_same(tmp_path: Path) -> None:
    path = write(tmp_path, by_line(TEXT))
    assert path.read_text().startswith('0x0c42a1030000a010 "       MF0;leaf-1-1:MQM9700/U1"      1')
    machine, other = machine_of(path), machine_of(PATH)
    assert machine.parts == other.parts
    assert set(machine.cables) == set(other.cables)
    assert named_links(load_topology(path)) == named_links(load_topology(PATH))


def test_a_pair(tmp_path: Path) -> None:
    for text in (PAIR, by_line(PAIR)):
        machine = machine_of(write(tmp_path, text))
        assert [(part.name, part.host, part.ids) for part in machine.parts] == [
            ("one", "", ("a",)),
            ("mlx5_0", "n1", ("1b",)),
            ("mlx5_0", "n2", ("2b",)),
            ("n1", "n1", ()),
            ("n2", "n2", ()),
        ]
        assert [(c.kind, c.src, c.dst) for c in machine.cables if c.dst == 1] == [
            ("host", 3, 1),
            ("leaf", 0, 1),
        ]
        assert {cable.rate and cable.rate.nominal for cable in machine.cables} == {12.5 * GB}
        assert machine.notes == ["1 port without a link"]


def test_an_adapter_of_two_ports_is_one(tmp_path: Path) -> None:
    text = PAIR.replace("n2", "n1").replace("2b  4    1[", "2b  4    2[")
    text = text.replace('4    1[  ] "n1', '4    2[  ] "n1')
    heads = text.count("CA: n1 mlx5_0:\n")
    for listing in (text[::-1].replace("CA: n1 mlx5_0:\n"[::-1], "", 1)[::-1], by_line(text)):
        machine = machine_of(write(tmp_path, listing))
        nic = machine.parts[machine.of_kind("nic")[0]]
        assert nic.ids == ("1b", "2b"), listing
        assert nic.port is not None
        assert nic.port.nominal == 25 * GB
        assert machine.of_kind("nic") == [1]
    assert heads == 2


@pytest.mark.parametrize(
    ("speed", "megabytes"),
    [
        ("4X           2.5 Gbps", 1000),
        ("4X  10.0 Gbps (FDR10)", 5000),
        ("12X          10.0 Gbps", 12_000),
        ("1X        53.125 Gbps", 6250),
        ("4X         212.5 Gbps", 100_000),
    ],
)
def test_rates(tmp_path: Path, speed: str, megabytes: int) -> None:
    path = write(tmp_path, PAIR.replace("4X      25.78125 Gbps", speed))
    assert set(load_topology(path).bandwidth.tolist()) == {megabytes * 10**6}


def test_a_rate_that_the_tool_does_not_know_is_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, PAIR.replace("25.78125 Gbps", "undefined (32)"))
    assert "say it with --bandwidth host=50GB/s,leaf=50GB/s" in refused(path)


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        ("Active/  LinkUp)==>    3", "  Init/  LinkUp)==>    3", "left out: links of 1 port that"),
        ("( )", "(Could be 12X Could be 53.125 Gbps)", "at 4 ports a link is slower than its"),
        ("CA: n1", "ibwarn: [7] timed out\nCA: n1", "not read: 1 line that"),
        ("LinkUp)==>", "LinkUp) (HOQ:16 VL_Stall:7)==>", "1 port without"),
        ("Switch: ", "Switch ", "1 port without"),
        ("1[  ]", "1[12]", "1 port without"),
    ],
)
def test_what_stands_in_real_files(tmp_path: Path, before: str, after: str, note: str) -> None:
    assert before in PAIR
    machine = machine_of(write(tmp_path, PAIR.replace(before, after)))
    assert any(said.startswith(note) for said in machine.notes + machine.doubts), machine
    assert len(machine.cables) == 8


def test_switches_alone(tmp_path: Path) -> None:
    """``--switches-only``: adapters are known by LID and name, or by GUID."""
    alone = PAIR[: PAIR.index("CA:")]
    machine = machine_of(write(tmp_path, alone))
    assert [part.ids for part in machine.parts] == [("a",), (), (), (), ()]
    assert [part.name for part in machine.parts] == ["one", "mlx5_0", "mlx5_0", "n1", "n2"]
    assert machine.notes[0].startswith("2 adapters known only by the switches they hang on")
    lines = "".join(by_line(PAIR).splitlines(keepends=True)[:3])
    machine = machine_of(write(tmp_path, lines))
    assert [part.ids for part in machine.parts] == [("a",), ("1b",), ("2b",), (), ()]


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (
            "4X      25",
            "4Y      25",
            "line 2: '( 4Y 25.78125 Gbps Active/ LinkUp)' has no lanes",
        ),
        ("4X      25", "5X      25", "line 2: '5X 25.78125 Gbps' is no rate of InfiniBand"),
        ("25.78125", "25.7", "line 2: '4X 25.7 Gbps' is no rate of InfiniBand; expected lanes and"),
        ("Active/", "Active", "line 2: '( 4X 25.78125 Gbps Active LinkUp)' is no state of a"),
        ("1    1[  ] ==", "1    1[  ==", "line 2: '1 1[ ==( 4X"),
        ("1    1[  ] ==", "1     [  ] ==", "line 2: '1 [ ] ==( 4X"),
        ('3    1[  ] "n1 mlx5_0" ( )', '"Port not available"', "line 2: the link is up, but"),
        ("1    2[", "1    1[", "line 3: port 1 of 'one' is listed a second time"),
        ("0x000000000000002b", "                  ", "line 8: a port without a GUID stands below"),
        ("2b  4", "2b  3", "line 8: LID 3 is that of 'n1 mlx5_0' on line 5 too"),
        ("2b  4", "1b  4", "line 8: GUID 1b is that of 'n1 mlx5_0' on line 5"),
        ('"n2 mlx5_0" ( )', '"n9 mlx5_0" ( )', "line 3: the link leads to 'n9 mlx5_0', but LID or"),
        ("CA: n2 mlx5_0:", "Switch: 0x0b two:", "line 3: the link leads to 'n2 mlx5_0', but LID"),
        (PAIR[: PAIR.index("\n") + 1], "", "line 1: a port comes before any node; expected a"),
        ('  1    2[  ] "one"', '  1    1[  ] "one"', "line 3: port 2 of switch a 'one"),
    ],
)
def test_wrong_files(tmp_path: Path, before: str, after: str, sentence: str) -> None:
    assert before in PAIR
    found = refused(write(tmp_path, PAIR.replace(before, after, 1)))
    assert found.removeprefix("fabric.txt ").startswith(sentence), found


def test_a_switch_that_is_not_listed(tmp_path: Path) -> None:
    text = TEXT[: TEXT.index("Switch: 0x0c42a1030000b002")]
    assert refused(write(tmp_path, text)) == (
        "fabric.txt line 8: a link leads to switch lid6 'MF0;spine-2:MQM9700/U1', which the file "
        "does not list; expected all switches with their ports: the file may be cut short"
    )


@pytest.mark.parametrize("text", [TEXT, by_line(TEXT)], ids=["default", "by-line"])
def test_damage(text: str, tmp_path: Path) -> None:
    lines = text.splitlines(keepends=True)
    survived = sum(
        survives(write(tmp_path, "".join(lines[:end]))) for end in range(0, len(lines), 3)
    )
    assert survived > 4
    rng = random.Random(17)
    for _ in range(60):
        letters = list(text)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(letters))
            letters[at] = rng.choice(
                ["", "\n", '"', "[", "0", ")", "\x00", "9" * 40, letters[at] * 2]
            )
        survives(write(tmp_path, "".join(letters)))
