"""Files: what is written comes back, and what is wrong is named with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.topology.helpers import assert_same, pairs, topologies
from weft.documents import read_document
from weft.errors import FormatError, InputError
from weft.topology import Topology, files, parse_topology
from weft.topology.files import read_topology, write_topology

HEAD = "weft: topology\nversion: 1\nnpus: 3\nswitches: 1\n"
SPEED = "bandwidth: 50GB/s, latency: 1us"

shared_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("suffix", ["yaml", "yml", "json"])
@pytest.mark.parametrize("columns", [True, False])
@shared_folder
@given(topology=topologies())
def test_round_trip(tmp_path: Path, suffix: str, columns: bool, topology: Topology) -> None:
    path = tmp_path / f"net.{suffix}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "MAX_LISTED_LINKS", 0 if columns else 1000)
        write_topology(topology, path)
    assert_same(read_topology(path), topology)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_round_trip_of_large_networks(tmp_path: Path, suffix: str) -> None:
    topology = parse_topology("torus:12x12*switch:3", bandwidth=[1, 2, 3]).without(npus=[5])
    write_topology(topology, tmp_path / f"net.{suffix}")
    assert_same(read_topology(tmp_path / f"net.{suffix}"), topology)


def write(tmp_path: Path, text: str | bytes, name: str = "net.yaml") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_file_by_hand(tmp_path: Path) -> None:
    text = HEAD + "bandwidth: 400Gbps\nlatency: 0\nremoved: [2]\nlinks:\n"
    text += f"  - {{src: 0, dst: s0, both: true}}\n  - {{src: 3, dst: 1, {SPEED}}}\n"
    topology = read_topology(write(tmp_path, "\ufeff" + text))
    assert topology.name == "net"
    assert pairs(topology) == [(0, 3), (3, 0), (3, 1)]
    assert topology.bandwidth.tolist() == [50 * 10**9] * 3
    assert topology.latency.tolist() == [0, 0, 10**6]
    assert topology.removed == {2}


def test_switches_by_hand(tmp_path: Path) -> None:
    head = HEAD.replace("switches: 1", "switches: 2")
    text = head + "buffer: 64KiB\nmulticast: true\nlinks: []\n"
    topology = read_topology(write(tmp_path, text))
    assert topology.buffers == {3: 65536, 4: 65536}
    assert topology.copying == {3, 4}
    text = head + "buffer: {s1: 0}\nmulticast: [s0]\nlinks: []\n"
    topology = read_topology(write(tmp_path, text))
    assert topology.buffers == {4: 0}
    assert topology.copying == {3}


def test_dimensions_by_hand(tmp_path: Path) -> None:
    topology = read_topology(write(tmp_path, HEAD + "dimensions: [3, 1]\nlinks: []\n"))
    assert topology.dimensions == (3, 1)


def yaml_links(*rows: str) -> str:
    return HEAD + "links:\n" + "".join(f"  - {{{row}}}\n" for row in rows)


GOOD = f"src: 0, dst: 1, {SPEED}"

WRONG = [
    (yaml_links(GOOD, "src: 0, dst: 1, bandwidth: -5GB/s, latency: 0"),
     "line 7: link 1 has bandwidth '-5GB/s'; expected a positive rate such as 50GB/s"),
    (yaml_links("src: 0, dst: 1, bandwidth: 0GB/s, latency: 0"), "line 6: link 0 has bandwidth '0"),
    (yaml_links("src: 0, dst: 1, bandwidth: .nan, latency: 0"), "link 0 has bandwidth 'nan'"),
    (yaml_links("src: 0, dst: 1, bandwidth: 50, latency: 0"), "line 6: link 0 has bandwidth '50'"),
    (yaml_links("src: 0, dst: 1, latency: 0"), "line 6: link 0 has no bandwidth"),
    (yaml_links("src: 0, dst: 1, bandwidth: 1GB/s"), "line 6: link 0 has no latency"),
    (yaml_links("src: 0, dst: 1, bandwidth: 1GB/s, latency: -1us"),
     "line 6: link 0 has latency '-1us'; expected a time from 0 such as 0.5us"),
    (HEAD + "bandwidth: fast\nlinks:\n  - {src: 0, dst: 1, latency: 0}",
     "line 5: link 0 has bandwidth 'fast'"),
    (yaml_links(GOOD, f"src: 0, dst: 4, {SPEED}"),
     "line 7: link 1 has dst 4, but NPUs are 0 to 2 and switches s0 to s0"),
    (yaml_links(f"src: 0, dst: s1, {SPEED}"), "line 6: link 0 has dst s1, but"),
    (yaml_links(f"src: -1, dst: 1, {SPEED}"), "line 6: link 0 has src -1, but"),
    (yaml_links(f"src: x, dst: 1, {SPEED}"), "line 6: link 0 has src 'x'; expected a number"),
    (yaml_links(f"src: 3, dst: s0, {SPEED}"), "line 6: link 0 joins node 3 to itself"),
    (yaml_links(f"dst: 0, {SPEED}"), "line 6: link 0 has no src"),
    (yaml_links(f"src: null, dst: 0, {SPEED}"), "line 6: link 0: src is wrong: expected int | str"),
    (yaml_links("src: 0, dst: 1, bandwith: 50GB/s, latency: 0"),
     "line 6: link 0 has an unknown key 'bandwith'; did you mean 'bandwidth'?"),
    (HEAD + "gold: 1\nlinks: []", "line 5: the file has an unknown key 'gold' (known: weft"),
    (HEAD, "the file needs either links or columns"),
    (HEAD + "links: []\ncolumns: {src: [], dst: [], bandwidth: 1, latency: 1}", "not both"),
    (HEAD + "link_count: 2\n" + yaml_links(GOOD)[len(HEAD):],
     "line 5: link_count is 2, but 1 links follow; the file may be cut short"),
    (HEAD + "removed: [1]\n" + yaml_links(GOOD)[len(HEAD):],
     "line 7: link 0 joins an NPU that is listed as removed"),
    (HEAD + "removed: [3]\nlinks: []", "line 5: removed NPU 3 does not exist"),
    (HEAD + "removed: [0, 1, 2]\nlinks: []", "no NPU is left"),
    (HEAD + "columns: {src: [0, 1], dst: [1], bandwidth: 1, latency: 1}", "different lengths"),
    (HEAD + "columns: {src: [0], dst: [9], bandwidth: 1, latency: 1}",
     "line 5: link 0 joins node 9, but NPUs are"),
    (HEAD + "columns:\n  src: [0]\n  dst: [1]\n  bandwidth: [0]\n  latency: 1",
     "line 8: bandwidth is wrong: expected int >= 1"),
    (HEAD + "buffer: much\nlinks: []",
     "line 5: buffer 'much' is not a size from 0; write it like 64KiB"),
    (HEAD + "buffer:\n  s0: 1KiB\n  s1: 1KiB\nlinks: []",
     "line 7: buffer names 's1', but NPUs are 0 to 2 and switches s0 to s0"),
    (HEAD + "buffer:\n  s0: -1\nlinks: []", "line 6: buffer '-1' is not a size"),
    (HEAD + "buffer: [1]\nlinks: []", "line 5: buffer is wrong"),
    (HEAD + "multicast: maybe\nlinks: []", "line 5: multicast is wrong"),
    (HEAD + "multicast: [s0, 1]\nlinks: []", "line 5: multicast is wrong"),
    (HEAD + "multicast:\n  - s0\n  - s7\nlinks: []", "line 7: multicast names 's7', but NPUs"),
    (HEAD + "dimensions: [2, 2]\nlinks: []",
     "line 5: net: dimensions [2, 2] do not fit 3 NPUs; expected sizes from 1 whose product"),
    (HEAD + "dimensions: [0]\nlinks: []", "line 5: net: dimensions [0] do not fit 3 NPUs"),
    (HEAD + "dimensions: [x]\nlinks: []", "line 5: dimensions is wrong"),
    ("weft: topology\nversion: 2\nnpus: 1\nlinks: []", "line 2: version is wrong"),
    ("weft: topology\nversion: 1\nnpus: 0\nlinks: []", "line 3: npus is wrong: expected int >= 1"),
    ("weft: topology\nversion: 1\nnpus: 99999999999\nlinks: []", "line 3: npus is wrong"),
    ("weft: topology\nversion: 1\nlinks: []", "the file has no npus"),
    ("weft: algorithm\n", "line 1: is not a topology file: it says 'weft: algorithm'"),
    ("hello", "is not a topology file: it has no 'weft: topology'"),
    ("", "is not a topology file"),
    ("weft: topology\nlinks: [", "line 2: not valid YAML"),
    ("a: &a [1]\nb: [*a, *a]\n", "line 2: aliases such as *a have no place here"),
    ("[" * 100_000, "line 1: nests deeper than 32 levels"),
    ("weft: !!python/object:os.system x", "tags such as"),
    ("weft: 2024-99-99", "is not a topology file"),
    (b"weft: topology\nname: \xff\n", "line 2: is not UTF-8 text"),
    ("a: \x00", "not valid YAML"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_wrong_yaml(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_topology(write(tmp_path, text))
    assert message in str(caught.value)
    assert "net.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        read_topology(write(tmp_path, "# nccl-tests: \t x\n", "log.txt"))
    assert "log.txt: is not a topology file: neither Weft's own nor one of these:" in str(
        caught.value
    )
    assert "an output of `nvidia-smi topo -m`" in str(caught.value)


def json_file(**changes: object) -> str:
    record = {"weft": "topology", "version": 1, "npus": 3, "links": []}
    return json.dumps(record | changes, indent=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json_file(links=[{"src": 0, "dst": 1, "bandwidth": "0B/s", "latency": "0"}]),
         "line 9: link 0 has bandwidth '0B/s'"),
        (json_file(npus="x"), "line 4: npus is wrong: expected int, got str"),
        (json_file(npu=3), "unknown key 'npu'; did you mean 'npus'?"),
        (json_file(weft="schedule"), "line 2: is not a topology file: it says 'weft: schedule'"),
        (json_file()[:-1], "line 6: not valid JSON: Input data was truncated"),
        ('{\n"weft": "topology",\n"npus": NaN}', "line 3: not valid JSON: invalid"),
        ("[" * 100_000 + "]" * 100_000, "nests too deep"),
        ('{"weft": "topology", "version": 1, "npus": 3, "x": ' + "[" * 100_000, "net.json"),
        ("[]", "is not a topology file"),
        ("", "not valid JSON"),
    ],
)  # fmt: skip
def test_wrong_json(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_topology(write(tmp_path, text, "net.json"))
    assert message in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"gone\.yaml: no such file"):
        read_topology(tmp_path / "gone.yaml")
    with pytest.raises(FormatError, match="is a directory"):
        read_topology(tmp_path)
    with pytest.raises(FormatError, match="cannot be read"):
        read_topology("a\0b.yaml")
    with pytest.raises(FormatError, match="is larger than"):
        read_document(write(tmp_path, HEAD), "topology", lambda found: found, most=10)


def test_unwritable_files(tmp_path: Path) -> None:
    topology = parse_topology("ring:3")
    with pytest.raises(InputError, match=r"is written to a \.yaml, \.yml, \.json file"):
        write_topology(topology, tmp_path / "net.txt")
    with pytest.raises(InputError, match="cannot be written: there is no folder"):
        write_topology(topology, tmp_path / "no" / "net.yaml")
    (tmp_path / "net.yaml").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_topology(topology, tmp_path / "net.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["net.yaml"]


def astra(kinds: str, npus: str, bandwidth: str, latency: str) -> str:
    return (
        f"topology: [ {kinds} ]\nnpus_count: [ {npus} ]\n"
        f"bandwidth: [ {bandwidth} ]  # GB/s\nlatency: [ {latency} ]  # ns\n"
    )


@pytest.mark.parametrize(
    ("text", "spec", "gib_s", "ns"),
    [
        (astra("FullyConnected, Switch", "4, 2", "100, 25", "200, 1000"),
         "fc:4*switch:2", [100, 25], [200, 1000]),
        (astra("FullyConnected", "8", "50", "500"), "fc:8", [50], [500]),
        (astra("Ring, Ring", "4, 2", "100, 25", "200, 1000"),
         "ring:4*ring:2", [100, 25], [200, 1000]),
        (astra("Ring", "8", "50.0", "5e2"), "ring:8", [50], [500]),
        (astra("Switch", "8", "50", "500"), "switch:8", [50], [500]),
    ],
)  # fmt: skip
def test_astra_sim(tmp_path: Path, text: str, spec: str, gib_s: list[int], ns: list[int]) -> None:
    expected = parse_topology(
        spec, bandwidth=[value << 30 for value in gib_s], latency=[value * 1000 for value in ns]
    )
    assert_same(read_topology(write(tmp_path, text, "net.yml")), expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (astra("Rng", "8", "50", "1"), "line 1: unknown topology 'Rng'; did you mean 'Ring'?"),
        (astra("Ring", "8, 2", "50", "1"), "line 1: topology has 1 items where npus_count has 2"),
        (astra("Ring", "8", "-1", "1"), "line 3: bandwidth of dimension 0 is -1.0"),
        (astra("Ring", "8", ".nan", "1"), "line 3: bandwidth of dimension 0 is nan"),
        (astra("Ring", "8", "1", "-1"), "line 4: latency of dimension 0 is -1.0; expected 0 to"),
        (astra("Ring", "x", "1", "1"), "line 2: npus_count is wrong"),
        (astra("Ring", "99999999", "1", "1"), "line 2: ring:99999999 has more than"),
        ("npus_count: [2]\n", "the file has no topology"),
    ],
)
def test_wrong_astra_sim(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_topology(write(tmp_path, text, "net.yml"))
    assert message in str(caught.value)
