"""Topology files of NCCL and RCCL: rates, trees of PCIe, hosts, the order of GPUs, input files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.topology.machines.reading import (
    EXAMPLES,
    GB,
    both_ways,
    machine_of,
    refused,
    wires,
    write,
)
from weft.topology import Topology, load_topology
from weft.topology.machines import Machine

EXAMPLE = EXAMPLES / "nccl-dgx.xml"
UNSEEN = "fffffff:ff:ff.0"
GPU = "0x030200"
GEN4 = 16 * 1_969_230_769
"""B/s of PCIe 4.0 by 16 lanes."""


def bus(number: int) -> str:
    return f"0000:{number:02x}:00.0"


def nvlink(count: int = 12, target: str = UNSEEN, tclass: str = "0x068000") -> str:
    return f'<nvlink target="{target}" count="{count}" tclass="{tclass}"/>'


def gpu(dev: int, inside: str = "", sm: int = 80, rank: int | None = None, **more: str) -> str:
    """A GPU, whose bus is its number and 16."""
    rank_text = "" if rank is None else f' rank="{rank}"'
    said = "".join(f' {key}="{value}"' for key, value in more.items())
    return pci(16 + dev, f'<gpu dev="{dev}" sm="{sm}"{rank_text}{said}>{inside}</gpu>', "0x030200")


def nic(number: int, *names: str, speed: int = 200_000) -> str:
    """An adapter with ports of these names, whose bus is its number and 128."""
    nets = "".join(
        f'<net name="{name}" dev="0" speed="{speed}" port="1" guid="0x{number:x}000{i}a5"/>'
        for i, name in enumerate(names)
    )
    return pci(128 + number, f"<nic>{nets}</nic>", "0x020700")


def pci(
    number: int,
    inside: str = "",
    kind: str = "0x060400",
    speed: str = "16.0 GT/s",
    width: str = "16",
) -> str:
    return (
        f'<pci busid="{bus(number)}" class="{kind}" link_speed="{speed}" '
        f'link_width="{width}">{inside}</pci>'
    )


def cpu(inside: str, numa: int = 0, host: str = "0x1", arch: str = "x86_64", **more: str) -> str:
    said = {"vendor": "AuthenticAMD", "familyid": "143", "modelid": "49"} | more
    text = "".join(f' {key}="{value}"' for key, value in said.items())
    return f'<cpu host_hash="{host}" numaid="{numa}" arch="{arch}"{text}>{inside}</cpu>'


def system(folder: Path, *inside: str) -> Path:
    return write(folder, f'<system version="1">{"".join(inside)}</system>', "host.xml")


def rates(machine: Machine, kind: str) -> set[tuple[int, int | None]]:
    """Nominal and reachable B/s of the links of a kind."""
    found = [c.rate for c in machine.cables if c.kind == kind]
    return {(rate.nominal, rate.reachable) for rate in found if rate is not None}


def names(machine: Machine, *kinds: str) -> list[str]:
    return [part.name for part in machine.parts if part.kind in kinds]


def test_the_example() -> None:
    machine = machine_of(EXAMPLE)
    gpus = [f"gpu 0000:{name}:00.0" for name in ("07", "0b", "81")]
    assert wires(machine) == both_ways(
        *(("nvlink", one, "nvswitch nvswitch", 300 * GB, 12) for one in gpus),
        ("pcie", "pci 0000:01:00.0", "cpu 0", GEN4, 16),
        ("pcie", gpus[0], "pci 0000:01:00.0", GEN4, 16),
        ("pcie", gpus[1], "pci 0000:01:00.0", GEN4, 16),
        ("pcie", "nic mlx5_0", "pci 0000:01:00.0", GEN4, 16),
        ("pcie", gpus[2], "cpu 1", GEN4, 16),
        ("cpu", "cpu 1", "cpu 0", 16 * GB, 1),
    )
    (adapter,) = (part for part in machine.parts if part.kind == "nic")
    assert adapter.ids == ("1a2b3c4d5e6f0001", "01006f5e4d3c2b1a")  # NCCL prints either order
    assert adapter.port is not None
    assert adapter.port.nominal == 25 * GB


@pytest.mark.parametrize(
    ("sm", "nominal", "reachable"),
    [
        *((60, 20, 18), (70, 25, 20), (75, 25, 20), (80, 25, 20), (86, 14, 12), (87, 25, 20)),
        *((89, 25, 20), (90, 25, 20.6), (100, 50, 40.1), (103, 50, 40.1)),
    ],
)
def test_nvlink_by_architecture(sm: int, nominal: float, reachable: float, tmp_path: Path) -> None:
    machine = machine_of(system(tmp_path, cpu(gpu(0, nvlink(4), sm) + gpu(1, nvlink(4), sm))))
    assert rates(machine, "nvlink") == {(4 * nominal * GB, round(4 * reachable * GB))}
    assert {part.adds for part in machine.parts if part.kind == "nvswitch"} == {sm >= 90}


@pytest.mark.parametrize(
    ("gcn", "nominal", "reachable"),
    [
        *(("906", 46, 24), ("gfx908", 46, 24), ("910", 50, 36), ("gfx90a", 50, 36)),
        *(("940", 64, 48), ("gfx942", 64, 48), ("GFX942", 64, 48), ("gfx950", 76.8, None)),
    ],
)
def test_xgmi_by_architecture(
    gcn: str, nominal: float, reachable: float | None, tmp_path: Path
) -> None:
    links = [f'<xgmi target="{bus(17 - i)}" count="2" tclass="0x038000"/>' for i in range(2)]
    path = system(tmp_path, cpu("".join(gpu(i, links[i], 104, gcn=gcn) for i in range(2))))
    wanted = round(2 * nominal * GB), None if reachable is None else round(2 * reachable * GB)
    assert rates(machine_of(path), "xgmi") == {wanted}
    if reachable is None:
        assert "--bandwidth xgmi=50GB/s" in refused(path, rates="reachable")


@pytest.mark.parametrize(
    ("speed", "width", "rate"),
    [
        *(("2.5 GT/s PCIe", "16", 4 * GB), ("5.0 GT/s PCIe", "8", 4 * GB)),
        *(("8 GT/s", "16", 15_753_846_160), ("8.0 GT/s PCIe", "4", 3_938_461_540)),
        *(("16.0 GT/s PCIe", "16", GEN4), ("16 GT/s", "0", GEN4), ("16 GT/s", "", GEN4)),
        *(("32.0 GT/s PCIe", "16", 63_015_384_608), ("64.0 GT/s PCIe", "16", 121_000_000_000)),
        *(("", "16", None), ("", "0", None)),
    ],
)
def test_pcie(speed: str, width: str, rate: int | None, tmp_path: Path) -> None:
    path = system(tmp_path, cpu(pci(1, "<gpu dev='0' sm='75'/>", "0x0302", speed, width)))
    (way,) = {c.rate and c.rate.nominal for c in machine_of(path).cables}
    assert way == rate


@pytest.mark.parametrize(
    ("said", "rate"),
    [
        ({}, 16),
        *(
            ({"vendor": "GenuineIntel", "modelid": model}, rate)
            for model, rate in (("79", 6), ("85", 10), ("143", 22), ("207", 40), ("", 6))
        ),
        *(({"arch": arch}, rate) for arch, rate in (("arm64", 6), ("ppc64le", 32))),
        ({"vendor": "CentaurHauls"}, None),
    ],
)
def test_between_cpus(said: dict[str, str], rate: int | None, tmp_path: Path) -> None:
    path = system(tmp_path, *(cpu(gpu(i, sm=75), i, **said) for i in range(2)))  # type: ignore[arg-type]
    ways = [c.rate and c.rate.nominal for c in machine_of(path).cables if c.kind == "cpu"]
    assert ways == [rate and rate * GB] * 2


def test_all_nvswitches_are_one(tmp_path: Path) -> None:
    six = "".join(nvlink(2, bus(200 + i)) for i in range(6))
    for path in (
        system(tmp_path, cpu(gpu(0, six) + gpu(1, six))),
        system(tmp_path, cpu(gpu(0, nvlink(12)) + gpu(1, nvlink(12)))),
    ):
        network = load_topology(path, bandwidth="pcie=1GB/s")
        assert names(machine_of(path), "nvswitch") == ["nvswitch"]
        assert network.bandwidth.max() == 300 * GB


def test_links_between_two_gpus_are_those_of_each_way(tmp_path: Path) -> None:
    """A line each way, of which one may be missing: nothing is made up."""
    both = system(tmp_path, cpu(gpu(0, nvlink(4, bus(17), GPU)) + gpu(1, nvlink(4, bus(16), GPU))))
    assert load_topology(both).bandwidth.tolist().count(100 * GB) == 2
    one = system(tmp_path, cpu(gpu(0, nvlink(4, bus(17), GPU)) + gpu(1)))
    assert load_topology(one).bandwidth.tolist().count(100 * GB) == 1


def test_cpus_beside_gpus(tmp_path: Path) -> None:
    """C2C in MB/s a link; NVLink to the CPU of POWER9, known by its class."""
    path = system(tmp_path, cpu(gpu(0, '<c2c bw="44712" count="10"/>', 90), arch="arm64"))
    machine = machine_of(path, nvlink=0)
    assert rates(machine, "c2c") == {(447_120_000_000, 447_120_000_000)}
    path = system(tmp_path, cpu(gpu(0, nvlink(3, "0004:00:00.0", "0x068001"), 70), arch="ppc64le"))
    assert ("nvlink", f"gpu {bus(16)}", "cpu 0", 75 * GB, 3) in wires(machine_of(path))


def test_hosts_in_one_domain(tmp_path: Path) -> None:
    hosts = [cpu(gpu(0, nvlink(18), 100), host=f"0x{i}") for i in (7, 9)]
    machine = machine_of(system(tmp_path, *hosts))
    assert [part.described for part in machine.parts] == [
        *(f"{kind} of host{i}" for i in range(2) for kind in ("cpu 0", f"gpu {bus(16)}")),
        "nvswitch nvswitch",
    ]
    assert rates(machine, "nvlink") == {(900 * GB, round(18 * 40.1 * GB))}
    assert load_topology(system(tmp_path, *hosts)).npus == 2


def test_the_order_of_gpus(tmp_path: Path) -> None:
    def order(*gpus: str) -> list[int]:
        machine = machine_of(system(tmp_path, cpu("".join(gpus))))
        return [int(name[5:7], 16) - 16 for name in names(machine, "gpu")]

    assert order(gpu(0, sm=75), gpu(1, sm=75)) == [0, 1]
    assert order(gpu(1, sm=75), gpu(0, sm=75)) == [0, 1]
    assert order(gpu(0, sm=75, rank=1), gpu(1, sm=75, rank=0)) == [1, 0]
    assert order(gpu(0, sm=75, rank=1), gpu(1, sm=75, rank=-1)) == [0, 1]
    assert order(gpu(2, sm=75), gpu(0, sm=75, rank=5), gpu(1, sm=75)) == [0, 1, 2]


def test_links_follow_gpus_that_change_places(tmp_path: Path) -> None:
    first, second = gpu(0, nvlink(4, bus(17), GPU), rank=1), gpu(1, nvlink(4, bus(16), GPU), rank=0)
    path = system(tmp_path, cpu(first), cpu(pci(1, second), 1))
    machine = machine_of(path)
    assert names(machine, "gpu") == [bus(17), bus(16)]
    assert ("pcie", f"gpu {bus(17)}", f"pci {bus(1)}", GEN4, 16) in wires(machine)
    assert ("nvlink", f"gpu {bus(16)}", f"gpu {bus(17)}", 100 * GB, 4) in wires(machine)


def test_adapters(tmp_path: Path) -> None:
    bare = '<nic><net name="eth0" speed="100000" guid="0x0"/></nic>'
    slow = nic(3, "mlx5_2", speed=0)
    machine = machine_of(
        system(tmp_path, cpu(gpu(0, sm=75) + nic(1, "mlx5_0") + nic(2, "a", "b") + slow + bare))
    )
    found = {part.name: part for part in machine.parts if part.kind == "nic"}
    assert {name: part.port and part.port.nominal for name, part in found.items()} == {
        "mlx5_0": 25 * GB,
        "a+b": 50 * GB,
        "mlx5_2": None,
        "eth0": GB * 25 // 2,
    }
    assert {"20000a5", "20001a5"} < set(found["a+b"].ids)
    assert found["eth0"].ids == ()
    assert ("pcie", "nic eth0", "cpu 0", GB * 25 // 2, 1) in wires(machine)


def input_file(folder: Path, gpus: int = 2) -> Path:
    """A file as clouds give it to NCCL: classes, but neither GPUs nor links nor ports."""
    devices = "".join(pci(16 + i, "", "0x030200", "", "0") for i in range(gpus))
    return system(
        folder, cpu(pci(1, devices + pci(128, "", "0x020700", "", "0"), speed="", width="0"))
    )


def test_input_files(tmp_path: Path) -> None:
    path = input_file(tmp_path)
    assert (
        "GPUs that may have some; say how many of each GPU lead into the NVSwitch with --nvlink "
        "18x25GB/s, or --nvlink 0" in refused(path)
    )
    assert "--nvlink 18x25GB/s" in refused(path, nvlink="18")
    network = load_topology(path, nvlink="12x25GB/s")
    assert network.npus == 2
    assert network.bandwidth.tolist() == [300 * GB] * 2  # one link for two to the NVSwitch
    assert "2 GPUs are known by their PCI class only" in network.notes
    assert names(machine_of(path, nvlink=0), "nic") == [bus(128)]
    assert "does not say how fast 8 pcie links are" in refused(path, nvlink="0")
    assert load_topology(path, nvlink="0", bandwidth="pcie=8GB/s").bandwidth.max() == 8 * GB


def test_gpus_without_nvlink(tmp_path: Path) -> None:
    """Asked for where such a GPU may have some; with its architecture the count will do."""
    path = system(tmp_path, cpu(gpu(0, sm=90) + gpu(1, sm=90)))
    assert (
        "GPUs of sm 90; say how many of each GPU lead into the NVSwitch with --nvlink 18, or "
        "--nvlink 0" in refused(path)
    )
    assert rates(machine_of(path, nvlink=18), "nvlink") == {(450 * GB, round(18 * 20.6 * GB))}
    assert rates(machine_of(path, nvlink=18, nvlink_rate=GB), "nvlink") == {(18 * GB, 18 * GB)}
    assert not rates(machine_of(path, nvlink=0), "nvlink")
    never = system(tmp_path, cpu(gpu(0, sm=89) + gpu(1, sm=75)))
    assert load_topology(never).npus == 2
    assert "--nvlink is for files that do not" in refused(EXAMPLE, nvlink="12")


def test_what_stands_between(tmp_path: Path) -> None:
    """Text after tags, letters of any case, unknown elements, attributes nobody knows."""
    text = EXAMPLE.read_text()
    for odd in (
        re.sub(r'(<pci [^/>]*class="0x060400"[^>]*>)', r"\g<1>0", text),
        text.replace("0000:0b:00.0", "0000:0B:00.0"),
        text.replace("<nic>", "<nic><gpudirect/>").replace("<gpu ", '<gpu colour="7" '),
        text.replace("</system>", "<numa/></system>"),
    ):
        assert odd != text
        assert wires(machine_of(write(tmp_path, odd, "nccl-dgx.xml"))) == wires(machine_of(EXAMPLE))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('count="12"', 'count="0"', "line 7: <nvlink> has count='0'; expected a whole number from"),
        ('count="12"', 'count="many"', "count='many'"),
        (f'target="{UNSEEN}"', "", "line 7: <nvlink> has no target"),
        (f'target="{UNSEEN}"', 'target="0000:07:00.0"', ""),
        ('tclass="0x068000"', 'tclass="0x030200"', "'fffffff:ff:ff.0' is no GPU of this file, and"),
        ("16.0 GT/s PCIe", "17.0 GT/s PCIe", "line 4: <pci> has link_speed='17.0 GT/s PCIe'; expe"),
        ("16.0 GT/s PCIe", "fast", "expected a rate of PCIe such as 16.0 GT/s PCIe"),
        ('link_width="16"', 'link_width="x16"', "<pci> has link_width='x16'"),
        ('sm="80"', 'sm="80a"', "<gpu> has sm='80a'"),
        ('sm="80"', "", "GPU 0000:07:00.0 does not say its sm, which tells how fast its NVLinks"),
        ('rank="1"', 'rank="0"', "rank 0 is that of two GPUs"),
        ("0000:0b:00.0", "0000:07:00.0", "a second GPU has bus id '0000:07:00.0'"),
        ('busid="0000:01:00.0"', "", "line 4: <pci> has no busid"),
        ("<system ", "<sistem ", "is not"),
        ("</system>", "", "not valid XML"),
        ('speed="200000"', 'speed="-1"', "<net> has speed='-1'"),
    ],
)
def test_what_is_refused(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    text = EXAMPLE.read_text()
    assert old in text
    changed = text.replace(old, new, 1)
    if "0x030200" in new:
        changed = text.replace(
            'fffffff:ff:ff.0" count="12" ' + old, UNSEEN + '" count="12" ' + new, 1
        )
    if sentence:
        assert sentence in refused(write(tmp_path, changed, "host.xml"))
    else:  # tclass says that it is a switch, whatever its bus id
        assert load_topology(write(tmp_path, changed, "host.xml")).npus == 3


def test_no_gpu_and_links_to_oneself(tmp_path: Path) -> None:
    assert "no GPU is in it, neither as <gpu> nor by PCI class" in refused(
        system(tmp_path, cpu(nic(1, "mlx5_0")))
    )
    own = system(tmp_path, cpu(gpu(0, nvlink(12, bus(16), GPU))))
    assert "has a link to itself" in refused(own)
    assert "has no class, so what it is cannot be told" in refused(
        system(tmp_path, cpu('<pci busid="0000:00:16.0"/>'))
    )


def dgx_a100(folder: Path) -> Path:
    """A machine like a DGX A100: GPUs by twos on PCI switches, with two adapters each."""
    six = "".join(nvlink(2, bus(200 + i)) for i in range(6))
    switches = [
        pci(1 + i, "".join(gpu(k, six, rank=k) + nic(k, f"mlx5_{k}") for k in (2 * i, 2 * i + 1)))
        for i in range(4)
    ]
    return system(folder, cpu(switches[0] + switches[1]), cpu(switches[2] + switches[3], 1))


def test_a_dgx_is_its_preset_and_pcie(tmp_path: Path) -> None:
    """What leads to the NVSwitch is `a100:1`; besides there are PCI switches and two CPUs."""
    dump, preset = load_topology(dgx_a100(tmp_path)), load_topology("a100:1")
    assert (dump.npus, preset.npus) == (8, 8)
    check_preset(dump, preset)
    others = dump.bandwidth[dump.bandwidth != 300 * GB]
    # Eight GPUs and four PCI switches have a link up; adapters lead nowhere without a fabric.
    assert sorted(others.tolist()) == [16 * GB] * 2 + [GEN4] * 2 * (8 + 4)
    assert dump.switches == 1 + 4 + 2


def check_preset(dump: Topology, preset: Topology) -> None:
    """Links at the NVSwitch are those of the preset."""
    assert dump.labels is not None
    hub = dump.labels.kinds.index("nvswitch")
    at = np.flatnonzero((dump.src == hub) | (dump.dst == hub))

    def rows(network: Topology, links: Iterable[int], switch: int) -> set[tuple[int, ...]]:
        ends = [np.where(c == switch, -1, c) for c in (network.src, network.dst)]
        columns = (*ends, network.bandwidth, network.latency)
        return {tuple(int(column[link]) for column in columns) for link in links}

    assert rows(dump, at.tolist(), hub) == rows(preset, range(preset.links), preset.npus)


@dataclass(frozen=True)
class Node:
    """A device in a random tree of PCIe."""

    kind: str
    below: tuple[Node, ...] = ()


NODES = st.recursive(
    st.sampled_from([Node("gpu"), Node("nic")]),
    lambda below: st.builds(Node, st.just("pci"), st.lists(below, max_size=4).map(tuple)),
    max_leaves=12,
)
SPEEDS = {"2.5 GT/s": 250_000_000, "16.0 GT/s PCIe": 1_969_230_769, "": None}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    trees=st.lists(st.lists(NODES, max_size=4), min_size=1, max_size=3),
    speed=st.sampled_from(sorted(SPEEDS)),
    width=st.sampled_from([1, 4, 16]),
)
def test_any_tree_of_pcie(trees: list[list[Node]], speed: str, width: int, tmp_path: Path) -> None:
    """What is written of a tree is read of it: each device hangs where it hung, at its rate."""
    wanted = set()
    many = 0
    lane = SPEEDS[speed]

    def text(node: Node, above: str) -> str:
        nonlocal many
        many += 1
        number = many
        kinds = {"gpu": "0x030200", "nic": "0x020000", "pci": "0x060400"}
        name = f"net{number}" if node.kind == "nic" else bus(number)
        rate = None if lane is None else lane * width
        wanted.add(("pcie", f"{node.kind} {name}", above, rate, width))
        inside = {
            "gpu": f'<gpu dev="{number}" sm="75"/>',
            "nic": f'<nic><net name="net{number}" speed="1000"/></nic>',
        }.get(node.kind) or "".join(text(child, f"pci {name}") for child in node.below)
        return pci(number, inside, kinds[node.kind], speed, str(width))

    cpus = [
        cpu("".join(text(node, f"cpu {i}") for node in nodes), i, vendor="unknown")
        for i, nodes in enumerate(trees)
    ]
    path = system(tmp_path, *cpus)
    between = {("cpu", f"cpu {i}", f"cpu {k}", None, 1) for i in range(len(cpus)) for k in range(i)}
    if not any(name.startswith("gpu") for _, name, *_ in wanted):
        assert "no GPU is in it" in refused(path)
    else:
        assert wires(machine_of(path)) == both_ways(*wanted, *between)
