"""Which collective a plan is for: from its name, the lengths of its buffers, and hints."""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.collective import PATTERNS, Collective, Move, all_reduce_of, custom
from weft.collective.model import DEFAULT_ALIGNMENT
from weft.errors import InputError, unknown_name
from weft.formats.imported import Hints
from weft.formats.mscclpp.executor import COLLECTIVES
from weft.formats.mscclpp.schema import Plan
from weft.quoting import quoted
from weft.units import MAX_BYTES

DEFAULT_CHUNK = 1 << 20
NAMES = {**{theirs: ours for ours, theirs in COLLECTIVES.items()}, "sendrecv": "send-recv"}


def collective_of(plan: Plan, hints: Hints, fineness: int) -> Collective:
    """The collective of a plan whose chunks are cut in `fineness` parts."""
    group = _group(plan, hints)
    if hints.moves is not None:
        return _moves(plan, hints.moves, group, fineness)
    kind = _kind(plan, hints)
    shares, chunks = _shares(plan, kind, group)
    size = _size(plan, hints, kind, max(shares) * chunks)
    pieces = chunks * fineness
    alignment = _alignment(size, max(shares) * pieces)
    if kind == "all-reduce":
        if pieces % len(group):
            return all_reduce_of(group, size, pieces, alignment=alignment)
        pieces //= len(group)
    if hints.chunks not in (None, pieces):
        raise InputError(f"the plan cuts a share in {pieces} chunks, not {hints.chunks}")
    return Collective.of(kind, group, size, pieces, hints.root, alignment)


def says_nothing(plan: Plan, hints: Hints) -> bool:
    """Whether neither the plan nor the user says what moves."""
    hinted = hints.collective not in (None, "custom")
    hinted = hinted or hints.moves is not None or hints.group is not None
    return not hinted and plan.collective not in NAMES


def unit_of(plan: Plan, hints: Hints, fineness: int) -> int:
    """Bytes of a piece of a chunk, where the collective is not said."""
    slots = fineness * max(max(gpu.input_chunks, gpu.output_chunks) for gpu in plan.gpus)
    return max((hints.size or DEFAULT_CHUNK * slots // fineness) // max(slots, 1), 1)


def _alignment(size: int, chunks: int) -> int:
    """Where chunks may begin so that none of them is empty."""
    if size < chunks:
        raise InputError(f"the plan has {chunks} chunks, but {size} B is less than 1 B each")
    return DEFAULT_ALIGNMENT if size >= DEFAULT_ALIGNMENT * chunks else 1


def _group(plan: Plan, hints: Hints) -> tuple[int, ...]:
    if hints.group is None:
        return tuple(range(len(plan.gpus)))
    outside = [npu for npu in hints.group if not 0 <= npu < len(plan.gpus)]
    if outside:
        raise InputError(f"the group names GPU {outside[0]}; the plan has {len(plan.gpus)}")
    return tuple(hints.group)


def _kind(plan: Plan, hints: Hints) -> str:
    kind = hints.collective or NAMES.get(plan.collective)
    if kind is None:
        raise InputError(
            f"the plan calls its collective {quoted(plan.collective)}, which does not say what it "
            f"does; name the pattern (known: {', '.join(sorted(PATTERNS))})"
        )
    if kind not in PATTERNS:
        raise unknown_name("collective", kind, PATTERNS)
    if PATTERNS[kind].build is None:
        raise InputError(f"{kind} needs to know what moves")
    return kind


def _shares(plan: Plan, kind: str, group: Sequence[int]) -> tuple[tuple[int, int], int]:
    """Shares in the input and in the output of a GPU, and chunks of a share."""
    n = len(group)
    near = min(n - 1, 2) or 1
    each = {
        "all-gather": (1, n),
        "gather": (1, n),
        "reduce-scatter": (n, 1),
        "scatter": (n, 1),
        "all-to-all": (n, n),
        "neighbor-exchange": (near, near),
    }
    shares = each.get(kind, (1, 1))
    inputs = max(plan.gpus[rank].input_chunks for rank in group)
    outputs = max(plan.gpus[rank].output_chunks for rank in group)
    chunks = inputs // shares[0]
    if chunks == 0 or (inputs, outputs) != (chunks * shares[0], chunks * shares[1]):
        raise InputError(
            f"{inputs} input and {outputs} output chunks are not those of {kind} among {n} GPUs"
        )
    return shares, chunks


def _size(plan: Plan, hints: Hints, kind: str, chunks: int) -> int:
    """Bytes of the largest buffer: what the user says, or 1 MiB a chunk if the plan allows it."""
    if hints.size is not None:
        return hints.size
    least, most = plan.min_message_size, plan.max_message_size
    if not 0 <= least <= most:
        raise InputError(f"the plan is for messages of {least} to {most} B, which there are not")
    size = min(DEFAULT_CHUNK * chunks, MAX_BYTES)
    if kind in COLLECTIVES:
        size = min(max(size, least), most)
    return max(size, 1)


def _moves(plan: Plan, moves: Sequence[Move], group: Sequence[int], fineness: int) -> Collective:
    """A pattern of the user's own, cut in parts as large as a chunk of the plan."""
    custom(group, moves)  # raises if they make no sense
    unit = math.gcd(*(move.size for move in moves))
    inputs = [0] * len(group)
    for move in moves:
        for rank in set(move.sources):
            inputs[rank] += move.size // unit
    for rank, needed in enumerate(inputs):
        given = plan.gpus[group[rank]].input_chunks
        if needed > given:
            raise InputError(
                f"the moves take {needed} chunks of {unit} B from GPU {group[rank]}, whose input "
                f"has {given}"
            )
    if unit % fineness:
        raise InputError(f"chunks of {unit} B cannot be cut in {fineness} parts")
    parts = [
        Move(unit // fineness, move.sources, move.destinations, move.reduce)
        for move in moves
        for _ in range(move.size // unit * fineness)
    ]
    return custom(group, parts)
