"""XML files of hwloc: PCI bridges, adapters and their GUIDs, matrices of NVLink and XGMI."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.topology.machines.reading import (
    EXAMPLES,
    GB,
    both_ways,
    links,
    machine_of,
    refused,
    wires,
    write,
)
from weft.topology import load_topology

FILE = EXAMPLES / "hwloc.xml"
TEXT = FILE.read_text()
GEN3, GEN4 = 15_753_846_160, 31_507_692_304
GPUS = [f"gpu 0000:{bus}:00.0" for bus in ("07", "0b", "82")]
MATRIX = TEXT[TEXT.index("  <distances2hetero") : TEXT.index("</topology>")]


def changed(tmp_path: Path, old: str, new: str, count: int = -1) -> Path:
    assert old in TEXT
    return write(tmp_path, TEXT.replace(old, new, count), "host.xml")


def test_a_host() -> None:
    """Ports of switches are no parts, but one that has two functions of a device is."""
    machine = machine_of(FILE)
    assert wires(machine) == both_ways(
        *(("nvlink", gpu, "nvswitch nvswitch", 300 * GB, 1) for gpu in GPUS),
        ("pcie", GPUS[0], "pci 0000:02:00.0", GEN4, 1),
        ("pcie", GPUS[1], "pci 0000:02:00.0", GEN4, 1),
        ("pcie", "nic mlx5_0", "pci 0000:02:00.0", GEN3, 1),
        ("pcie", "pci 0000:02:00.0", "cpu 0", GEN4, 1),
        ("pcie", GPUS[2], "cpu 1", GEN4, 1),
        ("pcie", "nic mlx5_1", "pci 0000:83:00.0", GEN3, 1),
        ("pcie", "nic mlx5_2", "pci 0000:83:00.0", GEN3, 1),
        ("pcie", "pci 0000:83:00.0", "cpu 1", GEN3, 1),
        ("cpu", "cpu 1", "cpu 0", 16 * GB, 1),
    )
    ids = {part.name: part.ids for part in machine.parts if part.kind == "nic"}
    assert ids["mlx5_0"] == ("0c42a10300123401",)
    assert not any(part.adds for part in machine.parts)


def test_its_network() -> None:
    network = load_topology(FILE)
    assert network.npus == 3
    # The way from CPU to CPU is as slow as what joins them, and a GPU alone on its CPU goes there.
    assert sorted(set(links(network).values())) == [16, 31, 300]


def test_gpus_have_the_numbers_of_nvidia_smi(tmp_path: Path) -> None:
    text = TEXT.replace("nvml0", "nvmlx").replace("nvml2", "nvml0").replace("nvmlx", "nvml2")
    machine = machine_of(write(tmp_path, text))
    assert [f"gpu {part.name}" for part in machine.parts[:3]] == GPUS[::-1]


def test_models_whose_switches_add(tmp_path: Path) -> None:
    machine = machine_of(changed(tmp_path, "NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3"))
    assert [part.kind for part in machine.parts if part.adds] == ["nvswitch"]


def test_switches_of_two_boards(tmp_path: Path) -> None:
    """How switches that share no GPU are joined is not in the file, and asked for."""
    device = next(line for line in TEXT.splitlines() if 'gp_index="90"' in line)
    other = device.replace('"90"', '"91"').replace("0e:00", "0f:00")
    rows = [
        "0 0 0 300000 0",
        "0 0 0 300000 0",
        "0 0 0 0 300000",
        "300000 300000 0 0 0",
        "0 0 300000 0 0",
    ]
    matrix = MATRIX[: MATRIX.index("    <u64")].replace("PCIDev:90", "PCIDev:90 PCIDev:91")
    matrix += "".join(f"<u64values>{row} </u64values>" for row in rows) + "</distances2hetero>"
    text = TEXT.replace(MATRIX, matrix).replace(device, device + other)
    path = write(tmp_path, text, "host.xml")
    assert "--bandwidth nvswitch=50GB/s" in refused(path)
    network = load_topology(path, bandwidth="nvswitch=100GB/s")
    assert 100 in links(network).values()


def test_links_between_gpus(tmp_path: Path) -> None:
    """The matrix of objects of one type; the least number in it is that of one link."""
    rows = ["9 50000 25000", "50000 9 0", "25000 0 9"]
    matrix = '<distances2 type="OSDev" name="NVLinkBandwidth" indexing="gp">'
    matrix += "<indexes>200 201 202</indexes>"
    matrix += "".join(f"<u64values>{row} </u64values>" for row in rows) + "</distances2>"
    machine = machine_of(write(tmp_path, TEXT.replace(MATRIX, matrix)))
    found = {wire for wire in wires(machine) if wire[0] == "nvlink"}
    assert found == both_ways(
        ("nvlink", GPUS[0], GPUS[1], 50 * GB, 2), ("nvlink", GPUS[0], GPUS[2], 25 * GB, 1)
    )


def test_xgmi_without_ways_over_others(tmp_path: Path) -> None:
    def matrix(name: str, cell: str, far: str) -> str:
        rows = [f"0 {cell} {cell}", f"{cell} 0 {far}", f"{cell} {far} 0"]
        values = "".join(f"<u64values>{row} </u64values>" for row in rows)
        head = f'<distances2 type="OSDev" name="{name}" indexing="gp">'
        return f"{head}<indexes>200 201 202</indexes>{values}</distances2>"

    both = matrix("XGMIHops", "1", "2") + matrix("XGMIBandwidth", "64000", "64000")
    text = TEXT.replace(MATRIX, both).replace("10de", "1002").replace("nvml", "rsmi")
    machine = machine_of(write(tmp_path, text))
    found = {wire for wire in wires(machine) if wire[0] == "xgmi"}
    assert found == both_ways(
        ("xgmi", GPUS[0], GPUS[1], 64 * GB, 1), ("xgmi", GPUS[0], GPUS[2], 64 * GB, 1)
    )


def test_without_a_matrix(tmp_path: Path) -> None:
    """With NVML in hwloc there is no NVLink; without, the user says it."""
    seen = write(tmp_path, TEXT.replace(MATRIX, ""))
    assert {cable.kind for cable in machine_of(seen).cables} == {"pcie", "cpu"}
    blind = write(tmp_path, re.sub("nvml", "card", TEXT.replace(MATRIX, "")))
    assert "--nvlink 18x25GB/s, or --nvlink 0" in refused(blind)
    assert "say --nvlink 12x25GB/s" in refused(blind, nvlink="12")
    network = load_topology(blind, nvlink="12x25GB/s")
    assert max(links(network).values()) == 300
    assert max(links(load_topology(blind, nvlink="0")).values()) == 31


def test_gpus_at_rest(tmp_path: Path) -> None:
    path = changed(tmp_path, 'a1" pci_link_speed="31.507692"', 'a1" pci_link_speed="4.000000"')
    assert sum("GPUs at rest" in note for note in machine_of(path).notes) == 3


def test_a_console_is_no_gpu(tmp_path: Path) -> None:
    text = TEXT.replace("0302 [10de:20b0]", "0300 [1a03:2000]", 1)
    machine = machine_of(write(tmp_path, text.replace(MATRIX, "")))
    assert [f"gpu {part.name}" for part in machine.parts if part.kind == "gpu"] == GPUS[1:]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("300000", "-3", "line 74: the matrix has '-3'; expected whole numbers"),
        ("300000", "900000000", "the matrix has 900000000 MB/s; expected up to 100000000"),
        ("OSDev:201", "OSDev:999", "the matrix has 'OSDev:999', which is no object of this file"),
        ("OSDev:201 ", "", "the matrix of 3 objects has 16 values; expected 9"),
        ("31.507692", "fast", "pci_link_speed is 'fast'; expected GB/s such as 15.753846"),
        ("0302 [10de", "0108 [10de", "line 3: no GPU is in it, as a PCI device"),
        ("</topology>", "", "not valid XML"),
        ('SYSTEM "hwloc2.dtd"', '[<!ENTITY a "b">]', "a document type or an entity has no place"),
    ],
)
def test_what_is_refused(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert sentence in refused(changed(tmp_path, old, new))


def test_what_the_file_says_is_not_said_again() -> None:
    assert "it says what NVLink there is" in refused(FILE, nvlink="18x25GB/s")
