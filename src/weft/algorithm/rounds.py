"""Rows as a log of rounds: in each round a link carries one chunk, or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.compact import CompactRows
from weft.algorithm.transfers import Routes, Transfers

if TYPE_CHECKING:
    from weft.algorithm.model import Algorithm

NARROW_CHUNKS = 1 << 16
"""Up to so many chunks a chunk's number takes two bytes in the log; beyond, four."""


@dataclass(frozen=True, eq=False)
class RoundLog(CompactRows):
    """What every link of a network without switches carries in every round of an All-Gather.

    A round begins `slot` after the one before it. A transfer of round r over link l starts at
    ``r * slot`` and takes as long as the cost model says for its chunk's bytes.

    A Reduce-Scatter is the same log run backwards: what goes over link l from ``r * slot`` on
    goes, as a partial sum, over the link's twin (same speed, the other way) so that it ends, for
    the largest chunk, as long before the end of the All-Gather as the copy starts after its
    beginning. An All-Reduce is the one, then the other. The collective's kind says which.

    Attributes
    ----------
    slot
        Picoseconds between the beginnings of two rounds.
    count
        How many entries the log has: the transfers of the All-Gather.
    log
        Bytes of the rounds, one after the other. A round is a bitmap of the links that carry
        something, ``ceil(links / 64)`` little-endian words of 64 bits, link 0 being the lowest
        bit of the first; then the chunks' numbers in ascending order of link, of 2 bytes each
        (4 if the collective has more than `NARROW_CHUNKS` chunks); then zeros up to a multiple
        of 8 bytes.
    offsets
        Where each round begins in `log`, and where the last ends (int64).
    """

    slot: int
    count: int
    log: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @property
    def rounds(self) -> int:
        return len(self.offsets) - 1

    def __len__(self) -> int:
        return self.count  # twice for an All-Reduce

    def time(self, algorithm: Algorithm) -> int:
        raise NotImplementedError

    def of_npu(self, algorithm: Algorithm, npu: int) -> Transfers:
        raise NotImplementedError

    def table(self, algorithm: Algorithm) -> tuple[Transfers, Routes]:
        raise NotImplementedError
