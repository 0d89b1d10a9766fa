"""Rows of one NPU's chunks, and the translations that make everybody's of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.compact import CompactRows
from weft.algorithm.transfers import Routes, Transfers

if TYPE_CHECKING:
    from weft.algorithm.model import Algorithm


@dataclass(frozen=True, eq=False)
class SymmetricRows(CompactRows):
    """The rows of NPU 0's chunks on a network that translates onto itself.

    The network is a grid (`Topology.dimensions`, `Topology.translates`), and the group all its
    NPUs in ascending order. Moving a row by NPU t, coordinate by coordinate, each modulo the size
    of its dimension, gives the row of the matching chunk of NPU t, at the same time.

    Attributes
    ----------
    chunk
        Which of NPU 0's chunks, where c is the number of chunks a share (int32). All-Gather,
        Reduce-Scatter, All-Reduce: piece j (0 to c-1) of the share NPU 0 has at the start, or
        gets, or of the shard of that number; for NPU t it is chunk ``t * c + j``. All-to-All:
        ``v * c + j`` is piece j of what NPU 0 has for NPU v; moved by t it is what t has for
        v + t.
    src, dst
        From which NPU, to which (int32): next to each other, or behind one switch.
    reduce
        Whether the row adds (bool).
    start
        Picoseconds (int64). Rows are in ascending order of it.
    """

    chunk: NDArray[np.int32]
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    reduce: NDArray[np.bool_]
    start: NDArray[np.int64]
    npus: int

    def __len__(self) -> int:
        return len(self.chunk) * self.npus

    def time(self, algorithm: Algorithm) -> int:
        raise NotImplementedError

    def of_npu(self, algorithm: Algorithm, npu: int) -> Transfers:
        raise NotImplementedError

    def table(self, algorithm: Algorithm) -> tuple[Transfers, Routes]:
        raise NotImplementedError
