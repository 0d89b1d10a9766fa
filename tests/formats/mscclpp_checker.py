"""Runs MSCCL++ execution plans on symbolic data, and finds what is wrong with them.

It knows nothing of Weft: it reads the JSON, checks shape and caps, and then executes the plan on
made-up GPUs, thread by thread where that matters. Between two `nop` the threads of a block drift
apart: waits and signals are done by single threads, data is moved by all. Ports work through
their queues whenever they like. Each GPU runs the plan twice, one right after the other, with
other data, while the others may still be in the first run. Clocks tell races even if the run
at hand did not suffer from them.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from mscclpp_shape import Place, WrongPlanError, check_shape, flat, listed, need, places

Contribution = tuple[int, int]  # GPU, chunk of its input
Expected = dict[Place, Counter[Contribution]]
Clock = dict[Any, int]

SYNCS = ("nop", "barrier")
THREAD_OPS = ("signal", "wait", "sem_acquire", "sem_release")


class Thread:
    """Something that does one thing after the other, with a clock: a thread, all, or a port."""

    def __init__(self, key: Any) -> None:
        self.key = key
        self.clock: Clock = {key: 1}
        self.todo: list[Iterator[bool]] = []

    def join(self, clock: Clock) -> None:
        for key, time in clock.items():
            self.clock[key] = max(self.clock.get(key, 0), time)

    def stamp(self) -> Clock:
        """What is known to have happened to whoever hears of this moment."""
        copy = dict(self.clock)
        self.clock[self.key] += 1
        return copy


class Machine:
    """GPUs that run a plan, several times in a row."""

    def __init__(
        self,
        plan: dict[str, Any],
        alias: Callable[[Place], Place],
        names: dict[Place, Contribution],
        rng: random.Random,
        style: str,
        launches: int,
    ) -> None:
        self.plan, self.alias, self.names, self.rng, self.style = plan, alias, names, rng, style
        self.cells: dict[Place, Counter[Any]] = {}
        self.written: dict[Place, tuple[Any, int]] = {}
        self.read_by: dict[Place, dict[Any, int]] = defaultdict(dict)
        self.tokens: dict[Any, list[Clock]] = defaultdict(list)
        self.taken: Counter[Any] = Counter()
        self.pool: dict[Any, list[Clock]] = defaultdict(list)
        self.ports: dict[Any, Thread] = {}
        self.results: list[dict[Place, Counter[Any]]] = [{} for _ in range(launches)]
        self.threads: dict[Any, Thread] = {}

    def run(self) -> list[dict[Place, Counter[Any]]]:
        if len(self.results) == 1:  # everything is ready when the first of them starts
            for gpu in self.plan["gpus"]:
                for place, value in self.fresh(gpu, 0):
                    self.cells[self.alias(place)] = value
        kernels = [self.gpu(gpu) for gpu in self.plan["gpus"]]
        alive: list[Iterator[bool]] = list(kernels)
        ranking = {id(kernel): self.rng.random() for kernel in alive}
        while alive:
            order = list(alive)
            if self.style == "random":
                self.rng.shuffle(order)
            else:
                order.sort(key=lambda kernel: ranking[id(kernel)])
            moved = False
            for kernel in order:
                try:
                    stepped = next(kernel)
                except StopIteration:
                    alive.remove(kernel)
                    stepped = True
                moved = moved or stepped
                if stepped and self.style != "random":
                    break
            if not moved and not self.pump(force=True):
                raise WrongPlanError("deadlock")
        for name, left in self.tokens.items():
            need(len(left) == self.taken[name], f"signals left over on {name}")
        need(not any(self.pool.values()), "semaphores are not back where they were")
        return self.results

    def gpu(self, gpu: dict[str, Any]) -> Iterator[bool]:
        """A GPU, as a generator that says whether it got anywhere."""
        rank = gpu["id"]
        host = Thread(("host", rank))
        for launch in range(len(self.results)):
            if len(self.results) > 1:
                for place, value in self.fresh(gpu, launch):
                    self.write(host, place, value)
            start = host.stamp()
            blocks = [self.block(gpu, block, launch, start) for block in gpu["threadblocks"]]
            ends: list[Clock] = []
            while blocks:
                order = list(blocks)
                if self.style == "random":
                    self.rng.shuffle(order)
                moved = False
                for block in order:
                    try:
                        stepped = next(block)
                    except StopIteration as end:
                        ends.append(end.value)
                        blocks.remove(block)
                        stepped = True
                    moved = moved or bool(stepped)
                    if stepped:
                        break
                if self.style == "random" and self.rng.random() < 0.3:
                    moved = self.pump() or moved
                yield moved
            for clock in ends:
                host.join(clock)
            for buffer, count in (("i", "input_chunks"), ("o", "output_chunks")):
                for slot in range(gpu[count]):
                    place = (rank, buffer, slot)
                    self.results[launch][place] = self.read(host, place)

    def fresh(self, gpu: dict[str, Any], launch: int) -> Iterator[tuple[Place, Counter[Any]]]:
        """What is in a GPU's buffers before it starts."""
        rank = gpu["id"]
        for slot in range(gpu["output_chunks"]):
            yield (rank, "o", slot), Counter({"junk": 1})
        for slot in range(gpu["input_chunks"]):
            place = (rank, "i", slot)
            yield place, Counter({(launch, *self.names.get(place, (rank, slot))): 1})

    def pump(self, *, force: bool = False) -> bool:
        """Let a port do something."""
        busy = [port for port in self.ports.values() if port.todo]
        if not busy:
            return False
        port = self.rng.choice(busy)
        for _ in range(1 if force else self.rng.randint(1, 4)):
            if port.todo and next(port.todo[0], None) is None:
                port.todo.pop(0)
        return True

    def block(
        self, gpu: dict[str, Any], block: dict[str, Any], launch: int, start: Clock
    ) -> Iterator[Any]:
        name = (gpu["id"], block["id"])
        threads: dict[Any, Thread] = {}

        def thread(which: Any) -> Thread:
            if which not in threads:
                threads[which] = Thread((launch, *name, which))
                threads[which].join(base)
            return threads[which]

        base = start
        ops = list(block["ops"])
        while ops:
            part = []
            while ops and ops[0]["name"] not in SYNCS:
                part.append(ops.pop(0))
            for op in part:
                self.spread(gpu, block, op, thread)
            yield from self.drain(list(threads.values()))
            base = self.meet(base, threads)
            if ops:
                sync = ops.pop(0)
                if sync["name"] == "barrier":
                    base = yield from self.barrier(gpu["id"], sync, launch, base)
        return base

    def drain(self, threads: list[Thread]) -> Iterator[bool]:
        while busy := [thread for thread in threads if thread.todo]:
            self.rng.shuffle(busy)
            moved = False
            for thread in busy:
                got = next(thread.todo[0], None)
                if got is None:
                    thread.todo.pop(0)
                moved = moved or got is None or got
                if moved:
                    break
            yield moved

    @staticmethod
    def meet(base: Clock, threads: dict[Any, Thread]) -> Clock:
        """All threads of a block wait for each other."""
        joined = Thread("meeting")
        joined.clock = dict(base)
        for thread in threads.values():
            joined.join(thread.stamp())
        threads.clear()
        return joined.clock

    def barrier(self, rank: int, op: dict[str, Any], launch: int, base: Clock) -> Iterator[Any]:
        group = self.tokens["barrier", rank, op["barrier_id"], launch]
        group.append(base)
        self.taken["barrier", rank, op["barrier_id"], launch] += 1
        full = -(-len(group) // op["num_threadblocks"]) * op["num_threadblocks"]
        while len(group) < full:
            yield False
        joined = Thread("barrier")
        joined.clock = {}
        for clock in group[full - op["num_threadblocks"] : full]:
            joined.join(clock)
        return joined.clock

    def spread(
        self, gpu: dict[str, Any], block: dict[str, Any], op: dict[str, Any], thread: Any
    ) -> None:
        """Give an operation to the threads that execute it."""
        name, kind = op["name"], op.get("channel_type")
        if name in THREAD_OPS:
            ids = op["semaphore_ids"] if "semaphore_ids" in op else self.channels(gpu, block, op)
            for tid, number in enumerate(ids):
                act = getattr(self, f"do_{name}")
                thread(tid).todo.append(act(thread(tid), gpu, kind, number))
        elif name in ("put", "pws") and kind == "port":
            for tid, number in enumerate(self.channels(gpu, block, op)):
                pairs = self.pairs(gpu, block, op, tid)
                thread(tid).todo.append(
                    self.issue(thread(tid), gpu, number, pairs, signal=name == "pws")
                )
        elif name in ("put", "copy"):
            pairs = [p for i in range(len(op["src_buff"])) for p in self.pairs(gpu, block, op, i)]
            thread("all").todo.append(self.move(thread("all"), pairs))
        elif name == "re":
            sources = [places(gpu, block, op, entry) for entry in op["src_buff"]]
            targets = places(gpu, block, op, op["dst_buff"][0])
            thread("all").todo.append(self.add(thread("all"), sources, targets))
        else:
            raise WrongPlanError(f"operation {name}")

    @staticmethod
    def channels(gpu: dict[str, Any], block: dict[str, Any], op: dict[str, Any]) -> list[int]:
        kind = op["channel_type"]
        mine = listed(block, "channels", "channel_type", "channel_ids", kind)
        need(all(0 <= c < len(mine) for c in op["channel_ids"]), f"GPU {gpu['id']}: channel id")
        return [mine[c] for c in op["channel_ids"]]

    @staticmethod
    def pairs(
        gpu: dict[str, Any], block: dict[str, Any], op: dict[str, Any], at: int
    ) -> list[tuple[Place, Place]]:
        source = places(gpu, block, op, op["src_buff"][at])
        target = places(gpu, block, op, op["dst_buff"][at])
        return list(zip(source, target, strict=True))

    def end(self, gpu: dict[str, Any], kind: str, number: int) -> Any:
        """A channel's two ends have one name, but for the direction."""
        peers = flat(gpu, kind)
        peer = peers[number]
        return kind, gpu["id"], peer, peers[:number].count(peer)

    def do_signal(
        self, thread: Thread, gpu: dict[str, Any], kind: str, number: int
    ) -> Iterator[bool]:
        if kind == "port":
            self.port(gpu, number).todo.append(self.later_signal(thread.stamp(), gpu, number))
        else:
            self.tokens[self.end(gpu, kind, number)].append(thread.stamp())
        yield True

    def do_wait(
        self, thread: Thread, gpu: dict[str, Any], kind: str, number: int
    ) -> Iterator[bool]:
        _, me, peer, which = self.end(gpu, kind, number)
        inbound = (kind, peer, me, which)
        mine = self.taken[inbound]
        while len(self.tokens[inbound]) <= mine:
            yield False
        thread.join(self.tokens[inbound][mine])
        self.taken[inbound] += 1
        yield True

    def do_sem_release(
        self, thread: Thread, gpu: dict[str, Any], _kind: object, number: int
    ) -> Iterator[bool]:
        self.pool[gpu["id"], number].append(thread.stamp())
        yield True

    def do_sem_acquire(
        self, thread: Thread, gpu: dict[str, Any], _kind: object, number: int
    ) -> Iterator[bool]:
        while not self.pool[gpu["id"], number]:
            yield False
        thread.join(self.pool[gpu["id"], number].pop(0))
        yield True

    def port(self, gpu: dict[str, Any], number: int) -> Thread:
        name = ("port", gpu["id"], number)
        return self.ports.setdefault(name, Thread(name))

    def later_signal(self, clock: Clock, gpu: dict[str, Any], number: int) -> Iterator[bool]:
        port = self.port(gpu, number)
        port.join(clock)
        self.tokens[self.end(gpu, "port", number)].append(port.stamp())
        yield True

    def issue(
        self,
        thread: Thread,
        gpu: dict[str, Any],
        number: int,
        pairs: list[tuple[Place, Place]],
        *,
        signal: bool,
    ) -> Iterator[bool]:
        port, clock = self.port(gpu, number), thread.stamp()

        def work() -> Iterator[bool]:
            port.join(clock)
            yield from self.move(port, pairs)

        port.todo.append(work())
        if signal:
            port.todo.append(self.later_signal(clock, gpu, number))
        yield True

    def move(self, thread: Thread, pairs: list[tuple[Place, Place]]) -> Iterator[bool]:
        for source, target in pairs:
            value = self.read(thread, source)
            yield True
            self.write(thread, target, value)
            yield True

    def add(
        self, thread: Thread, sources: list[list[Place]], targets: list[Place]
    ) -> Iterator[bool]:
        for at, target in enumerate(targets):
            value: Counter[Any] = Counter()
            for source in sources:
                value = value + self.read(thread, source[at])
                yield True
            self.write(thread, target, value)
            yield True

    def read(self, thread: Thread, place: Place) -> Counter[Any]:
        cell = self.alias(place)
        self.ordered(thread, self.written.get(cell), cell)
        self.read_by[cell][thread.key] = thread.clock[thread.key]
        return self.cells.get(cell, Counter({"empty": 1}))

    def write(self, thread: Thread, place: Place, value: Counter[Any]) -> None:
        cell = self.alias(place)
        self.ordered(thread, self.written.get(cell), cell)
        for reader in self.read_by[cell].items():
            self.ordered(thread, reader, cell)
        self.read_by[cell] = {}
        self.written[cell] = (thread.key, thread.clock[thread.key])
        self.cells[cell] = value

    @staticmethod
    def ordered(thread: Thread, other: tuple[Any, int] | None, cell: Place) -> None:
        if other is not None and thread.clock.get(other[0], 0) < other[1]:
            raise WrongPlanError(f"race at {cell} between {other[0]} and {thread.key}")


def check_plan(
    plan: dict[str, Any],
    expected: Expected,
    alias: Callable[[Place], Place],
    names: dict[Place, Contribution],
    *,
    runs: int = 3,
    launches: int = 2,
    seed: int = 0,
) -> None:
    """Raise `WrongPlanError` unless the plan puts everything where it belongs, however it runs.

    Parameters
    ----------
    expected
        For each output chunk that matters, the input chunks it is the sum of.
    alias
        One name for all names of a piece of memory.
    names
        What input chunks hold, where it is not their own: copies of the same.
    """
    check_shape(plan)
    for run in range(runs):
        style = "random" if run % 2 == 0 else "greedy"
        machine = Machine(plan, alias, names, random.Random(seed + run), style, launches)
        for launch, held in enumerate(machine.run()):
            for place, parts in expected.items():
                wanted = Counter({(launch, *part): count for part, count in parts.items()})
                need(held[place] == wanted, f"run {launch}: {place} holds {held[place]}")
