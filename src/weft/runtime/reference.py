"""What ranks must have after a run, told from the definition of each collective alone.

Numbers are small and whole, so that sums are exact in every type, and differ from place to place
and from rank to rank, so that what is lost, doubled or misplaced shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.collective import Collective
from weft.runtime.buffers import TYPES
from weft.runtime.cutting import lengths_of_chunks

Array = NDArray[Any]

_EXACT = {"f16": 2048, "bf16": 256, "i8": 127, "u8": 255}
_USUAL = 1 << 15
_OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "sum": np.add,
    "average": np.add,
    "product": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


@dataclass(frozen=True)
class Piece:
    """A part of an output: from which ranks of the group, and from where in their inputs."""

    sources: Sequence[int]
    starts: Sequence[int]
    length: int
    reduce: bool


@dataclass(frozen=True)
class Data:
    """The numbers with which a collective is tried.

    Attributes
    ----------
    count
        Elements of the largest buffer on a rank.
    dtype, op
        As for `Communicator.run`.
    seed
        Other numbers each time.
    """

    collective: Collective
    count: int
    dtype: str
    op: str
    seed: int = 0

    def send(self, rank: int, length: int) -> Array:
        """The input of a rank of the group."""
        return narrowed(self._values(rank, 0, length), self.dtype)

    def received(self, rank: int) -> Array:
        """The output that a rank of the group must have."""
        found = [self._of(piece) for piece in pieces(self.collective, rank, self.count)]
        return np.concatenate(found) if found else narrowed(np.zeros(0), self.dtype)

    def _of(self, piece: Piece) -> Array:
        parts = [
            self._values(rank, start, piece.length)
            for rank, start in zip(piece.sources, piece.starts, strict=True)
        ]
        if not piece.reduce:
            return narrowed(parts[0], self.dtype)
        kind = TYPES[self.dtype][1]
        floats = self.dtype in ("f16", "bf16", "f32", "f64")
        # Whole numbers wrap around in their own type, as the sums of a run do.
        wide = [part.astype(np.float64 if floats else kind) for part in parts]
        found = reduce(_OPERATIONS[self.op], wide)
        if self.op == "average":
            single = found if self.dtype == "f64" else found.astype(np.float32)
            found = single / single.dtype.type(len(parts)) if floats else _truncated(found, parts)
        return narrowed(found, self.dtype)

    def _values(self, rank: int, start: int, length: int) -> NDArray[np.int64]:
        place = np.arange(start, start + length, dtype=np.uint64)
        source = 0 if self._same else rank
        mixed = (place + np.uint64(1 + 40503 * source + 7 * self.seed)) * np.uint64(
            0x9E3779B97F4A7C15
        )
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed >>= np.uint64(33)
        ranks = self.collective.ranks
        if self.op == "product":
            chosen = (place + np.uint64(rank)) % np.uint64(max(ranks, 3))
            return np.where(chosen == 0, 2, 1)
        most = _EXACT.get(self.dtype, _USUAL)
        each = most if self.op in ("min", "max") else most // ranks
        if each > 0:
            return (mixed % np.uint64(each + 1)).astype(np.int64)
        sparse = np.uint64(-(-ranks // most))
        few: NDArray[np.int64] = ((mixed + np.uint64(rank)) % sparse == 0).astype(np.int64)
        return few

    @property
    def _same(self) -> bool:
        """Whether all who have something at the start have the same, as in what is only copied."""
        return self.collective.parts is not None and not self.collective.chunks.reduce.all()


def _truncated(found: Array, parts: list[Any]) -> Array:
    """Whole numbers over a count, towards zero."""
    over = np.abs(found.astype(object)) // len(parts)
    narrow: Array = np.where(found < 0, -over, over).astype(found.dtype)
    return narrow


def narrowed(values: Array, dtype: str) -> Array:
    """Numbers in an array of a type of elements; bf16 in words of 16 bits."""
    if dtype != "bf16":
        return values.astype(TYPES[dtype][1])
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def pieces(collective: Collective, rank: int, count: int) -> list[Piece]:
    """The parts of the output of a rank of the group, in their order."""
    build = _BY_NAME.get(collective.kind)
    whole = collective.parts is None and _all_there(collective)
    if build is not None and (whole or collective.pattern.any_cut):
        root = 0 if collective.root is None else collective.group.index(collective.root)
        return build(collective.ranks, rank, count, root)
    return _listed(collective, rank, count)


def _all_there(collective: Collective) -> bool:
    """Whether no share was left out for want of bytes."""
    return bool(collective.piece_bytes.all())


def _share(count: int, of: int, which: int) -> tuple[int, int]:
    first = which * count // of
    return first, (which + 1) * count // of - first


def _all_reduce(n: int, _rank: int, count: int, _root: int) -> list[Piece]:
    return [Piece(range(n), [0] * n, count, True)]


def _reduce_scatter(n: int, rank: int, count: int, _root: int) -> list[Piece]:
    first, length = _share(count, n, rank)
    return [Piece(range(n), [first] * n, length, True)]


def _all_gather(n: int, _rank: int, count: int, _root: int) -> list[Piece]:
    return [Piece([other], [0], _share(count, n, other)[1], False) for other in range(n)]


def _broadcast(_n: int, _rank: int, count: int, root: int) -> list[Piece]:
    return [Piece([root], [0], count, False)]


def _reduce(n: int, rank: int, count: int, root: int) -> list[Piece]:
    return _all_reduce(n, rank, count, root) if rank == root else []


def _gather(n: int, rank: int, count: int, root: int) -> list[Piece]:
    return _all_gather(n, rank, count, root) if rank == root else []


def _scatter(n: int, rank: int, count: int, root: int) -> list[Piece]:
    first, length = _share(count, n, rank)
    return [Piece([root], [first], length, False)]


def _all_to_all(n: int, rank: int, count: int, _root: int) -> list[Piece]:
    first, length = _share(count, n, rank)
    return [Piece([other], [first], length, False) for other in range(n)]


def _send_recv(n: int, rank: int, count: int, _root: int) -> list[Piece]:
    return [Piece([(rank - 1) % n], [0], count, False)]


def _pipeline(_n: int, rank: int, count: int, _root: int) -> list[Piece]:
    return [Piece([rank - 1], [0], count, False)] if rank > 0 else []


def _neighbor_exchange(n: int, rank: int, count: int, _root: int) -> list[Piece]:
    if n <= 2:
        return [Piece([(rank - 1) % n], [0], count, False)]
    half = count // 2
    below = Piece([(rank - 1) % n], [half], count - half, False)  # what it sends upwards
    above = Piece([(rank + 1) % n], [0], half, False)
    return sorted([below, above], key=lambda piece: piece.sources[0])


_BY_NAME = {
    "all-reduce": _all_reduce,
    "reduce-scatter": _reduce_scatter,
    "all-gather": _all_gather,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "gather": _gather,
    "scatter": _scatter,
    "all-to-all": _all_to_all,
    "send-recv": _send_recv,
    "pipeline": _pipeline,
    "neighbor-exchange": _neighbor_exchange,
}


def _listed(collective: Collective, rank: int, count: int) -> list[Piece]:
    """From the list of what moves, for collectives that are such a list."""
    chunks, lengths = collective.chunks, lengths_of_chunks(collective, count)
    used = dict.fromkeys(collective.group, 0)
    number = {npu: at for at, npu in enumerate(collective.group)}
    found = []
    for chunk, length in enumerate(lengths.tolist()):
        sources = chunks.members(chunks.pre[chunk]).tolist()
        starts = [used[npu] for npu in sources]
        for npu in sources:
            used[npu] += length
        if collective.group[rank] in chunks.members(chunks.post[chunk]):
            ranks = [number[npu] for npu in sources]
            found.append(Piece(ranks, starts, length, bool(chunks.reduce[chunk])))
    return found
