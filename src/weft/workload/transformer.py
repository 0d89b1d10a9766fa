"""Training steps of a transformer as traces: who computes what, after what, and sends where."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weft.documents import new_folder
from weft.workload.nodes import COMM_COLL, COMM_RECV, COMM_SEND, COMP, METADATA, Node, encode
from weft.workload.process_groups import COMM_GROUP_NAME
from weft.workload.transformer_model import Part, Transformer

PREFIX = "transformer"
NAMES = re.compile(rf"{PREFIX}\.[0-9]+\.et|{re.escape(COMM_GROUP_NAME)}")

_ALL_REDUCE, _ALL_GATHER, _ALL_TO_ALL, _REDUCE_SCATTER = 0, 2, 6, 7


def save_transformer(model: Transformer, folder: str | os.PathLike[str]) -> int:
    """Write the traces and the comm-group file, whole or not at all; gives the number of nodes."""
    nodes = 0
    with new_folder(Path(folder), NAMES) as place:
        groups = _ProcessGroups(model)
        for rank in range(model.ranks):
            trace = rank_trace(model, groups.of(rank))
            (place / f"{PREFIX}.{rank}.et").write_bytes(METADATA + b"".join(map(encode, trace)))
            nodes += len(trace)
        lines = (f'"{name}": {json.dumps(members)}' for name, members in groups.members.items())
        (place / COMM_GROUP_NAME).write_text("{" + ",\n ".join(lines) + "}\n")
    return nodes


@dataclass(frozen=True)
class Place:
    """A rank's groups by name, None where it would be alone; and its neighbours in the pipeline."""

    rank: int
    stage: int
    tp: str | None
    dp: str | None
    ep: str | None
    edp: str | None
    before: int | None
    after: int | None


class _ProcessGroups:
    """The groups of all ranks, numbered from 1 on; equal groups have one number."""

    def __init__(self, model: Transformer) -> None:
        self.members: dict[str, list[int]] = {}
        self._names: dict[tuple[int, ...], str] = {}
        self._of: dict[str, dict[int, str]] = {}
        for kind, along in (("tp", ("tp",)), ("dp", ("ep", "edp")), ("ep", ("ep",))):
            self._add(kind, model.groups(*along))
        self._add("edp", model.groups("edp"))
        self._stages = {rank: line for line in model.groups("pp") for rank in line}

    def _add(self, kind: str, groups: Sequence[tuple[int, ...]]) -> None:
        self._of[kind] = {}
        for group in groups:
            if len(group) == 1:
                continue
            name = self._names.setdefault(group, str(len(self._names) + 1))
            self.members[name] = list(group)
            self._of[kind].update(dict.fromkeys(group, name))

    def of(self, rank: int) -> Place:
        line = self._stages[rank]
        stage = line.index(rank)
        return Place(
            rank,
            stage,
            self._of["tp"].get(rank),
            self._of["dp"].get(rank),
            self._of["ep"].get(rank),
            self._of["edp"].get(rank),
            line[stage - 1] if stage > 0 else None,
            line[stage + 1] if stage + 1 < len(line) else None,
        )


def order_of_work(model: Transformer, stage: int) -> Iterator[tuple[str, int]]:
    """What a stage does one after the other: ``("forward", 2)`` is the third microbatch."""
    count = model.microbatches
    ahead = count if model.schedule == "gpipe" else min(model.pp - 1 - stage, count)
    for number in range(ahead):
        yield "forward", number
    for number in range(ahead, count):
        yield "forward", number
        yield "backward", number - ahead
    for number in range(count - ahead, count):
        yield "backward", number


def rank_trace(model: Transformer, place: Place) -> list[Node]:
    """The nodes of one rank, in the order of their ids."""
    trace = _Trace(model, place)
    for work, number in order_of_work(model, place.stage):
        if work == "forward":
            trace.forward(number)
        else:
            trace.backward(number)
    trace.finish()
    return trace.nodes


