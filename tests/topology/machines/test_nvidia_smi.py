"""``nvidia-smi topo -m``: cells as links, letters as the tree of PCIe, and what is not in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
from weft.topology.labels import Wishes
from weft.topology.machines import Cable, Machine, network_of

SWITCHED = EXAMPLES / "nvidia-smi-nvswitch.txt"
PLAIN = EXAMPLES / "nvidia-smi-pcie.txt"
GPUS = [f"gpu GPU{i}" for i in range(4)]


def table(cells: list[list[str]], nics: int = 0, tail: str = "") -> str:
    """A file from its cells."""
    gpus = len(cells[0]) - nics
    names = [f"GPU{i}" for i in range(gpus)] + [f"NIC{i}" for i in range(nics)]
    rows = [[name, *row] for name, row in zip(names, cells, strict=False)]
    ends = ["\tCPU Affinity" if tail else ""] + [tail] * len(rows)
    lines = ["\t".join(row) + end for row, end in zip([["", *names], *rows], ends, strict=True)]
    return "\n".join(lines) + "\n"


def alike(cell: str, gpus: int) -> str:
    return table([["X" if i == j else cell for j in range(gpus)] for i in range(gpus)])


def test_gpus_behind_an_nvswitch() -> None:
    machine = machine_of(SWITCHED, nvlink_rate=25 * GB)
    above = ["pci above GPU0", "pci above GPU2"]
    nics = ["nic mlx5_0", "nic mlx5_1"]
    assert wires(machine) == both_ways(
        *(("nvlink", gpu, "nvswitch nvswitch", 300 * GB, 12) for gpu in GPUS),
        *(("pcie", gpu, above[i // 2], None, 1) for i, gpu in enumerate(GPUS)),
        *(("pcie", nic, above[i], None, 1) for i, nic in enumerate(nics)),
        *(("pcie", switch, f"cpu {i}", None, 1) for i, switch in enumerate(above)),
        ("cpu", "cpu 1", "cpu 0", None, 1),
    )
    assert [part.name for part in machine.parts[:4]] == ["GPU0", "GPU1", "GPU2", "GPU3"]
    assert any("NVSwitch, which only forwards" in note for note in machine.notes)


def test_its_network() -> None:
    network = load_topology(SWITCHED, nvlink="25GB/s")
    assert links(network) == {(i, 4): 300 for i in range(4)} | {(4, i): 300 for i in range(4)}
    assert not network.adding
    assert network.labels is not None
    assert any("left out" in note and "pcie" in note for note in network.labels.notes)
    whole = load_topology(SWITCHED, nvlink="25GB/s", bandwidth="pcie=64GB/s,cpu=20GB/s")
    # Switches of two GPUs each; the way from one to the other is as slow as what joins the CPUs.
    assert sorted(links(whole).values()) == [20] * 2 + [64] * 8 + [300] * 8


def test_gpus_on_pcie_only() -> None:
    machine = machine_of(PLAIN)
    assert wires(machine) == both_ways(
        ("pcie", "gpu GPU0", "pci above GPU0", None, 1),
        ("pcie", "gpu GPU1", "pci above GPU0", None, 1),
        ("pcie", "pci above GPU0", "cpu 0", None, 1),
        ("pcie", "gpu GPU2", "cpu 1", None, 1),
        ("pcie", "gpu GPU3", "cpu 1", None, 1),
        ("pcie", "nic mlx5_0", "cpu 1", None, 1),
        ("cpu", "cpu 1", "cpu 0", None, 1),
    )
    sentence = refused(PLAIN)
    assert "nvidia-smi-pcie.txt" in sentence
    assert "--bandwidth cpu=50GB/s,pcie=50GB/s" in sentence


def test_switches_below_switches(tmp_path: Path) -> None:
    """PIX within PXB: a switch of its own, below the one that both share."""
    rows = [
        ["X", "PIX", "PXB", "PXB"],
        ["PIX", "X", "PXB", "PXB"],
        ["PXB", "PXB", "X", "PIX"],
        ["PXB", "PXB", "PIX", "X"],
    ]
    machine = machine_of(write(tmp_path, table(rows)))
    assert wires(machine) == both_ways(
        ("pcie", "gpu GPU0", "pci of GPU0", None, 1),
        ("pcie", "gpu GPU1", "pci of GPU0", None, 1),
        ("pcie", "gpu GPU2", "pci of GPU2", None, 1),
        ("pcie", "gpu GPU3", "pci of GPU2", None, 1),
        ("pcie", "pci of GPU0", "pci above GPU0", None, 1),
        ("pcie", "pci of GPU2", "pci above GPU0", None, 1),
        ("pcie", "pci above GPU0", "cpu 0", None, 1),
    )


def test_bridged_pairs(tmp_path: Path) -> None:
    """NVLink between pairs only: the others go by PCIe, whose rate is asked for."""
    rows = [
        ["X", "NV12", "SYS", "SYS"],
        ["NV12", "X", "SYS", "SYS"],
        ["SYS", "SYS", "X", "NV12"],
        ["SYS", "SYS", "NV12", "X"],
    ]
    path = write(tmp_path, table(rows, tail="\t0-15"))
    direct = both_ways(
        ("nvlink", "gpu GPU0", "gpu GPU1", 300 * GB, 12),
        ("nvlink", "gpu GPU2", "gpu GPU3", 300 * GB, 12),
    )
    assert direct <= wires(machine_of(path, nvlink_rate=25 * GB))
    assert "does not say how fast" in refused(path, nvlink="25GB/s")


def test_only_what_is_needed_is_asked_for(tmp_path: Path) -> None:
    """GPUs on one switch need no rate of the CPUs, on one of which an adapter is."""
    rows = [["X", "PXB", "SYS"], ["PXB", "X", "SYS"], ["SYS", "SYS", "X"]]
    path = write(tmp_path, table(rows, nics=1))
    assert refused(path).endswith("say it with --bandwidth pcie=50GB/s")
    assert load_topology(path, bandwidth="pcie=50GB/s").links == 2


@pytest.mark.parametrize(
    ("cell", "gpus", "nvlink", "count"),
    [
        ("NV2", 4, None, None),  # V100: 6 links, 2 to each other
        ("NV4", 4, None, None),  # A100: 12 links, 4 to each other
        ("NV12", 2, None, None),  # a bridge
        ("NV12", 3, None, 12),
        ("NV8", 8, None, 8),  # H800
        ("NV18", 4, None, 18),
        ("NV6", 4, 6, 6),
        ("NV6", 4, 18, None),
    ],
)
def test_links_of_a_gpu_or_of_a_pair(
    tmp_path: Path, cell: str, gpus: int, nvlink: int | None, count: int | None
) -> None:
    machine = machine_of(write(tmp_path, alike(cell, gpus)), nvlink=nvlink, nvlink_rate=25 * GB)
    between = int(cell.removeprefix("NV"))
    if count is None:
        assert len(machine.cables) == gpus * (gpus - 1)
        assert {cable.count for cable in machine.cables} == {between}
    else:
        assert len(machine.cables) == 2 * gpus
        assert {cable.count for cable in machine.cables} == {count}


def test_new_switches_add(tmp_path: Path) -> None:
    network = load_topology(write(tmp_path, alike("NV18", 4)), nvlink="25GB/s")
    assert network.adding == {4}
    assert set(links(network).values()) == {450}


def test_a_gpu_with_fewer_links(tmp_path: Path) -> None:
    cells = [["NV16" if 2 in (i, j) else "NV18" for j in range(4)] for i in range(4)]
    for i in range(4):
        cells[i][i] = "X"
    machine = machine_of(write(tmp_path, table(cells)), nvlink_rate=25 * GB)
    up = [cable.count for cable in machine.cables if machine.parts[cable.dst].kind == "nvswitch"]
    assert up == [18, 18, 16, 18]


def test_one_way_has_more(tmp_path: Path) -> None:
    text = alike("NV4", 2).replace("GPU1\tNV4", "GPU1\tNV3")
    machine = machine_of(write(tmp_path, text), nvlink_rate=25 * GB)
    assert [(c.src, c.dst, c.count) for c in machine.cables] == [(0, 1, 4), (1, 0, 3)]


def test_where_cells_do_not_say_it(tmp_path: Path) -> None:
    """Two GPUs that only NVLink joins are told apart by others' letters, or left out."""
    nv = [["X", "NV18", "NV18"], ["NV18", "X", "NV18"], ["NV18", "NV18", "X"]]
    path = write(tmp_path, table([[*row, "SYS"] for row in nv], nics=1))
    machine = machine_of(path, nvlink_rate=25 * GB)
    assert {c.kind for c in machine.cables if machine.parts[c.src].kind == "gpu"} == {"nvlink"}
    assert any("3 GPUs" in note and "not said" in note for note in machine.notes)
    # With the CPUs they are near to, it is known.
    near = table([[*row, "SYS"] for row in nv], nics=1, tail="\t0-9")
    machine = machine_of(write(tmp_path, near), nvlink_rate=25 * GB)
    assert sum(part.kind == "cpu" for part in machine.parts) == 2
    assert any("share a PCI switch is not said" in note for note in machine.notes)


