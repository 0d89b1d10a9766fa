"""Hosts and the fabric between them, joined: who is who, what carries what, and what is said."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.cli.command import refused
from tests.examples import examples
from tests.planners.test_producers import check
from tests.topology.machines.hosts import (
    Fabric,
    cables,
    dgx,
    railed,
    reversed_bytes,
    trays,
    wiring,
)
from weft.errors import InputError
from weft.topology import load_topology
from weft.topology.files import write_topology
from weft.topology.join import Cluster, join_files

GB = 10**9
HOSTS = ("dgx-1", "dgx-2", "dgx-10")


def joined(folder: Path, hosts: Sequence[tuple[str, str]], fabric: str, **said: object) -> Cluster:
    """Hosts, each as ``dgx-1=name`` and the text of the file, and the text of the fabric."""
    given = []
    for called, text in hosts:
        names, equals, name = called.rpartition("=")
        path = folder / f"{name}.xml"
        path.write_text(text)
        given.append(f"{names}{equals}{path}")
    where = folder / "fabric.txt"
    where.write_text(fabric)
    return join_files(given, where, **said)  # type: ignore[arg-type]


@contextmanager
def refusal(folder: Path, *words: str) -> Iterator[None]:
    """One sentence with these words, in this order."""
    with pytest.raises(InputError) as error:
        yield
    text = str(error.value).replace(f"{folder}/", "")
    assert "\n" not in text
    at = 0
    for word in words:
        assert word in text[at:], text
        at = text.index(word, at)


def said(cluster: Cluster, word: str) -> str:
    """The one note with this word in it."""
    (note,) = [note for note in cluster.topology.notes if word in note]
    return note


def test_one_file_for_all_hosts(tmp_path: Path) -> None:
    cluster = joined(tmp_path, [("dgx-*=dgx", dgx())], railed(HOSTS).text)
    assert cluster.joined.hosts == HOSTS
    assert cluster.joined.rails == ("mlx5_0", "mlx5_1")
    assert (cluster.topology.npus, cluster.joined.adapters) == (12, 6)
    links = wiring(cluster.topology)
    for host in HOSTS:
        for i in range(2):
            switch = f"pci 0000:{i + 1}0:00.0 of {host}"
            assert links[switch, f"leaf leaf{i}"] == (50 * GB, 1_150_000)
            assert links[f"leaf leaf{i}", switch] == (50 * GB, 1_150_000)
        nvlink = (450 * GB, 350_000)
        assert links[f"gpu 0000:11:00.0 of {host}", f"nvswitch nvswitch of {host}"] == nvlink
    # A spine between two leaves only passes on: beside the other one it is a link.
    assert links["leaf leaf0", "leaf leaf1"] == (50 * GB, 1_000_000)
    up = [
        rate for (src, dst), (rate, _) in links.items() if src == "leaf leaf0" and "dgx" not in dst
    ]
    assert up == [50 * GB, 50 * GB]
    (note,) = cluster.topology.notes
    assert note.startswith("α is not in the file")
    assert len(cluster.topology.adding) == 3  # as of one host alone


def test_its_network_is_written_read_and_planned_for(tmp_path: Path) -> None:
    cluster = joined(tmp_path, [("*=dgx", dgx())], railed(HOSTS).text)
    write_topology(cluster.topology, tmp_path / "cluster.yaml")
    again = load_topology(tmp_path / "cluster.yaml")
    assert wiring(again) == wiring(cluster.topology)
    assert again.labels == cluster.topology.labels
    for form, name in (("weft", "cluster.json"), ("infragraph", "graph.yaml")):
        write_topology(cluster.topology, tmp_path / name, form)
        assert load_topology(tmp_path / name).labels == cluster.topology.labels
    check(weft.synthesize(again, "all-reduce", "1MiB"))


def test_hosts_are_found_by_guids_however_these_are_written(tmp_path: Path) -> None:
    """NCCL prints the last byte first, others the first, with zeros before it or without."""
    fabric = railed(HOSTS)
    ways = (reversed_bytes, str, lambda guid: guid.lstrip("0"))
    files = [
        (f"file{i}", dgx(guids={nic: way(fabric.guid(host, nic)) for nic in ("mlx5_0", "mlx5_1")}))
        for i, (host, way) in enumerate(zip(HOSTS, ways, strict=True))
    ]
    cluster = joined(tmp_path, files, fabric.text)
    assert cluster.joined.hosts == HOSTS
    by_name = joined(tmp_path, [("*=dgx", dgx())], fabric.text)
    assert wiring(cluster.topology) == wiring(by_name.topology)


def test_adapters_are_found_by_guid_before_name(tmp_path: Path) -> None:
    """What the fabric calls an adapter may be out of date."""
    fabric = railed(["a", "b"])
    guids = {"mlx5_0": fabric.guid("a", "mlx5_1"), "mlx5_1": fabric.guid("a", "mlx5_0")}
    links = wiring(joined(tmp_path, [("a", dgx(guids=guids)), ("b", dgx())], fabric.text).topology)
    assert ("pci 0000:10:00.0 of a", "leaf leaf1") in links
    assert ("pci 0000:10:00.0 of b", "leaf leaf0") in links


def test_a_guid_of_a_card_that_two_adapters_share_tells_the_host_only(tmp_path: Path) -> None:
    fabric = railed(["a", "b"])
    guids = dict.fromkeys(("mlx5_0", "mlx5_1"), fabric.guid("b", "mlx5_0"))
    cluster = joined(tmp_path, [("dump", dgx(guids=guids)), ("a", dgx())], fabric.text)
    assert cluster.joined.hosts == ("a", "b")
    assert ("pci 0000:20:00.0 of b", "leaf leaf1") in wiring(cluster.topology)


def test_a_file_may_stand_for_a_host_that_it_is_not_of(tmp_path: Path) -> None:
    """Its GUIDs are another host's, whose adapters stay where they are."""
    fabric = railed(["a", "b"])
    of_a = dgx(guids={nic: fabric.guid("a", nic) for nic in ("mlx5_0", "mlx5_1")})
    cluster = joined(tmp_path, [("a=first", of_a), ("b=second", of_a)], fabric.text)
    assert wiring(cluster.topology) == wiring(
        joined(tmp_path, [("*=dgx", dgx())], fabric.text).topology
    )


