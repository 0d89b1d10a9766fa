"""Chunks with the same pre- and postcondition, counted together: what a bound looks at."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.collective import Chunks, Ends


@dataclass(frozen=True, eq=False)
class ChunkClasses(Ends):
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
        sets = len(chunks.set_offsets)
        key = (chunks.pre.astype(np.int64) * sets + chunks.post) * 2 + chunks.reduce
        order = np.argsort(key, kind="stable")
        first = np.flatnonzero(np.diff(key[order], prepend=-1))
        count = np.diff(first, append=len(chunks))
        total = np.add.reduceat(chunks.bytes[order], first) if len(first) else chunks.bytes[:0]
        distinct = order[first]
        return cls(
            chunks.pre[distinct],
            chunks.post[distinct],
            chunks.reduce[distinct],
            count.astype(np.int64),
            total,
            int(chunks.bytes.min(initial=1 << 62)),
            chunks.largest,
            chunks.set_offsets,
            chunks.set_members,
        )

    def __len__(self) -> int:
        return len(self.pre)

    @cached_property
    def core(self) -> _core.ChunkClasses:
        """The classes for the kernels."""
        return _core.ChunkClasses(**{f.name: getattr(self, f.name) for f in fields(self)})

    def resized(self, chunk_bytes: int) -> ChunkClasses:
        """The same with every chunk `chunk_bytes` long."""
        return replace(
            self, bytes=self.count * chunk_bytes, smallest=chunk_bytes, largest=chunk_bytes
        )
