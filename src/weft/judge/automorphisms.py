"""Whether a network is vertex-transitive: proved from automorphisms, whoever names them.

What is named is a list of permutations of all nodes. Each is checked link by link; then the parts
into which they join the NPUs are counted. One part: some product of them moves any NPU to any
other, and what holds for one NPU holds for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.judge.orbits import NotAlikeError
from weft.topology.model import Topology

Numbers = NDArray[np.int64]


def symmetry_words(topology: Topology) -> str:
    """What is known: ``vertex-transitive``, ``not found`` or ``not searched``.

    What is not found may be there, if what there is to try is too much.
    """
    said = topology.symmetry
    if not said.transitive:
        return "not found" if said.searched else "not searched"
    try:
        prove_alike(topology, said.found, np.zeros(topology.links, dtype=np.int64))
    except NotAlikeError:
        return "not found"
    return "vertex-transitive"


def prove_alike(
    topology: Topology, images: Sequence[NDArray[np.int32]], marks: NDArray[np.integer[Any]]
) -> None:
    """Raise NotAlikeError unless permutations of the nodes move any NPU to any other.

    Parameters
    ----------
    images
        For each permutation, where it moves each node.
    marks
        A number of each link, which they are to keep as well as its speed.
    """
    kind = _numbered(topology.bandwidth, topology.latency, marks)
    ability = _abilities(topology)
    kinds = int(kind.max(initial=0)) + 1
    if topology.nodes**2 * kinds >= 2**63:
        raise NotAlikeError("its links are of too many kinds")
    links = _keys(topology, kind, kinds, np.arange(topology.nodes))
    for image in images:
        if not np.array_equal(np.sort(image), np.arange(topology.nodes)):
            raise NotAlikeError("two nodes are moved to one")
        if not np.array_equal(ability[image], ability):
            raise NotAlikeError("nodes are moved to others that can do something else")
        moved = _keys(topology, kind, kinds, image)
        for link in np.flatnonzero(moved != links)[:1].tolist():
            ends = divmod(int(min(moved[link], links[link])) // kinds, topology.nodes)
            one, two = (topology.node_name(end) for end in ends)
            raise NotAlikeError(f"there is no link like {one} > {two} where it is moved from or to")
    label = joined(images, topology.nodes)[topology.members]
    for npu in topology.members[label != label[0]][:1].tolist():
        raise NotAlikeError(f"nothing moves NPU {topology.members[0]} to NPU {npu}")


def _keys(
    topology: Topology, kind: Numbers, kinds: int, image: NDArray[np.integer[Any]]
) -> Numbers:
    """What tells links apart, as they are moved, in ascending order."""
    ends = image[topology.src] * np.int64(topology.nodes) + image[topology.dst]
    return np.sort(ends * kinds + kind)


def _numbered(*columns: NDArray[np.integer[Any]]) -> Numbers:
    """One number for all links that have the same in all columns."""
    rows = np.stack([column.astype(np.int64) for column in columns], axis=1)
    # Links that are alike come in long runs: compare the runs, not the links.
    starts = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]).any(axis=1))[: len(rows)])
    _, number = np.unique(rows[starts], axis=0, return_inverse=True)
    lengths = np.diff(starts, append=len(rows))
    return np.repeat(number.reshape(-1).astype(np.int64), lengths)


def _abilities(topology: Topology) -> Numbers:
    """A number for NPUs, one for those that were removed, and one for each kind of switches."""
    found = np.zeros(topology.nodes, dtype=np.int64)
    found[list(topology.removed)] = 1
    found[topology.npus :] = 2
    found[list(topology.copying)] += 1
    found[list(topology.adding)] += 2
    for number, size in enumerate(sorted(set(topology.buffers.values()))):
        limited = [switch for switch, limit in topology.buffers.items() if limit == size]
        found[limited] += 4 * (number + 1)
    return found


def joined(images: Sequence[NDArray[np.integer[Any]]], count: int) -> Numbers:
    """For each of so many numbers the smallest to which products of permutations move it."""
    label = np.arange(count)
    while True:
        before = label
        for image in images:
            # The least of a number, its image, the image of that, ...: twice as many each time.
            jump, reached = image, 1
            while reached < count:
                label = np.minimum(label, label[jump])
                jump, reached = jump[jump], 2 * reached
        if np.array_equal(label, before):
            return label
