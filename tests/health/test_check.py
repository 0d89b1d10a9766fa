"""What is said of a machine in which something is wrong, and what it costs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.command import refused, weft
from tests.topology.machines.hosts import dgx, hive, railed, trays
from weft import bound, health
from weft.errors import FormatError
from weft.health import Checkup
from weft.topology import TOPOLOGIES, load_topology
from weft.topology.files import write_topology
from weft.topology.join import join_files

FOUR = ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"]


def checked(folder: Path, text: str, **said: str) -> Checkup:
    (folder / "it.txt").write_text(text)
    return health.check(folder / "it.txt", **said)


def texts(found: Checkup) -> list[str]:
    return [one.text for one in found.findings]


@pytest.mark.parametrize("text", [dgx(gpus=8, nics=FOUR), trays(), hive(8)])
def test_a_whole_host(text: str, tmp_path: Path) -> None:
    found = checked(tmp_path, text)
    assert found
    assert found.lines()[0] == "it, 8 NPUs: nothing looks wrong"
    assert found.losses == {"all-reduce": 0.0, "all-to-all": 0.0}


@pytest.mark.parametrize("gone", range(8))
def test_one_line_of_nvlink_less_is_the_first_thing_said(gone: int, tmp_path: Path) -> None:
    lines = trays().splitlines()
    del lines[[i for i, line in enumerate(lines) if "<nvlink" in line][gone]]
    found = checked(tmp_path, "\n".join(lines))
    host, dev = divmod(gone, 4)
    assert found.lines()[0] == "it, 8 NPUs: 1 thing looks wrong"
    assert found.lines()[1].startswith(
        f"  gpu 000{dev}:06:00.0 of host{host} has no NVLink; the other 7 GPUs have 18 NVLinks, "
        "900GB/s: costs all-reduce "
    )
    assert 0.7 < (found.losses["all-reduce"] or 0) < 1
    assert 0.7 < (found.losses["all-to-all"] or 0) < 1


def test_the_worst_comes_first(tmp_path: Path) -> None:
    text = dgx(gpus=8, nics=FOUR).replace('count="18"', 'count="17"', 1)
    text = text.replace('link_width="16"', 'link_width="8"', 2)  # a switch, and a GPU
    found = checked(tmp_path, text)
    losses = {one.text: one.worst for one in found.findings}
    assert list(losses.values()) == sorted(losses.values(), reverse=True)
    fewer = "gpu 0000:11:00.0 has 17 NVLinks; the other 7 GPUs have 18 NVLinks, 450GB/s"
    narrow = (
        "the PCIe link of gpu 0000:11:00.0 and pci 0000:10:00.0 has 8 lanes, 31.51GB/s; most like "
        "it have 16 lanes, 63.02GB/s"
    )
    # The GPU has 450 GB/s of NVLink and 63 of PCIe.
    assert losses[fewer] == pytest.approx(25 / 513, rel=0.1)
    assert losses[narrow] == pytest.approx(31.5 / 513, rel=0.1)


def test_links_of_one_direction(tmp_path: Path) -> None:
    text = hive(4).replace(
        '<xgmi target="0000:23:00.0" count="1"', '<xgmi target="0000:23:00.0" count="2"', 1
    )
    (text_,) = texts(checked(tmp_path, text))
    assert text_ == (
        "gpu 0000:23:00.0 has 64GB/s of XGMI to gpu 0000:13:00.0, which has 2 links, 128GB/s back"
    )


def test_a_pair_without_a_link(tmp_path: Path) -> None:
    lines = hive(4).splitlines()
    for target in ("23", "13"):
        lines.remove(f'<xgmi target="0000:{target}:00.0" count="1" tclass="0x038000"/>')
    found = checked(tmp_path, "\n".join(lines))
    assert any("gpu 0000:13:00.0" in text and "gpu 0000:23:00.0" in text for text in texts(found))


def test_parts_that_nothing_joins(tmp_path: Path) -> None:
    fabric = railed(["a", "b", "c"], ["hca-1"], spines=0)
    plugs = {**fabric.plugs, ("c", "hca-1"): "leaf7"}
    found = checked(tmp_path, replace(fabric, plugs=plugs, ups={}).text)
    assert texts(found)[0] == "host c cannot reach host a: nothing joins them"


def test_a_missing_rail_uplink_and_a_slow_cable(tmp_path: Path) -> None:
    fabric = railed([f"n{i}" for i in range(6)], ["hca-1", "hca-2"], spines=2, ups=3)
    plugs = {plug: leaf for plug, leaf in fabric.plugs.items() if plug != ("n2", "hca-2")}
    ups = {**fabric.ups, ("leaf0", "spine1"): 2}
    found = checked(
        tmp_path, replace(fabric, plugs=plugs, ups=ups, rates={("n4", "hca-1"): "4xHDR"}).text
    )
    assert sorted(texts(found)) == [
        "1 of 2 leaves carry more down than up, the worst 1.10:1: leaf leaf0",
        "host n2 has 1 adapter in the fabric; 5 hosts have 2; missing: hca-2",
        "leaf leaf0 has 5 links up; most like it have 6: 2 of 3 to spine spine1",
        "the link of leaf leaf0 and nic hca-1 of n4 has 25GB/s; most like it have 50GB/s",
    ]
    lost = {one.rule: one.losses for one in found.findings}
    assert lost["missing-adapter"]["all-to-all"] > 0.3
    assert lost["slower-link"]["all-to-all"] > 0.2


def test_one_slow_cable_of_several(tmp_path: Path) -> None:
    fabric = railed(["a", "b", "c"], spines=1, ups=2)
    leaf, spine = (f"S-{fabric.switch(name)}" for name in ("leaf0", "spine0"))
    blocks = fabric.blocks()
    for i, block in enumerate(blocks):
        for one, other in ((leaf, spine), (spine, leaf)):
            if f'"{one}" #' in block.splitlines()[0]:
                lines = block.splitlines()
                at = next(k for k, line in enumerate(lines[1:], start=1) if other in line)
                lines[at] = lines[at].replace("4xNDR", "4xHDR")
                blocks[i] = "\n".join(lines)
    assert texts(checked(tmp_path, "\n\n".join(blocks)))[0] == (
        "1 of 2 cables of leaf leaf0 and spine spine0 has 25GB/s; most like it have 50GB/s"
    )


def test_a_level_that_is_oversubscribed() -> None:
    found = health.check("clos:8x4x4,oversubscription=2")
    assert texts(found) == ["16 of 16 leaves carry more down than up, the worst 2.00:1: leaf s0"]
    assert (found.losses["all-to-all"] or 0) > 0.1


def test_a_host_with_fewer_gpus_or_adapters_in_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "dgx.xml").write_text(dgx())
    (tmp_path / "half.xml").write_text(dgx(gpus=2))
    fabric = railed([f"n{i}" for i in range(6)], spines=3)
    del fabric.plugs["n3", "mlx5_1"]
    (tmp_path / "fabric.txt").write_text(fabric.text)
    files = [f"n[0-4]={tmp_path}/dgx.xml", f"n5={tmp_path}/half.xml"]
    cluster = join_files(files, tmp_path / "fabric.txt")
    found = health.check_topology(cluster.topology)
    assert {
        "host n5 has 2 GPUs; the other 5 hosts have 4 each",
        "host n3 has 1 adapter in the fabric; 5 hosts have 2; missing: mlx5_1 (pci 0000:20:00.0)",
    } <= set(texts(found))
    assert found.npus == 22


def cluster_of(folder: Path, fabric: str, host: str = "", form: str = "yaml") -> Path:
    """Four hosts on a fabric, written to a file; ``b`` may be another than the others."""
    (folder / "dgx.xml").write_text(dgx())
    (folder / "b.xml").write_text(host or dgx())
    (folder / "fabric.txt").write_text(fabric)
    cluster = join_files([f"*={folder}/dgx.xml", folder / "b.xml"], folder / "fabric.txt")
    where = folder / f"cluster.{form}"
    write_topology(cluster.topology, where)
    return where


HEALTHY = railed(["a", "b", "c", "d"], spines=1, ups=4)


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_joined_cluster_is_looked_at_whole(form: str, tmp_path: Path) -> None:
    """Also where its network has one link for several cables, or for a way through a switch."""
    assert health.check(cluster_of(tmp_path, HEALTHY.text, form=form))
    for old, new, words in (
        ('link_width="16"', 'link_width="8"', "pci 0000:10:00.0 of b has 8 lanes, 31.51GB/s; most"),
        (
            "32.0 GT/s",
            "16.0 GT/s",
            "pci 0000:10:00.0 of b has 16 GT/s, 31.51GB/s; most like it",
        ),
        ('count="18"', 'count="17"', "of b has 17 NVLinks; the other 3 GPUs have 18 NVLinks"),
    ):
        found = health.check(cluster_of(tmp_path, HEALTHY.text, dgx().replace(old, new, 1), form))
        (text,) = texts(found)
        assert words in text


def test_a_missing_cable_is_named_in_a_joined_cluster_as_in_its_fabric(tmp_path: Path) -> None:
    for spines, words in (
        (1, "leaf leaf0 has 3 links up; most like it have 4: 3 of 4 to spine spine0"),
        (2, "leaf leaf0 has 7 links up; most like it have 8: 3 of 4 to spine spine0"),
    ):
        fabric = railed(["a", "b", "c", "d"], spines=spines, ups=4)
        fabric.ups["leaf0", "spine0"] = 3
        assert words in texts(health.check(cluster_of(tmp_path, fabric.text)))
        assert words in texts(health.check(tmp_path / "fabric.txt"))


def test_a_joined_cluster_that_was_changed_is_looked_at_as_it_is(tmp_path: Path) -> None:
    path = cluster_of(tmp_path, HEALTHY.text)
    text = path.read_text()
    path.write_text(text.replace("450GB/s", "425GB/s", 1))
    (finding,) = texts(health.check(path))
    assert finding.endswith("has 425GB/s of NVLink; the other 3 GPUs have 450GB/s")
    path.write_text(text.replace("  src: [", "  src: [99999, ", 1))
    with pytest.raises(FormatError, match=r"wiring has [0-9]+ src, but [0-9]+ cables"):
        health.check(path)


def test_failures_that_are_known_are_what_is_wrong() -> None:
    found = health.check("h100:2", without_links=["0-s2"])
    assert texts(found)[0].startswith("the link ")
    assert "is gone; it was 50GB/s" in texts(found)[0]
    slower = health.check("torus:4x4", bandwidth="50GB/s", degraded_links=["0-1=50%"])
    assert texts(slower) == ["the link 0-1 is 25GB/s; it was 50GB/s"]
    assert (slower.losses["all-reduce"] or 0) > 0


def test_of_an_npu_that_failed_the_others_are_asked_what_they_lose() -> None:
    found = health.check("h100:2", without_npus=[3])
    assert texts(found) == ["NPU 3 has failed"]
    assert found.npus == 15
    assert found.lines()[0] == "h100:2 without NPU 3, 15 NPUs: 1 thing looks wrong"
    assert 0.05 < (found.losses["all-reduce"] or 0) < 0.2  # one NIC of eight
    assert texts(health.check("h100:2", without_npus=[3, 11])) == [
        "NPU 3 has failed",
        "NPU 11 has failed",
    ]
    lost = {"without_npus": [3], "without_links": ["4-5", "8>9"]}
    several = health.check("torus:4x4", **lost)
    assert sorted(texts(several)) == [
        "NPU 3 has failed",
        "the link 4-5 is gone; it was 50GB/s",
        "the link 8 > 9 is gone; it was 50GB/s",
    ]
    left = [npu for npu in range(16) if npu != 3]
    for name, loss in several.losses.items():
        whole, now = (
            bound(load_topology("torus:4x4", **failed), name, "1GiB", group=left).ideal
            for failed in ({}, lost)
        )
        assert loss == pytest.approx(1 - whole / now)
    assert texts(health.check("leaf-spine:4x2x2", without_switches=["s2"])) == [
        "switch s2 has no link left"
    ]


@pytest.mark.parametrize("kind", sorted(TOPOLOGIES))
def test_networks_by_name_are_as_they_are_meant_to_be(kind: str) -> None:
    found = health.check(TOPOLOGIES[kind].example)
    assert {one.rule for one in found.findings} <= {"oversubscribed"}


def test_what_no_file_says_is_asked_for_or_noted(tmp_path: Path) -> None:
    found = checked(tmp_path, "SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n[3-5]")
    assert texts(found) == ["host n1 and 1 more cannot reach host n3: nothing joins them"]
    assert found.findings[0].losses == {}
    assert found.lines()[1] == f"  {texts(found)[0]}"


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "good.xml").write_text(trays())
    text = trays().replace('<nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/>', "", 1)
    (tmp_path / "bad.xml").write_text(text)
    good = weft("topo", "check", "good.xml", cwd=tmp_path)
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.startswith("good, 8 NPUs: nothing looks wrong\n")
    bad = weft("topo", "check", "bad.xml", "--json", cwd=tmp_path)
    assert (bad.returncode, bad.stderr) == (1, "")
    record = json.loads(bad.stdout)
    assert not record["healthy"]
    assert record["npus"] == 8
    (finding,) = record["findings"]
    assert finding["rule"] == "fewer-links"
    assert finding["losses"] == record["losses"]
    assert set(record["losses"]) == {"all-reduce", "all-to-all"}
    assert "gone.xml" in refused("topo", "check", "gone.xml", cwd=tmp_path)
    words = refused("topo", "check", "good.xml", "--bandwidth", "50GB/s", cwd=tmp_path)
    assert "is for all links; say of which" in words
    words = refused("topo", "check", "good.xml", "--bandwidth", "foo=1GB/s", cwd=tmp_path)
    assert "good has no foo links to give a bandwidth; it has c2c" in words
