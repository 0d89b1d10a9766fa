"""Runs traces on symbolic data: an opinion on lowered workloads that knows nothing of lowering.

A value is how many bytes, and how often it holds each rank's contribution.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.workload.traces import COLL, COMP, RECV, SEND, value


@dataclass
class Run:
    """What happened: the nodes that finished, and what receives and sums hold."""

    finished: set[tuple[int, int]] = field(default_factory=set)
    order: list[tuple[int, int]] = field(default_factory=list)
    held: dict[tuple[int, int], tuple[int, Counter]] = field(default_factory=dict)


def run(ranks: Sequence[Sequence], seed: int = 0) -> Run:
    """Run everything that can run, one ready node after the other, in a random order.

    A message is found by tag, source, destination and size alone. COMM_COLL is not run here:
    give traces in which none is left, or such as nothing waits for.
    """
    rng, result = random.Random(seed), Run()
    nodes = {(rank, node.id): node for rank, mine in enumerate(ranks) for node in mine}
    assert len(nodes) == sum(map(len, ranks)), "an id is used twice"
    waiting, left = defaultdict(list), {}
    for (rank, number), node in nodes.items():
        deps = {*node.data_deps, *node.ctrl_deps}
        left[rank, number] = len(deps)
        for dep in deps:
            assert (rank, dep) in nodes, "a dependency dangles"
            waiting[rank, dep].append((rank, number))
    mail: dict[tuple, list] = defaultdict(list)
    posted: dict[tuple, list] = defaultdict(list)
    ready = [key for key, count in left.items() if count == 0]

    def finish(key: tuple[int, int]) -> None:
        result.finished.add(key)
        result.order.append(key)
        for child in waiting[key]:
            left[child] -= 1
            if left[child] == 0:
                ready.append(child)

    def deliver(key: tuple) -> None:
        while mail[key] and posted[key]:
            receiver = posted[key].pop(0)
            result.held[receiver] = mail[key].pop(0)
            finish(receiver)

    while ready:
        key = ready.pop(rng.randrange(len(ready)))
        rank, node = key[0], nodes[key]
        if node.type == SEND:
            message = _message(node, rank, value(node, "comm_dst"))
            size = value(node, "comm_size")
            mail[message].append((size, _contents(node, rank, nodes, result)))
            finish(key)
            deliver(message)
        elif node.type == RECV:
            message = _message(node, value(node, "comm_src"), rank)
            posted[message].append(key)
            deliver(message)
        else:
            assert node.type in (COMP, COLL)
            if node.name in ("sum", "copy"):
                result.held[key] = _sum(node, rank, nodes, result)
            finish(key)
    assert not any(mail.values()), "a message was never received"
    return result


def _message(node, src: int, dst: int) -> tuple:
    assert src != dst
    tag = value(node, "comm_tag")
    assert 0 <= tag < 500_000_000
    return tag, src, dst, value(node, "comm_size")


def _inputs(node, rank: int, nodes, result: Run) -> tuple[list[tuple[int, Counter]], bool]:
    """What the nodes it waits for hold, and whether it reads the rank's own data."""
    values, own = [], False
    for dep in node.data_deps:
        assert nodes[rank, dep].type != SEND, "something waits for a send"
        own = own or nodes[rank, dep].name == "start"
        if (rank, dep) in result.held:
            values.append(result.held[rank, dep])
    return values, own


def _contents(node, rank: int, nodes, result: Run) -> Counter:
    if node.name != "send":  # the workload's own message
        return Counter()
    values, own = _inputs(node, rank, nodes, result)
    assert len(values) + own == 1
    if own:
        return Counter({rank: 1})
    size, contents = values[0]
    # A copy of the rank's own data has no size: it is what is sent.
    assert size == (value(node, "comm_size") if size or contents != Counter({rank: 1}) else 0)
    return contents


def _sum(node, rank: int, nodes, result: Run) -> tuple[int, Counter]:
    """The same for a copy, a sum of one; what only copies the rank's own data has no size."""
    values, own = _inputs(node, rank, nodes, result)
    assert values or (own and node.name == "copy")
    sizes = {size for size, _ in values if size}
    assert len(sizes) <= 1
    total = sum((contents for _, contents in values), Counter({rank: 1} if own else {}))
    return sizes.pop() if sizes else 0, total


def check_collective(
    node, rank: int, result: Run, kind: str, size: int, members: Sequence[int]
) -> None:
    """The node that stands for a collective waits for all that its rank must have."""
    values = [result.held[rank, dep] for dep in node.data_deps if (rank, dep) in result.held]
    CHECKS[kind](values, rank, size, list(members))


def _cut(size: int, parts: int) -> list[int]:
    """As evenly as multiples of 16 bytes allow, or of less if there is less."""
    unit = max(1, min(16, size))
    blocks = -(-size // unit)
    marks = [min(i * blocks // parts * unit, size) for i in range(parts)] + [size]
    return [b - a for a, b in pairwise(marks)]


def _bytes_of(values, contents: Counter) -> int:
    return sum(size for size, held in values if held == contents)


def _check_all_reduce(values, _rank: int, size: int, members: list[int]) -> None:
    everyone = Counter(members)
    assert _bytes_of(values, everyone) == (size if len(members) > 1 else 0)
    assert all(held == everyone for _, held in values)


def _check_reduce_scatter(values, rank: int, size: int, members: list[int]) -> None:
    share = _cut(size, len(members))[members.index(rank)]
    assert _bytes_of(values, Counter(members)) == (share if len(members) > 1 else 0)
    assert all(max(held.values()) == 1 for _, held in values)


def _check_all_gather(values, rank: int, size: int, members: list[int]) -> None:
    for other, share in zip(members, _cut(size * len(members), len(members)), strict=True):
        assert _bytes_of(values, Counter({other: 1})) == (share if other != rank else 0)


def _check_all_to_all(values, rank: int, size: int, members: list[int]) -> None:
    part = _cut(size, len(members))[members.index(rank)]
    for other in members:
        assert _bytes_of(values, Counter({other: 1})) == (part if other != rank else 0)


CHECKS: dict[str, Callable[..., None]] = {
    "all-reduce": _check_all_reduce,
    "reduce-scatter": _check_reduce_scatter,
    "all-gather": _check_all_gather,
    "all-to-all": _check_all_to_all,
}
