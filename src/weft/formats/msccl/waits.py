"""Which steps must wait for which: what the blocks' own order does not already say."""

from __future__ import annotations

from graphlib import TopologicalSorter

import numpy as np
from numpy.typing import NDArray

from weft.formats.msccl.blocks import Block
from weft.formats.msccl.moves import Order

Clock = NDArray[np.int32]
Spot = tuple[int, int]  # a block and the position of a step in it


def waits_of(blocks: list[Block], order: Order) -> list[list[list[Spot]]]:
    """What each step of each block of a GPU waits for, without what follows from the rest.

    Every step knows how far each other block surely is when it starts: as far as the step before
    it knew, and as far as those knew for which it waits. Only what it does not know is a
    dependency. Those are taken latest first, since one may tell all about the rest.
    """
    of_half = {
        half: (b, s)
        for b, block in enumerate(blocks)
        for s, step in enumerate(block.steps)
        for half in step.halves
    }
    needed = [
        [_needed(b, step.halves, order, of_half) for step in block.steps]
        for b, block in enumerate(blocks)
    ]
    found: list[list[list[Spot]]] = [[[] for _ in block.steps] for block in blocks]
    nothing = np.full(len(blocks), -1, dtype=np.int32)
    clocks: list[list[Clock]] = [[nothing] * len(block.steps) for block in blocks]
    sequence = _sequence(needed)
    rank = {spot: at for at, spot in enumerate(sequence)}
    for b, s in sequence:
        clock = clocks[b][s - 1] if s else nothing
        for block, step in sorted(needed[b][s], key=lambda spot: -rank[spot]):
            if clock[block] < step:
                found[b][s].append((block, step))
                clock = np.maximum(clock, clocks[block][step])
                clock[block] = step
        clocks[b][s] = clock
    return found


def _needed(
    block: int, halves: tuple[int, ...], order: Order, of_half: dict[int, Spot]
) -> set[Spot]:
    """The last step of each other block that some half must come after."""
    last: dict[int, int] = {}
    for half in halves:
        for earlier in order.before[half]:
            other, step = of_half[earlier]
            if other != block:
                last[other] = max(last.get(other, -1), step)
    return set(last.items())


def _sequence(needed: list[list[set[Spot]]]) -> list[Spot]:
    """The steps, each after all that it needs."""
    spots = [(b, s) for b, line in enumerate(needed) for s in range(len(line))]
    sorter: TopologicalSorter[Spot] = TopologicalSorter(dict.fromkeys(spots, ()))
    for b, s in spots:
        sorter.add((b, s), *needed[b][s], *([(b, s - 1)] if s else []))
    return list(sorter.static_order())
