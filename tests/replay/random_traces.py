"""Random traces for runs: any dependencies, tags used again, ids and files in any order."""

from __future__ import annotations

import random

from tests.formats.chakra_schema import Node
from tests.workload.traces import COMP, RECV, SEND, make

SIZES = [60, 1000, 4096, 100_003]


def random_ranks(seed: int, ranks: int, *, fresh_tags: bool) -> list[list[Node]]:
    """Each rank's nodes; with fresh tags every message is found by its own."""
    rng = random.Random(seed)
    traces: list[list[Node]] = [[] for _ in range(ranks)]
    step, offset = rng.choice([1, 1, 7]), rng.choice([0, 5, 1 << 40])

    def add(rank: int, kind: int, **attributes) -> Node:
        mine = traces[rank]
        deps = [node.id for node in rng.sample(mine, min(len(mine), rng.choice([0, 1, 1, 2])))]
        node = make(offset + step * len(mine), kind, deps[:1], **attributes)
        node.ctrl_deps.extend(deps[1:] + deps[: rng.randint(0, 1)])  # some are there twice
        mine.append(node)
        return node

    for rank in range(ranks):
        add(rank, COMP)
    for number in range(rng.randint(0, 8 * ranks)):
        if ranks == 1 or rng.random() < 0.2:
            node = add(rng.randrange(ranks), COMP)
            node.duration_micros = rng.choice([0, 0, 1, 2, 5])
            node.attr.add(name="is_cpu_op", bool_val=rng.random() < 0.3)
            continue
        src, dst = rng.sample(range(ranks), 2)
        tag = number if fresh_tags else rng.choice([0, 1, 500_000_000])
        message = {"comm_size": rng.choice(SIZES), "comm_tag": tag}
        add(src, SEND, comm_dst=dst, **message)
        add(dst, RECV, comm_src=src, **message)
    for nodes in traces:
        if rng.random() < 0.3:
            rng.shuffle(nodes)
    return traces


def node(number: int, kind: int, deps=(), micros: int = 0, cpu: bool = False, **attributes) -> Node:
    """A node with a duration."""
    made = make(number, kind, deps, **attributes)
    made.duration_micros = micros
    if cpu:
        made.attr.add(name="is_cpu_op", bool_val=True)
    return made


def send(number: int, dst: int, size: int, tag: int = 0, deps=()) -> Node:
    return make(number, SEND, deps, comm_dst=dst, comm_size=size, comm_tag=tag)


def recv(number: int, src: int, size: int, tag: int = 0, deps=()) -> Node:
    return make(number, RECV, deps, comm_src=src, comm_size=size, comm_tag=tag)
