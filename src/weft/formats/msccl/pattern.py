"""Which collective a file is for: its pattern, chunks, root and size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.algorithm.cells import WHOLE
from weft.collective import PATTERNS, Collective, Move, all_reduce_of, custom
from weft.collective.model import DEFAULT_ALIGNMENT
from weft.collective.slots import input_slots, output_slots
from weft.errors import InputError, unknown_name
from weft.formats.imported import Hints
from weft.formats.limits import count_limit
from weft.formats.msccl.dialects import DIALECTS
from weft.formats.msccl.document import Document
from weft.formats.msccl.steps import RECEIVES, SENDS
from weft.quoting import quoted
from weft.units import MAX_BYTES

CHUNK_BYTES = 1 << 20  # where neither the file nor the user says a size

PATTERN_OF = {
    theirs: ours for runtime in DIALECTS.values() for ours, theirs in runtime.names.items()
}
# Names that do not say what moves.
UNTOLD = ("custom", "alltoallv", "send", "recv", "sendrecv")


@dataclass(frozen=True)
class Setting:
    """How a file is to be understood.

    Attributes
    ----------
    kind
        The pattern; None if the file does not say it and it must be derived.
    in_place
        Whether input and output are one buffer.
    group
        The NPU of each GPU.
    """

    kind: str | None
    in_place: bool
    group: tuple[int, ...]


def setting_of(document: Document, hints: Hints) -> Setting:
    """Pattern, place and group, from the file and what the user says."""
    count = len(document.gpus)
    group = tuple(range(count)) if hints.group is None else tuple(hints.group)
    if len(group) != count:
        raise InputError(f"{document.path} is for {count} GPUs, but the group has {len(group)}")
    if len(set(group)) != count or min(group) < 0:
        raise InputError(f"{document.path}: the group must be distinct NPU numbers")
    in_place = document.number("inplace")
    if in_place > 1:
        document.fail("<algo>", f"has inplace={in_place}; expected 0 or 1")
    return Setting(_kind(document, hints), bool(in_place), group)


def _kind(document: Document, hints: Hints) -> str | None:
    said = document.algo.get("coll")
    if said is None:
        document.fail("<algo>", "has no coll")
    if said not in PATTERN_OF and said not in UNTOLD:
        known = ", ".join([*PATTERN_OF, *UNTOLD])
        document.fail("<algo>", f"has coll={quoted(said)}; expected one of {known}")
    wanted = "custom" if hints.moves is not None else hints.collective
    if wanted is not None and wanted not in PATTERNS:
        raise unknown_name("collective", wanted, PATTERNS)
    kind = PATTERN_OF.get(said)
    if wanted is None or wanted == kind:
        return kind
    if kind is not None:
        document.fail("<algo>", f"has coll={quoted(said)}, which is no {wanted}")
    if PATTERNS[wanted].build is None and hints.moves is None:
        return None
    return wanted


def collective_of(document: Document, setting: Setting, hints: Hints) -> Collective:
    """The collective among GPUs 0, 1, 2, ..., whose slots are those of the file."""
    if hints.moves is not None:
        collective = _from_moves(document, hints.moves)
    else:
        collective = _named(document, setting, hints)
    _check_buffers(document, setting, collective)
    return collective


def _from_moves(document: Document, moves: Sequence[Move]) -> Collective:
    """A custom pattern; each of its moves is as many slots as it has of the smallest unit."""
    count = len(document.gpus)
    sizes = [move.size for move in moves if move.size > 0]
    unit = math.gcd(*sizes) or 1
    most = count_limit(document.size)
    if sum(sizes) // unit * count > most:
        raise InputError(f"the moves have more than {most} slots of {unit} B in all")
    slots = [
        Move(unit, move.sources, move.destinations, move.reduce)
        for move in moves
        for _ in range(max(1, move.size // unit))
    ]
    return custom(range(count), slots)


def _named(document: Document, setting: Setting, hints: Hints) -> Collective:
    kind, count = setting.kind, len(document.gpus)
    assert kind is not None
    pieces = _pieces(document, kind)
    if pieces * count > count_limit(document.size):
        document.fail("<algo>", f"has {pieces} chunks on each of {count} GPUs; that is too many")
    size = size_of(document, hints, pieces)
    group = range(count)
    alignment = DEFAULT_ALIGNMENT if size >= DEFAULT_ALIGNMENT * pieces else 1
    shares = PATTERNS[kind].shares(count)
    if pieces % shares and PATTERNS[kind].any_cut:
        return all_reduce_of(group, size, pieces, alignment=alignment)
    if pieces % shares or pieces == 0:
        document.fail(
            "<algo>", f"has {pieces} chunks; {kind} among {count} GPUs needs a multiple of {shares}"
        )
    each = pieces // shares
    if hints.chunks not in (None, each):
        document.fail("<algo>", f"has {each} chunks per share, not {hints.chunks}")
    root = _root(document, setting, hints) if PATTERNS[kind].rooted else None
    return Collective.of(kind, group, size, each, root, alignment)


def _pieces(document: Document, kind: str) -> int:
    """In how many chunks the largest buffer is cut."""
    declared = document.number("nchunksperloop")
    if kind not in ("gather", "scatter") or document.algo["coll"] in UNTOLD:
        return declared
    # Some count the chunks of a share, some those of the root's buffer.
    whole, share = document.gpus.outputs, document.gpus.inputs
    if kind == "scatter":
        whole, share = share, whole
    return max(int(whole.max()), int(share.max()) * len(document.gpus)) or declared


def size_of(document: Document, hints: Hints, pieces: int) -> int:
    """Bytes of the largest buffer: as the user says, or what the file is meant for."""
    if hints.size is None:
        least, most = document.number("minBytes", 0), document.number("maxBytes", 0)
        size = max(CHUNK_BYTES * pieces, least, 1)
        size = min(size, most) if most else size
    else:
        size = hints.size
    if size > MAX_BYTES:
        raise InputError(f"{document.path} would have {size} B; expected up to {MAX_BYTES}")
    if size < pieces:
        raise InputError(f"{document.path} has {pieces} chunks, but {size} B is less than 1 B each")
    return size


def unit_of(document: Document, hints: Hints) -> int:
    """Bytes of a slot, where the file does not say the collective."""
    slots = max(document.number("nchunksperloop", 0), int(document.gpus.inputs.max()), 1)
    return max(size_of(document, hints, slots) // slots, 1)


def _root(document: Document, setting: Setting, hints: Hints) -> int:
    """The GPU whose buffer is special; else the one that only sends, or only receives."""
    if hints.root is not None:
        if hints.root not in setting.group:
            raise InputError(f"{document.path}: root {hints.root} is not an NPU of the group")
        return setting.group.index(hints.root)
    steps, blocks = document.steps, document.blocks
    gives = setting.kind in ("broadcast", "scatter")
    lengths = document.gpus.inputs if gives else document.gpus.outputs
    busy = (RECEIVES if gives else SENDS)[steps.type]
    idle = np.setdiff1d(np.arange(len(document.gpus)), blocks.gpu[steps.block[busy]])
    only = [found for found in (np.flatnonzero(lengths), idle) if len(found) == 1]
    if not only:
        document.fail("<algo>", f"does not say which GPU is the root of the {setting.kind}; say it")
    return int(only[0][0])


def _check_buffers(document: Document, setting: Setting, collective: Collective) -> None:
    """No buffer may be longer in the file than the collective's is in memory.

    Where the file does not name the collective, its buffers are all counted alike; what the
    collective does not fill is as good as scratch.
    """
    if document.algo["coll"] in UNTOLD:
        return
    count = len(document.gpus)
    for lengths, slots, name in (
        (document.gpus.inputs, input_slots, "i_chunks"),
        (document.gpus.outputs, output_slots, "o_chunks"),
    ):
        most = int(slots(collective.chunks, count).counts.max())
        if setting.in_place and collective.kind in WHOLE:
            most = len(collective.chunks)
        for gpu in np.flatnonzero(lengths > most)[:1]:
            document.fail(
                f"GPU {gpu}", f"has {name}={lengths[gpu]}, but the {collective.kind} has {most}"
            )
