"""The events of a plan and what is sure about their order.

Only `nop` and barriers make the threads of a block wait for each other. In between, all threads
move data, one operation after the other, while single threads wait and signal: the first channel
(or semaphore) of an operation belongs to thread 0, the second to thread 1, and so on. A port is
asked to move something and does so later, in order.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Cells, Program
from weft.errors import InputError
from weft.ragged import offsets_of

Where = tuple[int, int, int]  # GPU, thread block, operation
Line = tuple[str, int, int, int]  # a channel: type, from, to, which of those between the two


def words(where: Where) -> str:
    if where[1] < 0:
        return f"the user of GPU {where[0]}'s result"
    return f"GPU {where[0]}, thread block {where[1]}, operation {where[2]}"


@dataclass(eq=False)
class Events:
    """Collects actions and events. Events without an action are negative until `program`.

    The chains of all threads are also known by GPU.
    """

    src: list[int] = field(default_factory=list)
    dst: list[int] = field(default_factory=list)
    reduce: list[bool] = field(default_factory=list)
    origins: list[Where] = field(default_factory=list)  # of actions
    others: list[Where] = field(default_factory=list)  # of events without one
    chains: list[list[int]] = field(default_factory=list)
    threads: defaultdict[int, list[list[int]]] = field(default_factory=lambda: defaultdict(list))
    edge_from: list[int] = field(default_factory=list)
    edge_to: list[int] = field(default_factory=list)

    def action(self, src: int, dst: int, where: Where, *, reduce: bool = False) -> int:
        """A new action: it reads in event ``2 * action`` and writes in the next."""
        self.src.append(src)
        self.dst.append(dst)
        self.reduce.append(reduce)
        self.origins.append(where)
        return len(self.src) - 1

    def copies(self, src: list[int], dst: list[int], where: Where) -> range:
        """New actions, one for each cell; in that order."""
        first = len(self.src)
        self.src += src
        self.dst += dst
        self.reduce += [False] * len(src)
        self.origins += [where] * len(src)
        return range(first, len(self.src))

    def event(self, where: Where) -> int:
        self.others.append(where)
        return -len(self.others)

    def order(self, first: int, second: int) -> None:
        self.edge_from.append(first)
        self.edge_to.append(second)

    def words(self, event: int) -> str:
        """The operation of an event, numbered as here or as in the program."""
        actions = 2 * len(self.src)
        if 0 <= event < actions:
            return words(self.origins[event // 2])
        return words(self.others[event - actions if event >= 0 else -event - 1])

    def end(self, gpu: int) -> int:
        """An event after all that a GPU's thread blocks do."""
        end = self.event((gpu, -1, -1))
        for line in self.threads[gpu]:
            self.order(line[-1], end)
        return end

    def program(self, cells: Cells) -> Program:
        actions = 2 * len(self.src)

        def numbers(events: list[int]) -> NDArray[np.int64]:
            found = np.array(events, dtype=np.int64)
            return np.where(found >= 0, found, actions - found - 1)

        return Program(
            cells,
            np.array(self.src, dtype=np.int32),
            np.array(self.dst, dtype=np.int32),
            np.array(self.reduce, dtype=np.bool_),
            actions + len(self.others),
            offsets_of([*map(len, self.chains)]),
            numbers(list(chain.from_iterable(self.chains))),
            numbers(self.edge_from),
            numbers(self.edge_to),
            np.zeros(len(self.edge_to), dtype=np.bool_),
        )


class Threads:
    """The threads of one block as its operations are read."""

    def __init__(self, events: Events, gpu: int, block: int) -> None:
        self._events = events
        self.last = events.event((gpu, block, 0))  # when all threads were together
        self._gpu = gpu
        self._all = self._chain()
        self._all.append(self.last)
        self._single: dict[int, list[int]] = {}
        self._since: list[int] = []

    def _chain(self) -> list[int]:
        line: list[int] = []
        self._events.chains.append(line)
        self._events.threads[self._gpu].append(line)
        return line

    def move(self, actions: range) -> None:
        """All threads take part in actions, after all they moved before."""
        self._all.extend(range(2 * actions.start, 2 * actions.stop))

    def single(self, thread: int, where: Where) -> int:
        """One thread does something, after all it did alone before."""
        event = self._events.event(where)
        self._events.order(self.last, event)
        if thread not in self._single:
            self._single[thread] = self._chain()
        self._single[thread].append(event)
        self._since.append(event)
        return event

    def together(self, where: Where) -> int:
        """All threads wait for each other."""
        event = self._events.event(where)
        for earlier in self._since:
            self._events.order(earlier, event)
        self._since.clear()
        self._all.append(event)
        self.last = event
        return event


