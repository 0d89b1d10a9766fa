"""How a buffer is cut for a mix of parts: in parts, in shares, in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weft.collective import Collective, all_reduce_at
from weft.collective.chunks import cut
from weft.planners.mixes import Mix

Numbers = NDArray[np.int64]
_MOST_HALVED = 5  # how often pieces are halved


@dataclass(frozen=True)
class Cutting:
    """A mix, and in how many pieces each share of each part is cut.

    If the number of chunks is not free, parts are some of the chunks that there are.
    """

    mix: Mix
    pieces: tuple[int, ...]
    free: bool

    @classmethod
    def of(cls, demand: Collective, mix: Mix, rows: float | None) -> Cutting:
        """Pieces about as long as each other, and so many that sums and copies take `rows`.

        None if the number of chunks is given: at least as many per share as there are parts.
        """
        if rows is None:
            units = _apportioned(demand.chunks_per_share, [lane.part.weight for lane in mix])
            counts = (demand.ranks // lane.shares for lane in mix)
            given = tuple(unit * count for unit, count in zip(units, counts, strict=True))
            return cls(mix, given, free=False)
        each = np.array([lane.part.rows(lane.frame.sizes) for lane in mix], dtype=float)
        per_share = np.array([lane.part.weight * demand.size / lane.shares for lane in mix])
        most = np.maximum(per_share // demand.alignment, 1)
        pieces, longest = np.ones(len(mix)), float(per_share.max())
        for finer in 2 ** (np.arange(2 * _MOST_HALVED + 1) / 2):
            finest = np.clip(np.rint(per_share / longest * finer), 1, most)
            if finest @ each > rows:
                break
            pieces = finest
        return cls(mix, tuple(int(count) for count in pieces), free=True)

    def demand(self, demand: Collective) -> Collective:
        """The collective, cut so."""
        if not self.free:
            return demand
        if demand.kind != "all-reduce":
            return replace(demand, chunks_per_share=sum(self.pieces))
        marks = self._marks(demand)
        return all_reduce_at(demand.group, marks, alignment=demand.alignment, relay=demand.relay)

    def chunks(self, demand: Collective, number: int) -> Iterator[Numbers]:
        """The chunks of each part, by share and piece; -1 for those without bytes.

        `number` is that of the collective among those of the problem.
        """
        bytes_of, first = self._bytes(demand), 0
        real = bytes_of > 0
        numbers = np.where(real, np.cumsum(real) - 1, -1)
        for lane, pieces in zip(self.mix, self.pieces, strict=True):
            if demand.kind == "all-reduce":
                end = first + lane.shares * pieces
                yield numbers[first:end].reshape(lane.shares, pieces)
            else:
                end = first + pieces
                owner = lane.frame.layouts[number].owners(lane.part)
                ranks = np.argsort(demand.group)
                rank = ranks[np.searchsorted(np.array(demand.group)[ranks], owner)]
                yield numbers.reshape(demand.ranks, -1)[rank, first:end]
            first = end

    def sizes(self, demand: Collective) -> Iterator[tuple[int, int]]:
        """Bytes of the smallest and the largest chunk of each part; `demand` is not cut yet."""
        first, sums = 0, demand.kind == "all-reduce"
        sizes = self._bytes(self.demand(demand) if not sums else demand)
        for lane, pieces in zip(self.mix, self.pieces, strict=True):
            end = first + (lane.shares * pieces if sums else pieces)
            mine = sizes[first:end] if sums else sizes.reshape(demand.ranks, -1)[:, first:end]
            yield int(mine.min()), int(mine.max())
            first = end

    def _bytes(self, demand: Collective) -> Numbers:
        """Of each piece of the buffer, empty ones too."""
        if self.free and demand.kind == "all-reduce":
            return np.diff(self._marks(demand))
        return demand.piece_bytes

    def _marks(self, demand: Collective) -> Numbers:
        """Where the buffer is cut."""
        weights = np.cumsum([lane.part.weight for lane in self.mix])[:-1]
        units = np.rint(weights * (demand.size / demand.alignment)).astype(np.int64)
        ends = [0, *(units * demand.alignment).clip(max=demand.size).tolist(), demand.size]
        found = [np.zeros(1, dtype=np.int64)]
        for lane, pieces, begin, end in zip(
            self.mix, self.pieces, ends[:-1], ends[1:], strict=True
        ):
            found.append(begin + cut(end - begin, lane.shares * pieces, demand.alignment)[1:])
        return np.concatenate(found)


def _apportioned(total: int, weights: list[float]) -> list[int]:
    """Whole numbers in about these proportions, at least 1 each."""
    exact = np.array(weights) * (total - len(weights))
    whole = np.floor(exact)
    left = np.argsort(whole - exact, kind="stable")[: total - len(weights) - int(whole.sum())]
    whole[left] += 1
    return [1 + int(number) for number in whole]
