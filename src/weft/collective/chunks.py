"""Chunks: what moves, from which NPUs, to which, and whether it is summed on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Chunks:
    """A columnar table of chunks with their pre- and postconditions.

    Sets of NPUs are stored once and named by number, so that ten thousand chunks that all go
    to the same ten thousand NPUs cost two columns and one set.

    Attributes
    ----------
    bytes
        Exact size of each chunk (int64, always positive).
    offset
        Where it lies in the collective's buffer, in bytes (int64).
    pre
        Number of the set of NPUs that have the chunk at the start (int32). In a reduction each
        of them has a contribution of its own; otherwise each has the whole chunk.
    post
        Number of the set of NPUs that must have it at the end (int32).
    reduce
        Whether the chunk is the sum of the contributions of its `pre` set (bool).
    set_offsets, set_members
        The sets: set ``s`` is ``set_members[set_offsets[s]:set_offsets[s + 1]]``, ascending.
    """

    bytes: NDArray[np.int64]
    offset: NDArray[np.int64]
    pre: NDArray[np.int32]
    post: NDArray[np.int32]
    reduce: NDArray[np.bool_]
    set_offsets: NDArray[np.int64]
    set_members: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.bytes)

    def members(self, number: int) -> NDArray[np.int32]:
        """The NPUs of one set, ascending."""
        return self.set_members[self.set_offsets[number] : self.set_offsets[number + 1]]

    @classmethod
    def build(
        cls,
        boundaries: NDArray[np.int64],
        pre: NDArray[np.int32],
        post: NDArray[np.int32],
        sets: Sequence[NDArray[np.int32]],
        *,
        reduce: bool,
    ) -> Chunks:
        """Cut a buffer at `boundaries`; empty pieces have nothing to move and are left out."""
        sizes = np.diff(boundaries)
        real = sizes > 0
        return cls(
            sizes[real],
            boundaries[:-1][real],
            pre[real],
            post[real],
            np.full(int(real.sum()), reduce),
            np.cumsum([0, *(len(s) for s in sets)], dtype=np.int64),
            np.concatenate(sets).astype(np.int32),
        )

    @classmethod
    def concatenate(cls, tables: Sequence[Chunks]) -> Chunks:
        """One table after the other: the global chunk numbers of an algorithm."""
        if len(tables) == 1:
            return tables[0]
        sets = np.cumsum([0, *(len(t.set_offsets) - 1 for t in tables)])
        members = np.cumsum([0, *(len(t.set_members) for t in tables)])
        pairs = list(zip(tables, sets[:-1], strict=True))
        shifted = [t.set_offsets[:-1] + m for t, m in zip(tables, members[:-1], strict=True)]
        return cls(
            np.concatenate([t.bytes for t in tables]),
            np.concatenate([t.offset for t in tables]),
            np.concatenate([t.pre + s for t, s in pairs]).astype(np.int32),
            np.concatenate([t.post + s for t, s in pairs]).astype(np.int32),
            np.concatenate([t.reduce for t in tables]),
            np.concatenate([*shifted, members[-1:]]).astype(np.int64),
            np.concatenate([t.set_members for t in tables]),
        )


def cut(size: int, pieces: int, alignment: int) -> NDArray[np.int64]:
    """Boundaries that cut `size` bytes in `pieces` as evenly as `alignment` allows.

    Every boundary but the last is a multiple of the alignment; the pieces add up to the size,
    to the byte. Cutting in n pieces and each in k gives the same as cutting in n·k.
    """
    alignment = min(alignment, size)
    whole, rest = divmod(-(-size // alignment), pieces)
    i = np.arange(pieces + 1, dtype=np.int64)
    # i · blocks // pieces, in parts that fit 64 bits.
    marks: NDArray[np.int64] = (i * whole + i * rest // pieces) * alignment
    marks[-1] = size
    return marks
