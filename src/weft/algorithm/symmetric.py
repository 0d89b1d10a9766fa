"""Rows of one NPU's chunks, and the translations that make everybody's of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.rows import CompactRows
from weft.algorithm.transfers import Routes, Transfers
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import InputError
from weft.ragged import offsets_of
from weft.topology.translations import Translations

if TYPE_CHECKING:
    from weft.algorithm.model import Algorithm

Numbers = NDArray[np.int64]

_MOST_NUMBERS = 2**31 - 1


@dataclass(frozen=True, eq=False, repr=False)
class SymmetricRows(CompactRows):
    """The rows of NPU 0's chunks on a network that translates onto itself.

    The network is a grid (`Topology.dimensions`, `Topology.translates`), and the group all its
    NPUs in ascending order. Moving a row by NPU t, coordinate by coordinate, each modulo the size
    of its dimension, gives the row of the matching chunk of NPU t, at the same time.

    Attributes
    ----------
    chunk
        Which of NPU 0's chunks, where c is the number of chunks per share (int32). All-Gather,
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

    kind = "symmetric"

    chunk: NDArray[np.int32]
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    reduce: NDArray[np.bool_]
    start: NDArray[np.int64]
    npus: int

    def __len__(self) -> int:
        return len(self.chunk) * self.npus

    def time(self, algorithm: Algorithm) -> int:
        if len(self.chunk) == 0:
            return 0
        moves, collective, cost = _context(algorithm)
        pieces = collective.chunks_per_share
        largest = collective.piece_bytes.reshape(-1, pieces).max(axis=0)[self.chunk % pieces]
        ways = moves.direction(self.src, self.dst)
        return int((self.start + _durations(moves, cost, ways, largest)).max())

    def of_npu(self, algorithm: Algorithm, npu: int) -> Transfers:
        moves, _, _ = _context(algorithm)
        here = np.array([npu])
        by = np.stack([moves.between(self.src, here), moves.between(self.dst, here)], axis=1)
        row = np.repeat(np.arange(len(self.chunk)), 2)
        return self._moved(algorithm, moves, row, np.sort(by, axis=1).reshape(-1))

    def table(self, algorithm: Algorithm) -> tuple[Transfers, Routes]:
        moves, _, _ = _context(algorithm)
        row = np.repeat(np.arange(len(self.chunk)), self.npus)
        by = np.tile(np.arange(self.npus), len(self.chunk))
        return self._moved(algorithm, moves, row, by), _routes(moves)

    def described(self) -> dict[str, Any]:
        return {"form": "rows of one NPU's chunks", "own_rows": len(self.chunk)}

    def _moved(
        self, algorithm: Algorithm, moves: Translations, row: Numbers, by: Numbers
    ) -> Transfers:
        """Some of the rows, each moved by an NPU."""
        _, collective, cost = _context(algorithm)
        chunk, size = self._chunks(moves, collective, row, by)
        src, dst = moves.moved(self.src[row], by), moves.moved(self.dst[row], by)
        ways = moves.direction(self.src, self.dst)[row]
        start = self.start[row]
        return Transfers(
            chunk.astype(np.int32),
            src.astype(np.int32),
            dst.astype(np.int32),
            self.reduce[row],
            _route(moves, src, ways).astype(np.int32),
            start,
            start + _durations(moves, cost, ways, size),
        )

    def _chunks(
        self, moves: Translations, collective: Collective, row: Numbers, by: Numbers
    ) -> tuple[Numbers, Numbers]:
        """Numbers and sizes of the chunks of rows, each moved by an NPU."""
        pieces = collective.chunks_per_share
        share, piece = np.divmod(self.chunk[row].astype(np.int64), pieces)
        place = moves.moved(share, by) * pieces + piece
        size = collective.piece_bytes[place]
        if collective.pattern.own_buffers:
            check_numbers(collective)
            place = by * (self.npus * pieces) + place
        return place, size


def check_numbers(demand: Collective) -> None:
    """Raise if there are more chunks than rows of a table can name."""
    if demand.chunk_count > _MOST_NUMBERS:
        raise InputError(
            f"{demand.kind} among {demand.ranks} NPUs has {demand.chunk_count:,} chunks; rows "
            f"name at most {_MOST_NUMBERS:,}"
        )


def _context(algorithm: Algorithm) -> tuple[Translations, Collective, CostModel]:
    """What symmetric rows mean nothing without."""
    timing = algorithm.require_timing()
    return Translations.of(timing.topology), algorithm.demands[0], timing.cost


def _durations(moves: Translations, cost: CostModel, ways: Numbers, size: Numbers) -> Numbers:
    """How long chunks of these sizes are on their way in these directions."""
    if len(size) == 0:  # one NPU alone
        return np.zeros(0, dtype=np.int64)
    sizes, kind = np.unique(size, return_inverse=True)
    table = np.stack([moves.durations(cost, one) for one in sizes.tolist()])
    return table[kind, ways]


def _route(moves: Translations, src: Numbers, ways: Numbers) -> Numbers:
    """Numbers of the routes of hops: the link; behind switches, direction by direction."""
    if moves.topology.switches:
        return ways * moves.topology.npus + src
    return moves.hop_links(src, ways)[0]


def _routes(moves: Translations) -> Routes:
    """All routes, as `_route` numbers them."""
    topology = moves.topology
    if not topology.switches:
        return Routes.of_links(topology.links)
    ways = np.repeat(np.arange(len(moves.shift)), topology.npus)
    src = np.tile(np.arange(topology.npus), len(moves.shift))
    first, last = moves.hop_links(src, ways)
    through = np.diff(moves.offsets)[ways] == 2
    offsets = offsets_of(1 + through)
    links = np.empty(int(offsets[-1]), dtype=np.int32)
    links[offsets[:-1]], links[offsets[1:] - 1] = first, last
    return Routes(offsets, links)
