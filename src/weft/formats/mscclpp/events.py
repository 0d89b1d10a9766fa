"""The events of a plan and what is sure about their order.

Only `nop` and barriers make the threads of a block wait for each other. In between, all threads
move data, one operation after the other, while single threads wait and signal: the first channel
(or semaphore) of an operation belongs to thread 0, the second to thread 1, and so on. A port is
told what to move and does so later, in order.
"""

from __future__ import annotations

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
    """Collects actions and events. Events without an action are negative until `program`."""

    src: list[int] = field(default_factory=list)
    dst: list[int] = field(default_factory=list)
    reduce: list[bool] = field(default_factory=list)
    origins: list[Where] = field(default_factory=list)  # of actions
    others: list[Where] = field(default_factory=list)  # of events without one
    chains: list[list[int]] = field(default_factory=list)
    threads: dict[int, list[list[int]]] = field(default_factory=dict)  # chains, by GPU
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

    def where(self, event: int) -> Where:
        if event < 2 * len(self.src):
            return self.origins[event // 2]
        return self.others[event - 2 * len(self.src)]

    def end(self, gpu: int) -> int:
        """An event after all that a GPU's thread blocks do."""
        end = self.event((gpu, -1, -1))
        for line in self.threads.get(gpu, ()):
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
        self._events.threads.setdefault(self._gpu, []).append(line)
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


@dataclass(eq=False)
class Meetings:
    """Signals and waits, releases and acquires, barriers and packets: who waits for whom."""

    events: Events
    signals: dict[Line, list[int]] = field(default_factory=dict)
    waits: dict[Line, list[int]] = field(default_factory=dict)
    releases: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    acquires: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    barriers: dict[tuple[int, int], dict[int, list[tuple[int, int]]]] = field(default_factory=dict)
    packets: dict[int, list[int]] = field(default_factory=dict)  # writes, by cell
    readers: list[tuple[int, int]] = field(default_factory=list)  # of packets: cell, event

    def settle(self, initial: list[list[int]]) -> None:
        """Add the order they make; `initial` are the semaphores' first values, by GPU."""
        for line in {**self.signals, **self.waits}:
            self._channel(line)
        for key in {**self.releases, **self.acquires}:
            self._semaphore(key, initial[key[0]][key[1]])
        for barrier, blocks in self.barriers.items():
            self._barrier(barrier, list(blocks.values()))
        for cell, event in self.readers:
            self._packet(cell, event)

    def _words(self, event: int) -> str:
        events = self.events
        return words(events.others[-event - 1] if event < 0 else events.origins[event // 2])

    def _one_block(self, events: list[int], does: str) -> None:
        """A counter that two thread blocks use at once is in no order."""
        first = self.events.others[-events[0] - 1]
        for event in events:
            other = self.events.others[-event - 1]
            if other[:2] != first[:2]:
                raise InputError(f"{words(first)} and {words(other)} both {does}")

    def _channel(self, line: Line) -> None:
        """The k-th wait is for the k-th signal, and next time they must count alike again."""
        kind, source, target, which = line
        signals, waits = self.signals.get(line, []), self.waits.get(line, [])
        name = f"{kind} channel {which} from GPU {source} to GPU {target}"
        if len(signals) != len(waits):
            some = self._words((signals or waits)[-1])
            raise InputError(
                f"{name} is signalled {len(signals)} times and waited for {len(waits)} times "
                f"(last: {some})"
            )
        self._one_block(signals, f"signal on {name}")
        self._one_block(waits, f"wait on {name}")
        for signal, wait in zip(signals, waits, strict=True):
            self.events.order(signal, wait)

    def _semaphore(self, key: tuple[int, int], value: int) -> None:
        """The first acquires take what was there; the k-th after them takes the k-th release."""
        releases, acquires = self.releases.get(key, []), self.acquires.get(key, [])
        name = f"semaphore {key[1]} of GPU {key[0]}"
        if len(releases) != len(acquires):
            some = self._words((releases or acquires)[-1])
            raise InputError(
                f"{name} is released {len(releases)} times and acquired {len(acquires)} times "
                f"(last: {some})"
            )
        self._one_block(acquires, f"acquire {name}, and which gets what is not sure")
        self._one_block(releases, f"release {name}, and whose comes first is not sure")
        for release, acquire in zip(releases, acquires[value:], strict=False):
            self.events.order(release, acquire)

    def _barrier(self, key: tuple[int, int], blocks: list[list[tuple[int, int]]]) -> None:
        rounds = {len(block) for block in blocks}
        if len(rounds) > 1:
            few = min(blocks, key=len)[-1][0]
            raise InputError(
                f"barrier {key[1]} of GPU {key[0]} is not met equally often by all its thread "
                f"blocks (last: {self._words(few)})"
            )
        for meeting in zip(*blocks, strict=True):
            joint = self.events.event(self.events.others[-meeting[0][0] - 1])
            for before, after in meeting:
                self.events.order(before, joint)
                self.events.order(joint, after)

    def _packet(self, cell: int, event: int) -> None:
        """Packets are read when they are there; who writes them must be sure."""
        writes = self.packets.get(cell, [])
        if not writes:
            raise InputError(f"{self._words(event)} waits for packets that nothing writes")
        if len(writes) > 1:
            both = " and ".join(self._words(write) for write in writes[:2])
            raise InputError(f"{both} both write packets that {self._words(event)} waits for")
        self.events.order(writes[0], event)
