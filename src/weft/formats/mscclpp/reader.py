"""Reads MSCCL++ execution plans."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from weft.algorithm import Algorithm, Buffer, Cells, cells_of, place, weave
from weft.collective import Collective
from weft.collective.slots import output_slots
from weft.documents import Document, PlacedError, read_document
from weft.errors import FormatError, InputError
from weft.formats.imported import Hints, Imported
from weft.formats.mscclpp.events import words
from weft.formats.mscclpp.limits import BUFFERS
from weft.formats.mscclpp.meaning import collective_of
from weft.formats.mscclpp.operations import Interpreter
from weft.formats.mscclpp.schema import Plan, parse
from weft.quoting import quoted

MAX_BYTES = 128 << 20
MAX_LOCATED = 1 << 20
MAX_CELLS = 1 << 21
"""Chunks of all buffers of all GPUs; a plan has some thousands."""
MAX_MOVES = 1 << 21
"""Chunks that all operations read and write."""


def recognise(_path: Path, head: bytes) -> bool:
    """Whether a file looks like a plan: JSON that speaks of GPUs and their thread blocks."""
    if not head.lstrip().startswith(b"{"):
        return False
    return b'"gpus"' in head and (b'"threadblocks"' in head or b'"collective"' in head)


def read(path: Path, hints: Hints) -> Imported:
    """Read a plan; raises FormatError."""
    plan = read_document(path, "plan", _checked)
    fineness = _fineness(plan, path)
    try:
        return _woven(plan, path, hints, fineness)
    except PlacedError as error:
        raise FormatError(f"{path}: {error.message}") from None
    except InputError as error:
        raise FormatError(f"{path}: {error}") from None


def _checked(document: Document) -> Plan:
    try:
        return _parsed(document)
    except PlacedError as error:
        if len(document.data) <= MAX_LOCATED or error.line is not None:
            raise
        # To find the line would take longer than all the rest; the sentence names the place.
        raise FormatError(f"{document.path}: {error.message}") from None


def _parsed(document: Document) -> Plan:
    if len(document.data) > MAX_BYTES:
        raise PlacedError(f"the plan is larger than {MAX_BYTES >> 20} MiB, the most Weft reads")
    plan = parse(document)
    if plan.protocol not in ("Simple", "LL"):
        raise PlacedError(
            f"protocol is {quoted(plan.protocol)}; expected Simple or LL", ["protocol"]
        )
    return plan


def _fineness(plan: Plan, path: Path) -> int:
    """In how many parts a chunk must be cut so that groups of thread blocks move whole ones."""
    groups = {
        operation.tbg_info.tbg_size
        for gpu in plan.gpus
        for block in gpu.threadblocks
        for operation in block.ops
        if operation.tbg_info is not None
    }
    fineness = math.lcm(*(max(size, 1) for size in groups))
    cells = sum(gpu.input_chunks + gpu.output_chunks + gpu.scratch_chunks for gpu in plan.gpus)
    moved = sum(
        place.size
        for gpu in plan.gpus
        for block in gpu.threadblocks
        for operation in block.ops
        for place in (*operation.src_buff, *operation.dst_buff)
    )
    for count, most, what in (
        (cells, MAX_CELLS, "its buffers have"),
        (moved, MAX_MOVES, "its operations use"),
    ):
        if count * fineness > most:
            cut = f", each cut in {fineness} for groups of thread blocks" if fineness > 1 else ""
            raise FormatError(f"{path}: {what} {count} chunks{cut}; Weft reads plans up to {most}")
    return fineness


def _woven(plan: Plan, path: Path, hints: Hints, fineness: int) -> Imported:
    collective = collective_of(plan, hints, fineness)
    cells = cells_of(
        collective,
        len(plan.gpus),
        in_place=plan.inplace,
        inputs=[gpu.input_chunks * fineness for gpu in plan.gpus],
        outputs=[gpu.output_chunks * fineness for gpu in plan.gpus],
        scratch=[gpu.scratch_chunks * fineness for gpu in plan.gpus],
    )
    interpreter = Interpreter(plan, cells, fineness)
    interpreter.run()
    events = interpreter.events
    woven = weave(events.program(cells), _Words(interpreter, cells))
    _check_results(collective, cells, interpreter)
    provenance = {"format": "mscclpp", "plan": plan.name[:200]}
    algorithm = Algorithm((collective,), woven.transfers, provenance=provenance)
    return Imported(algorithm, path, lambda row: words(events.origins[int(woven.action[row])]))


class _Words:
    """What a plan calls events and cells."""

    def __init__(self, interpreter: Interpreter, cells: Cells) -> None:
        self._events, self._cells = interpreter.events, cells
        self._fineness = interpreter.fineness

    def event(self, event: int) -> str:
        return words(self._events.where(event))

    def cell(self, cell: int) -> str:
        gpu = int(self._cells.npu[cell])
        for buffer, letter in BUFFERS.items():
            slots = self._cells.slots[buffer][gpu].tolist()
            if cell in slots:
                return f"{letter}[{slots.index(cell) // self._fineness}] of GPU {gpu}"
        return f"a chunk of GPU {gpu}"


def _check_results(collective: Collective, cells: Cells, interpreter: Interpreter) -> None:
    """Raise unless results are where they belong, for sure, when a GPU's thread blocks end.

    It is as if somebody read them then, each into a cell of its own.
    """
    events, outputs = interpreter.events, cells.slots[Buffer.OUTPUT]
    results = output_slots(collective.chunks, len(outputs)).counts.tolist()
    last = {cell: action for action, cell in enumerate(events.dst)}
    copies: list[int] = []
    for gpu, count in enumerate(results):
        chain = [events.end(gpu)]
        # If the last of what a thread block wrote is there, all of it is: that one first.
        for cell in sorted(outputs[gpu][:count].tolist(), key=lambda c: -last.get(c, -1)):
            action = events.action(cell, len(cells.npu) + len(copies), (gpu, -1, -1))
            chain += (2 * action, 2 * action + 1)
            copies.append(gpu)
        events.chains.append(chain)
    none = np.full(len(copies), -1, dtype=np.int32)
    with_copies = Cells(
        np.concatenate([cells.npu, np.array(copies, dtype=np.int32)]),
        np.concatenate([cells.place, np.full(len(copies), place(Buffer.SCRATCH, 0), np.int32)]),
        np.concatenate([cells.chunk, none]),
        np.concatenate([cells.result, none]),
        np.concatenate([cells.result_place, none]),
        cells.slots,
    )
    weave(events.program(with_copies), _Words(interpreter, cells))