def test_columns_that_run_together(tmp_path: Path) -> None:
    """Behind the cells nothing is believed that has not as many words as the header."""
    text = SWITCHED.read_text().replace("0-31    0\n", "0-310\n")
    machine = machine_of(write(tmp_path, text), nvlink_rate=25 * GB)
    assert wires(machine) == wires(machine_of(SWITCHED, nvlink_rate=25 * GB))


def test_rows_by_the_other_half(tmp_path: Path) -> None:
    """A row that is missing is known from the columns, but for GPUs that none shows."""
    lines = SWITCHED.read_text().splitlines()
    cut = write(tmp_path, "\n".join(lines[:4]))
    machine = machine_of(cut, nvlink_rate=25 * GB)
    assert sum(cable.kind == "nvlink" for cable in machine.cables) == 8
    shorter = write(tmp_path, "\n".join(lines[:3]))
    assert refused(shorter, nvlink="25GB/s") == (
        "host.txt line 1: the header has 4 GPUs, but no row says what joins GPU2 and GPU3; the "
        "file is cut short"
    )


def test_letters_that_contradict(tmp_path: Path) -> None:
    rows = [["X", "SYS", "PIX"], ["SYS", "X", "PIX"], ["PIX", "PIX", "X"]]
    machine = machine_of(write(tmp_path, table(rows, nics=1)))
    assert {c.kind for c in machine.cables} == {"pcie"}
    assert any("GPU0 to GPU1 is SYS" in note and "nearer" in note for note in machine.notes)


