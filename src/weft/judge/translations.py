"""Translations of a grid of NPUs, as the judge works them out.

A translation moves every NPU by the same number of places along each dimension, modulo its size.
It is named by the NPU to which it moves NPU 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


def moved(grid: Sequence[int], npu: NDArray[Any], by: NDArray[Any]) -> Numbers:
    """Where translations move NPUs."""
    return _combined(grid, npu, by, 1)


def apart(grid: Sequence[int], src: NDArray[Any], dst: NDArray[Any]) -> Numbers:
    """The translations that move `src` to `dst`."""
    return _combined(grid, dst, src, -1)


def _combined(grid: Sequence[int], one: NDArray[Any], two: NDArray[Any], sign: int) -> Numbers:
    total, stride = np.zeros(len(one), dtype=np.int64), 1
    for size in grid:
        total += (one // stride + sign * (two // stride)) % size * stride
        stride *= size
    return total
