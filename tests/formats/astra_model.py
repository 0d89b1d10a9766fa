"""A small model of ASTRA-sim's analytical backends, which runs bundles from their files alone.

It reads traces with the protocol-buffer runtime and knows nothing of how Weft writes them. Times
are whole nanoseconds; events of one instant run in the order in which they were scheduled.
"""

from __future__ import annotations

import heapq
import json
import math
import random
from collections import defaultdict, deque
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from tests.formats.chakra_schema import GlobalMetadata, Node, frames

COMP, SEND, RECV, COLL = 4, 5, 6, 7
TAGS = 500_000_000


@dataclass
class Network:
    kinds: list[str]
    sizes: list[int]
    bandwidth: list[float]  # bytes a nanosecond
    latency: list[float]

    @classmethod
    def read(cls, path: Path) -> Network:
        file = yaml.safe_load(path.read_text())
        speeds = [float(b) * 1073741824 / 1000000000 for b in file["bandwidth"]]
        sizes = file["npus_count"]
        assert all(size > 1 for size in sizes)
        return cls(file["topology"], sizes, speeds, [float(a) for a in file["latency"]])

    @property
    def ranks(self) -> int:
        return math.prod(self.sizes)

    def path(self, src: int, dst: int) -> list[tuple[int, int]]:
        """The links of the congestion-aware backend: one dimension only."""
        (kind,), (n,) = self.kinds, self.sizes
        if kind == "FullyConnected":
            return [(src, dst)]
        if kind == "Switch":
            return [(src, n), (n, dst)]
        assert kind == "Ring"
        assert n > 2
        step = 1 if (dst - src) % n <= (src - dst) % n else -1
        path = []
        while src != dst:
            path.append((src, (src + step) % n))
            src = (src + step) % n
        return path

    def free_delay(self, src: int, dst: int, size: int) -> int:
        """The congestion-unaware backend: the lowest dimension in which the ranks differ."""
        stride = 1
        for kind, n, speed, latency in zip(
            self.kinds, self.sizes, self.bandwidth, self.latency, strict=True
        ):
            a, b = src // stride % n, dst // stride % n
            stride *= n
            if a != b:
                hops = {"FullyConnected": 1, "Switch": 2}.get(kind, min((a - b) % n, (b - a) % n))
                return math.floor(hops * latency + size / speed)
        raise AssertionError("a message to oneself")


class Table:
    """libstdc++'s hash set of unsigned numbers: what matters is the order of iteration.

    What falls into one bucket stands together. The newest comes first in its bucket, and a bucket
    that was empty comes first of all. A table that grows takes over its numbers one by one.
    """

    BUCKETS = (1, 13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043)

    def __init__(self, numbers=()) -> None:
        self.size, self.order = 0, []
        for number in numbers:
            self.add(number)

    def __iter__(self):
        return iter(self.order)

    def add(self, number: int) -> None:
        if number in self.order:
            return
        if len(self.order) + 1 > self.BUCKETS[self.size] or self.size == 0:
            self.size += 1
            before, self.order = self.order, []
            for old in before:
                self._put(old)
        self._put(number)

    def _put(self, number: int) -> None:
        count = self.BUCKETS[self.size]
        alike = (i for i, other in enumerate(self.order) if other % count == number % count)
        self.order.insert(next(alike, 0), number)

    def take(self) -> list[int]:
        taken, self.order = self.order, []
        return taken


@dataclass
class Rank:
    """One rank's trace while it runs; `nodes` are in the order of the file."""

    nodes: dict[int, Node]
    waits: dict[int, int] = field(default_factory=dict)
    children: dict[int, Table] = field(default_factory=lambda: defaultdict(Table))
    ready: Table = field(default_factory=Table)
    finish: int = 0
    done: int = 0

    def __post_init__(self) -> None:
        known = Table()
        for number, node in self.nodes.items():
            deps = Table([*node.data_deps, *node.ctrl_deps])
            assert set(deps) <= self.nodes.keys()
            self.waits[number] = len(list(deps))
            known.add(number)
            for dep in deps:
                known.add(dep)
                self.children[dep].add(number)
        self.roots = [number for number in known if self.waits[number] == 0]


def read_trace(path: Path) -> dict[int, Node]:
    first, *rest = frames(path.read_bytes())
    GlobalMetadata.FromString(first)
    found = [Node.FromString(message) for message in rest]
    nodes = {node.id: node for node in found}
    assert len(nodes) == len(found), "an id is there twice"
    assert any(not node.data_deps and not node.ctrl_deps for node in found)
    return nodes


def attributes(node: Node) -> dict[str, object]:
    return {a.name: getattr(a, a.WhichOneof("value")) for a in node.attr}


