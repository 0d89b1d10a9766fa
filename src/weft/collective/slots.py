"""Buffers as runtimes see them: which chunk lies in which slot of an NPU's input and output."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.collective.chunks import Chunks
from weft.ragged import offsets_of, places


@dataclass(frozen=True, eq=False)
class Slots:
    """The chunks in one buffer of each NPU: slot s of NPU p holds ``chunk[offsets[p] + s]``.

    Chunks lie in the order of their numbers: shares by rank, pieces by offset. So the input of
    All-to-All is ordered by destination and its output by source.
    """

    offsets: NDArray[np.int64]
    chunk: NDArray[np.int32]

    def of(self, npu: int) -> NDArray[np.int32]:
        """The chunks of one NPU's buffer, by slot."""
        return self.chunk[self.offsets[npu] : self.offsets[npu + 1]]

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many slots each NPU's buffer has."""
        return np.diff(self.offsets)


def input_slots(chunks: Chunks, npus: int) -> Slots:
    """What each of `npus` NPUs has at the start."""
    return _slots(chunks, chunks.pre, npus)


def output_slots(chunks: Chunks, npus: int) -> Slots:
    """What each of `npus` NPUs must have at the end."""
    return _slots(chunks, chunks.post, npus)


def _slots(chunks: Chunks, side: NDArray[np.int32], npus: int) -> Slots:
    lengths = chunks.set_sizes[side]
    chunk = np.repeat(np.arange(len(chunks), dtype=np.int32), lengths)
    npu = chunks.set_members[places(chunks.set_offsets, side)]
    order = np.argsort(npu, kind="stable")
    counts = np.bincount(npu, minlength=npus)
    return Slots(offsets_of(counts), chunk[order])
