"""Training steps of a transformer as traces: who computes what, after what, and sends where."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from weft.documents import new_folder
from weft.formats.chakra.encoding import FILE_HEAD, Node, encode
from weft.formats.chakra.schema import COMM_COLL, COMM_RECV, COMM_SEND, COMM_TYPE_OF, COMP
from weft.workload.communicators import COMM_GROUP_NAME
from weft.workload.transformer_model import Part, Transformer

PREFIX = "transformer"
NAMES = re.compile(rf"{PREFIX}\.[0-9]+\.et|{re.escape(COMM_GROUP_NAME)}")


def save_transformer(model: Transformer, folder: str | os.PathLike[str]) -> int:
    """Write the traces and the comm-group file, whole or not at all; gives the number of nodes."""
    nodes = 0
    with new_folder(Path(folder), NAMES) as place:
        groups = _ProcessGroups(model)
        for rank in range(model.ranks):
            trace = rank_trace(model, groups.of(rank))
            (place / f"{PREFIX}.{rank}.et").write_bytes(FILE_HEAD + b"".join(map(encode, trace)))
            nodes += len(trace)
        lines = (f'"{name}": {json.dumps(members)}' for name, members in groups.members.items())
        (place / COMM_GROUP_NAME).write_text("{" + ",\n ".join(lines) + "}\n")
    return nodes


@dataclass(frozen=True)
class Place:
    """A rank's stage and its neighbours in the pipeline, and the names of its groups.

    Groups go by what they share, such as ``dp``; those are left out in which it would be alone.
    """

    stage: int
    before: int | None
    after: int | None
    groups: dict[str, str]


class _ProcessGroups:
    """The groups of all ranks, numbered from 1 on; equal groups have one number."""

    def __init__(self, model: Transformer) -> None:
        self._names: dict[tuple[int, ...], str] = {}
        self._of: dict[str, dict[int, str]] = {"tp": {}, "dp": {}, "ep": {}, "edp": {}}
        for kind, names in self._of.items():
            for group in model.groups(*(("ep", "edp") if kind == "dp" else (kind,))):
                if len(group) > 1:
                    name = self._names.setdefault(group, str(len(self._names) + 1))
                    names.update(dict.fromkeys(group, name))
        self._stages = {rank: line for line in model.groups("pp") for rank in line}

    @property
    def members(self) -> dict[str, tuple[int, ...]]:
        return {name: group for group, name in self._names.items()}

    def of(self, rank: int) -> Place:
        line = self._stages[rank]
        stage = line.index(rank)
        return Place(
            stage,
            line[stage - 1] if stage > 0 else None,
            line[stage + 1] if stage + 1 < len(line) else None,
            {kind: names[rank] for kind, names in self._of.items() if rank in names},
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
    waits: list[int] = field(default_factory=list)  # what the next piece of work waits for
    synced: list[int] = field(default_factory=list)  # what the optimizer waits for

    def forward(self, number: int) -> None:
        model, place = self.model, self.place
        self._receive(place.before, number)
        for layer in model.stage_layers(place.stage):
            self._compute("forward", model.attention, layer)
            self._sum_activations(f"forward attention {layer}")
            self._route(f"forward dispatch {layer}")
            self._compute("forward", model.mlp, layer)
            self._route(f"forward combine {layer}")
            self._sum_activations(f"forward mlp {layer}")
        self._send(place.after, number)

    def backward(self, number: int) -> None:
        model, place = self.model, self.place
        self._receive(place.after, number)
        for layer in reversed(model.stage_layers(place.stage)):
            self._route(f"backward combine {layer}")
            mlp = self._compute("backward", model.mlp, layer)
            self._route(f"backward dispatch {layer}")
            self._sum_activations(f"backward mlp {layer}")
            attention = self._compute("backward", model.attention, layer)
            self._sum_activations(f"backward attention {layer}")
            if number == model.microbatches - 1:
                self._sync(layer, mlp, attention)
        self._send(place.before, number)

    def finish(self) -> None:
        """The optimizer; then what each rank has updated goes to all, if it was scattered."""
        model, stage = self.model, self.place.stage
        ops, size = model.optimizer_ops(stage), model.optimizer_bytes(stage)
        update = self._add_compute("optimizer", ops, size, [*self.waits, *self.synced])
        if model.sync == "all-reduce":
            return
        for layer in model.stage_layers(stage):
            for part, group, ranks in self._copies():
                share = -(-part.parameters // ranks) * model.bytes
                name = f"parameters {part.name} {layer}"
                self._add_collective(name, "all-gather", share, group, [update])

    def _sync(self, layer: int, mlp: int, attention: int) -> None:
        """Gradients of a layer, while the layers before it go on."""
        kind = self.model.sync
        for part, group, _ in self._copies():
            size = part.parameters * self.model.bytes
            after = [mlp if part is self.model.mlp else attention]
            name = f"gradients {part.name} {layer}"
            self.synced += self._add_collective(name, kind, size, group, after)

    def _copies(self) -> list[tuple[Part, str, int]]:
        """Parts of a layer, the group of ranks that have copies of them, and how many those are."""
        model = self.model  # without experts `ep` is 1, and these are the same groups
        return [(model.mlp, "edp", model.dp // model.ep), (model.attention, "dp", model.dp)]

    def _sum_activations(self, name: str) -> None:
        """Tensor-parallel ranks have parts of a sum."""
        size = self.model.activation_bytes
        done = self._add_collective(f"{name} sum", "all-reduce", size, "tp", self.waits)
        self.waits = done or self.waits

    def _route(self, name: str) -> None:
        """Tokens to experts, or back."""
        size = self.model.routed_bytes
        done = self._add_collective(name, "all-to-all", size, "ep", self.waits)
        self.waits = done or self.waits

    def _compute(self, way: str, part: Part, layer: int) -> int:
        """One half of a layer; backward there are two gradients to find."""
        times = 2 if way == "backward" else 1
        size = times * (part.parameters * self.model.bytes + 2 * self.model.activation_bytes)
        name = f"{way} {part.name} {layer}"
        self.waits = [self._add_compute(name, times * part.ops, size, self.waits)]
        return self.waits[0]

    def _add_compute(self, name: str, ops: int, size: int, after: list[int]) -> int:
        duration = self.model.duration_us(ops)
        return self._add(name, COMP, after, duration, num_ops=ops, tensor_size=size)

    def _add_collective(
        self, name: str, kind: str, size: int, group: str, after: list[int]
    ) -> list[int]:
        """The new node; none where the rank would be alone."""
        if group not in self.place.groups:
            return []
        said = {"comm_type": COMM_TYPE_OF[kind], "comm_size": size}
        return [self._add(name, COMM_COLL, after, **said, pg_name=self.place.groups[group])]

    def _receive(self, peer: int | None, number: int) -> None:
        if peer is not None:
            self.waits += [self._add_message("receive", COMM_RECV, "comm_src", peer, number, [])]

    def _send(self, peer: int | None, number: int) -> None:
        if peer is not None:
            self._add_message("send", COMM_SEND, "comm_dst", peer, number, self.waits)

    def _add_message(
        self, name: str, kind: int, end: str, peer: int, tag: int, after: list[int]
    ) -> int:
        said = {end: peer, "comm_size": self.model.activation_bytes, "comm_tag": tag}
        return self._add(f"{name} {tag}", kind, after, **said)

    def _add(
        self, name: str, kind: int, after: list[int], duration: int = 0, **said: int | str
    ) -> int:
        number, attributes = len(self.nodes), (("is_cpu_op", 0), *said.items())
        self.nodes.append(Node(number, name, kind, tuple(after), (), duration, attributes))
        return number
