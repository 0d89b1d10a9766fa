"""The judge's proof that NPUs are alike: mutated permutations and networks are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from weft.judge.automorphisms import prove_alike
from weft.judge.orbits import NotAlikeError
from weft.topology import Topology, load_topology

SPECS = ("torus:4x3", "leaf-spine:4x3x2", "rails:3x4x2", "clos:2x2x3", "h100:2", "hyperx:3x3,p=2")


def proved(network: Topology, images: object, marks: object = None) -> bool:
    zeros = np.zeros(network.links, dtype=np.int64)
    try:
        prove_alike(network, images, zeros if marks is None else marks)  # type: ignore[arg-type]
    except NotAlikeError:
        return False
    return True


@examples(60)
@given(st.sampled_from(SPECS), st.data())
def test_mutated_permutations_are_automorphisms_or_refused(spec: str, data: st.DataObject) -> None:
    network = load_topology(spec)
    images = [image.copy() for image in network.symmetry.found]
    assert proved(network, images)
    image = data.draw(st.sampled_from(images))
    node = st.integers(0, network.nodes - 1)
    a, b = data.draw(node), data.draw(node)
    if data.draw(st.booleans()):
        image[[a, b]] = image[[b, a]]
    else:
        image[a] = image[b]
    links = sorted(zip(*(column.tolist() for column in network.columns), strict=True))
    moved = sorted((int(image[s]), int(image[d]), r, t) for s, d, r, t in links)
    right = moved == links and len(set(image.tolist())) == network.nodes
    assert proved(network, images) == right or not right


@pytest.mark.parametrize("spec", SPECS)
def test_too_few_of_them_do_not_join_all(spec: str) -> None:
    network = load_topology(spec)
    images = network.symmetry.found
    for left_out in range(len(images)):
        few = [image for i, image in enumerate(images) if i != left_out]
        zeros = np.zeros(network.links, dtype=np.int64)
        with pytest.raises(NotAlikeError, match="nothing moves NPU 0 to NPU"):
            prove_alike(network, few, zeros)


def test_reasons() -> None:
    network = load_topology("leaf-spine:2x2x2")
    images = network.symmetry.found
    zeros = np.zeros(network.links, dtype=np.int64)
    for changed, words in (
        (network.scaled([(0, 4)], 0.5), "no link like"),
        (network.without(links=[(0, 4)]), "no link like"),
        (network.with_switches(copying=[4]), "can do something else"),
        (network.with_switches(buffers={5: 100}), "can do something else"),
    ):
        with pytest.raises(NotAlikeError, match=words):
            prove_alike(changed, images, zeros[: changed.links])
    with pytest.raises(NotAlikeError, match="two nodes are moved to one"):
        prove_alike(network, [np.zeros(network.nodes, dtype=np.int32)], zeros)
    npus_to_switches = np.roll(np.arange(network.nodes, dtype=np.int32), 4)
    with pytest.raises(NotAlikeError, match="can do something else"):
        prove_alike(network, [npus_to_switches], zeros)


def test_marks_are_kept_as_well() -> None:
    network = load_topology("torus:4x4")
    along = (abs(network.src - network.dst) % 12 % 4 == 0).astype(np.int64)
    assert proved(network, network.symmetry.found, along)
    along[0] += 1
    assert not proved(network, network.symmetry.found, along)


def test_parallel_links_count() -> None:
    ring = load_topology("ring:4")
    both = {
        name: np.tile(getattr(ring, name), 2) for name in ("src", "dst", "bandwidth", "latency")
    }
    double = replace(ring, **both)
    assert proved(double, ring.symmetry.found)
    less = {name: column[:-1] for name, column in both.items()}
    assert not proved(replace(ring, **less), ring.symmetry.found)
