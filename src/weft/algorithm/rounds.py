"""Rows as a log of rounds: in each round a link carries one chunk, or none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm.log_file import LogFile, UnnamedFile
from weft.algorithm.rows import CompactRows
from weft.algorithm.transfers import Routes, Transfers
from weft.errors import InputError
from weft.topology.durations import of_rows, over_links
from weft.topology.model import Topology
from weft.units import PS_PER_US, format_size

if TYPE_CHECKING:
    from weft.algorithm.model import Algorithm

LOG_BEGINS = 64
"""Bytes that are left free before a log in a file: for what else is to be said of it."""
MOST_PICKLED = 1 << 30
"""Bytes of a log in a file that are pickled or copied."""
NARROW_CHUNKS = 1 << 16
"""Up to so many chunks a chunk's number takes two bytes in the log; beyond, four."""


@dataclass(frozen=True, eq=False, repr=False)
class RoundLog(CompactRows):
    """What every link of a network without switches carries in every round of an All-Gather.

    A round begins `slot` after the one before it. A transfer of round r over link l starts at
    ``r * slot`` and takes as long as the cost model says for its chunk's bytes.

    A Reduce-Scatter is the same log run backwards: what goes over link l from ``r * slot`` on
    goes, as a partial sum, over the reverse link (same speed, the other way) so that it ends, for
    the largest chunk, as long before the end of the All-Gather as the copy starts after its
    beginning; that end is the one it would have if all chunks were as large as the largest. An
    All-Reduce is the one, then the other. The collective's kind says which.

    Attributes
    ----------
    slot
        Picoseconds between the beginnings of two rounds.
    count
        How many entries the log has: the transfers of the All-Gather.
    log
        Bytes of the rounds, one after the other. A round is a bitmap of the links that carry
        something, ``ceil(links / 64)`` little-endian words of 64 bits, link 0 being the lowest
        bit of the first; then the chunks' numbers in ascending order of link, of 2 bytes each
        (4 if the collective has more than `NARROW_CHUNKS` chunks); then zeros up to a multiple
        of 8 bytes. In memory, or a `LogFile`.
    offsets
        Where each round begins in `log`, and where the last ends (int64).
    phases
        How often the log is run: twice for an All-Reduce, else once.
    file
        The file without a name in which the log lies, if it does.
    """

    kind = "rounds"

    slot: int
    count: int
    log: NDArray[np.uint8] | LogFile
    offsets: NDArray[np.int64]
    phases: int = 1
    file: UnnamedFile | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The log goes along as bytes; one beyond memory must be saved to be handed on."""
        state: dict[str, Any] = super().__getstate__()
        if isinstance(self.log, LogFile):
            if self.log.nbytes > MOST_PICKLED:
                raise InputError(
                    f"a log of {format_size(self.log.nbytes)} is too large to pickle or copy; save "
                    "the algorithm as a .weft file, and load that"
                )
            return {**state, "log": np.asarray(self.log), "file": None}
        return state

    @property
    def rounds(self) -> int:
        return len(self.offsets) - 1

    def __len__(self) -> int:
        return self.count * self.phases

    def described(self) -> dict[str, Any]:
        slot_us = self.slot / PS_PER_US
        return {"form": "log of rounds", "rounds": self.rounds, "slot_us": slot_us}

    @contextmanager
    def reading(self) -> Iterator[_core.LogBytes]:
        """The log for the kernels; raises FormatError if its file changed meanwhile."""
        if isinstance(self.log, LogFile):
            with self.log.in_use():
                yield self.log.core
        else:
            yield _core.LogBytes.in_memory(self.log)

    def time(self, algorithm: Algorithm) -> int:
        if self.count == 0:
            return 0
        costs = _Costs.of(algorithm)
        if costs.kind == "reduce-scatter":
            first = self._first(costs)
            return int((costs.turned(first, self._span(costs)) + costs.taken(first)).max(initial=0))
        last = self._last(costs)
        end = int((last.start + costs.taken(last)).max(initial=0))
        return end + (self._span(costs) if costs.kind == "all-reduce" else 0)

    def of_npu(self, algorithm: Algorithm, npu: int) -> Transfers:
        costs = _Costs.of(algorithm)
        mine = np.flatnonzero((costs.topology.src == npu) | (costs.topology.dst == npu))
        return self._transfers(costs, self._entries(costs, mine.astype(np.int32)))

    def table(self, algorithm: Algorithm) -> tuple[Transfers, Routes]:
        """All rows, by start, and those that start together by link; sums before copies."""
        costs = _Costs.of(algorithm)
        rows = self._transfers(costs, self._entries(costs))
        return rows, Routes.of_links(costs.topology.links)

    def _span(self, costs: _Costs) -> int:
        """When the All-Gather would end if all chunks were as large as the largest."""
        last = self._last(costs)
        return int((last.start + costs.longest[last.link]).max(initial=0))

    def _first(self, costs: _Costs) -> _Entries:
        """Entries of the first rounds: run backwards, one of them is the last to end."""
        begin = self._used(costs)[0]
        return self._entries(costs, begin=begin, end=begin + costs.rounds(self.slot))

    def _last(self, costs: _Costs) -> _Entries:
        """Entries of the last rounds: one of them is the last to end."""
        end = self._used(costs)[1]
        return self._entries(costs, begin=end - costs.rounds(self.slot), end=end)

    def _used(self, costs: _Costs) -> tuple[int, int]:
        """The first round with entries, and the one after the last."""
        bitmap = -(-costs.topology.links // 64) * 8
        used = np.flatnonzero(np.diff(self.offsets) > bitmap)
        return (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 0)

    def _entries(
        self,
        costs: _Costs,
        links: NDArray[np.int32] | None = None,
        *,
        begin: int = 0,
        end: int | None = None,
    ) -> _Entries:
        """What is carried in some rounds, over some links or over all."""
        begin = max(begin, 0)
        end = self.rounds if end is None else min(end, self.rounds)
        with self.reading() as log:
            round_, link, chunk, damaged = _core.round_entries(
                log,
                self.offsets[begin : end + 1],
                costs.topology.links,
                len(costs.bytes) > NARROW_CHUNKS,
                self.count if (begin, end) == (0, self.rounds) else 0,
                links,
            )
        if damaged >= 0 or int(chunk.max(initial=0)) >= len(costs.bytes):
            where = f"round {begin + damaged}" if damaged >= 0 else "a chunk's number"
            raise InputError(f"the log of rounds is damaged: {where} is not as it should be")
        return _Entries((round_.astype(np.int64) + begin) * self.slot, link, chunk)

    def _transfers(self, costs: _Costs, entries: _Entries) -> Transfers:
        """The rows that entries stand for, those of a Reduce-Scatter first."""
        sums, copies = costs.kind != "all-gather", costs.kind != "reduce-scatter"
        span = self._span(costs) if sums else 0
        taken = costs.taken(entries)
        halves = []  # chunk, link, start, end
        if sums:
            back, start = costs.reverse_links[entries.link], costs.turned(entries, span)
            order = np.lexsort((back, start))
            halves.append((entries.chunk[order], back[order], start[order], (start + taken)[order]))
        if copies:  # the log has the order of the rows
            start = span + entries.start
            halves.append((entries.chunk, entries.link, start, start + taken))
        chunk, link, start, end = (np.concatenate(columns) for columns in zip(*halves, strict=True))
        adds = np.arange(len(link)) < len(entries.link) * sums
        return Transfers(
            chunk, costs.topology.src[link], costs.topology.dst[link], adds, link, start, end
        )


@dataclass(frozen=True, eq=False)
class _Entries:
    """What is carried: when its round begins, over which link, which chunk."""

    start: NDArray[np.int64]
    link: NDArray[np.int32]
    chunk: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class _Costs:
    """What the transfers of a log take; `longest` is by link, for the largest chunk."""

    kind: str
    topology: Topology
    bytes: NDArray[np.int64]
    longest: NDArray[np.int64]

    @classmethod
    def of(cls, algorithm: Algorithm) -> _Costs:
        topology, demand = algorithm.require_timing().topology, algorithm.demands[0]
        sizes = demand.chunks.bytes
        longest = over_links(topology, demand.largest_chunk)
        return cls(demand.kind, topology, sizes, longest)

    @cached_property
    def reverse_links(self) -> NDArray[np.int32]:
        reverse_links = self.topology.reverse_links
        if reverse_links is None:
            raise InputError(f"{self.topology.name}: some links have none the other way for sums")
        return reverse_links

    def rounds(self, slot: int) -> int:
        """After how many rounds even the longest transfer of the first of them has ended."""
        return 1 - (-int(self.longest.max(initial=0)) // slot)

    def turned(self, entries: _Entries, span: int) -> NDArray[np.int64]:
        """When the sums start that entries are if run backwards from `span` on."""
        start: NDArray[np.int64] = span - entries.start - self.longest[entries.link]
        return start

    def taken(self, entries: _Entries) -> NDArray[np.int64]:
        """How long entries take."""
        return of_rows(self.topology, self.bytes, entries.chunk, entries.link)