class Meetings:
    """Signals and waits, releases and acquires, barriers and packets: who waits for whom."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.signals: defaultdict[Line, list[int]] = defaultdict(list)
        self.waits: defaultdict[Line, list[int]] = defaultdict(list)
        self.releases: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self.acquires: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        # Of each barrier and thread block: events before and after it.
        self.barriers: dict[tuple[int, int], dict[int, list[tuple[int, int]]]] = {}
        self.packets: defaultdict[int, list[int]] = defaultdict(list)  # writes, by cell
        self.readers: list[tuple[int, int]] = []  # of packets: cell, event

    def settle(self, initial: list[list[int]]) -> None:
        """Add the order they make; `initial` are the semaphores' first values, by GPU."""
        for line in {**self.signals, **self.waits}:
            kind, source, target, which = line
            signals, waits = self.signals[line], self.waits[line]
            name = f"{kind} channel {which} from GPU {source} to GPU {target}"
            self._pair(f"{name} is", ("signalled", signals), ("waited for", waits))
            self._one_block(signals, f"signal on {name}")
            self._one_block(waits, f"wait on {name}")
        for gpu, number in {**self.releases, **self.acquires}:
            releases, acquires = self.releases[gpu, number], self.acquires[gpu, number]
            name, there = f"semaphore {number} of GPU {gpu}", initial[gpu][number]
            self._pair(f"{name} is", ("released", releases), ("acquired", acquires), there)
            self._one_block(acquires, f"acquire {name}, and which gets what is not sure")
            self._one_block(releases, f"release {name}, and whose comes first is not sure")
        for (gpu, number), blocks in self.barriers.items():
            self._barrier(f"barrier {number} of GPU {gpu}", list(blocks.values()))
        for cell, event in self.readers:
            self._packet(cell, event)

    def _one_block(self, events: list[int], does: str) -> None:
        """A counter that two thread blocks use at once is in no order."""
        first = self.events.others[-events[0] - 1]
        for event in events:
            other = self.events.others[-event - 1]
            if other[:2] != first[:2]:
                raise InputError(f"{words(first)} and {words(other)} both {does}")

    def _pair(
        self, name: str, given: tuple[str, list[int]], taken: tuple[str, list[int]], there: int = 0
    ) -> None:
        """The first take what was there; the k-th after them takes what the k-th gave.

        Next time they must count alike again.
        """
        (gave, gives), (took, takes) = given, taken
        if len(gives) != len(takes):
            last = self.events.words((gives or takes)[-1])
            raise InputError(
                f"{name} {gave} {len(gives)} times and {took} {len(takes)} times (last: {last})"
            )
        for give, take in zip(gives, takes[there:], strict=False):
            self.events.order(give, take)

    def _barrier(self, name: str, blocks: list[list[tuple[int, int]]]) -> None:
        few = min(blocks, key=len)
        if len(few) < max(map(len, blocks)):
            raise InputError(
                f"{name} is not met equally often by all its thread blocks (last: "
                f"{self.events.words(few[-1][0])})"
            )
        for meeting in zip(*blocks, strict=True):
            joint = self.events.event(self.events.others[-meeting[0][0] - 1])
            for before, after in meeting:
                self.events.order(before, joint)
                self.events.order(joint, after)

    def _packet(self, cell: int, event: int) -> None:
        """Packets are read when they are there; who writes them must be sure."""
        writes = self.packets[cell]
        if not writes:
            raise InputError(f"{self.events.words(event)} waits for packets that nothing writes")
        if len(writes) > 1:
            first, second, reader = map(self.events.words, (*writes[:2], event))
            raise InputError(f"{first} and {second} both write packets that {reader} waits for")
        self.events.order(writes[0], event)