def test_names_by_mapping(tmp_path: Path) -> None:
    """The fabric says HCA-1 and HCA-2; a host may have the right names already."""
    fabric = railed(["a", "b"])
    fabric.called = {("a", "mlx5_0"): "a HCA-1", ("a", "mlx5_1"): "a HCA-2"}
    files = [("*=dgx", dgx())]
    pairs = "HCA-1=mlx5_0, HCA-2=mlx5_1"
    cluster = joined(tmp_path, files, fabric.text, adapters=pairs)
    plain = joined(tmp_path, files, railed(["a", "b"]).text)
    assert wiring(cluster.topology) == wiring(plain.topology)
    with refusal(tmp_path, "no adapter of the hosts' files", "HCA-1, HCA-2", "--adapters HCA-1=ml"):
        joined(tmp_path, [("a", dgx())], fabric.text)
    with refusal(tmp_path, "no adapter 'HCA-7'", "'mlx5_0'", "HCA-1"):
        joined(tmp_path, files, fabric.text, adapters="HCA-7=mlx5_0")
    with refusal(tmp_path, "no file has an adapter 'mlx5_9'", "they have mlx5_0, mlx5_1"):
        joined(tmp_path, files, fabric.text, adapters="HCA-1=mlx5_9")
    with refusal(tmp_path, "'a'", "two adapters", "'HCA-2'"):
        joined(tmp_path, files, fabric.text, adapters="HCA-1=HCA-2")
    for bad in ("HCA-1=", "=mlx5_0", "HCA-1=a,HCA-1=b", "HCA-1=a,,", "", "a,a"):
        with refusal(tmp_path, "adapters", "does not belong there"):
            joined(tmp_path, files, fabric.text, adapters=bad)
    with refusal(tmp_path, "gives two the same name"):
        joined(tmp_path, files, fabric.text, adapters="HCA-1=a,HCA-2=a")
    with refusal(tmp_path, "names adapters", "HCA-1=mlx5_0"):
        joined(tmp_path, files, fabric.text, adapters="mlx5_0,mlx5_1")


