"""Chunks: what moves, from which NPUs, to which, and whether it is summed on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weft import _core
from weft.quoting import counted
from weft.ragged import offsets_of, owners
from weft.units import format_size
from weft.values import Value


@dataclass(frozen=True, eq=False)
class Sets(Value):
    """Sets of NPUs: set ``s`` is ``members[offsets[s]:offsets[s + 1]]``, ascending."""

    offsets: NDArray[np.int64]
    members: NDArray[np.int32]

    @classmethod
    def of(cls, sets: Sequence[ArrayLike]) -> Sets:
        """Those listed, each ascending."""
        members = [np.asarray(one, dtype=np.int32) for one in sets]
        return cls(offsets_of([*map(len, members)]), np.concatenate(members))

    def and_all(self) -> Sets:
        """One set more: all NPUs of these, of which no two share one."""
        offsets = np.append(self.offsets, self.offsets[-1] + len(self.members))
        return Sets(offsets, np.concatenate([self.members, np.sort(self.members)]))


def singles(group: ArrayLike) -> Sets:
    """Set r is the group's r-th NPU alone."""
    members = np.array(group, dtype=np.int32)
    return Sets(np.arange(len(members) + 1, dtype=np.int64), members)


class Ends:
    """Where rows of a table come from and where they must go: numbers of sets of NPUs."""

    pre: NDArray[np.int32]
    post: NDArray[np.int32]
    reduce: NDArray[np.bool_]
    set_offsets: NDArray[np.int64]
    set_members: NDArray[np.int32]

    def members(self, number: int) -> NDArray[np.int32]:
        """The NPUs of one set, ascending."""
        return self.set_members[self.set_offsets[number] : self.set_offsets[number + 1]]

    @property
    def set_sizes(self) -> NDArray[np.int64]:
        """How many NPUs each set has."""
        return np.diff(self.set_offsets)

    @property
    def receives(self) -> NDArray[np.int64]:
        """How often each row must be received at the least, whoever sends it.

        A sum of c contributions for d takers takes c - 1 receives until the first taker has it,
        and one more for each other taker; a copy one for each taker that does not have it.
        """
        before, after = self.set_sizes[self.pre], self.set_sizes[self.post]
        return np.where(self.reduce, before + after - 2, np.maximum(after - before, 0))

    @property
    def are_pairs(self) -> bool:
        """Whether every row goes from one NPU to one other."""
        alone = self.set_sizes == 1
        return bool(alone[self.pre].all() and alone[self.post].all())


