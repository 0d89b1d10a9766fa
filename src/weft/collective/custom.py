"""Collectives whose name does not say what moves: the user does.

All speak of ranks, positions in the group: a pattern is written once and used by many groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weft.collective.chunks import Chunks, Sets, cut, singles
from weft.collective.model import DEFAULT_ALIGNMENT, Collective
from weft.errors import InputError
from weft.units import MAX_BYTES


@dataclass(frozen=True)
class Move:
    """One part of a custom pattern.

    Attributes
    ----------
    size
        Bytes.
    sources
        Ranks that have it at the start: each all of it, or a contribution if it is a sum.
    destinations
        Ranks that must have it at the end.
    reduce
        Whether it is the sum of what the sources have.
    """

    size: int
    sources: tuple[int, ...]
    destinations: tuple[int, ...]
    reduce: bool = False


def custom(
    group: Sequence[int],
    moves: Iterable[Move],
    *,
    chunks_per_share: int = 1,
    alignment: int = DEFAULT_ALIGNMENT,
    relay: bool = True,
) -> Collective:
    """Any pattern: each move from its sources to its destinations."""
    moves = list(moves)
    if not moves:
        raise InputError("custom: nothing moves; expected at least one move")
    numbers: dict[tuple[int, ...], int] = {}
    for i, move in enumerate(moves):
        _check_move(i, move, len(group))
    if sum(move.size for move in moves) > MAX_BYTES:
        raise InputError(f"custom: the moves have more than {MAX_BYTES} B in all")
    ends = [
        [
            numbers.setdefault(tuple(sorted({group[rank] for rank in ranks})), len(numbers))
            for ranks in (move.sources, move.destinations)
        ]
        for move in moves
    ]
    sizes = np.array([move.size for move in moves], dtype=np.int64)
    columns = np.array(ends, dtype=np.int32).reshape(-1, 2)
    parts = Chunks.build(
        sizes,
        np.cumsum(sizes) - sizes,
        columns[:, 0],
        columns[:, 1],
        Sets.of(list(numbers)),
        reduce=np.array([move.reduce for move in moves], dtype=np.bool_),
    )
    return _collective("custom", group, parts, chunks_per_share, alignment, relay)


def all_reduce_of(
    group: Sequence[int], size: int, pieces: int, *, alignment: int = DEFAULT_ALIGNMENT
) -> Collective:
    """All-Reduce of a buffer of `size` bytes cut in any number of pieces."""
    return all_reduce_at(group, cut(size, pieces, alignment), alignment=alignment)


def all_reduce_at(
    group: Sequence[int],
    marks: NDArray[np.int64],
    *,
    alignment: int = DEFAULT_ALIGNMENT,
    relay: bool = True,
) -> Collective:
    """All-Reduce of a buffer cut at these places, the first and the last of which are its ends."""
    everyone = np.zeros(len(marks) - 1, dtype=np.int32)
    members = Sets.of([sorted(group)])
    parts = Chunks.build(np.diff(marks), marks[:-1], everyone, everyone, members, reduce=True)
    return _collective("all-reduce", group, parts, 1, alignment, relay=relay)


def all_to_allv(
    group: Sequence[int],
    sizes: ArrayLike,
    *,
    chunks_per_share: int = 1,
    alignment: int = DEFAULT_ALIGNMENT,
    relay: bool = True,
) -> Collective:
    """All-to-All with a size for each pair: ``sizes[r][s]`` bytes go from rank r to rank s."""
    matrix = _matrix(sizes, len(group))
    n = len(group)
    ranks = np.arange(n, dtype=np.int32)
    parts = Chunks.build(
        matrix.reshape(-1),
        (np.cumsum(matrix, axis=1) - matrix).reshape(-1),
        np.repeat(ranks, n),
        np.tile(ranks, n),
        singles(group),
    )
    return _collective("all-to-allv", group, parts, chunks_per_share, alignment, relay)


def permutation(
    group: Sequence[int],
    size: int,
    to: Sequence[int],
    *,
    chunks_per_share: int = 1,
    alignment: int = DEFAULT_ALIGNMENT,
    relay: bool = True,
) -> Collective:
    """Every rank r sends its buffer of `size` bytes to rank ``to[r]``."""
    if sorted(to) != list(range(len(group))):
        raise InputError(
            f"permutation: {list(to)[:20]} does not name each rank 0 to {len(group) - 1} once"
        )
    if not 0 < size <= MAX_BYTES:
        raise InputError(f"permutation: size {size} B is out of range; expected 1 B or more")
    n = len(group)
    parts = Chunks.build(
        np.full(n, size, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        np.arange(n, dtype=np.int32),
        np.array(to, dtype=np.int32),
        singles(group),
    )
    return _collective("permutation", group, parts, chunks_per_share, alignment, relay)


def _collective(
    kind: str, group: Sequence[int], parts: Chunks, chunks: int, alignment: int, relay: bool
) -> Collective:
    if len(parts) == 0:
        raise InputError(f"{kind}: nothing moves; expected some size above 0")
    members = tuple(int(npu) for npu in group)
    return Collective(kind, members, parts.largest_buffer(), chunks, None, alignment, relay, parts)


def _check_move(number: int, move: Move, ranks: int) -> None:
    if not 0 < move.size <= MAX_BYTES:
        raise InputError(f"custom: move {number} has size {move.size} B; expected 1 B or more")
    for name, ends in (("source", move.sources), ("destination", move.destinations)):
        if not ends:
            raise InputError(f"custom: move {number} has no {name}")
        for rank in ends:
            if not 0 <= rank < ranks:
                raise InputError(
                    f"custom: move {number} has {name} {rank}; expected a rank from 0 to "
                    f"{ranks - 1}"
                )


def _matrix(sizes: ArrayLike, ranks: int) -> NDArray[np.int64]:
    try:
        given = np.asarray(sizes)
        matrix = given.astype(np.int64)
    except (TypeError, ValueError, OverflowError):
        raise InputError("all-to-allv: the sizes are not a matrix of whole numbers") from None
    if matrix.shape != (ranks, ranks):
        raise InputError(
            f"all-to-allv: the matrix has shape {matrix.shape}; expected {ranks} rows and columns, "
            "one per rank"
        )
    if np.any(given != matrix) or np.any(matrix < 0) or float(matrix.sum(dtype=float)) > MAX_BYTES:
        raise InputError("all-to-allv: sizes must be whole numbers of bytes from 0 on")
    return matrix