def test_what_manages_the_fabric_and_what_has_no_name_is_left_out_and_counted(
    tmp_path: Path,
) -> None:
    fabric = railed(["a", "b", "ufm01", "c"])
    fabric.called = {("c", nic): "MT4129 ConnectX7" for nic in ("mlx5_0", "mlx5_1")}
    cluster = joined(tmp_path, [("*=dgx", dgx())], fabric.text)
    assert cluster.joined.hosts == ("a", "b")
    assert said(cluster, "no known host").startswith("left out: 2 adapters")
    assert said(cluster, "manage").startswith("left out: ufm01 with 2 adapters")
    only = joined(tmp_path, [("a=dgx", dgx())], fabric.text)
    assert said(only, "without a file") == (
        "left out: 1 host of the fabric without a file, with 2 adapters: b"
    )


def test_an_adapter_without_a_name_is_known_by_its_guid(tmp_path: Path) -> None:
    fabric = railed(["a", "b"])
    fabric.called = {("a", "mlx5_1"): "MT4129 ConnectX7   Mellanox Technologies"}
    guids = {nic: reversed_bytes(fabric.guid("a", nic)) for nic in ("mlx5_0", "mlx5_1")}
    cluster = joined(tmp_path, [("file", dgx(guids=guids)), ("b", dgx())], fabric.text)
    assert cluster.joined.adapters == 4
    assert "1 adapter without a host" in said(cluster, "by their GUIDs")
    assert ("pci 0000:20:00.0 of a", "leaf leaf1") in wiring(cluster.topology)


def test_what_only_one_side_shows_carries_nothing_and_is_named(tmp_path: Path) -> None:
    fabric = railed(HOSTS, ("mlx5_0", "mlx5_2"))
    cluster = joined(tmp_path, [("*=dgx", dgx())], fabric.text)
    assert cluster.joined.adapters == 3
    assert said(cluster, "carries nothing") == (
        "mlx5_1 of dgx-1, dgx-2, dgx-10 is not in the fabric, and carries nothing"
    )
    assert "mlx5_2 of dgx-1, dgx-2, dgx-10 is in the fabric" in said(cluster, "not in the host's")
    assert ("nic mlx5_1 of dgx-1", "leaf leaf1") not in cables(cluster.joined.machine)
    assert not any("0000:2f" in end for ends in wiring(cluster.topology) for end in ends)


@pytest.mark.parametrize(("speed", "rate"), [(200_000, "4xNDR"), (400_000, "4xHDR")])
def test_of_two_rates_the_lower_counts(speed: int, rate: str, tmp_path: Path) -> None:
    fabric = railed(["a", "b"])
    fabric.rates = dict.fromkeys(fabric.plugs, rate)
    cluster = joined(tmp_path, [("*=dgx", dgx(speed=speed))], fabric.text)
    links = wiring(cluster.topology)
    for ends in (("pci 0000:10:00.0 of a", "leaf leaf0"), ("leaf leaf0", "pci 0000:10:00.0 of a")):
        assert links[ends][0] == 25 * GB
    notes = [note for note in cluster.topology.notes if "the lower counts" in note]
    here, there = ("25GB/s", "50GB/s") if speed == 200_000 else ("50GB/s", "25GB/s")
    words = f"has {here} in the host's file and {there} in the fabric"
    assert notes == [f"{nic} of a, b {words}: the lower counts" for nic in ("mlx5_0", "mlx5_1")]


def test_hosts_that_are_not_like_most_are_listed(tmp_path: Path) -> None:
    hosts = [f"n{i}" for i in range(8)]
    fabric = railed(hosts)
    del fabric.plugs["n3", "mlx5_1"]
    files = [("n[0-6]=dgx", dgx()), ("n7=half", dgx(gpus=2))]
    notes = joined(tmp_path, files, fabric.text).topology.notes
    assert [note for note in notes if note.startswith("unlike")] == [
        "unlike 6 hosts, such as n0: n3: without mlx5_1 in the fabric",
        "unlike 6 hosts, such as n0: n7: 2 GPUs",
    ]


