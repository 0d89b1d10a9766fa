"""Collectives composed level by level: who sends what to whom, as rows.

NPUs sit on a grid of levels (see `Grid`): places in a box, boxes, and so on. A *part* of a buffer
is summed along one level after the other. Along each it is either *scattered*, so that every NPU
of a line goes on with its own share and gathers the others' on the way back; or summed in *one
shot*: each sends all it has to every other of its line, and nothing comes back. Parts may take the
levels in different orders and ways.

All NPUs do the same. So times are found for *moves* (see ``cpp/planners/by_level/by_level.h``): the
messages that all send at once, each to the NPU so many places on.
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


class Step(NamedTuple):
    """A sum along one level: in shares, or all at once; in shares it may go round rings."""

    level: int
    scatter: bool
    ring: bool = False


@dataclass(frozen=True)
class Part:
    """A part of the buffer, and how it goes through the levels.

    Attributes
    ----------
    steps
        The levels in the order in which the part is summed.
    weight
        How much of the buffer it is, beside other parts.
    """

    steps: tuple[Step, ...]
    weight: float = 1.0

    def scattered(self, first: int = 0, last: int | None = None) -> list[int]:
        """The levels along which it is scattered, in order; of some steps only."""
        return [step.level for step in self.steps[first:last] if step.scatter]

    def shares(self, sizes: Sequence[int], first: int = 0) -> int:
        """In how many shares it is cut on a grid of these sizes, from a step on."""
        return math.prod(sizes[level] for level in self.scattered(first))

    def rows(self, sizes: Sequence[int]) -> int:
        """About how many rows it takes with one piece per share, sums and copies."""
        count, held = 0, math.prod(sizes) * self.shares(sizes)
        for level, scatter, _ in self.steps:
            count += 2 * held if scatter else held * sizes[level]
            held //= sizes[level] if scatter else 1
        return count


class _Rows(NamedTuple):
    """Columns that broadcast together: axes for shares, lines, and distances along the level.

    Attributes
    ----------
    move
        Number of the move among those of one piece.
    cell
        Number of the share.
    src, dst
        Places of the grid.
    reduce
        Whether it is added.
    read, write
        0 for the chunk's home, else the number of a copy that is kept apart.
    """

    move: Numbers
    cell: Numbers
    src: Numbers
    dst: Numbers
    reduce: bool
    read: int = 0
    write: int = 0


@dataclass(frozen=True, eq=False)
class Layout:
    """Parts on a grid of NPUs."""

    grid: Grid

    def owners(self, part: Part) -> NDArray[np.int32]:
        """The NPU that goes on with each share of a part that is scattered along all levels."""
        cells = self._cells(part)
        return self.grid.npus[sum(cells[level] * self.grid.stride(level) for level in cells)]

    def moves(self, part: Part, *, sums: bool, copies: bool) -> int:
        """How many moves a part takes for each piece."""
        return sum(
            self._moves(part, number) * (sums + (copies and step.scatter))
            for number, step in enumerate(part.steps)
        )

    def sends(
        self,
        part: Part,
        chunk: Numbers,
        slots: int,
        times: tuple[Numbers, Numbers],
        *,
        sums: bool,
        copies: bool,
    ) -> Sends:
        """The rows of a part, in the order in which they start.

        Parameters
        ----------
        chunk
            The numbers of its chunks, one row per share and one column per piece, -1 for those
            without bytes. Shares are numbered with the first level that is scattered varying
            fastest.
        slots
            How many chunks the collective has: copies kept apart lie so many places apart.
        times
            Of each move: when what it sends is there, and when it starts, in picoseconds.
        sums, copies
            Whether it is summed, and whether sums are spread: both for an All-Reduce.
        """
        pieces, made = np.arange(chunk.shape[1]), list[Sends]()
        # Half-way round a ring pieces take turns up and down.
        turns = 2 if any(step.ring for step in part.steps) and len(pieces) > 1 else 1
        for odd in range(turns):
            some = pieces[odd::turns]
            for rows in self._rows(part, odd, sums, copies):
                made.append(self._sends(rows, chunk, some, slots, times))
        return Sends.together(made)

    def _sends(
        self,
        rows: _Rows,
        chunk: Numbers,
        pieces: Numbers,
        slots: int,
        times: tuple[Numbers, Numbers],
    ) -> Sends:
        """One row for every piece."""
        move, cell, src, dst = (
            column.reshape(-1)[:, None]
            for column in np.broadcast_arrays(rows.move, rows.cell, rows.src, rows.dst)
        )
        number, npus = chunk[cell, pieces], self.grid.npus
        ready, start = times
        # What an NPU keeps apart it copies before it sends or gets anything else.
        local = rows.write > 0
        moves = move * chunk.shape[1] + pieces
        order = 2 * ready[moves] if local else 2 * start[moves] + 1
        apart = rows.read or rows.write
        places = [_place(copy, number, slots) for copy in (rows.read, rows.write) if apart]
        made = Sends.of(order, number, npus[src], npus[dst], rows.reduce, *places)
        return made if number.min(initial=0) >= 0 else made.selected(made.chunk >= 0)

    def _rows(self, part: Part, odd: int, sums: bool, copies: bool) -> Iterator[_Rows]:
        """Sums level by level towards whoever goes on with a share, and copies back from there."""
        first, kept = 0, 0
        for number, step in enumerate(part.steps) if sums else ():
            if step.scatter:
                yield self._scattered(part, number, first, odd)
            else:
                kept += 1
                yield from self._one_shot(part, number, first, kept)
            first += self._moves(part, number)
        for number in reversed(range(len(part.steps))) if copies else ():
            if part.steps[number].scatter:
                rows = self._scattered(part, number, first, odd)
                yield rows._replace(src=rows.dst, dst=rows.src, reduce=False)
                first += self._moves(part, number)

    def _scattered(self, part: Part, number: int, first: int, odd: int) -> _Rows:
        """Sums along a line for the owner of each share."""
        level, _, ring = part.steps[number]
        size, stride = self.grid.sizes[level], self.grid.stride(level)
        cell, line = self._lines(part, number)
        owner, distance = self._cells(part)[level][:, None, None], np.arange(1, size)
        src = (owner - distance) % size
        dst = owner
        if ring:
            dst = (src + np.where(distance <= (size - odd) // 2, 1, -1)) % size
        sender = line + src * stride
        return _Rows(
            self._move(part, number, first, sender, distance),
            cell,
            sender,
            line + dst * stride,
            reduce=True,
        )

    def _one_shot(self, part: Part, number: int, first: int, kept: int) -> Iterator[_Rows]:
        """Each NPU of a line keeps a copy of what it has, and sends that to all others."""
        level = part.steps[number].level
        size, stride = self.grid.sizes[level], self.grid.stride(level)
        cell, line = self._lines(part, number)
        here = np.arange(size)[:, None]
        own, distance = line[..., None] + here * stride, np.arange(1, size)
        there = line[..., None] + (here + distance) % size * stride
        move = self._move(part, number, first, own, distance)
        yield _Rows(move[..., :1], cell[..., None], own, own, reduce=False, write=kept)
        yield _Rows(move, cell[..., None], own, there, reduce=True, read=kept)

    def _moves(self, part: Part, number: int) -> int:
        """How many moves a step has for each piece."""
        others = self.grid.sizes[part.steps[number].level] - 1
        return others * part.shares(self.grid.sizes, number + 1)

    def _move(
        self, part: Part, number: int, first: int, sender: Numbers, distance: Numbers
    ) -> Numbers:
        """The number of a move: by distance, then by where the share belongs along later levels."""
        later, cells = np.zeros_like(sender), self._cells(part)
        extra = sender.ndim - 1
        for level in reversed(part.scattered(number + 1)):
            size = self.grid.sizes[level]
            owner = cells[level].reshape(-1, *[1] * extra)
            later = later * size + (owner - self.grid.along(level, sender)) % size
        return first + (distance - 1) * part.shares(self.grid.sizes, number + 1) + later

    def _cells(self, part: Part) -> dict[int, Numbers]:
        """Where along each scattered level every share belongs."""
        cell, found = np.arange(part.shares(self.grid.sizes)), {}
        for level in part.scattered():
            cell, found[level] = np.divmod(cell, self.grid.sizes[level])
        return found

    def _lines(self, part: Part, number: int) -> tuple[Numbers, Numbers]:
        """Shares, and the lines along the level of a step in which NPUs have something of them.

        Three axes: shares, lines, and one for places of a line. A line is said by its place 0.
        """
        cells, earlier = self._cells(part), part.scattered(last=number)
        cell = np.arange(part.shares(self.grid.sizes))
        base = np.zeros(len(cell), dtype=np.int64)
        for level in earlier:
            base += cells[level] * self.grid.stride(level)
        level = part.steps[number].level
        free = [d for d in range(len(self.grid.sizes)) if d not in earlier and d != level]
        return cell[:, None, None], (base[:, None] + self.grid.lines(free))[..., None]


def _place(copy: int, chunk: Numbers, slots: int) -> Numbers:
    """Where a chunk lies: at home, or in a copy of its own."""
    return chunk if copy == 0 else chunk + place(Buffer.SCRATCH, (copy - 1) * slots)
