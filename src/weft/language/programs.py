"""The language: programs, and the chunks that they copy and add."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.algorithm import Algorithm, linearization
from weft.collective import PATTERNS, Collective, parse_group
from weft.collective.slots import input_slots, output_slots
from weft.display import line as one_line
from weft.display import title_of
from weft.errors import InputError, unknown_name
from weft.judge import Verdict, verify
from weft.language.lines import Line, calling_line, spelled, wrong
from weft.language.memory import Memory, Run
from weft.units import parse_size

MAX_NPUS = 1 << 17


class Chunk:
    """A chunk, or a run of chunks, where it lies and as it is now.

    `Program.chunk` and every operation give one. It is good until something else is written
    where it lies; to use it after that is an error.
    """

    __slots__ = ("_made", "_program", "_run")

    def __init__(self, program: Program, run: Run, made: int) -> None:
        self._program, self._run = program, run
        self._made = made  # moves from this number on make it stale

    @property
    def rank(self) -> int:
        """The rank it lies on."""
        return self._run.rank

    @property
    def buffer(self) -> str:
        """The buffer it lies in: ``input``, ``output`` or ``scratch``."""
        return self._run.buffer

    @property
    def index(self) -> int:
        """The first of its slots."""
        return self._run.first

    @property
    def count(self) -> int:
        """How many slots it has."""
        return len(self._run.cells)

    def __repr__(self) -> str:
        return str(self._run)

    def copy(
        self,
        rank: int,
        buffer: str | None = None,
        index: int | None = None,
        *,
        after: Chunk | Sequence[Chunk] = (),
    ) -> Chunk:
        """Copy it to a rank, the same one or another.

        Parameters
        ----------
        rank
            Where to.
        buffer, index
            The buffer there and the first slot; by default those it has here.
        after
            Chunks whose last operations must be over before this one starts, although nothing
            that it reads or writes needs that.

        Returns
        -------
        Chunk
            The copy.

        Examples
        --------
        >>> from weft.language import program
        >>> p = program("broadcast", "1MiB", ranks=3, in_place=True)
        >>> p.chunk(0).copy(1).copy(2)
        input[0] of rank 2
        """
        run = self._run
        buffer = run.buffer if buffer is None else buffer
        index = run.first if index is None else index
        target = self._program._memory.find(rank, buffer, index, len(run.cells), full=False)
        return self._program._move(self, target, False, after, calling_line(1))

    def reduce(self, other: Chunk, *, after: Chunk | Sequence[Chunk] = ()) -> Chunk:
        """Add another partial sum of the same chunk to this one, here.

        Parameters
        ----------
        other
            What is added; it stays as it is.
        after
            As for `copy`.

        Returns
        -------
        Chunk
            The sum, where this chunk was.

        Examples
        --------
        >>> from weft.language import program
        >>> p = program("all-reduce", "1MiB", ranks=2, in_place=True)
        >>> for rank in (0, 1):
        ...     total = p.chunk(rank, index=rank).reduce(p.chunk(1 - rank, index=rank))
        ...     print(total.copy(1 - rank))
        input[0] of rank 1
        input[1] of rank 0
        """
        self._program._check(self)
        if isinstance(other, Chunk) and other.count != self.count:
            raise wrong(f"{other} and {self} differ in length")
        return self._program._move(other, self._run, True, after, calling_line(1))


class Program:
    """Operations on chunks, one after the other; `program` makes it. It ends with its with block.

    Attributes
    ----------
    collective
        What the program has to do.
    """

    def __init__(self, collective: Collective, *, in_place: bool, line: Line) -> None:
        self.collective = collective
        self._memory = Memory(collective, in_place=in_place)
        self._line = line
        self._algorithm: Algorithm | None = None
        self._ended = False

    def __repr__(self) -> str:
        count = len(self._memory.moves)
        return one_line(self, f"{title_of([self.collective])}: {count:,} operations")

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True

    def chunk(self, rank: int, buffer: str = "input", index: int = 0, count: int = 1) -> Chunk:
        """What lies in a slot now, or in `count` slots one after the other.

        Parameters
        ----------
        rank
            A position in the group.
        buffer
            ``input``, ``output`` or ``scratch``, which is as long as it is written.
        index
            The first slot.
        count
            How many slots.
        """
        run = self._memory.find(rank, buffer, index, count, full=True)
        return Chunk(self, run, len(self._memory.moves))

    def algorithm(self) -> Algorithm:
        """The algorithm that the program says, verified. It ends the program.

        Raises
        ------
        InputError
            The judge finds it wrong; names the line that wrote the wrong result last.
        """
        if self._algorithm is None:
            self._ended = True
            linear = linearization.linearize(self._in_a_chain(), self._memory)
            algorithm = Algorithm(
                (self.collective,), linear.transfers, provenance={"method": "program"}
            )
            verdict = verify(algorithm)
            if not verdict:
                raise InputError(self._blame(verdict, linear))
            self._algorithm = algorithm
        return self._algorithm

    def _check(self, chunk: Chunk) -> None:
        if not isinstance(chunk, Chunk):
            raise wrong(f"expected a chunk, not {type(chunk).__name__}")
        if chunk._program is not self:
            raise wrong(f"{chunk} belongs to another program")
        self._memory.check_fresh(chunk._run, chunk._made)

    def _move(
        self, source: Chunk, target: Run, reduce: bool, after: Chunk | Sequence[Chunk], line: Line
    ) -> Chunk:
        if self._ended:
            raise wrong(
                "the program has ended: nothing can be added after its with block or algorithm()"
            )
        self._check(source)
        earlier = after if isinstance(after, Sequence) else (after,)
        for chunk in earlier:
            self._check(chunk)
        runs = [chunk._run for chunk in earlier]
        self._memory.add(source._run, target, reduce=reduce, after=runs, line=line)
        return Chunk(self, target, len(self._memory.moves))

    def _in_a_chain(self) -> linearization.Program:
        """All moves in one chain, by depth: what could run at once stands together.

        A chain gives order, not dependencies: those come from the cells, and from wishes.
        """
        moves = self._memory.moves
        events = 2 * len(moves)
        src, dst, reduce, depth, _ = zip(*moves, strict=True) if moves else ((),) * 5
        order = np.argsort(np.array(depth, dtype=np.int64), kind="stable")
        waits = np.array(self._memory.waits, dtype=np.int64).reshape(-1, 2)
        return linearization.Program(
            self._memory.cells(),
            np.array(src, dtype=np.int32),
            np.array(dst, dtype=np.int32),
            np.array(reduce, dtype=np.bool_),
            events,
            np.array([0, events], dtype=np.int64),
            np.stack([2 * order, 2 * order + 1], axis=1).reshape(-1),
            2 * waits[:, 0] + 1,
            2 * waits[:, 1],
            np.ones(len(waits), dtype=np.bool_),
        )

    def _blame(self, verdict: Verdict, linear: linearization.Linearized) -> str:
        """What the judge says, at the line that did it."""
        if verdict.row is not None:
            return f"{self._memory.event(2 * linear.action[verdict.row])}: {verdict.violation}"
        if verdict.chunk is None or verdict.npu is None:
            return f"{spelled(self._line)}: {verdict.violation}"
        rank = self.collective.group.index(verdict.npu)
        runs = self._places(rank, verdict.chunk)
        lines = [self._memory.last_line(run) for run in runs]
        where = next((line for line in lines if line is not None), self._line)
        return f"{spelled(where)}: {runs[0]} is wrong at the end: {verdict.violation}"

    def _places(self, rank: int, chunk: int) -> list[Run]:
        """Where a result can be: in the output, or in the input if it is there."""
        npu, chunks, found = self.collective.group[rank], self.collective.chunks, []
        for buffer, slots in (("output", output_slots), ("input", input_slots)):
            index = np.flatnonzero(slots(chunks, npu + 1).of(npu) == chunk)
            found += [self._memory.find(rank, buffer, int(i), 1, full=False) for i in index]
        return found


def program(
    collective: str | Collective,
    size: str | float | None = None,
    *,
    ranks: int | None = None,
    group: str | Sequence[int] | None = None,
    chunks: int = 1,
    root: int | None = None,
    in_place: bool = False,
) -> Program:
    """Begin a program for a collective.

    Parameters
    ----------
    collective
        Name of the pattern; or any collective, such as `weft.custom` makes, to which nothing
        but `in_place` can be added.
    size
        Bytes of the largest buffer on one rank, or a text such as ``64MiB``.
    ranks, group
        How many NPUs take part, 0 to ``ranks - 1``; or which, in order of rank.
    chunks
        In how many chunks each share is cut.
    root
        For rooted patterns: an NPU; by default the group's first.
    in_place
        Whether input and output are the same memory.

    Examples
    --------
    A ring: every chunk is summed up on its way around, and on a second way handed out.

    >>> from weft.language import program
    >>> with program("all-reduce", "64MiB", ranks=8, in_place=True) as p:
    ...     for c in range(8):
    ...         at = p.chunk(c, "input", c)
    ...         for step in range(1, 8):
    ...             at = p.chunk((c + step) % 8, "input", c).reduce(at)
    ...         for step in range(8, 15):
    ...             at = at.copy((c + step) % 8)
    >>> len(p.algorithm().transfers)
    112
    """
    given = (size, ranks, group, root) != (None,) * 4 or chunks != 1
    if not isinstance(collective, Collective):
        collective = _named(collective, size, _group(ranks, group), chunks, root)
    elif given:
        raise InputError("a collective has its size, group, chunks and root; give no others")
    if max(collective.group) >= MAX_NPUS:
        raise InputError(f"NPUs of a program are 0 to {MAX_NPUS - 1}, not {max(collective.group)}")
    _check_cut(collective)
    return Program(collective, in_place=in_place, line=calling_line(1))


def _named(
    kind: str, size: str | float | None, group: Sequence[int], chunks: int, root: int | None
) -> Collective:
    if kind not in PATTERNS:
        raise unknown_name("collective", str(kind), PATTERNS)
    if PATTERNS[kind].build is None:
        maker = kind.replace("-", "_")
        raise InputError(f"{kind} needs to know what moves: give weft.{maker}(...), not the name")
    if size is None:
        raise InputError(f"{kind} needs a size, such as 64MiB")
    return Collective.of(kind, group, parse_size(size), chunks, root)


def _group(ranks: int | None, group: str | Sequence[int] | None) -> Sequence[int]:
    if group is not None and ranks is None:
        return parse_group(group, MAX_NPUS)
    if ranks is None or group is not None:
        raise InputError("give either ranks, such as 8, or group, such as 0-56:8")
    if not 1 <= ranks <= MAX_NPUS:
        raise InputError(f"{ranks} ranks; expected 1 to {MAX_NPUS}")
    return range(ranks)


def _check_cut(collective: Collective) -> None:
    """Raise if some chunk would be empty: slots would not be where the program expects them."""
    if collective.parts is None:
        pieces = collective.pattern.shares(collective.ranks) * collective.chunks_per_share
        least = collective.size
    else:
        pieces, least = collective.chunks_per_share, int(collective.parts.bytes.min())
    if -(-least // collective.alignment) < pieces:
        raise InputError(
            f"{collective.kind}: {least} B cannot be cut in {pieces} chunks at multiples of "
            f"{collective.alignment} B"
        )
