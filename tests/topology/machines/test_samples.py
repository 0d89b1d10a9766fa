"""Real files of clusters, where ``WEFT_SAMPLES`` names a folder of them: read or refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.topology.machines.test_damage import claimants, outcome
from tests.topology.machines.test_nccl_xml import check_preset
from weft.topology import Topology, load_topology

FOLDER = os.environ.get("WEFT_SAMPLES")
FILES = sorted(path for path in Path(FOLDER).rglob("*") if path.is_file()) if FOLDER else []
NO_NETWORKS = {"nccl-tests", "osu", "perftest", "misc", "nccl-graph-xml"}
"""Folders of measurements and of NCCL's graphs."""

pytestmark = pytest.mark.skipif(not FOLDER, reason="WEFT_SAMPLES names no folder")


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_read_or_refused(path: Path) -> None:
    assert len(claimants(path)) <= 1
    found = outcome(path)
    if isinstance(found, Topology):
        assert path.parent.name not in NO_NETWORKS
        assert found.npus > 0
    else:
        assert "\n" not in found
        assert path.name in found


@pytest.mark.parametrize(
    "path", [path for path in FILES if "dgx_a100_nccl" in path.name], ids=lambda path: path.name
)
def test_a_dgx_a100_is_its_preset_and_pcie(path: Path) -> None:
    check_preset(load_topology(path), load_topology("a100:1"))
