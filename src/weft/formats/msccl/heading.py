"""The head of a file: which collective, in how many chunks, in which buffers."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.memory import Memory
from weft.errors import InputError
from weft.formats.msccl.dialects import DIALECTS, Dialect
from weft.quoting import quoted

Int64 = NDArray[np.int64]

NO_LIMIT = (1 << 63) - 1
_NAME = re.compile(r"[A-Za-z0-9_.+-]{1,63}")


@dataclass(frozen=True, eq=False)
class Heading:
    """What the elements above the thread blocks say."""

    coll: str
    chunks: int
    in_place: bool
    inputs: list[int]
    outputs: list[int]
    dialect: str
    protocol: str
    name: str

    def start(self, channels: int) -> str:
        """The opening of the algorithm; loaders want it in one line."""
        said = {
            "name": self.name,
            "proto": self.protocol,
            "nchannels": channels,
            "nchunksperloop": self.chunks,
            "ngpus": len(self.inputs),
            "coll": self.coll,
            "inplace": int(self.in_place),
            "outofplace": int(not self.in_place),
            "minBytes": 0,
            "maxBytes": 0 if self.dialect == "rccl" else NO_LIMIT,  # where 0 is none
        }
        attributes = " ".join(f'{key}="{value}"' for key, value in said.items())
        return f"<algo {attributes}>"

    def gpu(self, number: int, scratch: int) -> str:
        i, o = self.inputs[number], self.outputs[number]
        return f'  <gpu id="{number}" i_chunks="{i}" o_chunks="{o}" s_chunks="{scratch}">'


def heading_of(memory: Memory, dialect: str, protocol: str, name: str | None) -> Heading:
    """The head for a runtime, if it knows the collective."""
    runtime = DIALECTS[dialect]
    kind = memory.collective.kind
    name = f"{kind}-{len(memory.ranks)}" if name is None else name
    if not _NAME.fullmatch(name):
        raise InputError(
            f"the name is {quoted(name)}; expected up to 63 letters, digits and any of _ . + -"
        )
    coll = name_of(memory, dialect)
    inputs, outputs = memory.inputs, memory.outputs
    if coll == runtime.custom:
        chunks = max(int(inputs.max()), int(outputs.max()))
        inputs, outputs = (np.where(side > 0, chunks, 0) for side in (inputs, outputs))
    else:
        _check_even(memory)
        chunks = max(int(inputs.max()), int(outputs.max()))
        if kind in ("gather", "scatter"):  # counted by share
            chunks = min(int(inputs.max()), int(outputs.max()))
    _check_sizes(memory, runtime, dialect)
    return Heading(
        coll,
        chunks,
        memory.in_place,
        inputs.tolist(),
        outputs.tolist(),
        dialect,
        protocol,
        name,
    )


def name_of(memory: Memory, dialect: str) -> str:
    """What a runtime calls the collective; with NPUs that only relay it is none that it knows."""
    runtime, kind = DIALECTS[dialect], memory.collective.kind
    relays = memory.ranks[memory.collective.ranks :]
    if not len(relays) and kind in runtime.names:
        return runtime.names[kind]
    if runtime.custom is not None:
        return runtime.custom
    if len(relays):
        raise InputError(
            f"{dialect} runs collectives of all ranks only, but NPU {relays[0]} relays without "
            "being in the group; synthesize with --no-relay, or write the dialect msccl"
        )
    raise InputError(
        f"{dialect} has no {kind} (it has {', '.join(runtime.names)}); write the dialect msccl"
    )


def _check_even(memory: Memory) -> None:
    """Runtimes cut all shares alike."""
    kind, ranks = memory.collective.kind, memory.collective.ranks
    sides = [np.unique(side[side > 0]) for side in (memory.inputs, memory.outputs)]
    many = {"all-gather": (ranks, 1), "gather": (ranks, 1)}
    many |= {"reduce-scatter": (1, ranks), "scatter": (1, ranks)}
    first, second = many.get(kind, (1, 1))
    if any(len(side) != 1 for side in sides) or sides[0][0] * first != sides[1][0] * second:
        raise InputError(
            f"{kind}: the shares of the ranks have unequal numbers of chunks, because some chunks "
            "are empty; take a larger size or fewer chunks"
        )


def _check_sizes(memory: Memory, runtime: Dialect, dialect: str) -> None:
    if len(memory.ranks) > runtime.gpus:
        raise InputError(f"{len(memory.ranks)} GPUs; {dialect} loads up to {runtime.gpus}")
    for name, slots in (
        ("input", memory.inputs),
        ("output", memory.outputs),
        ("scratch", memory.scratch),
    ):
        gpu = int(slots.argmax())
        if slots[gpu] > runtime.slots:
            raise InputError(
                f"GPU {gpu} has {slots[gpu]} chunks in its {name}; {dialect} numbers up to "
                f"{runtime.slots}; take fewer chunks"
            )
