"""Whether thread blocks can run to the end, however slow the network and small its buffers.

A connection holds two messages of one chunk at least. Every chunk of every step is a node; what
it must wait for are edges. Blocks whose steps follow the order of the moves can always run; fused
steps need not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import accumulate

from weft.formats.msccl.blocks import Block, Step, blocks_of
from weft.formats.msccl.fusion import fusions_of
from weft.formats.msccl.moves import Move, Order

SLOTS = 2  # messages that a connection holds
_PATIENCE = 400_000  # chunks looked at, over and over, to keep as many fusions as can be


class Graph:
    """The chunks of all steps, and what waits for what."""

    def __init__(self, blocks: list[Block], order: Order) -> None:
        self.steps: list[Step] = [step for block in blocks for step in block.steps]
        self.first = [0, *accumulate(step.count for step in self.steps)]
        self.after: list[list[int]] = [[] for _ in range(self.first[-1])]
        self.of_half = {half: n for n, step in enumerate(self.steps) for half in step.halves}
        self._add_lines(blocks)
        self._add_waits(order)
        self._add_messages(blocks)

    def _add_lines(self, blocks: list[Block]) -> None:
        at = 0
        for block in blocks:
            length = sum(step.count for step in block.steps)
            for node in range(at, at + length - 1):
                self.after[node].append(node + 1)
            at += length

    def _add_waits(self, order: Order) -> None:
        for number, step in enumerate(self.steps):
            for half in step.halves:
                for earlier in order.before[half]:
                    other = self.of_half[earlier]
                    if other != number:
                        self.after[self.first[other + 1] - 1].append(self.first[number])

    def _add_messages(self, blocks: list[Block]) -> None:
        for block in blocks:
            messages = [step.send for step in block.steps if step.send >= 0]
            sent = [node for m in messages for node in self._nodes(2 * m)]
            received = [node for m in messages for node in self._nodes(2 * m + 1)]
            for at, (out, into) in enumerate(zip(sent, received, strict=True)):
                self.after[out].append(into)
                if at + SLOTS < len(sent):
                    self.after[into].append(sent[at + SLOTS])

    def _nodes(self, half: int) -> range:
        step = self.of_half[half]
        return range(self.first[step], self.first[step + 1])

    def circles(self) -> tuple[list[list[Step]], list[Step]]:
        """Steps of circles that share none, and all steps that never run."""
        waits = [0] * len(self.after)
        for followers in self.after:
            for node in followers:
                waits[node] += 1
        ready = deque(node for node, count in enumerate(waits) if count == 0)
        left = len(waits)
        while ready:
            left -= 1
            for node in self.after[ready.popleft()]:
                waits[node] -= 1
                if waits[node] == 0:
                    ready.append(node)
        if left == 0:
            return [], []
        stuck = [count > 0 for count in waits]
        owner = [n for n, step in enumerate(self.steps) for _ in range(step.count)]
        return (
            [self._steps(owner[node] for node in circle) for circle in self._walk(stuck)],
            self._steps(owner[node] for node, is_ in enumerate(stuck) if is_),
        )

    def _steps(self, numbers: Iterable[int]) -> list[Step]:
        return [self.steps[number] for number in dict.fromkeys(numbers)]

    def _walk(self, stuck: list[bool]) -> Iterator[list[int]]:
        """Nodes of circles: whoever is stuck has a cause that is stuck; one is followed."""
        cause = [-1] * len(stuck)
        for node, followers in enumerate(self.after):
            if stuck[node]:
                for other in followers:
                    cause[other] = node
        walk_of = [-1] * len(stuck)
        for start, is_stuck in enumerate(stuck):
            at, path = start, []
            while is_stuck and walk_of[at] < 0:
                walk_of[at] = start
                path.append(at)
                at = cause[at]
            if path and walk_of[at] == start:
                yield path[path.index(at) :]


def running_blocks(moves: list[Move], order: Order, lanes: list[int], most: int) -> list[Block]:
    """Blocks with as many fused steps as can run to the end.

    At first one fused step of each circle is taken apart at a time, after a while all that hang.
    """
    fusions = fusions_of(moves, order, lanes)
    looked = 0

    def fused(steps: list[Step]) -> list[int]:
        return [step.receive for step in steps if fusions.fuses(step.receive)]

    while True:
        blocks = blocks_of(moves, order, fusions, lanes, most)
        if not fusions.passed_on and not fusions.added:
            return blocks
        graph = Graph(blocks, order)
        circles, stuck = graph.circles()
        if not stuck:
            return blocks
        looked += len(graph.after)
        # Without fusions all blocks follow one order, so a circle has one.
        some = [fused(circle)[0] for circle in circles] if looked <= _PATIENCE else fused(stuck)
        for message in some:
            fusions.dissolve(message)
