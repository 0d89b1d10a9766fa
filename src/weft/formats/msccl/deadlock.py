"""Whether thread blocks can run to the end, however slow the network and small its buffers.

A connection holds two messages of one chunk at least. Every chunk of every step is a node; what
it must wait for are edges. Blocks whose steps follow the order of the moves can always run; fused
steps need not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from weft.formats.msccl.blocks import Block, Step
from weft.formats.msccl.fusion import Fusions
from weft.formats.msccl.moves import Order

SLOTS = 2  # messages that a connection holds
_PATIENCE = 400_000  # chunks looked at, over and over, to keep as many fusions as can be


class Graph:
    """The chunks of all steps, and what waits for what."""

    def __init__(self, blocks: list[Block], order: Order) -> None:
        self.steps: list[Step] = [step for block in blocks for step in block.steps]
        self.first = [0]
        for step in self.steps:
            self.first.append(self.first[-1] + step.count)
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
            if block.sends is None:
                continue
            sent: list[int] = []
            received: list[int] = []
            for step in block.steps:
                if step.send >= 0:
                    sent += self._nodes(self.of_half[2 * step.send])
                    received += self._nodes(self.of_half[2 * step.send + 1])
            for at, (out, into) in enumerate(zip(sent, received, strict=True)):
                self.after[out].append(into)
                if at + SLOTS < len(sent):
                    self.after[into].append(sent[at + SLOTS])

    def _nodes(self, step: int) -> range:
        return range(self.first[step], self.first[step + 1])

    def circles(self) -> tuple[list[list[Step]], list[Step]] | None:
        """Steps of circles that share none, and all steps that never run; None if all run."""
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
            return None
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


class Patience:
    """How long one fused step of each circle is taken apart at a time, before all are that hang."""

    def __init__(self) -> None:
        self._spent = 0

    def choose(self, circles: list[list[int]], stuck: list[int], nodes: int) -> list[int]:
        """Those of the fused steps on circles, or that never run, that are to go."""
        self._spent += nodes
        return [circle[0] for circle in circles] if self._spent <= _PATIENCE else stuck


def take_apart(fusions: Fusions, blocks: list[Block], order: Order, patience: Patience) -> bool:
    """Take fused steps apart that keep blocks from running; whether there were any."""
    if not fusions.passed_on and not fusions.added:
        return False
    graph = Graph(blocks, order)
    found = graph.circles()
    if found is None:
        return False
    circles, stuck = found
    fused = [[s.receive for s in steps if fusions.fuses(s.receive)] for steps in (*circles, stuck)]
    # Without fusions all blocks follow one order, so a circle has one.
    assert all(fused)
    for message in patience.choose(fused[:-1], fused[-1], len(graph.after)):
        fusions.dissolve(message)
    return True
