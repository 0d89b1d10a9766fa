"""``rocm-smi --showtopo`` and ``amd-smi topology --json``: weights, types, rates."""

from __future__ import annotations

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

TEXT = EXAMPLES / "rocm-smi.txt"
PLAIN = EXAMPLES / "rocm-smi-pcie.txt"
JSON = EXAMPLES / "amd-smi.json"
OLD = EXAMPLES / "amd-smi-old.json"


def test_a_ring_of_xgmi() -> None:
    """Weight 15 is a link, 30 a way over another GPU; hops are not read."""
    assert wires(machine_of(TEXT)) == both_ways(
        *(
            ("xgmi", f"gpu GPU{a}", f"gpu GPU{b}", None, 1)
            for a, b in [(0, 1), (2, 3), (0, 2), (1, 3)]
        ),
        *(("pcie", f"gpu GPU{i}", f"cpu {i // 2}", None, 1) for i in range(4)),
        ("cpu", "cpu 1", "cpu 0", None, 1),
    )
    assert "8 xgmi links are, such as" in refused(TEXT)
    network = load_topology(TEXT, bandwidth="xgmi=64GB/s")
    assert network.links == 8
    assert set(links(network).values()) == {64}


def test_gpus_on_pcie_only() -> None:
    """Weight 40 is a way over one CPU, more one over two."""
    machine = machine_of(PLAIN)
    assert wires(machine) == both_ways(
        *(("pcie", f"gpu GPU{i}", f"cpu {i // 2}", None, 1) for i in range(4)),
        ("cpu", "cpu 1", "cpu 0", None, 1),
    )
    assert any("told from weights" in note for note in machine.notes)
    assert "--bandwidth cpu=50GB/s,pcie=50GB/s" in refused(PLAIN)


def test_cpus_that_weights_do_not_tell(tmp_path: Path) -> None:
    """GPUs 0 and 1 are joined by XGMI, so nothing says whether they share a CPU."""
    text = PLAIN.read_text().replace("72", "N/A")
    machine = machine_of(write(tmp_path, text))
    assert sum(part.kind == "cpu" for part in machine.parts) == 1
    assert any("taken: one for all" in note for note in machine.notes)


def test_the_json_of_amd_smi() -> None:
    """Bandwidths are those of one link and of all between two GPUs."""
    names = [f"gpu 0000:0{i + 1}:00.0" for i in range(3)]
    assert wires(machine_of(JSON)) == both_ways(
        ("xgmi", names[0], names[1], 200 * GB, 4),
        ("xgmi", names[0], names[2], 50 * GB, 1),
        ("xgmi", names[1], names[2], 50 * GB, 1),
    )
    assert links(load_topology(JSON))[0, 1] == 200


def test_older_json() -> None:
    assert wires(machine_of(OLD)) == both_ways(
        ("pcie", "gpu GPU0", "cpu 0", None, 1), ("pcie", "gpu GPU1", "cpu 0", None, 1)
    )
    network = load_topology(OLD, bandwidth="pcie=25GB/s")
    assert links(network) == {(0, 1): 25, (1, 0): 25}


def test_rates_in_text(tmp_path: Path) -> None:
    """``rocm-smi --showtopo --shownodesbw``."""
    text = TEXT.read_text()
    start = text.index("=", text.index("Weight"))
    rates = text[text.index("GPU0", start) : text.index("============ Hops")]
    rates = rates.replace("15", "64000-64000").replace("30", "N/A")
    machine = machine_of(write(tmp_path, f"{text}==== Bandwidth ====\n{rates}"))
    assert {c.rate and c.rate.nominal for c in machine.cables if c.kind == "xgmi"} == {64 * GB}


def test_a_half_that_is_missing(tmp_path: Path) -> None:
    """What one row does not say the other does; what neither says is asked for."""
    lines = TEXT.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if "Link Type" in line)
    assert wires(machine_of(write(tmp_path, "\n".join(lines[: first + 5]))))
    assert refused(write(tmp_path, "\n".join(lines[: first + 4]))) == (
        "host.txt: it does not say what joins GPU2 and GPU3: it is cut short"
    )


def test_without_access(tmp_path: Path) -> None:
    text = JSON.read_text().replace('"ENABLED"', '"DISABLED"')
    machine = machine_of(write(tmp_path, text, "amd.json"))
    assert not machine.cables
    assert any("without access" in note for note in machine.notes)


@pytest.mark.parametrize(
    ("path", "old", "new", "sentence"),
    [
        (TEXT, "GPU2   XGMI         XGMI", "GPU2   XGMI", "the row of GPU2 has 3 cells"),
        (TEXT, "GPU2   XGMI", "GPU1   XGMI", "a second row of GPU1; the first is in line"),
        (TEXT, "GPU0   0            XGMI", "GPU0   0            YGMI", "link type is 'YGMI'"),
        (TEXT, "GPU0   0            15", "GPU0   0            1e5", "weight is '1e5'"),
        (TEXT, "GPU3         \n", "GPU2         \n", "not up to 512 different GPUs"),
        (JSON, '"50000-200000"', '"200000-50000"', "bandwidth is '200000-50000'; expected MB/s"),
        (JSON, '"50000-200000"', '"0-999999999"', "expected MB/s"),
        (JSON, '"XGMI"', "7", "the link type is '7'"),
        (JSON, '"gpu": 2,\n        "bdf"', '"gpu": 1,\n        "bdf"', "GPU 1 is there twice"),
        (JSON, '"gpu": 2,\n                "bdf"', '"gpu": 5,\n "bdf"', "to GPU 5, which is not"),
        (OLD, '"gpu_1": "PCIE"', '"gpu_x": "PCIE"', "'gpu_x' is no GPU such as gpu_0"),
        (JSON, '"links"', '"chains"', "neither 'links' nor 'link_type'"),
    ],
)
def test_what_is_refused(tmp_path: Path, path: Path, old: str, new: str, sentence: str) -> None:
    text = path.read_text()
    assert old in text
    assert sentence in refused(write(tmp_path, text.replace(old, new, 1), path.name))


def test_gpus_of_amd_have_no_nvlink() -> None:
    assert "no NVLink; --bandwidth xgmi=64GB/s" in refused(TEXT, nvlink="25GB/s")
