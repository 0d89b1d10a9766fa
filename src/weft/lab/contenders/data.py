"""What a collective moves, and what must be there afterwards: float32, all sums exact."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
COLLECTIVES = ("all-reduce", "all-gather", "all-to-all")
_PERIOD = 8191  # a prime, so that what lies in a wrong place is seen


def shares(collective: str, size: int, ranks: int) -> int:
    """Elements of one share, of which a buffer of `size` bytes has one for each rank."""
    return size // 4 // (1 if collective == "all-reduce" else ranks)


def given(collective: str, rank: int, ranks: int, size: int) -> Floats:
    """What a rank has at the start."""
    count = shares(collective, size, ranks)
    if collective == "all-to-all":
        return np.concatenate([_block(count, rank * ranks + to) for to in range(ranks)])
    return _block(count, rank)


def wanted(collective: str, rank: int, ranks: int, size: int) -> Floats:
    """What it must have at the end."""
    count = shares(collective, size, ranks)
    if collective == "all-reduce":
        total = sum(_block(count, other).astype(np.float64) for other in range(ranks))
        return np.asarray(total, dtype=np.float32)
    if collective == "all-gather":
        return np.concatenate([_block(count, other) for other in range(ranks)])
    return np.concatenate([_block(count, other * ranks + rank) for other in range(ranks)])


def _block(count: int, number: int) -> Floats:
    return ((np.arange(count) + 31 * number) % _PERIOD + number).astype(np.float32)
