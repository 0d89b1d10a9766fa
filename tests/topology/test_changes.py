"""What was changed in a network is said wherever the network is named, and kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import weft
from tests.cli.command import weft as run
from weft.comparison import compare
from weft.topology import Topology, load_topology
from weft.topology.files import read_topology, write_topology

TORN = {"without_links": ["3-s7", "0>s0"], "without_npus": [5], "without_switches": ["s9", 8]}
CHANGES = (
    "without 0>s0",
    "without 3-s7",
    "without NPU 5",
    "without switch s8",
    "without switch s9",
)
TITLE = "h100:4 without 0>s0, 3-s7, NPU 5, switch s8, switch s9"


def torn() -> Topology:
    return load_topology("h100:4", **TORN)  # type: ignore[arg-type]


def test_failures_are_named() -> None:
    assert torn().changes == CHANGES
    assert torn().title == TITLE
    assert load_topology("h100:4").title == "h100:4"


def test_a_failed_switch_loses_its_links() -> None:
    network = load_topology("leaf-spine:4x4x2", without_switches=["s5"])
    lost = network.npus + 5
    assert network.nodes == load_topology("leaf-spine:4x4x2").nodes
    assert lost not in network.src
    assert lost not in network.dst
    assert not network.translates
    assert weft.synthesize(network, "all-reduce", "1MiB").verified


def test_of_many_some_are_named() -> None:
    failed = [f"{npu}-{npu + 1}" for npu in range(20)]
    title = load_topology("ring:32", without_links=failed).title
    assert title == "ring:32 without 0-1, 1-2, 2-3, 3-4, 4-5 and 15 more"


def test_other_changes_follow_failures() -> None:
    from dataclasses import replace

    network = replace(torn(), changes=("0-s8 at 50 %", "without 3-s7"))
    assert network.title == "h100:4 without 3-s7, 0-s8 at 50 %"


@pytest.mark.parametrize("name", ["net.yaml", "net.json"])
def test_topology_files_keep_them(tmp_path: Path, name: str) -> None:
    write_topology(torn(), tmp_path / name)
    assert read_topology(tmp_path / name).title == TITLE


def test_removed_npus_of_a_file_are_named(tmp_path: Path) -> None:
    lines = ["weft: topology", "version: 1", "npus: 3", "name: mine", "removed: [1]"]
    links = ["bandwidth: 1GB/s", "latency: 1us", "links:", "  - {src: 0, dst: 2, both: true}"]
    (tmp_path / "net.yaml").write_text("\n".join([*lines, *links]))
    assert read_topology(tmp_path / "net.yaml").title == "mine without NPU 1"


@pytest.mark.parametrize("name", ["traces", "store.weft", "table.json"])
def test_saved_algorithms_keep_them(tmp_path: Path, name: str) -> None:
    result = weft.synthesize(torn(), "all-gather", "1MiB", chunks=1)
    if name == "table.json":
        weft.formats.write(result.algorithm, tmp_path / name)
    else:
        result.save(tmp_path / name)
    network = weft.load(tmp_path / name).topology
    assert network is not None
    assert network.changes == CHANGES


def test_a_mended_store_keeps_them(tmp_path: Path) -> None:
    network = load_topology("torus:16x16", without_links=["3-4"])
    weft.synthesize(network, "all-gather", "1MiB", chunks=1).save(tmp_path / "repaired.weft")
    assert weft.load(tmp_path / "repaired.weft").topology.title == "torus:16x16 without 3-4"  # type: ignore[union-attr]


def test_comparisons_say_them() -> None:
    found = compare(torn(), "all-gather", "1MiB", against=["ring"])
    assert found.title == f"all-gather on {TITLE}"
    assert found.to_dict()["changes"] == list(CHANGES)


def test_the_command_says_them(tmp_path: Path) -> None:
    synth = ["synth", "mesh:2x3", "all-gather", "--size", "6KiB", "--without-link", "0-1"]
    traces = str(tmp_path / "traces")
    assert "all-gather on mesh:2x3 without 0-1" in run(*synth, "-o", traces).stdout
    assert json.loads(run(*synth, "--json").stdout)["changes"] == ["without 0-1"]
    assert "mesh:2x3 without 0-1" in run("show", "traces", cwd=tmp_path).stdout
    assert "on mesh:2x3 without 0-1" in run("simulate", "traces", cwd=tmp_path).stdout
    assert "mesh:2x3 without 0-1" in run("topo", "show", "mesh:2x3", "--without-link", "0-1").stdout
