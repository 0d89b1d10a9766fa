"""Networks written as InfraGraph: read back they are the same, and its own package reads them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.strategies import damaged, irregular, networks
from weft.documents.places import load_yaml
from weft.documents.reading import load_json
from weft.errors import InputError
from weft.topology import Topology, load_topology
from weft.topology.files import write_topology
from weft.topology.infragraph import _runs

EXAMPLES = Path(__file__).parent / "machines" / "examples"
SPECS = ("h100:2", "gb200:1", "mi300x:1", "mesh:4x4", "clos:8x4x2", "dgx1", "ring:1", "switch:3")


def rows(network: Topology) -> list[tuple[int, ...]]:
    return sorted(zip(*(column.tolist() for column in network.columns), strict=True))


def check_same(network: Topology, again: Topology) -> None:
    for what in ("name", "npus", "switches", "removed", "buffers", "copying", "adding"):
        assert getattr(again, what) == getattr(network, what), what
    for what in ("dimensions", "changes", "labels"):
        assert getattr(again, what) == getattr(network, what), what
    assert rows(again) == rows(network)


def written(network: Topology, folder: Path, suffix: str = "json") -> Path:
    path = folder / f"network.{suffix}"
    path.unlink(missing_ok=True)
    write_topology(network, path, "infragraph")
    return path


@examples(60)
@given(
    network=st.one_of(networks(), irregular(), damaged()), suffix=st.sampled_from(["yaml", "json"])
)
def test_read_back_it_is_the_same(
    network: Topology, suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    check_same(network, load_topology(written(network, folder, suffix)))


@pytest.mark.parametrize("spec", SPECS)
def test_networks_with_names(spec: str, tmp_path: Path) -> None:
    network = load_topology(spec)
    check_same(network, load_topology(written(network, tmp_path)))


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_one_with_many_switches_that_add(suffix: str, tmp_path: Path) -> None:
    """What is said of each of them is longer than what is looked at to know the file."""
    network = load_topology("h100:64")
    path = written(network, tmp_path, suffix)
    check_same(network, load_topology(path))
    turned = load_json(path.read_bytes()) if suffix == "json" else load_yaml(path.read_text())
    turned = {"annotations": turned.pop("annotations"), **turned}
    path.write_bytes(msgspec.json.encode(turned))
    check_same(network, load_topology(path))


def test_names_and_notes_of_a_file(tmp_path: Path) -> None:
    network = load_topology(EXAMPLES / "nccl-dgx.xml")
    assert network.labels is not None
    assert network.labels.notes
    check_same(network, load_topology(written(network, tmp_path)))


def test_numbers_with_more_digits_than_a_file_keeps(tmp_path: Path) -> None:
    rates = [10**18, 10**18 - 1, 999_999_999_999_999_999 - 7, 1, 3]
    delays = [10**18, 10**18 - 1, 0, 1, 7]
    network = Topology.from_links("wide", 6, range(5), range(1, 6), rates, delays)
    check_same(network, load_topology(written(network, tmp_path, "yaml")))


@given(st.sets(st.integers(0, 40)))
def test_runs_are_all_the_numbers(numbers: set[int]) -> None:
    runs = _runs(sorted(numbers))
    assert [number for run in runs for number in run] == sorted(numbers)
    assert all(a.stop - a.step < b.start for a, b in pairwise(runs))


@pytest.mark.parametrize(
    ("spec", "most"), [("h100:64", 80), ("leaf-spine:32x8x8", 12), ("ring:64", 3)]
)
def test_regular_networks_take_few_edges(spec: str, most: int, tmp_path: Path) -> None:
    path = written(load_topology(spec), tmp_path)
    assert len(msgspec.json.decode(path.read_bytes())["edges"]) <= most


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"weft.version", "value": "1"', '"weft.version", "value": "7"', "weft.version is '7'"),
        ('"weft.version", "value": "1"', '"weft.version", "value": "{"', "is '{', not JSON"),
        ('"weft.dimensions"', '"weft.color"', "unknown key 'color'"),
        ('"[2, 2]"', '"[2, 3]"', "annotations: "),
        ('"choice": "ns"', '"choice": "us"', "link 'link0' has no bandwidth"),
        ('"count": 4', '"count": 3', "'npu'[3] is none of the 3"),
    ],
)
def test_damaged_annotations(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    path = written(load_topology("mesh:2x2"), tmp_path)
    text = " ".join(path.read_text().split())
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError) as error:
        load_topology(path)
    assert sentence in str(error.value)


def test_links_beside_the_edges(tmp_path: Path) -> None:
    """Links that do not run alike both ways are between nodes that an edge joins."""
    one_way = Topology.from_links("one-way", 3, [0, 1, 2], [1, 2, 0], "1GB/s", "1us")
    path = written(one_way, tmp_path)
    plain = msgspec.json.decode(path.read_bytes())
    assert len(plain["edges"]) == 2
    plain["edges"].pop()
    path.write_bytes(msgspec.json.encode(plain))
    with pytest.raises(InputError, match="which no edge joins"):
        load_topology(path)


def test_it_says_its_own_rates(tmp_path: Path) -> None:
    path = written(load_topology("h100:1"), tmp_path)
    with pytest.raises(InputError, match="is a network of its own"):
        load_topology(path, nvlink="18")
    with pytest.raises(InputError, match="unknown form of a topology 'infra'"):
        write_topology(load_topology(path), tmp_path / "a.yaml", "infra")


@examples(15)
@given(network=irregular())
def test_its_own_package_reads_it(
    network: Topology, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The service of the package sees the same nodes, and an edge where links are."""
    package = pytest.importorskip("infragraph")
    service = pytest.importorskip("infragraph.infragraph_service").InfraGraphService()
    path = written(network, tmp_path_factory.getbasetemp())
    service.set_graph(path.read_text())
    annotations = msgspec.json.encode(msgspec.json.decode(path.read_bytes())["annotations"])
    service.annotate_graph(package.Annotation().deserialize(annotations.decode()))
    graph = service.get_networkx_graph()

    def number(name: str) -> int:
        instance, index, *_ = name.split(".")
        return int(index) + (network.npus if instance == "switch" else 0)

    assert sorted(map(number, graph.nodes)) == list(range(network.nodes))
    assert graph.graph["weft.version"] == "1"
    rates: dict[frozenset[int], dict[tuple[int, int], int]] = {}
    for a, b, rate, _ in rows(network):
        ways = rates.setdefault(frozenset((a, b)), {})
        ways[a, b] = ways.get((a, b), 0) + rate
    edges = {frozenset(map(number, ends)): said for *ends, said in graph.edges(data=True)}
    assert edges.keys() == rates.keys()
    for ends, said in edges.items():
        value, unit = said["bandwidth"].split()
        assert unit == "GBps"
        assert any(float(value) == pytest.approx(rate / 1e9) for rate in rates[ends].values())
