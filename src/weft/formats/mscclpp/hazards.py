"""What must come before what when rows run on thread blocks that know nothing of each other."""

from __future__ import annotations

from dataclasses import dataclass

from weft.algorithm.memory import Memory

MOST_VISITS = 4096
"""A search that takes longer says no, which costs a scratch slot and nothing else."""


@dataclass(frozen=True, eq=False)
class Hazards:
    """The events of rows, and which must wait for which.

    Event ``2 * row`` is a row's start on the GPU that sends, ``2 * row + 1`` its end on the GPU
    that receives. A local row has the second only.

    Attributes
    ----------
    direct
        Whether the sender may write straight to the cell a row is for. Otherwise the payload
        goes to a scratch slot of its own, and the receiver copies or adds it.
    before
        Events of the same GPU that must be over before each event.
    settled
        Whether what a row reads is overwritten later by something that does not follow from it,
        so that the sender must know when it has been read.
    """

    direct: list[bool]
    before: list[list[int]]
    settled: list[bool]


def find_hazards(memory: Memory) -> Hazards:
    """Find what the order of the rows leaves to be kept by semaphores and scratch slots."""
    search = _Search(memory)
    for row in range(len(memory.transfers)):
        search.start(row)
        search.end(row)
    return search.found


class _Search:
    def __init__(self, memory: Memory) -> None:
        rows = memory.transfers
        self.src: list[int] = rows.src.tolist()
        self.dst: list[int] = rows.dst.tolist()
        self.reduce = rows.reduce.tolist()
        self.sources, self.targets = (cells.tolist() for cells in memory.cells)
        self.offsets = None if rows.dep_offsets is None else rows.dep_offsets.tolist()
        self.deps = [] if rows.deps is None else rows.deps.tolist()
        count = len(rows)
        self.writer: dict[int, int] = {}  # of cells
        self.readers: dict[int, list[int]] = {}
        self.causes: list[tuple[int, int]] = []  # rows whose data a row needs; -1: none
        self.found = Hazards([False] * count, [[] for _ in range(2 * count)], [False] * count)

    def start_of(self, row: int) -> int:
        return 2 * row + int(self.src[row] == self.dst[row])

    def start(self, row: int) -> None:
        """A row reads what an earlier one wrote, and waits for the rows it depends on."""
        source = self.sources[row]
        wait = self.found.before[self.start_of(row)]
        cause = self.writer.get(source, -1)
        if cause >= 0:
            wait.append(2 * cause + 1)
        if self.offsets is not None:
            named = self.deps[self.offsets[row] : self.offsets[row + 1]]
            wait.extend(2 * other + 1 for other in named if self.dst[other] == self.src[row])
        target = self.targets[row]
        self.causes.append((cause, self.writer.get(target, -1) if self.reduce[row] else -1))
        self.readers.setdefault(source, []).append(row)

    def end(self, row: int) -> None:
        """A row writes where others have read and written before."""
        target = self.targets[row]
        writer = self.writer.get(target, -1)
        loose = [
            reader
            for reader in self.readers.get(target, ())
            if reader != row and not self._follows(row, reader)
        ]
        after_writer = writer >= 0 and not self._follows(row, writer)
        local = self.src[row] == self.dst[row]
        if local or self.reduce[row] or loose or after_writer:
            wait = self.found.before[2 * row + 1]
            if after_writer:
                wait.append(2 * writer + 1)
            for reader in loose:
                wait.append(self.start_of(reader))
                self.found.settled[reader] = True
        else:
            self.found.direct[row] = True
        self.writer[target] = row
        self.readers[target] = []

    def _follows(self, row: int, earlier: int) -> bool:
        """Whether what `row` sends could not exist before all of `earlier` was over."""
        stack = [self.causes[row][0]]
        seen: set[int] = set()
        while stack and len(seen) < MOST_VISITS:
            at = stack.pop()
            if at == earlier:
                return True
            if at > earlier and at not in seen:
                seen.add(at)
                stack.extend(self.causes[at])
        return False