@dataclass
class _Trace:
    """Nodes so far. Work goes on where it stopped: each piece waits for the one before it."""

    model: Transformer
    place: Place
    nodes: list[Node] = field(default_factory=list)
    last: int | None = None  # the node that ends the work so far
    synced: list[int] = field(default_factory=list)  # what the optimizer waits for

    def forward(self, number: int) -> None:
        model, place = self.model, self.place
        received = self._receive(place.before, number)
        for layer in model.stage_layers(place.stage):
            self._compute("forward", model.attention, layer, received)
            received = []
            self._sum_activations(f"forward attention {layer}")
            self._route(f"forward dispatch {layer}")
            self._compute("forward", model.mlp, layer)
            self._route(f"forward combine {layer}")
            self._sum_activations(f"forward mlp {layer}")
        self._send(place.after, number)

    def backward(self, number: int) -> None:
        model, place = self.model, self.place
        received = self._receive(place.after, number)
        is_last = number == model.microbatches - 1
        for layer in reversed(model.stage_layers(place.stage)):
            self._route(f"backward combine {layer}", received)
            waited = received if place.ep is None else []
            mlp = self._compute("backward", model.mlp, layer, waited)
            received = []
            self._route(f"backward dispatch {layer}")
            self._sum_activations(f"backward mlp {layer}")
            attention = self._compute("backward", model.attention, layer)
            self._sum_activations(f"backward attention {layer}")
            if is_last:
                self._sync(layer, mlp, attention)
        self._send(place.before, number)

    def finish(self) -> None:
        """The optimizer; then what each rank has updated goes to all, if it was scattered."""
        model, stage = self.model, self.place.stage
        before = [*self._after(), *self.synced]
        ops, size = model.optimizer_ops(stage), model.optimizer_bytes(stage)
        update = self._add_compute("optimizer", ops, size, before)
        if model.sync == "all-reduce":
            return
        for layer in model.stage_layers(stage):
            for part, group, ranks in self._copies():
                share = -(-part.parameters // ranks) * model.bytes
                name = f"parameters {part.name} {layer}"
                self._add_collective(name, _ALL_GATHER, share, group, [update])

    def _sync(self, layer: int, mlp: int, attention: int) -> None:
        """Gradients of a layer, while the layers before it go on."""
        kind = _ALL_REDUCE if self.model.sync == "all-reduce" else _REDUCE_SCATTER
        for part, group, _ in self._copies():
            size = part.parameters * self.model.bytes
            after = [mlp if part is self.model.mlp else attention]
            node = self._add_collective(f"gradients {part.name} {layer}", kind, size, group, after)
            if node is not None:
                self.synced.append(node)

    def _copies(self) -> list[tuple[Part, str | None, int]]:
        """Parts of a layer, the group of ranks that have copies of them, and how many those are."""
        model, place = self.model, self.place
        experts = (model.mlp, place.edp, model.dp // model.ep)
        return [
            experts if model.experts else (model.mlp, place.dp, model.dp),
            (model.attention, place.dp, model.dp),
        ]

    def _sum_activations(self, name: str) -> None:
        """Tensor-parallel ranks have parts of a sum."""
        size = self.model.activation_bytes
        node = self._add_collective(f"{name} sum", _ALL_REDUCE, size, self.place.tp, self._after())
        self.last = self.last if node is None else node

    def _route(self, name: str, received: Sequence[int] = ()) -> None:
        """Tokens to experts, or back."""
        after = [*self._after(), *received]
        size = self.model.routed_bytes
        node = self._add_collective(name, _ALL_TO_ALL, size, self.place.ep, after)
        self.last = self.last if node is None else node

    def _compute(self, way: str, part: Part, layer: int, received: Sequence[int] = ()) -> int:
        """One half of a layer; backward there are two gradients to find."""
        times = 2 if way == "backward" else 1
        size = times * (part.parameters * self.model.bytes + 2 * self.model.activation_bytes)
        after = [*self._after(), *received]
        self.last = self._add_compute(f"{way} {part.name} {layer}", times * part.ops, size, after)
        return self.last

    def _after(self) -> list[int]:
        return [] if self.last is None else [self.last]

    def _add_compute(self, name: str, ops: int, size: int, after: Sequence[int]) -> int:
        attributes = (("is_cpu_op", 0), ("num_ops", ops), ("tensor_size", size))
        return self._add(name, COMP, after, attributes, self.model.duration_us(ops))

    def _add_collective(
        self, name: str, kind: int, size: int, group: str | None, after: Sequence[int]
    ) -> int | None:
        """None where the rank would be alone."""
        if group is None:
            return None
        attributes = (
            ("is_cpu_op", 0),
            ("comm_type", kind),
            ("comm_size", size),
            ("pg_name", group),
        )
        return self._add(name, COMM_COLL, after, attributes)

    def _receive(self, peer: int | None, number: int) -> list[int]:
        if peer is None:
            return []
        return [self._add_message(f"receive {number}", COMM_RECV, "comm_src", peer, number, [])]

    def _send(self, peer: int | None, number: int) -> None:
        if peer is not None:
            self._add_message(f"send {number}", COMM_SEND, "comm_dst", peer, number, self._after())

    def _add_message(
        self, name: str, kind: int, end: str, peer: int, tag: int, after: Sequence[int]
    ) -> int:
        size = self.model.activation_bytes
        attributes = (
            ("is_cpu_op", 0),
            (end, peer),
            ("comm_size", size),
            ("comm_tag", tag),
        )
        return self._add(name, kind, after, attributes)

    def _add(
        self,
        name: str,
        kind: int,
        after: Sequence[int],
        attributes: tuple[tuple[str, int | str], ...],
        duration: int = 0,
    ) -> int:
        number = len(self.nodes)
        self.nodes.append(Node(number, name, kind, tuple(after), (), duration, attributes))
        return number
