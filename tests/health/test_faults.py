"""Seeded faults: what a machine lacks is named, refused, or shown to cost nothing.

``pytest tests/health --examples 1000`` goes through all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.health.faults import Fault, of_fabric, of_network, of_xml, some, verdict
from tests.topology.machines.hosts import dgx, hive, railed, trays
from weft.topology import load_topology
from weft.topology.join import join_files

HOSTS = {
    "dgx": dgx(gpus=8, nics=["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"]),
    "trays": trays(),
    "hive": hive(8),
}
HALF = "<cpu cpu 1> itself"
"""A host without its second CPU and all below it is a whole host of four GPUs."""


@pytest.mark.parametrize("name", sorted(HOSTS))
def test_of_hosts(name: str, tmp_path: Path) -> None:
    healthy = tmp_path / "healthy.xml"
    healthy.write_text(HOSTS[name])
    faults = of_xml(HOSTS[name])
    half = [fault for fault in faults if name == "dgx" and fault.what == HALF]
    for fault in half:
        assert verdict(fault, healthy, tmp_path / "fault.xml") == "smaller"
    faults = [fault for fault in faults if fault not in half]
    for fault in some(faults, 8, seed=7):
        assert verdict(fault, healthy, tmp_path / "fault.xml") in SAFE, fault.what


def test_of_a_fabric(tmp_path: Path) -> None:
    fabric = railed([f"n{i}" for i in range(6)], ["hca-1", "hca-2", "hca-3"], spines=2, ups=2)
    healthy = tmp_path / "healthy.txt"
    healthy.write_text(fabric.text)
    for fault in some(of_fabric(fabric), 8, seed=7):
        assert verdict(fault, healthy, tmp_path / "fault.txt") == "named", fault.what


def test_of_a_cluster_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "dgx.xml").write_text(dgx())
    (tmp_path / "fabric.txt").write_text(railed(["a", "b", "c", "d"], spines=3).text)
    healthy = join_files([f"*={tmp_path}/dgx.xml"], tmp_path / "fabric.txt").topology
    for fault in some(list(of_network(healthy)), 8, seed=7):
        assert verdict(fault, healthy, tmp_path) in ("named", "harmless"), fault.what


@pytest.mark.parametrize("spec", ["h100:2", "rails:4x6", "leaf-spine:4x3x4"])
def test_of_networks_without_names(spec: str, tmp_path: Path) -> None:
    healthy = load_topology(spec)
    for fault in some(list(of_network(healthy)), 5, seed=7):
        assert verdict(fault, healthy, tmp_path) == "named", fault.what


SAFE = ("named", "refused", "harmless")


def test_the_verdict_can_fail(tmp_path: Path) -> None:
    """A fault that nobody names and that costs something is missed."""
    healthy = tmp_path / "healthy.xml"
    healthy.write_text(HOSTS["dgx"])
    slower = HOSTS["dgx"].replace('count="18"', 'count="9"')  # all alike: meant so, as far as seen
    assert verdict(Fault("half", ("gpu",), slower), healthy, tmp_path / "fault.xml") == "missed"