def test_gpus_share_the_adapters_there_are(tmp_path: Path) -> None:
    """Four GPUs and one adapter: two boxes move no more than it carries."""
    fabric = railed(["a", "b"], ["mlx5_0"], spines=0)
    fabric.ups = {}
    cluster = joined(tmp_path, [("*=dgx", dgx(nics=["mlx5_0"]))], fabric.text)
    size = 1 << 30
    # From each of four GPUs to each of four others an eighth of the buffer.
    assert weft.bound(cluster.topology, "all-to-all", size).ideal >= size / 8 * 16 / 50e9 * 0.999e12


def test_ports_of_one_card_are_adapters_of_their_own_in_the_fabric(tmp_path: Path) -> None:
    card = dgx(nics=["mlx5_0"]).replace(
        "</nic>", '<net name="mlx5_1" dev="1" speed="400000" port="1"/></nic>'
    )
    cluster = joined(tmp_path, [("*=dgx", card)], railed(HOSTS).text)
    assert cluster.joined.adapters == 3
    links = wiring(cluster.topology)
    for leaf in ("leaf leaf0", "leaf leaf1"):
        assert sum(rate for (_, end), (rate, _) in links.items() if end == leaf) == 5 * 50 * GB


def test_a_dump_of_several_hosts(tmp_path: Path) -> None:
    """A rack in one NVLink domain, whose hosts are told apart by GUIDs."""
    fabric = railed(["t1", "t2"], ["mlx5_0"])
    first, second = (reversed_bytes(fabric.guid(host, "mlx5_0")) for host in ("t1", "t2"))
    nic = '<nic><net name="mlx5_0" dev="0" speed="400000" port="1" guid="0x{}"/></nic></cpu>'
    text = trays()
    for number, guid in ((4, second), (2, first)):  # below the last CPU of each host
        parts = text.split("</cpu>")
        text = "</cpu>".join(parts[:number]) + nic.format(guid) + "</cpu>".join(parts[number:])
    cluster = joined(tmp_path, [("rack", text)], fabric.text)
    assert (len(cluster.joined.hosts), cluster.joined.adapters) == (2, 2)
    assert cluster.topology.npus == 8
    assert not any("not in the fabric" in note for note in cluster.topology.notes)


def test_a_fabric_that_shows_hosts_without_adapters(tmp_path: Path) -> None:
    """As Slurm's: all adapters of a host hang where it does, at the rate of their ports."""
    slurm = "SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n[3-4]\nSwitchName=s3 Switches=s[1-2]"
    cluster = joined(tmp_path, [("n*=dgx", dgx())], slurm, bandwidth="spine=100GB/s")
    assert cluster.joined.hosts == ("n1", "n2", "n3", "n4")
    assert cluster.joined.adapters == 8
    assert not cluster.joined.rails
    found = cables(cluster.joined.machine)
    for nic in ("nic mlx5_0 of n1", "nic mlx5_1 of n1"):
        assert found[nic, "leaf s1"] == found["leaf s1", nic] == [50 * GB]
    links = wiring(cluster.topology)
    assert links["pci 0000:20:00.0 of n1", "leaf s1"][0] == 50 * GB
    assert links["leaf s1", "leaf s2"][0] == 100 * GB  # as the spine only passes on


def test_a_network_as_fabric(tmp_path: Path) -> None:
    (tmp_path / "dgx.xml").write_text(dgx())
    for rails, ends in ((False, ["s0", "s0", "s1", "s1"]), (True, ["s0", "s1", "s0", "s1"])):
        cluster = join_files([tmp_path / "dgx.xml"], "leaf-spine:2x2x2", count=2, rails=rails)
        assert cluster.joined.hosts == ("host0", "host1")
        assert cluster.joined.rails == (("mlx5_0", "mlx5_1") if rails else ())
        found = cables(cluster.joined.machine)
        nics = [f"nic mlx5_{i} of host{host}" for host in (0, 1) for i in (0, 1)]
        for nic, leaf in zip(nics, ends, strict=True):
            assert found[nic, f"leaf {leaf}"] == found[f"leaf {leaf}", nic] == [50 * GB]


