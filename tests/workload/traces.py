"""Workloads for tests: traces by the protobuf runtime, from short descriptions."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.formats.chakra_schema import GlobalMetadata, Node, frame, frames

COMP, SEND, RECV, COLL = 4, 5, 6, 7
KINDS = {"all-reduce": 0, "all-gather": 2, "all-to-all": 6, "reduce-scatter": 7}
ATTRIBUTES = {
    "comm_type": "int64_val",
    "comm_size": "int64_val",
    "comm_src": "int32_val",
    "comm_dst": "int32_val",
    "comm_tag": "int32_val",
    "pg_name": "string_val",
}


def make(number: int, kind: int, deps: Sequence[int] = (), name: str = "", **attributes) -> Node:
    node = Node(id=number, name=name or f"n{number}", type=kind, data_deps=deps)
    for key, value in attributes.items():
        node.attr.add(name=key, **{ATTRIBUTES[key]: value})
    return node


def write(folder: Path, ranks: Sequence[Sequence[Node]], prefix: str = "w") -> Path:
    """One file per rank."""
    folder.mkdir(exist_ok=True)
    for rank, nodes in enumerate(ranks):
        content = frame(GlobalMetadata(version="0.0.4").SerializeToString())
        content += b"".join(frame(node.SerializeToString()) for node in nodes)
        (folder / f"{prefix}.{rank}.et").write_bytes(content)
    return folder


def read(path: Path) -> list[Node]:
    """The nodes of a file."""
    return [Node.FromString(message) for message in frames(path.read_bytes())[1:]]


def value(node: Node, name: str):
    """An attribute's value, or None."""
    for attribute in node.attr:
        if attribute.name == name:
            return getattr(attribute, attribute.WhichOneof("value"))
    return None


@dataclass
class Sample:
    """A random workload: its nodes, and what each collective must do."""

    ranks: list[list[Node]]
    groups: dict[str, list[int]]
    # (rank, node): kind, size, members in order.
    collectives: dict[tuple[int, int], tuple[str, int, list[int]]] = field(default_factory=dict)

    def save(self, folder: Path) -> Path:
        write(folder, self.ranks)
        (folder / "comm_group.json").write_text(json.dumps(self.groups))
        return folder


def random_workload(seed: int, *, ranks: int = 6, collectives: int = 6) -> Sample:
    """Groups of any ranks do collectives in one order; each rank has other nodes between them."""
    rng = random.Random(seed)
    count = rng.randint(1, ranks)
    groups = {str(i + 1): _members(rng, count) for i in range(rng.randint(0, 3))}
    if count > 1 and rng.random() < 0.5:  # a partition whose groups do the same
        half = rng.randint(1, count - 1)
        groups |= {"8": list(range(half)), "9": list(range(half, count))}
    step = rng.choice([1, 1, 7])
    offset = rng.choice([0, 5, 1 << 40])
    sample = Sample([[] for _ in range(count)], groups)

    def add(rank: int, kind: int, **attributes) -> int:
        mine = sample.ranks[rank]
        deps = rng.sample([node.id for node in mine], min(len(mine), rng.randint(0, 2)))
        node = make(offset + step * len(mine), kind, deps, **attributes)
        node.ctrl_deps.extend(rng.sample([n.id for n in mine], min(len(mine), rng.randint(0, 1))))
        mine.append(node)
        return node.id

    for rank in range(count):
        add(rank, COMP)
    for number in range(rng.randint(0, collectives)):
        together = rng.random() < 0.5 and "8" in groups
        kind, size = rng.choice(list(KINDS)), rng.choice([1, 17, 4096, 100_003])
        for name in ("8", "9") if together else (rng.choice(["", "0", None, *groups]),):
            members = groups.get(name or "", list(range(count)))
            attributes = {"comm_type": KINDS[kind], "comm_size": size}
            for rank in members:
                named = {} if name is None else {"pg_name": name}
                node = add(rank, COLL, **attributes, **named)
                sample.collectives[rank, node] = kind, size, members
        if count > 1 and rng.random() < 0.5:
            src, dst = rng.sample(range(count), 2)
            add(src, SEND, comm_dst=dst, comm_size=64, comm_tag=number)
            add(dst, RECV, comm_src=src, comm_size=64, comm_tag=number)
    if rng.random() < 0.3:
        for nodes in sample.ranks:
            rng.shuffle(nodes)  # the order in the file says nothing
    return sample


def _members(rng: random.Random, count: int) -> list[int]:
    return rng.sample(range(count), rng.randint(1, count))
