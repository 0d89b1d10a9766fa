"""Chunks with the same pre- and postcondition, counted together: what a bound looks at."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weft.collective import Chunks


@dataclass(frozen=True, eq=False)
class ChunkClasses:
    """One row a class.

    Attributes
    ----------
    pre, post, reduce
        As in `Chunks`; the sets are the same.
    count
        How many chunks.
    bytes
        How many bytes in all.
    smallest, largest
        Bytes of the smallest and of the largest chunk of any class.
    """

    pre: NDArray[np.int32]
    post: NDArray[np.int32]
    reduce: NDArray[np.bool_]
    count: NDArray[np.int64]
    bytes: NDArray[np.int64]
    smallest: int
    largest: int
    set_offsets: NDArray[np.int64]
    set_members: NDArray[np.int32]

    @classmethod
    def of(cls, chunks: Chunks) -> ChunkClasses:
        """Group the chunks."""
        rows = np.stack([chunks.pre, chunks.post, chunks.reduce.astype(np.int32)], axis=1)
        distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
        inverse = inverse.reshape(-1)
        count = np.bincount(inverse, minlength=len(distinct)).astype(np.int64)
        total = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(total, inverse, chunks.bytes)
        return cls(
            np.ascontiguousarray(distinct[:, 0]),
            np.ascontiguousarray(distinct[:, 1]),
            distinct[:, 2].astype(bool),
            count,
            total,
            int(chunks.bytes.min(initial=1 << 62)),
            int(chunks.bytes.max(initial=1)),
            chunks.set_offsets,
            chunks.set_members,
        )

    def __len__(self) -> int:
        return len(self.pre)

    def resized(self, chunk_bytes: int) -> ChunkClasses:
        """The same with every chunk `chunk_bytes` long."""
        return replace(
            self, bytes=self.count * chunk_bytes, smallest=chunk_bytes, largest=chunk_bytes
        )

    def members(self, number: int) -> NDArray[np.int32]:
        return self.set_members[self.set_offsets[number] : self.set_offsets[number + 1]]

    def set_sizes(self) -> NDArray[np.int64]:
        return np.diff(self.set_offsets)