def test_those_adapters_hang_on_a_network_that_are_chosen(tmp_path: Path) -> None:
    (tmp_path / "dgx.xml").write_text(dgx())
    files = [tmp_path / "dgx.xml"]
    cluster = join_files(files, "switch:2", count=2, adapters="mlx5_1")
    assert said(cluster, "--adapters") == "left out: mlx5_0 of dgx, which --adapters does not name"
    assert ("nic mlx5_1 of host0", "leaf s0") in cables(cluster.joined.machine)
    turned = join_files(files, "leaf-spine:1x2x1", adapters="mlx5_1,mlx5_0").joined.machine
    assert ("nic mlx5_1 of host0", "leaf s0") in cables(turned)
    assert ("nic mlx5_0 of host0", "leaf s1") in cables(turned)
    with refusal(tmp_path, "no adapter is chosen", "switch:2"):
        join_files(files, "switch:2", adapters=[])
    with refusal(tmp_path, "dgx has no adapter 'mlx5_7'", "mlx5_0, mlx5_1"):
        join_files(files, "switch:2", adapters="mlx5_7")
    with refusal(tmp_path, "no names of adapters", "mlx5_0,mlx5_1"):
        join_files(files, "switch:2", adapters="HCA-1=mlx5_0")


def test_counts_that_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "dgx.xml").write_text(dgx())
    file, two = [tmp_path / "dgx.xml"], [tmp_path / "dgx.xml"] * 2
    with refusal(tmp_path, "8 ports", "1 host with 2 adapters is", "--count 4 would fill it"):
        join_files(file, "switch:8")
    with refusal(
        tmp_path, "7 ports", "3 hosts with 6 adapters are", "; switch:6 would fit 3 hosts"
    ):
        join_files(file, "switch:7", count=3)
    with refusal(tmp_path, "a count is for one file"):
        join_files(two, "switch:4", count=2)
    with refusal(tmp_path, "0 hosts is none"):
        join_files(file, "switch:4", count=0)
    with refusal(tmp_path, "no names of hosts"):
        join_files([f"a={file[0]}"], "switch:2")
    fabric = railed(["a", "b"]).text
    with refusal(tmp_path, "has 2 hosts", "not 3", "a, b"):
        joined(tmp_path, [("*=dgx", dgx())], fabric, count=3)
    with refusal(tmp_path, "rails are for a fabric without hosts"):
        joined(tmp_path, [("*=dgx", dgx())], fabric, rails=True)


def test_files_of_which_no_host_is_known_or_two_are(tmp_path: Path) -> None:
    fabric = railed(["a", "b"])
    with refusal(tmp_path, "which host of fabric other is of", "a=other.xml", "'*=other.xml'"):
        joined(tmp_path, [("other", dgx())], fabric.text)
    with refusal(tmp_path, "no host 'c*'", "a, b"):
        joined(tmp_path, [("c*=dgx", dgx())], fabric.text)
    with refusal(tmp_path, "two files are of host 'a'", "dgx.xml and ", "a.xml"):
        joined(tmp_path, [("a=dgx", dgx()), ("a", dgx())], fabric.text)
    with refusal(tmp_path, "two files are of host 'a'", "dgx.xml and ", "other.xml"):
        joined(tmp_path, [("*=dgx", dgx()), ("?=other", dgx())], fabric.text)
    both = {nic: fabric.guid(host, nic) for host, nic in (("a", "mlx5_0"), ("b", "mlx5_1"))}
    with refusal(tmp_path, "adapters of 2 hosts", "a, b"):
        joined(tmp_path, [("dump", dgx(guids=both))], fabric.text)


def test_the_file_of_one_host_goes_before_that_of_a_pattern(tmp_path: Path) -> None:
    fabric = railed(["a", "b", "c"])
    half = dgx(gpus=2)
    for files in ([("*=dgx", dgx()), ("b=half", half)], [("b", half), ("*=dgx", dgx())]):
        cluster = joined(tmp_path, files, fabric.text)
        parts = cluster.joined.machine.parts
        assert [part.host for part in parts if part.kind == "gpu"] == [*"aaaa", "b", "b", *"cccc"]


