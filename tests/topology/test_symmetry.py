"""Automorphisms that move NPUs to each other: declared, found, not found where there are none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.examples import examples
from tests.strategies import irregular, shuffled
from weft.judge.automorphisms import prove_alike, symmetry_words
from weft.topology import Topology, load_topology
from weft.topology.files import write_topology
from weft.topology.symmetry import MOST_NPUS

DECLARED = (
    *("ring:1", "torus:4x3x1", "hypercube:4", "fc:5", "switch:6", "switch:3*ring:4*fc:2"),
    *("leaf-spine:1x1x1", "leaf-spine:4x3x2", "rails:4x3", "rails:4x3x2", "fat-tree:4"),
    *("clos:3x2x4", "clos:3x2x4,up=2x3", "clos:4x4x2,oversubscription=2x4", "hyperx:3x2,p=2"),
    *(
        "hyperx:4,p=1",
        "h100",
        "h100:3",
        "a100",
        "a100:3",
        "dgx2",
        "nvl72",
        "nvl72:2",
        "tpuv4:4x4x4",
    ),
    *("b300:2", "vr200", "mi300x", "mi350x:2", "tpuv6e:16x16", "tpu7x:4x4x8"),
    *("trn2", "trn2:2", "trn2-ultra", "trn2-ultra:2", "gaudi3", "gaudi3:2"),
    *("cloudmatrix384:1", "cloudmatrix384:3"),
    *("clos:2x2x2,multicast,buffer=1MiB", "rails:3x2,multicast"),
)
NOT_ALIKE = (
    *("line:3", "mesh:4x4", "dragonfly:4x9", "dragonfly:p=2,a=4,h=2", "dgx1", "dgx2:2", "ndv2:2"),
    *("mi250", "mi250:2", "tpuv4:2x3x4", "tpuv5e:8x16"),
)


def prove(network: Topology) -> None:
    assert network.symmetry.transitive
    prove_alike(network, network.symmetry.found, np.zeros(network.links, dtype=np.int64))


@pytest.mark.parametrize("spec", DECLARED)
def test_what_is_declared_is_true(spec: str) -> None:
    network = load_topology(spec)
    assert network.translates
    assert not network.symmetry.searched
    assert len(network.symmetry.found) == sum(size > 1 for size in network.dimensions)
    prove(network)


@pytest.mark.parametrize("spec", DECLARED)
@pytest.mark.parametrize("seed", [0, 1])
def test_it_is_found_whatever_the_numbers(spec: str, seed: int) -> None:
    network = shuffled(load_topology(spec), seed)[0]
    assert network.symmetry.searched
    prove(network)


@pytest.mark.parametrize("spec", NOT_ALIKE)
def test_where_there_is_none(spec: str) -> None:
    network = load_topology(spec)
    assert not network.translates
    assert symmetry_words(network) == "not found"
    assert symmetry_words(shuffled(network, 0)[0]) == "not found"


@examples(40)
@given(st.sampled_from(DECLARED), st.data())
def test_almost_symmetric_networks(spec: str, data: st.DataObject) -> None:
    """One link slower, or gone: no NPU can be all others any more, unless it was all there was."""
    network = load_topology(spec)
    assume(network.npus > 3)
    link = data.draw(st.integers(0, network.links - 1))
    pair = [(int(network.src[link]), int(network.dst[link]))]
    slow, gone = network.scaled(pair, 0.5), network.without(links=pair)
    spine = min(pair[0]) >= network.npus and network.switches
    for changed in (slow, gone, shuffled(slow, 1)[0]):
        if not spine:  # of links between switches some serve all alike, such as with one leaf
            assert symmetry_words(changed) == "not found"


def test_found_where_nobody_declares_it() -> None:
    """Groups of this dragonfly are joined as multiplication modulo 5 goes."""
    network = load_topology("dragonfly:4x5")
    assert not network.translates
    prove(network)


GRAPHS = (
    nx.petersen_graph(),  # vertex-transitive, but no group moves its nodes like translations
    nx.circulant_graph(13, [1, 3, 4]),
    nx.circulant_graph(20, [1, 8, 9]),
    nx.dodecahedral_graph(),
    nx.icosahedral_graph(),
    nx.complete_bipartite_graph(4, 4),
    nx.line_graph(nx.complete_graph(5)),  # triangular graph
    nx.convert_node_labels_to_integers(nx.kneser_graph(6, 2)),
    nx.cubical_graph(),
    nx.paley_graph(13).to_undirected(),
)


@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_vertex_transitive_graphs_that_are_no_products(graph: nx.Graph) -> None:
    network = Topology.from_networkx(graph, bandwidth="1GB/s", latency="1us")
    prove(network)
    prove(shuffled(network, 3)[0])


@pytest.mark.parametrize(
    "graph",
    [
        nx.frucht_graph(),  # regular, with no automorphism but the identity
        nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(4)),
        nx.disjoint_union(
            nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
        ),
    ],
    ids=str,
)
def test_regular_graphs_that_are_not(graph: nx.Graph) -> None:
    network = Topology.from_networkx(graph, bandwidth="1GB/s", latency="1us")
    assert symmetry_words(network) == "not found"


def by_trying(network: Topology) -> bool:
    """Whether all permutations of NPUs and switches that keep the links join all NPUs."""
    links = sorted(zip(*(column.tolist() for column in network.columns), strict=True))
    reached = {0}
    for npus in permutations(range(network.npus)):
        for switches in permutations(range(network.npus, network.nodes)):
            to: Sequence[int] = (*npus, *switches)
            moved = sorted((to[a], to[b], rate, delay) for a, b, rate, delay in links)
            if moved == links and all(
                (node in network.copying) == (to[node] in network.copying)
                and network.buffers.get(node) == network.buffers.get(to[node])
                for node in range(network.npus, network.nodes)
            ):
                reached.add(to[0])
    return len(reached) == network.npus


@st.composite
def regular(draw: st.DrawFn) -> Topology:
    """A few NPUs round a ring, chords of a few lengths, and a switch or two for some of them."""
    npus = draw(st.integers(2, 5))
    steps = draw(st.sets(st.integers(1, npus - 1), min_size=1, max_size=2))
    ends = [(npu, (npu + step) % npus) for npu in range(npus) for step in sorted(steps)]
    hubs = draw(st.integers(0, 2))
    for hub in range(npus, npus + hubs):
        behind = draw(st.sampled_from([range(npus), range(0, npus, 2), range(1)]))
        ends += [pair for npu in behind for pair in ((npu, hub), (hub, npu))]
    return Topology.from_links("regular", npus, *zip(*ends, strict=True), 1, 0, switches=hubs)


@examples(80)
@given(st.one_of(regular(), irregular(5, 2)))
def test_against_trying_all_permutations(network: Topology) -> None:
    assume(network.npus <= 5)
    assert (symmetry_words(network) == "vertex-transitive") == by_trying(network)


def test_npus_that_were_removed() -> None:
    mesh = load_topology("fc:6").without(npus=[2])
    assert symmetry_words(mesh) == "vertex-transitive"
    prove(mesh)
    assert symmetry_words(load_topology("ring:6").without(npus=[2])) == "not found"


def test_switches_that_can_do_different_things() -> None:
    network = load_topology("leaf-spine:2x3x2")
    leaf, spine = network.npus, network.nodes - 1
    assert symmetry_words(network.with_switches(copying=[spine])) == "vertex-transitive"
    assert symmetry_words(network.with_switches(copying=[leaf])) == "not found"
    assert symmetry_words(network.with_switches(buffers={leaf: 1024})) == "not found"
    limits = dict.fromkeys(range(network.npus, network.npus + 3), 1024)
    assert symmetry_words(network.with_switches(buffers=limits)) == "vertex-transitive"


def test_large_networks_are_not_searched() -> None:
    size = MOST_NPUS + 1
    assert symmetry_words(load_topology(f"line:{size}")) == "not searched"
    assert symmetry_words(load_topology(f"ring:{size}")) == "vertex-transitive"
    assert symmetry_words(load_topology(f"line:{size - 1}")) == "not found"


def test_what_a_network_says_of_itself_is_not_believed() -> None:
    mesh = replace(load_topology("mesh:3x3"), translates=True)
    assert symmetry_words(mesh) == "not found"
    lost = load_topology("h100:2").without(links=["3-s5"])
    assert symmetry_words(replace(lost, translates=True)) == "not found"


@pytest.mark.parametrize("spec", ["torus:3x4", "switch:3*switch:2", "rails:2x3x2", "fat-tree:4"])
def test_grids_that_nobody_declares(spec: str, tmp_path: Path) -> None:
    """A file says how NPUs sit; whether moving them along that does no harm is seen from links."""
    write_topology(load_topology(spec), tmp_path / "net.json")
    network = load_topology(tmp_path / "net.json")
    assert not network.translates
    assert network.shifts
    assert not network.symmetry.searched
    prove(network)
    slower = network.scaled([(0, int(network.dst[network.src == 0][0]))], 0.5)
    assert not slower.shifts
    assert slower.scaled([(0, int(network.dst[network.src == 0][0]))], 2).shifts


@examples(60)
@given(st.one_of(regular(), irregular(5, 2)), st.data())
def test_grids_are_not_taken_for_what_they_are_not(network: Topology, data: st.DataObject) -> None:
    sizes = data.draw(st.sampled_from([(network.npus,), (1, network.npus), (2, network.npus // 2)]))
    assume(sizes[0] * sizes[-1] == network.npus or len(sizes) == 1)
    plain = network.with_switches(buffers={}, copying=[], adding=[])
    claimed = replace(plain, dimensions=sizes, translates=False)
    if claimed.shifts:
        prove(claimed)