def test_old_letters_and_adapters_with_one_name(tmp_path: Path) -> None:
    text = table([["X", "SOC"], ["SOC", "X"]])
    assert {c.kind for c in machine_of(write(tmp_path, text)).cables} == {"pcie", "cpu"}
    text = SWITCHED.read_text().replace("mlx5_1", "mlx5_0")
    machine = machine_of(write(tmp_path, text), nvlink_rate=25 * GB)
    assert [part.name for part in machine.parts if part.kind == "nic"] == ["NIC0", "NIC1"]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("GPU1    NV12", "GPU1    NVX", "line 3: GPU1 to GPU0 is 'NVX'; expected NV# or one of"),
        ("GPU1    NV12", "GPU1    NV0", "line 3: GPU1 to GPU0 is 'NV0'; expected NVLinks"),
        ("GPU1    NV12", "GPU1    NV9999", "expected NVLinks between GPUs, 1 to 1024"),
        ("GPU1    NV12", "GPU1    SYS", "line 3: GPU1 to GPU0 is SYS, but NV12 the other way"),
        ("GPU1    NV12     X", "GPU1    NV12    NV12", "GPU1 to itself is 'NV12'; expected X"),
        ("NIC0    PXB ", "NIC0    NV2 ", "line 6: NIC0 to GPU0 is 'NV2'; expected NVLinks between"),
        ("NIC1    SYS     SYS", "GPU0    SYS     SYS", "line 7: a second row of GPU0"),
        ("NIC0    PXB     PXB", "NIC0    PXB  ", "line 6: the row of NIC0 has 5 cells"),
        ("GPU2    GPU3    NIC0", "GPU2    GPU2    NIC0", "line 1: the header has GPU2 twice"),
        ("GPU3    NIC0    NIC1", "NIC0    GPU3    NIC1", "has GPU3 behind an adapter"),
    ],
)
def test_what_is_refused(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    text = SWITCHED.read_text()
    assert old in text
    assert sentence in refused(write(tmp_path, text.replace(old, new)), nvlink="25GB/s")


def test_what_is_asked_for(tmp_path: Path) -> None:
    assert "--nvlink 25GB/s" in refused(SWITCHED)
    assert "--nvlink 4x25GB/s" in refused(SWITCHED, nvlink="4")
    assert "--nvlink 4 does not fit" in refused(SWITCHED, nvlink="4x25GB/s")
    assert "so --nvlink has no place" in refused(PLAIN, nvlink="25GB/s")
    sentence = refused(write(tmp_path, alike("NV6", 4)), nvlink="25GB/s")
    assert "say which with --nvlink 6 or --nvlink 18" in sentence
    mixed = [["X", "NV18", "NV7"], ["NV18", "X", "NV9"], ["NV7", "NV9", "X"]]
    sentence = refused(write(tmp_path, table(mixed)), nvlink="25GB/s")
    assert "GPU1 has 27 NVLinks to other GPUs" in sentence


def test_more_than_any_link_has() -> None:
    sentence = refused(SWITCHED, nvlink="900000TB/s")
    assert "a link has 10800000000000000000 B/s; expected at most 10000000000" in sentence


def test_a_rate_for_all_links_of_a_kind() -> None:
    network = load_topology(SWITCHED, bandwidth="nvlink=250GB/s")
    assert set(links(network).values()) == {250}


def test_huge_matrices_are_refused(tmp_path: Path) -> None:
    names = "\t".join(f"GPU{i}" for i in range(1000))
    text = f"\t{names}\nGPU0\tX" + "\tNV18" * 999 + "\n"
    assert "line 1: the header has 1000 devices" in refused(write(tmp_path, text))


def test_the_most_devices_take_little_time(tmp_path: Path) -> None:
    cells = [["X" if i == j else "SYS" for j in range(256)] for i in range(256)]
    machine = machine_of(write(tmp_path, table(cells, nics=100)))
    network = network_of(machine, Wishes(bandwidth={"pcie": GB, "cpu": GB}))
    assert network.npus == 156


@st.composite
def places(draw: st.DrawFn) -> tuple[int, list[tuple[int, int, int]]]:
    """How many of the devices are GPUs, and the CPU, port and switch of each device."""
    where = st.tuples(*[st.integers(0, 2)] * 3)
    gpus = draw(st.integers(2, 6))
    return gpus, draw(st.lists(where, min_size=gpus, max_size=gpus + 4))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(places=places(), hidden=st.booleans())
def test_the_tree_is_that_of_the_letters(
    tmp_path: Path, places: tuple[int, list[tuple[int, int, int]]], hidden: bool
) -> None:
    """Letters of any tree, with and without those that NVLink hides, give that tree."""
    gpus, at = places
    many = range(len(at))
    letters = ["SYS", "NODE", "PXB", "PIX"]
    cells = [["X" if a == b else letters[_common(at[a], at[b])] for b in many] for a in many]
    if hidden:
        for a, b in ((a, b) for a in range(gpus) for b in range(gpus) if a != b):
            cells[a][b] = "NV18"
    machine = machine_of(
        write(tmp_path, table(cells, nics=len(at) - gpus)), nvlink_rate=25 * GB if hidden else None
    )
    up = {c.src: c.dst for c in machine.cables if c.kind == "pcie" and _upward(machine, c)}
    number = {part.name: i for i, part in enumerate(machine.parts) if part.kind in ("gpu", "nic")}
    names = [f"GPU{i}" if i < gpus else f"NIC{i - gpus}" for i in many]
    chains = {i: _chain(up, number[name]) for i, name in enumerate(names) if number[name] in up}
    for a, b in ((a, b) for a in chains for b in chains if a < b and cells[a][b] in letters):
        shared = next((part for part in chains[a] if part in chains[b]), None)
        kind = "" if shared is None else machine.parts[shared].kind
        assert kind == {"SYS": "", "NODE": "cpu"}.get(cells[a][b], "pci")
        for c in chains:
            if cells[a][b] == "PIX" and cells[a][c] == "PXB" and cells[b][c] == "PXB":
                assert shared not in chains[c]
    if not hidden:
        assert len(chains) == len(at)


def _common(a: tuple[int, int, int], b: tuple[int, int, int]) -> int:
    """How many of CPU, port and switch two devices share, from the CPU on."""
    return next((i for i in range(3) if a[i] != b[i]), 3)


def _upward(machine: Machine, cable: Cable) -> bool:
    """Whether a cable leads up: to a CPU, from a device, or from a switch to the one before it."""
    low, high = machine.parts[cable.src].kind, machine.parts[cable.dst].kind
    if high == low == "pci":
        return cable.src > cable.dst
    return high in ("pci", "cpu") and low not in ("cpu", high)


def _chain(up: dict[int, int], part: int) -> list[int]:
    """The parts above a part."""
    above = []
    while part in up:
        part = up[part]
        above.append(part)
    return above
