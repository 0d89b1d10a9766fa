"""Real files of clusters, where ``WEFT_SAMPLES`` names a folder of them: read or refused."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import weft
from tests.topology.machines.hosts import dgx
from tests.topology.machines.test_damage import claimants, outcome
from tests.topology.machines.test_nccl_xml import check_preset
from weft.topology import Topology, load_topology
from weft.topology.join import join_files

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


def test_a_superpod_is_joined_and_planned_for(tmp_path: Path) -> None:
    """119 hosts of eight GPUs, of which ten lack an adapter; ``-s`` shows the figures."""
    assert FOLDER is not None
    fabric = Path(FOLDER) / "ibnetdiscover" / "topograph-example.out"
    (tmp_path / "dgx.xml").write_text(dgx(gpus=8, nics=["mlx5_0", "mlx5_1", "mlx5_4", "mlx5_5"]))
    pairs = {f"HCA-{i + 1}": f"mlx5_{i}" for i in (0, 1, 4, 5)}
    begin = time.process_time()
    cluster = join_files([f"*={tmp_path}/dgx.xml"], fabric, adapters=pairs)
    print(f"\njoined in {time.process_time() - begin:.1f} s of CPU")
    assert (len(cluster.joined.hosts), cluster.topology.npus) == (119, 952)
    assert (cluster.joined.adapters, len(cluster.joined.rails)) == (466, 4)
    sizes = dict.fromkeys(("all-gather", "reduce-scatter", "broadcast"), ("64KiB", "1GiB"))
    sizes |= {"all-reduce": ("64KiB", "16MiB", "1GiB"), "reduce": ("1GiB",)}
    sizes["all-to-all"] = ("3808KiB",)  # 4 KiB for each pair
    for kind, size in ((kind, size) for kind, some in sizes.items() for size in some):
        begin = time.process_time()
        result = weft.synthesize(cluster.topology, kind, size)
        assert result.verified
        print(
            f"{kind} of {size}: {result.time_us:.1f} us, "
            f"x{result.time / result.bound.ideal:.2f} of the bound, "
            f"{time.process_time() - begin:.1f} s of CPU"
        )