def test_a_fabric_where_a_host_should_be(tmp_path: Path) -> None:
    (tmp_path / "dgx.xml").write_text(dgx())
    with refusal(tmp_path, "dump.xml: a fabric of ibnetdiscover has no GPU", "the file of a host"):
        joined(tmp_path, [("*=dump", railed(["a"]).text)], railed(["a"]).text)
    slurm = tmp_path / "topology.conf"
    slurm.write_text("SwitchName=s1 Nodes=n[1-2]")
    with refusal(tmp_path, "a topology.conf of Slurm has no GPU", "names its adapters"):
        join_files([slurm], "switch:4", count=2)
    bare = tmp_path / "bare.xml"
    bare.write_text(re.sub(r"<pci [^\n]*0x020700[^\n]*\n<nic>.*\n</pci>\n", "", dgx()))
    with refusal(tmp_path, "bare", "has no adapter to join a fabric by"):
        join_files([bare], "switch:4", count=2)


@pytest.mark.parametrize("spec", ["ring:8", "mesh:2x4", "torus:2x4", "fc:8", "mi300x:1", "dgx1"])
def test_a_network_whose_npus_hang_on_each_other_is_no_fabric(spec: str, tmp_path: Path) -> None:
    (tmp_path / "dgx.xml").write_text(dgx())
    with refusal(tmp_path, "hosts hang on switches", spec, "joined to other NPUs", "switch:8"):
        join_files([tmp_path / "dgx.xml"], spec, count=4)
    with refusal(tmp_path, "ring:1 NPU 0 hangs on none", "switch:1"):
        join_files([tmp_path / "dgx.xml"], "ring:1", adapters="mlx5_0")


def test_a_cluster_that_would_be_too_large_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dgx.xml").write_text(dgx())
    with refusal(tmp_path, "8 ports", "1000000000 hosts with 2000000000 adapters"):
        join_files([tmp_path / "dgx.xml"], "switch:8", count=10**9)
    monkeypatch.setattr("weft.topology.machines.join.MAX_PARTS", 20)
    with refusal(tmp_path, "more than 20 parts"):
        join_files([tmp_path / "dgx.xml"], "switch:8", count=4)


def test_what_is_no_host_or_no_fabric(tmp_path: Path) -> None:
    fabric = railed(["a"]).text
    (tmp_path / "net.yaml").write_text(
        "{weft: topology, version: 1, npus: 2, "
        "links: [{src: 0, dst: 1, bandwidth: 1GB/s, latency: 1us}]}"
    )
    (tmp_path / "fabric.txt").write_text(fabric)
    (tmp_path / "dgx.xml").write_text(dgx())
    (tmp_path / "bare.xml").write_text(dgx().replace("<net ", "<none ").replace("0x0207", "0x0c03"))
    with refusal(tmp_path, "net.yaml", "not the file of a host"):
        join_files([tmp_path / "net.yaml"], tmp_path / "fabric.txt")
    for empty in ("", "\0\0"):
        (tmp_path / "empty.xml").write_text(empty)
        with refusal(tmp_path, "empty.xml", "is not a topology file"):
            join_files([tmp_path / "empty.xml"], tmp_path / "fabric.txt")
    with refusal(tmp_path, "nope.txt: no such file"):
        join_files([tmp_path / "dgx.xml"], "nope.txt")
    with refusal(tmp_path, "names no host"):
        join_files([tmp_path / "dgx.xml"], tmp_path / "dgx.xml")
    with refusal(tmp_path, "bandwidth '50GB/s' is for all links", "leaf=50GB/s"):
        join_files([tmp_path / "dgx.xml"], "switch:2", bandwidth="50GB/s")
    with refusal(tmp_path, "no such file"):
        join_files([f"a={tmp_path}/gone.xml"], tmp_path / "fabric.txt")


