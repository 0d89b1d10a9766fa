"""Reads MSCCL++ execution plans."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from weft.algorithm import Algorithm, Buffer, Cells, Linearized, cells_of, linearize
from weft.algorithm.transfers import PLACE_BITS
from weft.collective.slots import output_slots
from weft.documents import Document, PlacedError, naming, read_document
from weft.errors import FormatError
from weft.formats.derivation import Buffers, derive
from weft.formats.imported import Hints, Imported
from weft.formats.mscclpp.events import words
from weft.formats.mscclpp.executor import SIDES
from weft.formats.mscclpp.operations import Interpreter
from weft.formats.mscclpp.pattern import collective_of, says_nothing, unit_of
from weft.formats.mscclpp.schema import Plan, parse
from weft.formats.mscclpp.splitting import Cut, cut_of

MAX_BYTES = 128 << 20
MAX_LOCATED = 1 << 20


def recognise(_path: Path, head: bytes) -> bool:
    """Whether a file looks like a plan: JSON that speaks of GPUs and their thread blocks."""
    if not head.lstrip().startswith(b"{"):
        return False
    return b'"gpus"' in head and (b'"threadblocks"' in head or b'"collective"' in head)


def read(path: Path, hints: Hints) -> Imported:
    """Read a plan; raises FormatError."""
    with _no_collection():
        plan = read_document(path, "plan", _parsed, MAX_BYTES)
        with naming(path):
            return _woven(plan, path, hints, cut_of(plan))


@contextmanager
def _no_collection() -> Iterator[None]:
    """A plan is a million small records, none of them garbage: looking for some takes as long."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _parsed(document: Document) -> Plan:
    try:
        return parse(document)
    except PlacedError as error:
        if len(document.data) <= MAX_LOCATED or error.line is not None:
            raise
        # To find the line would take longer than all the rest; the sentence names the place.
        raise FormatError(f"{document.path}: {error.message}") from None


def _woven(plan: Plan, path: Path, hints: Hints, cut: Cut) -> Imported:
    inputs, outputs, scratch = (
        [getattr(gpu, side) * cut.fineness for gpu in plan.gpus] for side in SIDES.values()
    )
    buffers = Buffers(inputs, outputs, scratch, plan.inplace)
    provenance: dict[str, str | int | float | bool] = {
        "format": "mscclpp",
        "plan": plan.name[:200],
    }
    translate = partial(Interpreter, plan, cut)
    if says_nothing(plan, hints):
        collective, translation = derive(buffers, unit_of(plan, hints, cut.fineness), translate)
        results = _named_results(translation.cells, len(plan.gpus))
        provenance["collective"] = "derived from what the plan does"
    else:
        collective = collective_of(plan, hints, cut.fineness)
        translation = translate(cells_of(collective, len(plan.gpus), **vars(buffers)))
        counts = output_slots(collective.chunks, len(plan.gpus)).counts.tolist()
        rows = translation.cells.slots[Buffer.OUTPUT]
        results = [row[:count].tolist() for row, count in zip(rows, counts, strict=True)]
    linear = _linearized(translation, results)
    algorithm = Algorithm((collective,), linear.transfers, provenance=provenance)
    origins = translation.events.origins
    return Imported(algorithm, path, lambda row: words(origins[int(linear.action[row])]))


def _named_results(cells: Cells, gpus: int) -> list[list[int]]:
    """The cells of each GPU in which a derived collective has its results."""
    named = (cells.place >> PLACE_BITS == Buffer.OUTPUT) | (cells.result >= 0)
    return [np.flatnonzero(named & (cells.npu == gpu)).tolist() for gpu in range(gpus)]


def _linearized(translation: Interpreter, results: list[list[int]]) -> Linearized:
    """The rows; raises unless results are where they belong, for sure, when thread blocks end.

    It is as if somebody read them then, each into a cell of its own.
    """
    events, cells = translation.events, translation.cells
    actions = len(events.src)
    last = {cell: action for action, cell in enumerate(events.dst)}
    copies: list[int] = []
    for gpu, wanted in enumerate(results):
        chain = [events.end(gpu)]
        # If the last of what a thread block wrote is there, all of it is: that one first.
        for cell in sorted(wanted, key=lambda c: -last.get(c, -1)):
            action = events.action(cell, len(cells.npu) + len(copies), (gpu, -1, -1))
            chain += (2 * action, 2 * action + 1)
            copies.append(gpu)
        events.chains.append(chain)
    with_copies = cells.with_scratch(copies, [0] * len(copies))
    return linearize(events.program(with_copies), translation, kept=actions)