@dataclass(frozen=True, eq=False, repr=False)
class Chunks(Value, Ends):
    """A columnar table of chunks with their pre- and postconditions.

    Sets of NPUs are stored once and named by number, so that ten thousand chunks that all go
    to the same ten thousand NPUs cost two columns and one set.

    Attributes
    ----------
    bytes
        Exact size of each chunk (int64, always positive).
    offset
        Where it lies in the collective's buffer, in bytes (int64). Where every NPU has a buffer
        of its own, as in All-to-All, in that of the NPU that has the chunk at the start.
    pre
        Number of the set of NPUs that have the chunk at the start (int32). In a reduction each
        of them has a contribution of its own; otherwise each has the whole chunk.
    post
        Number of the set of NPUs that must have it at the end (int32).
    reduce
        Whether the chunk is the sum of the contributions of its `pre` set (bool).
    reach
        Number of the set of NPUs that may ever hold it, those of `pre` and `post` included;
        -1 if any may, so that any may relay it (int32).
    set_offsets, set_members
        The sets: set ``s`` is ``set_members[set_offsets[s]:set_offsets[s + 1]]``, ascending.
    """

    bytes: NDArray[np.int64]
    offset: NDArray[np.int64]
    pre: NDArray[np.int32]
    post: NDArray[np.int32]
    reduce: NDArray[np.bool_]
    reach: NDArray[np.int32]
    set_offsets: NDArray[np.int64]
    set_members: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.bytes)

    def __repr__(self) -> str:
        size = format_size(int(self.bytes.sum()))
        return f"<Chunks: {counted({'chunk': len(self)}) or 'none'}, {size} in all>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Chunks):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, column.name), getattr(other, column.name))
            for column in fields(self)
        )

    def __hash__(self) -> int:
        return hash((self.bytes.tobytes(), self.pre.tobytes(), self.post.tobytes()))

    @cached_property
    def core(self) -> _core.Chunks:
        """The table for the kernels."""
        names = (column.name for column in fields(self) if column.name != "offset")
        return _core.Chunks(**{name: getattr(self, name) for name in names})

    @property
    def largest(self) -> int:
        """Bytes of the largest chunk, for which plans take all; 1 if there is none."""
        return int(self.bytes.max(initial=1))

    @classmethod
    def build(
        cls,
        sizes: NDArray[np.int64],
        offsets: NDArray[np.int64],
        pre: NDArray[np.int32],
        post: NDArray[np.int32],
        sets: Sets,
        *,
        reduce: bool | NDArray[np.bool_] = False,
    ) -> Chunks:
        """A table of pieces; empty ones have nothing to move and are left out."""
        real = sizes > 0
        return cls(
            sizes[real],
            offsets[real],
            pre[real],
            post[real],
            np.broadcast_to(np.asarray(reduce, dtype=np.bool_), sizes.shape)[real],
            np.full(int(real.sum()), -1, dtype=np.int32),
            sets.offsets,
            sets.members,
        )

    @classmethod
    def concatenate(cls, tables: Sequence[Chunks]) -> Chunks:
        """One table after the other: the global chunk numbers of an algorithm."""
        if len(tables) == 1:
            return tables[0]
        sets = offsets_of([len(t.set_offsets) - 1 for t in tables])
        members = offsets_of([len(t.set_members) for t in tables])
        pairs = list(zip(tables, sets[:-1], strict=True))
        shifted = [t.set_offsets[:-1] + m for t, m in zip(tables, members[:-1], strict=True)]
        return cls(
            np.concatenate([t.bytes for t in tables]),
            np.concatenate([t.offset for t in tables]),
            np.concatenate([t.pre + s for t, s in pairs]).astype(np.int32),
            np.concatenate([t.post + s for t, s in pairs]).astype(np.int32),
            np.concatenate([t.reduce for t in tables]),
            np.concatenate([np.where(t.reach < 0, -1, t.reach + s) for t, s in pairs]).astype(
                np.int32
            ),
            np.concatenate([*shifted, members[-1:]]).astype(np.int64),
            np.concatenate([t.set_members for t in tables]),
        )

    def within(self, npus: NDArray[np.int32]) -> Chunks:
        """The same chunks, which only these NPUs (ascending) may hold: no other relays them."""
        return replace(
            self,
            reach=np.full(len(self), len(self.set_offsets) - 1, dtype=np.int32),
            set_offsets=np.append(self.set_offsets, self.set_offsets[-1] + len(npus)),
            set_members=np.concatenate([self.set_members, npus]),
        )

    def largest_buffer(self) -> int:
        """The most bytes any NPU has at the start, or must have at the end."""
        lengths = self.set_sizes
        owner = owners(lengths)
        most = 0
        for side in (self.pre, self.post):
            of_set = np.zeros(len(lengths), dtype=np.int64)
            np.add.at(of_set, side, self.bytes)
            of_npu = np.zeros(int(self.set_members.max(initial=0)) + 1, dtype=np.int64)
            np.add.at(of_npu, self.set_members, of_set[owner])
            most = max(most, int(of_npu.max()))
        return most

    def cut(self, pieces: int, alignment: int) -> Chunks:
        """Every chunk cut in `pieces`, which come one after the other."""
        marks = cut_each(self.bytes, pieces, alignment)
        sizes = np.diff(marks, axis=1).reshape(-1)
        real = sizes > 0
        owner = np.repeat(np.arange(len(self)), pieces)[real]
        kept = {name: getattr(self, name)[owner] for name in ("pre", "post", "reduce", "reach")}
        offset = (self.offset[:, None] + marks[:, :-1]).reshape(-1)[real]
        return replace(self, bytes=sizes[real], offset=offset, **kept)


def cut_each(sizes: NDArray[np.int64], pieces: int, alignment: int) -> NDArray[np.int64]:
    """Boundaries that cut each of `sizes` bytes in `pieces` as evenly as `alignment` allows.

    Every boundary but the last is a multiple of the alignment; the pieces add up to the size,
    to the byte. Cutting in n pieces and each in k gives the same as cutting in n·k.
    """
    unit = np.clip(sizes, 1, min(alignment, np.iinfo(np.int64).max))[:, None]
    whole, rest = np.divmod(-(-sizes[:, None] // unit), pieces)
    i = np.arange(pieces + 1, dtype=np.int64)
    # i · blocks // pieces, in parts that fit 64 bits.
    marks: NDArray[np.int64] = (i * whole + i * rest // pieces) * unit
    marks[:, -1] = sizes
    return marks


def cut(size: int, pieces: int, alignment: int) -> NDArray[np.int64]:
    """The same for one buffer."""
    return cut_each(np.array([size], dtype=np.int64), pieces, alignment).reshape(-1)