def test_cables_that_were_swapped(tmp_path: Path) -> None:
    hosts = [f"n{i}" for i in range(12)]
    fabric = railed(hosts)
    plugs = {**fabric.plugs, ("n4", "mlx5_0"): "leaf1", ("n4", "mlx5_1"): "leaf0"}
    cluster = joined(tmp_path, [("*=dgx", dgx())], replace(fabric, plugs=plugs).text)
    assert cluster.joined.rails == ("mlx5_0", "mlx5_1")
    assert cluster.joined.machine.doubts == [
        "mlx5_0 of n4 hangs on leaf leaf1, a leaf of mlx5_1",
        "mlx5_1 of n4 hangs on leaf leaf0, a leaf of mlx5_0",
    ]


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Any hosts on any leaves, at any rates; all leaves below all spines."""
    nics = [f"mlx5_{i}" for i in range(draw(st.integers(1, 3)))]
    hosts = [f"n{i}" for i in draw(st.sets(st.integers(0, 120), min_size=1, max_size=5))]
    leaves = [f"leaf{i}" for i in range(draw(st.integers(1, 3)))]
    plugs = {(host, nic): draw(st.sampled_from(leaves)) for host in hosts for nic in nics}
    ups = {
        (leaf, f"spine{k}"): draw(st.integers(1, 3))
        for leaf in sorted({*plugs.values()})
        for k in range(draw(st.integers(1, 2)))
    }
    rates = {plug: draw(st.sampled_from(["4xEDR", "4xHDR", "4xNDR"])) for plug in plugs}
    return Fabric(plugs, ups, rates)


@given(fabric=fabrics(), seed=st.integers(0, 1 << 30))
@examples(40)
def test_in_any_order_it_is_the_same_network(
    fabric: Fabric, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, turn = tmp_path_factory.mktemp("join"), random.Random(seed)
    hosts = sorted({host for host, _ in fabric.plugs})
    nics = sorted({nic for _, nic in fabric.plugs})
    guids = {host: {nic: fabric.guid(host, nic) for nic in nics} for host in hosts}
    text = {host: dgx(gpus=2 * len(nics), nics=nics, guids=guids[host]) for host in hosts}
    files = [(f"dump-of-{host}", text[host]) for host in hosts]
    first = joined(folder, files, fabric.text)
    found = cables(first.joined.machine)
    assert first.topology.npus == len(hosts) * 2 * len(nics)
    assert first.joined.adapters == len(fabric.plugs)
    rates = {"4xEDR": 12.5e9, "4xHDR": 25e9, "4xNDR": 50e9}
    for (host, nic), leaf in fabric.plugs.items():
        there, back = (
            (f"nic {nic} of {host}", f"leaf {leaf}"),
            (f"leaf {leaf}", f"nic {nic} of {host}"),
        )
        assert found[there] == found[back] == [rates[fabric.rates[host, nic]]]

    blocks = fabric.blocks()
    for some in (files, blocks):
        turn.shuffle(some)
    again = joined(folder, files, "\n\n".join(blocks))
    assert cables(again.joined.machine) == found
    assert again.topology.links == first.topology.links
    assert again.joined.hosts == first.joined.hosts
    assert again.joined.rails == first.joined.rails


def test_wrong_commands_get_one_sentence_and_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "dgx.xml").write_text(dgx())
    (tmp_path / "fabric.txt").write_text(railed(["a", "b"]).text)
    (tmp_path / "cut.txt").write_text(railed(["a", "b"]).text[:-40])
    locked = tmp_path / "locked"
    locked.mkdir()
    before = sorted(tmp_path.rglob("*"))
    good = ("*=dgx.xml", "--fabric", "fabric.txt")
    for args, words in (
        ((*good, "-o", "missing/cluster.yaml"), "missing"),
        ((*good, "-o", "cluster.txt"), "cluster.txt"),
        (("*=dgx.xml", "--fabric", "gone.txt", "-o", "cluster.yaml"), "gone.txt"),
        (("dgx.xml", "--fabric", "fabric.txt", "-o", "cluster.yaml"), "which host"),
        (("dgx.xml", "--fabric", "switch:6", "--count", "2", "-o", "cluster.yaml"), "6 ports"),
        ((*good, "--count", "many", "-o", "cluster.yaml"), "many"),
        (("dgx.xml",), "--fabric"),
        (("--fabric", "fabric.txt"), "FILE"),
    ):
        assert words in refused("topo", "join", *args, cwd=tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
