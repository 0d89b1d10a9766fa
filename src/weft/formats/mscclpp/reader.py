"""Reads MSCCL++ execution plans."""

from __future__ import annotations

import math
from pathlib import Path

from weft.algorithm import Algorithm, Buffer, Cells, cells_of, weave
from weft.collective import Collective
from weft.documents import Document, PlacedError, read_document
from weft.errors import FormatError, InputError
from weft.formats.imported import Hints, Imported
from weft.formats.mscclpp.events import words
from weft.formats.mscclpp.meaning import collective_of
from weft.formats.mscclpp.operations import Interpreter
from weft.formats.mscclpp.schema import Plan, parse

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
    plan = parse(document)
    if plan.protocol not in ("Simple", "LL"):
        raise PlacedError(
            f"protocol is '{plan.protocol[:20]}'; expected Simple or LL", ["protocol"]
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
    if not plan.inplace:
        _check_outputs(collective, cells, set(events.dst), fineness)
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
        for buffer, letter in ((Buffer.INPUT, "i"), (Buffer.OUTPUT, "o"), (Buffer.SCRATCH, "s")):
            slots = self._cells.slots[buffer][gpu].tolist()
            if cell in slots:
                return f"{letter}[{slots.index(cell) // self._fineness}] of GPU {gpu}"
        return f"a chunk of GPU {gpu}"


def _check_outputs(collective: Collective, cells: Cells, written: set[int], fineness: int) -> None:
    """Out of place, even what a GPU has from the start must be copied to its output."""
    chunks = collective.chunks
    wanted: dict[int, int] = {}
    for chunk in range(len(chunks)):
        for npu in chunks.members(chunks.post[chunk]).tolist():
            slot = wanted.get(npu, 0)
            wanted[npu] = slot + 1
            if int(cells.slots[Buffer.OUTPUT][npu][slot]) not in written:
                raise InputError(f"nothing writes o[{slot // fineness}] of GPU {npu}")