class Simulator:
    """Custom-collective mode. `seed` shuffles what one rank starts at one instant."""

    def __init__(self, network, traces, *, aware=True, members=None, seed=None, listener=None):
        self.network, self.aware = network, aware
        self.ranks = {r: Rank(nodes) for r, nodes in traces.items()}
        self.members = members or list(range(network.ranks))
        self.shuffle = random.Random(seed).shuffle if seed is not None else None
        self.listener = listener or (lambda *_: None)
        self.events: list[tuple[int, int, object]] = []
        self.scheduled = 0
        self.now = 0
        self.busy: set[tuple[int, int]] = set()
        self.queues = defaultdict(deque)
        self.arrived, self.posted = defaultdict(deque), defaultdict(deque)
        self.comps: dict[tuple[int, int], list[int]] = {}

    def at(self, time: int, action) -> None:
        heapq.heappush(self.events, (time, self.scheduled, action))
        self.scheduled += 1

    def run(self) -> dict[int, int]:
        """When each rank finishes; a rank that hangs is left out."""
        for number in sorted(self.ranks):
            self.issue(number, self.ranks[number].roots)
        while self.events:
            self.now, _, action = heapq.heappop(self.events)
            action()
        return {r: rank.finish for r, rank in self.ranks.items() if rank.done == len(rank.nodes)}

    def issue(self, rank: int, ready: list[int]) -> None:
        table = self.ranks[rank].ready
        for number in ready:
            table.add(number)
        ready = table.take()
        if self.shuffle:
            self.shuffle(ready)
        for number in ready:
            self.start(rank, number, self.ranks[rank].nodes[number])

    def start(self, rank: int, number: int, node: Node) -> None:
        if node.type == COMP:
            end = self.now + (node.duration_micros * 1000 or 1)
            together = self.comps.setdefault((rank, end), [])
            if not together:
                self.at(end, lambda: self.finish_comps(rank, end))
            together.append(number)
            return
        assert node.type in (SEND, RECV)
        found = attributes(node)
        size, tag = found["comm_size"], found["comm_tag"] % TAGS
        assert size > 0
        peer = self.members[found["comm_dst" if node.type == SEND else "comm_src"]]
        assert peer != rank
        if node.type == SEND:
            self.listener("send", rank, node)
            self.send((tag, rank, peer, size), rank, number)
        else:
            self.receive((tag, peer, rank, size), rank, number)

    def finish_comps(self, rank: int, end: int) -> None:
        for number in self.comps.pop((rank, end)):
            self.complete(rank, number)

    def complete(self, rank: int, number: int) -> None:
        state = self.ranks[rank]
        state.finish, state.done = self.now, state.done + 1
        if state.nodes[number].type != SEND:
            self.listener("done", rank, state.nodes[number])
        ready = []
        for child in state.children[number]:
            state.waits[child] -= 1
            if state.waits[child] == 0:
                ready.append(child)
        self.issue(rank, ready)

    def send(self, key, rank: int, number: int) -> None:
        _, src, dst, size = key
        if not self.aware:
            delay = self.network.free_delay(src, dst, size)
            assert self.now + delay > 0, "an event at time 0 aborts ASTRA-sim"
            self.at(self.now + delay, lambda: self.deliver(key, rank, number))
            return
        self.forward(deque(self.network.path(src, dst)), key, rank, number)

    def forward(self, path, key, rank: int, number: int) -> None:
        link = path[0]
        if link in self.busy:
            self.queues[link].append((path, key, rank, number))
            return
        self.busy.add(link)
        (speed,), (latency,) = self.network.bandwidth, self.network.latency
        push = key[3] / speed
        assert self.now + math.floor(push) > 0, "an event at time 0 aborts ASTRA-sim"

        def arrive() -> None:
            path.popleft()
            if path:
                self.forward(path, key, rank, number)
            else:
                self.deliver(key, rank, number)

        def free() -> None:
            self.busy.remove(link)
            if self.queues[link]:
                self.forward(*self.queues[link].popleft())

        self.at(self.now + math.floor(latency + push), arrive)
        self.at(self.now + math.floor(push), free)

    def deliver(self, key, rank: int, number: int) -> None:
        self.complete(rank, number)
        if self.posted[key]:
            self.complete(key[2], self.posted[key].popleft())
        else:
            self.arrived[key].append(True)

    def receive(self, key, rank: int, number: int) -> None:
        if self.arrived[key]:
            self.arrived[key].popleft()
            self.at(self.now, lambda: self.complete(rank, number))
        else:
            self.posted[key].append(number)


@dataclass
class Run:
    """A bundle, run."""

    finish: dict[int, int]
    ranks: int
    comm_size: int
    comm_type: int

    @property
    def time(self) -> int:
        assert len(self.finish) == self.ranks, "some ranks hang"
        return max(self.finish.values())


def run_bundle(folder: Path, *, network="network.yml", which="", seed=None, listener=None) -> Run:
    """Run a bundle from what its files say, as run.sh would."""
    net = Network.read(folder / network)
    aware = network != "unaware.yml"
    system = json.loads((folder / f"{which}system.json").read_text())
    assert system["preferred-dataset-splits"] == 1
    (key,) = [name for name in system if name.endswith("-implementation-custom")]
    (prefix,) = system[key]
    assert json.loads((folder / "memory.json").read_text()) == {
        "memory-type": "NO_MEMORY_EXPANSION"
    }
    groups = {"": list(range(net.ranks))}
    file = folder / f"{which}groups.json"
    if file.exists():
        groups |= json.loads(file.read_text())
    calls: dict[int, dict] = {}
    for rank in range(net.ranks):
        (node,) = read_trace(folder / f"{which}workload.{rank}.et").values()
        if node.type == COLL:
            calls[rank] = attributes(node)
        else:
            assert node.type == COMP
    (group,) = {str(call.get("pg_name", "")) for call in calls.values()}
    (size,) = {call["comm_size"] for call in calls.values()}
    (kind,) = {call["comm_type"] for call in calls.values()}
    members = groups[group]
    assert members == sorted(members) == sorted(calls)
    numbers = {"all-reduce": 0, "all-gather": 2, "all-to-all": 6, "reduce-scatter": 7}
    assert key == f"{next(n for n, v in numbers.items() if v == kind)}-implementation-custom"
    traces = {
        rank: read_trace(folder / f"{prefix}.{position}.et")
        for position, rank in enumerate(members)
    }
    simulator = Simulator(net, traces, aware=aware, members=members, seed=seed, listener=listener)
    finish = simulator.run() | {rank: 1 for rank in range(net.ranks) if rank not in calls}
    return Run(finish, net.ranks, size, kind)
