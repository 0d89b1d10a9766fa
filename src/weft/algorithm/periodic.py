"""Rows of trees that carry one chunk after the other, each a period later than the one before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.rows import CompactRows
from weft.algorithm.transfers import Routes, Transfers
from weft.ragged import positions, ranges
from weft.topology.durations import of_rows, over_links
from weft.topology.model import Topology
from weft.units import PS_PER_US

if TYPE_CHECKING:
    from weft.algorithm.model import Algorithm


@dataclass(frozen=True, eq=False, repr=False)
class PeriodicRows(CompactRows):
    """Trees on a network without switches, and which chunks go by them.

    Tree t carries the chunks ``first[t]`` to ``first[t + 1] - 1`` of the collective. Its rows are
    those of its first chunk; the k-th chunk after it has the same rows, ``k * period`` later.

    Attributes
    ----------
    period
        Picoseconds between two chunks of a tree.
    first
        The first chunk of each tree, and the number of all chunks (int64).
    offsets
        Tree t has the rows ``offsets[t]`` to ``offsets[t + 1] - 1`` (int64).
    link
        The link each row crosses (int32).
    reduce
        Whether it adds (bool).
    start
        When it starts for the tree's first chunk, in picoseconds (int64); ascending in a tree.
    """

    kind = "periodic"

    period: int
    first: NDArray[np.int64]
    offsets: NDArray[np.int64]
    link: NDArray[np.int32]
    reduce: NDArray[np.bool_]
    start: NDArray[np.int64]

    @property
    def trees(self) -> int:
        return len(self.offsets) - 1

    def __len__(self) -> int:
        return int((np.diff(self.offsets) * np.diff(self.first)).sum())

    def time(self, algorithm: Algorithm) -> int:
        """The last chunk of a tree ends last: a period is longer than chunks differ."""
        topology, chunks = _of(algorithm)
        last = 0
        for tree in range(self.trees):
            rows = slice(self.offsets[tree], self.offsets[tree + 1])
            count = int(self.first[tree + 1] - self.first[tree])
            if count == 0 or rows.start == rows.stop:
                continue
            size = int(chunks[self.first[tree + 1] - 1])
            ends = self.start[rows] + over_links(topology, size)[self.link[rows]]
            last = max(last, (count - 1) * self.period + int(ends.max()))
        return last

    def of_npu(self, algorithm: Algorithm, npu: int) -> Transfers:
        topology, _ = _of(algorithm)
        mine = (topology.src[self.link] == npu) | (topology.dst[self.link] == npu)
        return self._expanded(algorithm, np.flatnonzero(mine))

    def table(self, algorithm: Algorithm) -> tuple[Transfers, Routes]:
        topology, _ = _of(algorithm)
        return self._expanded(algorithm, np.arange(len(self.link))), Routes.of_links(topology.links)

    def described(self) -> dict[str, Any]:
        return {
            "form": "trees",
            "trees": self.trees,
            "own_rows": len(self.link),
            "period_us": self.period / PS_PER_US,
        }

    def _expanded(self, algorithm: Algorithm, rows: NDArray[np.intp]) -> Transfers:
        """These rows for all their chunks, in order of start."""
        topology, sizes = _of(algorithm)
        tree = np.searchsorted(self.offsets, rows, side="right") - 1
        counts = np.diff(self.first)[tree]
        row = np.repeat(rows, counts)
        turn = positions(counts)
        chunk = ranges(self.first[tree], counts)
        start = self.start[row] + turn * self.period
        link = self.link[row]
        end = start + of_rows(topology, sizes, chunk, link)
        return Transfers.over_links(topology, chunk, link, self.reduce[row], start, end)


def _of(algorithm: Algorithm) -> tuple[Topology, NDArray[np.int64]]:
    """The network, and the bytes of each chunk."""
    return algorithm.require_timing().topology, algorithm.chunks.bytes
