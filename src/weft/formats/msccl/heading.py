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

    algo: dict[str, str | int]
    inputs: Int64
    outputs: Int64

    def start(self, channels: int) -> str:
        """The opening of the algorithm; loaders want it in one line."""
        said = {**self.algo, "nchannels": channels}
        return " ".join(["<algo", *(f'{key}="{value}"' for key, value in said.items())]) + ">"

    def gpu(self, number: int, scratch: int) -> str:
        i, o = self.inputs[number], self.outputs[number]
        return f'  <gpu id="{number}" i_chunks="{i}" o_chunks="{o}" s_chunks="{scratch}">'


def heading_of(memory: Memory, dialect: str, protocol: str, name: str | None) -> Heading:
    """The head for a runtime, if it knows the collective."""
    runtime, kind = DIALECTS[dialect], memory.collective.kind
    name = f"{kind}-{len(memory.ranks)}" if name is None else name
    if not _NAME.fullmatch(name):
        raise InputError(
            f"the name is {quoted(name)}; expected up to 63 letters, digits and any of _ . + -"
        )
    coll = name_of(memory, dialect)
    inputs, outputs = memory.inputs, memory.outputs
    lengths = int(inputs.max()), int(outputs.max())
    chunks = max(lengths)
    if coll == runtime.custom:
        inputs, outputs = (np.where(side > 0, chunks, 0) for side in (inputs, outputs))
    else:
        _check_even(memory)
        if kind in ("gather", "scatter"):  # counted by share
            chunks = min(lengths)
    _check_sizes(memory, runtime, dialect)
    algo: dict[str, str | int] = {
        "name": name,
        "proto": protocol,
        "nchannels": 0,
        "nchunksperloop": chunks,
        "ngpus": len(inputs),
        "coll": coll,
        "inplace": int(memory.in_place),
        "outofplace": int(not memory.in_place),
        "minBytes": 0,
        "maxBytes": 0 if dialect == "rccl" else NO_LIMIT,  # where 0 is none
    }
    return Heading(algo, inputs, outputs)


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
    first = ranks if kind in ("all-gather", "gather") else 1
    second = ranks if kind in ("reduce-scatter", "scatter") else 1
    if any(len(side) != 1 for side in sides) or sides[0][0] * first != sides[1][0] * second:
        raise InputError(
            f"{kind}: the shares of the ranks have unequal numbers of chunks, because some chunks "
            "are empty; take a larger size or fewer chunks"
        )


def _check_sizes(memory: Memory, runtime: Dialect, dialect: str) -> None:
    if len(memory.ranks) > runtime.gpus:
        raise InputError(f"{len(memory.ranks)} GPUs; {dialect} loads up to {runtime.gpus}")
    buffers = {"input": memory.inputs, "output": memory.outputs, "scratch": memory.scratch}
    for name, slots in buffers.items():
        gpu = int(slots.argmax())
        if slots[gpu] > runtime.slots:
            raise InputError(
                f"GPU {gpu} has {slots[gpu]} chunks in its {name}; {dialect} numbers up to "
                f"{runtime.slots}; take fewer chunks"
            )
