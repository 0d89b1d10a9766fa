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
from weft.bounds.regions import bound_of_parts, messages_needed, weighed
from weft.cost import CostModel
from weft.topology.model import Topology

_MOST_NPUS = 1024  # a number is kept for each two of them
_QUICK_BUDGET = 200_000  # link visits
_MOST_PARTITIONS = 2  # that are looked at closely
_MOST_PLACES = 4  # with whole chunks
_MANY_NPUS, _APART = 32, 0.52  # of the load of single NPUs, at which parts tell more
_SAMPLES = 12  # of sizes
_MOST_KEPT = 64  # collectives of a network

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
        return certificate_of(self.label, self.messages.links)


def region_bound(topology: Topology, classes: ChunkClasses, cost: CostModel) -> Bound:
    """What all receives prove together, and all messages between the parts of a partition."""
    best, found = NONE, None
    if len(classes) == 0 or classes.are_pairs:
        return best
    carriers = Carriers.of(topology, classes, cost)
    for partition in partitions_of(topology):
        if not partition.tells(classes):
            continue
        time, ideal = bound_of_parts(carriers, partition, classes)
        found = partition if time > best.time else found
        best = best.stronger(Bound(time, "gossip" if partition.single else "regions", ideal))
    if found is None or found.single:
        return best
    return Bound(best.time, best.kind, best.ideal, certificate_of(found.label, found.links))


def message_bound(
    topology: Topology, classes: ChunkClasses, cost: CostModel, enough: int, budget: int
) -> Bound:
    """What messages between parts prove with what they can know and tell; cones, and regions.

    Places are compared for any chunking; whole chunks, which know farther ways, are looked at
    in the best of them.
    """
    best = NONE
    total = float(classes.bytes.sum())
    found: list[tuple[int, int, Place]] = []
    shortest, whole = (Distances(topology, cost, size) for size in (0, classes.smallest))
    for number, place in enumerate(_places(topology, classes, budget)):
        strongest = 0
        for argument in place.arguments(shortest, classes):
            strongest = max(strongest, time := argument.time_for(total))
            best = best.stronger(Bound(time, argument.kind, time, argument.certificate))
            if best.time >= enough:
                return best
        found.append((-strongest, number, place))
    for _, _, place in sorted(found)[:_MOST_PLACES]:
        for argument in place.arguments(whole, classes):
            time = argument.time_for(total)
            best = best.stronger(Bound(time, argument.kind, 0, argument.certificate))
    return best


def quick_message_bound(topology: Topology, classes: ChunkClasses, cost: CostModel) -> int:
    """The same for any chunking, in picoseconds; the arguments are kept for the next time."""
    sets = (classes.pre, classes.post, classes.reduce, classes.set_offsets, classes.set_members)
    total = float(classes.bytes.sum())
    key = (cost, *(column.tobytes() for column in sets), (classes.bytes / total).tobytes())
    known = _ARGUMENTS.setdefault(topology, {})
    found = known.get(key)  # another thread may clear them
    if found is None:
        if len(known) >= _MOST_KEPT:
            known.clear()
        shortest = Distances(topology, cost, 0)
        places = _places(topology, classes, _QUICK_BUDGET)
        found = _strongest([a for place in places for a in place.arguments(shortest, classes)])
        known[key] = found
    return max((argument.time_for(total) for argument in found), default=0)


def _strongest(arguments: list[Argument]) -> list[Argument]:
    """Those that prove the most for some number of bytes."""
    best = {
        max(range(len(arguments)), key=lambda number: arguments[number].time_for(total))
        for total in np.logspace(1, 12, _SAMPLES if arguments else 0)
    }
    return [arguments[number] for number in sorted(best)]


@dataclass(frozen=True, eq=False)
class Place:
    """All parts of a partition, or one set of nodes."""

    parts: Partition | NDArray[np.bool_]

    def arguments(self, distances: Distances, classes: ChunkClasses) -> Iterator[Argument]:
        """What messages have to weigh there, with the distances of chunks."""
        total = float(classes.bytes.sum())
        if isinstance(self.parts, Partition):
            for messages, needed in weighed(distances, classes, self.parts):
                yield Argument("regions", messages, needed / total, self.parts.label)
        else:
            label = np.where(self.parts, 0, -1)
            for messages, needed in cones(distances, classes, self.parts):
                yield Argument("cone", messages, needed / total, label)


def _places(topology: Topology, classes: ChunkClasses, budget: int) -> Iterator[Place]:
    """Those worth a look, if the distances between all NPUs are within the budget."""
    visits = topology.npus * (topology.links + topology.nodes)
    if topology.npus > _MOST_NPUS or visits > budget or len(classes) == 0 or classes.are_pairs:
        return
    partitions = partitions_of(topology)
    if not topology.switches and topology.npus >= _MANY_NPUS:
        parts = [each for each in partitions if 3 * each.count <= topology.npus]  # not only pairs
        most = max((_load(each, classes) for each in parts), default=0.0)
        if most < _load(partitions[0], classes) * _APART:
            return  # as on meshes and tori: single NPUs say as much
    for partition in _tightest(partitions, classes):
        if not partition.single:
            yield Place(partition)
        yield from map(Place, _around(partition, classes))


def _load(partition: Partition, classes: ChunkClasses) -> float:
    """What must get into parts, for their bandwidth."""
    return messages_needed(partition, classes)[1] / max(float(partition.rate_in.sum()), 1.0)


def _tightest(partitions: list[Partition], classes: ChunkClasses) -> list[Partition]:
    """The single NPUs, those with the most to move for their bandwidth, and the coarsest."""
    ones, *others = partitions
    others = [each for each in others if each.tells(classes)]
    load = [_load(each, classes) for each in others]
    fullest = sorted(range(len(others)), key=lambda number: -load[number])
    coarsest = sorted(range(len(others)), key=lambda number: others[number].count)
    taken = sorted({*fullest[:_MOST_PARTITIONS], *coarsest[:_MOST_PARTITIONS]})
    return [ones, *(others[number] for number in taken if load[number] > 0)]


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


def narrowest(
    topology: Topology,
    src: NDArray[np.int32],
    dst: NDArray[np.int32],
    amount: NDArray[np.int64],
) -> Iterator[NDArray[np.bool_]]:
    """Nodes that bytes must leave, two sets of each partition.

    The part with most to send for its bandwidth, and all but the part with most to receive.
    """
    for partition in partitions_of(topology):
        out, into = partition.label[src], partition.label[dst]
        crosses = out != into
        for ends, rate in ((out, partition.rate_out), (into, partition.rate_in)):
            load = np.bincount(ends[crosses], amount[crosses], partition.count)
            part = partition.label == int((load / np.maximum(rate, 1)).argmax())
            yield part if ends is out else ~part


def partitions_of(topology: Topology) -> list[Partition]:
    """Those of a network; found once."""
    if topology not in _PARTITIONS:
        _PARTITIONS[topology] = [singles(topology), *regions(topology)]
    return _PARTITIONS[topology]


def certificate_of(label: NDArray[np.int64], links: NDArray[np.intp]) -> Certificate:
    """Parts as labels of nodes tell them, and the links that lead into them."""
    order = np.argsort(label, kind="stable")
    order = order[label[order] >= 0]
    parts = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
    return Certificate.of(parts, links)
