"""Collectives composed level by level: who sends what to whom, as rows.

NPUs sit on a grid of levels (see `Grid`): places in a box, boxes, and so on. A *part* of a buffer
is summed along one level after the other. Along each it is either *scattered*, so that every NPU
of a line goes on with its own share and gathers the others' on the way back; or summed in *one
shot*: each sends all it has to every other of its line, and nothing comes back. Parts may take the
levels in different orders and ways.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Buffer, place
from weft.planners.sends import Sends
from weft.topology.grid import Grid

Numbers = NDArray[np.int64]
_MOST_PARTS = 64


class Step(NamedTuple):
    """A sum along one level: in shares, or all at once."""

    level: int
    scatter: bool


@dataclass(frozen=True)
class Part:
    """A part of the buffer, and how it goes through the levels.

    Attributes
    ----------
    steps
        The levels in the order in which the part is summed.
    pieces
        In how many pieces each share is cut, so that levels work at the same time.
    weight
        How much of the buffer it is, beside other parts.
    """

    steps: tuple[Step, ...]
    pieces: int = 1
    weight: float = 1.0

    def scattered(self, before: int | None = None) -> list[int]:
        """The levels along which it is scattered, in order; of the first steps only."""
        return [step.level for step in self.steps[:before] if step.scatter]

    def shares(self, sizes: Sequence[int]) -> int:
        """In how many shares it is cut on a grid of these sizes."""
        return math.prod(sizes[level] for level in self.scattered())

    def rows(self, sizes: Sequence[int]) -> int:
        """About how many rows it takes with one piece per share, sums and copies."""
        count, held = 0, math.prod(sizes) * self.shares(sizes)
        for level, scatter in self.steps:
            count += 2 * held if scatter else held * sizes[level]
            held //= sizes[level] if scatter else 1
        return count


class _Rows(NamedTuple):
    """Columns that broadcast together: of what step, in which turn, from and to which place."""

    step: int
    turn: Numbers
    cell: Numbers
    src: Numbers
    dst: Numbers
    reduce: bool
    read: int = 0  # 0 for the chunk's home, else the number of a copy kept apart
    write: int = 0


@dataclass(frozen=True, eq=False)
class Layout:
    """A grid of NPUs, and along which levels every NPU of a line is one hop from every other.

    Along other levels, lines are rings: sums and copies go from neighbour to neighbour.
    """

    grid: Grid
    direct: tuple[bool, ...]

    def sends(
        self,
        part: Part,
        chunk: Numbers,
        slots: int,
        rank: int = 0,
        *,
        sums: bool = True,
        copies: bool = True,
    ) -> Sends:
        """The rows of a part, without times.

        Parameters
        ----------
        chunk
            The numbers of its chunks, one row per share and one column per piece, -1 for those
            without bytes. Shares are numbered with the first level that is scattered varying
            fastest.
        slots
            How many chunks the collective has: copies kept apart lie so many places apart.
        rank
            The place of the part beside others: of what is ready at once, the first go first.
        sums, copies
            Whether it is summed, and whether sums are spread: both for an All-Reduce.
        """
        made = [
            *(self._summed(part) if sums else ()),
            *(self._spread(part) if copies else ()),
        ]
        return Sends.together([self._sends(rows, chunk, slots, rank) for rows in made])

    def owners(self, part: Part) -> NDArray[np.int32]:
        """The NPU that goes on with each share of a part that is scattered along all levels."""
        cells = self._cells(part)
        return self.grid.npus[sum(cells[level] * self.grid.stride(level) for level in cells)]

    def _sends(self, rows: _Rows, chunk: Numbers, slots: int, rank: int) -> Sends:
        """One row for every piece."""
        turn, cell, src, dst = (
            column.reshape(-1)[:, None]
            for column in np.broadcast_arrays(rows.turn, rows.cell, rows.src, rows.dst)
        )
        number, npus = chunk[cell[:, 0]], self.grid.npus
        order = ((rows.step * _MOST_PARTS + rank) << 40) + (np.arange(chunk.shape[1]) << 20) + turn
        places = (_place(copy, number, slots) for copy in (rows.read, rows.write))
        made = Sends.of(order, number, npus[src], npus[dst], rows.reduce, *places)
        return made if number.min() >= 0 else made.selected(made.chunk >= 0)

    def _summed(self, part: Part) -> Iterator[_Rows]:
        """Level by level, towards whoever goes on with a share."""
        cells, copy = self._cells(part), 0
        for number, (level, scatter) in enumerate(part.steps):
            cell, lines, base = self._holders(part, number, [level])
            stride = self.grid.stride(level)
            if scatter:
                owner = cells[level][:, None, None]
                for turn, src, dst in self._towards(level, owner):
                    sender = base + src * stride
                    first = self._away(part, number, sender) * self.grid.sizes[level]
                    yield _Rows(
                        2 * number, first + turn, cell, sender, base + dst * stride, True
                    )
                continue
            copy += 1
            size = self.grid.sizes[level]
            here = np.arange(size)[None, None, :]
            own = base + here * stride
            yield _Rows(2 * number, np.zeros(1), cell, own, own, False, write=copy)
            turn = np.arange(1, size)[None, None, None, :]
            there = (here[..., None] + turn) % size
            src, dst = own[..., None], base[..., None] + there * stride
            yield _Rows(2 * number + 1, turn, cell[..., None], src, dst, True, read=copy)

    def _spread(self, part: Part) -> Iterator[_Rows]:
        """Back through the levels along which it was scattered."""
        cells = self._cells(part)
        for number in reversed(range(len(part.steps))):
            level, scatter = part.steps[number]
            if not scatter:
                continue
            # Whoever is in the line of a share by the levels before has it by now.
            cell, lines, base = self._holders(part, number, [level])
            owner, stride = cells[level][:, None, None], self.grid.stride(level)
            step = 3 * len(part.steps) - number
            for turn, src, dst in self._towards(level, owner):
                last = int(turn.max(initial=0)) if not self.direct[level] else 0
                when = last - turn if last else turn
                yield _Rows(step, when, cell, base + dst * stride, base + src * stride, False)

    def _away(self, part: Part, number: int, sender: Numbers) -> Numbers:
        """How far a share goes in the steps to come: what has to go on is summed first."""
        away, cells = np.zeros_like(sender), self._cells(part)
        for step in reversed(part.steps[number + 1 :]):
            if step.scatter:
                size, owner = self.grid.sizes[step.level], cells[step.level][:, None, None]
                away = away * size + (owner - self.grid.along(step.level, sender) - 1) % size
        return away

    def _cells(self, part: Part) -> dict[int, Numbers]:
        """Where along each scattered level every share belongs."""
        cell, found = np.arange(part.shares(self.grid.sizes)), {}
        for level in part.scattered():
            cell, found[level] = np.divmod(cell, self.grid.sizes[level])
        return found

    def _holders(
        self, part: Part, number: int, besides: Sequence[int]
    ) -> tuple[Numbers, Numbers, Numbers]:
        """Shares, and the lines in which NPUs have something of them before a step.

        Three axes: shares, lines, and places of a line, which are left to the caller.
        """
        cells, earlier = self._cells(part), part.scattered(number)
        cell = np.arange(part.shares(self.grid.sizes))
        base = np.zeros(len(cell), dtype=np.int64)
        for level in earlier:
            base += cells[level] * self.grid.stride(level)
        free = [d for d in range(len(self.grid.sizes)) if d not in earlier and d not in besides]
        lines = self.grid.lines(free)
        return cell[:, None, None], lines, (base[:, None] + lines)[..., None]

    def _towards(self, level: int, owner: Numbers) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
        """Sums along a line to its owner: turns, and from where to where along the level."""
        size = self.grid.sizes[level]
        if self.direct[level] or size <= 3:
            turn = np.arange(1, size)[None, None, :]
            yield turn, (owner + turn) % size, owner
            return
        up, down = size // 2, (size - 1) // 2
        for way, far in ((1, up), (-1, down)):
            away = np.arange(far, 0, -1)[None, None, :]
            yield far - away, (owner + way * away) % size, (owner + way * (away - 1)) % size


def _place(copy: int, chunk: Numbers, slots: int) -> Numbers:
    """Where a chunk lies: at home, or in a copy of its own."""
    return chunk if copy == 0 else chunk + place(Buffer.SCRATCH, (copy - 1) * slots)
