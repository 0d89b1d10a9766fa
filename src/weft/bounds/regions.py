"""Bounds from parts of a network: a sum must connect them all, and then tell each of the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from weft.bounds.classes import ChunkClasses
from weft.bounds.lengths import Carriers
from weft.bounds.messages import Distances, Messages, Times, Ways, places_of, steps_of
from weft.bounds.partitions import Partition, before_copies

_MOST_CLASSES = 64  # of chunks, with ends of their own
_MOST_WEIGHTS = 1 << 22


def messages_needed(partition: Partition, classes: ChunkClasses) -> tuple[int, float]:
    """How many chunks must get from part to part, at the least, and how many bytes."""
    parts = partition.spread(classes.set_offsets, classes.set_members)
    before, after = parts[classes.pre], parts[classes.post]
    each = np.where(classes.reduce, before + after - 2, np.maximum(after - before, 0))
    return int((each * classes.count).sum()), float((each * classes.bytes.astype(float)).sum())


def bound_of_parts(
    carriers: Carriers, partition: Partition, classes: ChunkClasses
) -> tuple[int, int]:
    """What a partition proves, in picoseconds: for whole chunks, and for any chunking."""
    chunks, total = messages_needed(partition, classes)
    return carriers.time_through(partition.links, chunks, total) if chunks else (0, 0)


def weighed(
    distances: Distances, classes: ChunkClasses, partition: Partition
) -> Iterator[tuple[Messages, float]]:
    """The same with what messages can know and tell: one contributor and taker a part, at random.

    All members of a part are as likely, or those farthest from its links to other parts.
    """
    network = distances.topology
    if classes.reduce.any() and (partition.joined or not partition.holds_sums):
        return
    total = messages_needed(partition, classes)[1]
    if total == 0 or len(classes) > _MOST_CLASSES or len(partition.links) == 0:
        return
    label = partition.label
    mine = label[None, : network.npus] == label[network.dst[partition.links]][:, None]
    ways = Ways.into(distances, partition.links, mine)
    steps = steps_of(distances.between.reshape(-1))
    doors_out, doors_in = (np.unique(np.concatenate(doors)) for doors in (ways.sources, ways.ends))
    place = places_of(steps, distances.between)
    # A message that a switch copies behind its link may have many ends.
    copied = before_copies(network)[partition.links].any()
    for far in (False, True):
        knows, tells = (np.ones((network.npus, len(classes), len(steps))) for _ in range(2))
        for row in range(len(classes)):
            givers, takers = (classes.members(int(s[row])) for s in (classes.pre, classes.post))
            if classes.reduce[row]:
                knows[:, row] = _chances(place.T, label, givers, doors_out, len(steps), far)
            if not copied:
                tells[:, row] = _chances(place, label, takers, doors_in, len(steps), far)
        # Most NPUs are like some other: a table for each two kinds of them.
        (sources, source), (ends, end) = _kinds(knows), _kinds(tells)
        if len(sources) * len(ends) * len(classes) * len(steps) ** 2 > _MOST_WEIGHTS:
            return
        tables = (sources[:, None, :, :, None] * ends[None, :, :, None, :]).max(axis=2)
        yield Messages.of(ways, steps, steps, tables, source, end), total


def _kinds(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], Times]:
    """Different rows, and which of them each is."""
    found, which = np.unique(rows.reshape(len(rows), -1), axis=0, return_inverse=True)
    return found.reshape(-1, *rows.shape[1:]), which.reshape(-1)


def _chances(
    place: Times,
    label: Times,
    members: NDArray[np.int32],
    doors: NDArray[np.intp],
    steps: int,
    far: bool,
) -> NDArray[np.float64]:
    """By NPU and step: how likely one of the members drawn is no farther from it than that.

    One member of each part is drawn, each part for itself. `place` is the step of the distance
    between an NPU (row) and a member (column).
    """
    missed = np.ones((len(place), steps))
    for part in np.unique(label[members]):
        drawn = members[label[members] == part]
        exits = doors[label[doors] == part]
        if far and len(exits):
            away = place[np.ix_(exits, drawn)].min(axis=0)
            drawn = drawn[away == away.max()]
        near = place[:, drawn, None] <= np.arange(steps)
        missed *= 1 - near.mean(axis=1)
    return 1 - missed
