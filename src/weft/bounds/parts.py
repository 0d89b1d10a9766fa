"""Which parts of a network to look at: bounds from regions, and from cones around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from weft.bounds.bound import NONE, Bound, Certificate
from weft.bounds.classes import ChunkClasses
from weft.bounds.cones import cones
from weft.bounds.lengths import Carriers
from weft.bounds.messages import Distances, Messages
from weft.bounds.partitions import Partition, regions, singles
from weft.bounds.regions import bound_of_parts, weighed
from weft.cost import CostModel
from weft.topology.model import Topology

_MOST_NPUS = 1024  # a number is kept for each two of them
_QUICK_BUDGET = 200_000  # link visits

_PARTITIONS: WeakKeyDictionary[Topology, list[Partition]] = WeakKeyDictionary()
_ARGUMENTS: WeakKeyDictionary[Topology, dict[object, list[Argument]]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Argument:
    """Messages, by which share of all bytes they must weigh, and the parts they go into."""

    kind: str
    messages: Messages
    share: float
    label: NDArray[np.int64]

    def time_for(self, total: float) -> int:
        """Picoseconds, if there are so many bytes in all."""
        return self.messages.time_for(self.share * total)

    @property
    def certificate(self) -> Certificate:
        return _certificate(self.label, self.messages.links)


def region_bound(topology: Topology, classes: ChunkClasses, cost: CostModel) -> Bound:
    """What all receives prove together, and all messages between the parts of a partition."""
    best, found = NONE, None
    if len(classes) == 0 or classes.are_pairs:
        return best
    carriers = Carriers.of(topology, classes, cost)
    for partition in _partitions(topology):
        time, ideal = bound_of_parts(carriers, partition, classes)
        found = partition if time > best.time else found
        best = best.stronger(Bound(time, "gossip" if partition.single else "regions", ideal))
    if found is None or found.single:
        return best
    return Bound(best.time, best.kind, best.ideal, _certificate(found.label, found.links))


def message_bound(
    topology: Topology, classes: ChunkClasses, cost: CostModel, enough: int, budget: int
) -> Bound:
    """What messages between parts prove with what they can know and tell; cones, and regions."""
    best = NONE
    total = float(classes.bytes.sum())
    for size in (0, classes.smallest):
        for argument in _arguments(topology, classes, cost, size, budget):
            time = argument.time_for(total)
            if time > best.time:
                best = Bound(time, argument.kind, best.ideal, argument.certificate)
            if size == 0 and time > best.ideal:
                best = Bound(best.time, best.kind, time, best.certificate)
            if best.time >= enough:
                return best
    return best


def quick_message_bound(topology: Topology, classes: ChunkClasses, cost: CostModel) -> int:
    """The same for any chunking, in picoseconds; the arguments are kept for the next time."""
    sets = (classes.pre, classes.post, classes.reduce, classes.set_offsets, classes.set_members)
    shares = classes.bytes / classes.bytes.sum()
    key = (cost, *(column.tobytes() for column in sets), shares.tobytes())
    known = _ARGUMENTS.setdefault(topology, {})
    if key not in known:
        known[key] = list(_arguments(topology, classes, cost, 0, _QUICK_BUDGET))
    total = float(classes.bytes.sum())
    return max((argument.time_for(total) for argument in known[key]), default=0)


def _arguments(
    topology: Topology, classes: ChunkClasses, cost: CostModel, size: int, budget: int
) -> Iterator[Argument]:
    """Cones and regions that are worth a look, with distances for chunks of `size` bytes."""
    visits = topology.npus * (topology.links + topology.nodes)
    few = topology.npus <= _MOST_NPUS and visits <= budget
    if len(classes) == 0 or classes.are_pairs or not few:
        return
    distances = Distances(topology, cost, size)
    total = float(classes.bytes.sum())
    for partition in _partitions(topology):
        if not partition.single:
            for messages, needed in weighed(distances, classes, partition):
                yield Argument("regions", messages, needed / total, partition.label)
        for inside in _around(partition, classes):
            for messages, needed in cones(distances, classes, inside):
                yield Argument("cone", messages, needed / total, np.where(inside, 0, -1))


def _around(partition: Partition, classes: ChunkClasses) -> Iterator[NDArray[np.bool_]]:
    """The narrowest part into which something must come; the rest, likewise, of what must leave."""
    label = partition.label
    holders, takers = (
        np.unique(label[np.concatenate([classes.members(int(s)) for s in np.unique(side)])])
        for side in (classes.pre, classes.post)
    )
    into = takers[np.argsort(partition.rate_in[takers], kind="stable")]
    out = holders[np.argsort(partition.rate_out[holders], kind="stable")]
    rooted = len(holders) == 1  # nothing comes into its part
    yield from (label == part for part in into[int(rooted and into[0] in holders) :][:1])
    yield from (label != part for part in out[int(len(takers) == 1 and out[0] in takers) :][:1])


def _partitions(topology: Topology) -> list[Partition]:
    """Those of a network; found once."""
    if topology not in _PARTITIONS:
        _PARTITIONS[topology] = [singles(topology), *regions(topology)]
    return _PARTITIONS[topology]


def _certificate(label: NDArray[np.int64], links: NDArray[np.intp]) -> Certificate:
    order = np.argsort(label, kind="stable")
    order = order[label[order] >= 0]
    parts = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
    return Certificate.of(parts, links)
