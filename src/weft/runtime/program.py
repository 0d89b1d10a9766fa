"""What each rank does: sends, receives, sums and copies, what they wait for, in which memory."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm
from weft.errors import InputError
from weft.runtime.layout import INPUT, OUTPUT, Layout, lay_out
from weft.runtime.order import Order, Share, Uses
from weft.values import Value

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]


class What(IntEnum):
    """What a row of a program does, as in the core."""

    SEND = 0
    RECEIVE = 1
    LOCAL = 2


KINDS = ("input", "output", "scratch")


@dataclass(frozen=True, eq=False)
class Program(Value):
    """What one rank does, whatever the length of the buffers, as columns.

    Rows stand in an order on which all ranks agree; what a row waits for stands before it. Sends
    of one `queue` leave in this order, and what comes from one peer comes in it.

    Memory is named by a kind (0 input, 1 output, 2 scratch) and an index: a chunk, or a slot of
    scratch. Cells are pieces of memory that are written; a row that reads one waits until it was
    written `read_after` times, a row that writes one until it was written `written_after` times
    and read `free_after` times.

    Attributes
    ----------
    npu
        The NPU that the rank is.
    what, peer, queue
        See `What`; the NPU at the other end; which sends share a way out (int32).
    chunk, number
        What moves, and its row in the algorithm's table: -1 for copies that are added (int64).
    route
        The route that it takes, by number in the algorithm's `routes`; -1 if none is known (int64).
    from_kind, from_index, base_kind, base_index, to_kind, to_index
        What a row reads, what it adds to, and where it puts the result (int64).
    combines
        Whether it adds, instead of copying (bool).
    read_cell, write_cell, read_after, written_after, free_after
        What it waits for (int32).
    after_offsets, after
        Rows that must be over before a row is sent, as the algorithm asks (int64).
    slot, slot_chunk
        The chunks that each slot of scratch ever holds (int64).
    start, end
        When the plan has the row, in picoseconds; None where there is no plan (int64).
    """

    npu: int
    what: Int32
    peer: Int32
    queue: Int32
    chunk: Int64
    number: Int64
    route: Int64
    from_kind: Int64
    from_index: Int64
    base_kind: Int64
    base_index: Int64
    to_kind: Int64
    to_index: Int64
    combines: Bools
    read_cell: Int32
    write_cell: Int32
    read_after: Int32
    written_after: Int32
    free_after: Int32
    after_offsets: Int64
    after: Int64
    slot: Int64
    slot_chunk: Int64
    start: Int64 | None
    end: Int64 | None

    def __len__(self) -> int:
        return len(self.what)

    def described(self, row: int) -> str:
        """A row in words."""
        chunk, peer = int(self.chunk[row]), int(self.peer[row])
        source = self._place(self.from_kind, self.from_index, row)
        target = self._place(self.to_kind, self.to_index, row)
        what = self.what[row]
        if what == What.SEND:
            return f"send chunk {chunk} from {source} to NPU {peer}"
        does = "add" if self.combines[row] else "put"
        if what == What.LOCAL:
            return f"{does} chunk {chunk} from {source} to {target}"
        base = self._place(self.base_kind, self.base_index, row)
        to = f"{base} into {target}" if self.combines[row] and base != target else target
        return f"{does} chunk {chunk} from NPU {peer} to {to}"

    def to_dict(self, limit: int) -> dict[str, Any]:
        """What it does, for machines, with at most `limit` of the rows."""
        names = {What.SEND: "send", What.RECEIVE: "receive", What.LOCAL: "local"}
        return {
            "npu": self.npu,
            "scratch_slots": int(self.slot.max(initial=-1)) + 1,
            "steps": [
                {
                    "what": names[What(int(self.what[row]))],
                    "chunk": int(self.chunk[row]),
                    "peer": int(self.peer[row]),
                    "does": self.described(row),
                    "waits_for": self.waits(row),
                }
                for row in range(min(len(self), limit))
            ],
            "more": max(len(self) - limit, 0),
        }

    def _place(self, kind: Int64, index: Int64, row: int) -> str:
        return f"{KINDS[int(kind[row])]}[{int(index[row])}]"

    def waits(self, row: int) -> str:
        """What a row waits for, in words."""
        said = []
        if self.what[row] != What.RECEIVE and self.read_after[row] > 0:
            said.append(f"cell {self.read_cell[row]} written {self.read_after[row]}x")
        if self.what[row] != What.SEND:
            for count, word in ((self.written_after, "written"), (self.free_after, "read")):
                if count[row] > 0:
                    said.append(f"cell {self.write_cell[row]} {word} {count[row]}x")
        named = self.after[self.after_offsets[row] : self.after_offsets[row + 1]]
        said += [f"step {int(other)} over" for other in named.tolist()]
        return ", ".join(said)


class Programs:
    """The programs of an algorithm, each made when it is first asked for.

    Parameters
    ----------
    algorithm
        What runs; it is not judged here.
    reproducible
        Whether sums keep the order of the plan, so that their last bits are always the same,
        instead of adding what comes first.
    """

    def __init__(self, algorithm: Algorithm, *, reproducible: bool = False) -> None:
        self.algorithm, self.reproducible = algorithm, reproducible
        self._order = Order(algorithm)
        self._made: dict[int, Program] = {}

    @cached_property
    def npus(self) -> int:
        """How many numbers of NPUs there are: ranks are NPUs, those that only relay too."""
        topology = self.algorithm.topology
        named = [max(demand.group) + 1 for demand in self.algorithm.demands]
        if topology is not None:
            return int(max(*named, topology.npus))
        rows = self.algorithm.transfers
        ends = (int(side.max(initial=-1)) + 1 for side in (rows.src, rows.dst))
        return int(max(*named, *ends))

    @cached_property
    def digest(self) -> bytes:
        """The same for the same algorithm, run the same way, on every rank."""
        found = hashlib.sha256(repr(self.reproducible).encode())
        _feed(found, (self.algorithm.demands, self.algorithm.rows))
        return found.digest()

    def of(self, npu: int) -> Program:
        """What an NPU does."""
        if not 0 <= npu < self.npus:
            raise InputError(f"there is no NPU {npu}; they are 0 to {self.npus - 1}")
        if npu not in self._made:
            share = self._order.share(npu)
            layout = lay_out(share, self.algorithm.chunks, one_by_one=self.reproducible)
            self._made[npu] = _Assembly(share, layout, one_by_one=self.reproducible).program()
        return self._made[npu]


def _feed(digest: Any, value: object) -> None:
    """Feed a value of columns, numbers and texts to a digest, with its structure."""
    digest.update(type(value).__name__.encode() + b"(")
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value):
        for field in fields(value):
            digest.update(field.name.encode() + b"=")
            _feed(digest, getattr(value, field.name))
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for one in value:
            _feed(digest, one)
    else:
        digest.update(repr(value).encode())
    digest.update(b")")


class _Assembly:
    """A share and its layout as one program: copies put in, waits counted."""

    def __init__(self, share: Share, layout: Layout, *, one_by_one: bool) -> None:
        self.share, self.layout, self.one_by_one = share, layout, one_by_one
        self.count = len(share.rows)
        self.finals, self.final_places, self.final_uses = layout.finals
        fills, finals = len(layout.fills), len(self.finals)
        self.total = self.count + fills + finals
        # A filling copy goes right before the row it is for, a copy to the output to the end.
        turn = np.concatenate(
            [
                2 * np.arange(self.count) + 1,
                2 * layout.fills,
                np.full(finals, 2 * self.count + 1),
            ]
        )
        self.by = np.argsort(turn, kind="stable")

    def program(self) -> Program:
        layout, share, rows = self.layout, self.share, self.share.rows
        fills = layout.fills
        own = np.where(layout.reads, np.where(layout.writes, What.LOCAL, What.SEND), What.RECEIVE)
        more = len(fills) + len(self.finals)
        what = self._joined(own, np.full(more, What.LOCAL))
        peer = self._joined(np.where(layout.reads, rows.dst, rows.src), np.full(more, -1))
        chunk = self._joined(rows.chunk, rows.chunk[fills], self.finals)
        target = layout.target.at(fills)
        from_kind = self._joined(
            layout.source.kind, np.full(len(fills), INPUT), self.final_places.kind
        )
        from_index = self._joined(layout.source.index, rows.chunk[fills], self.final_places.index)
        to_kind = self._joined(layout.target.kind, target.kind, np.full(len(self.finals), OUTPUT))
        to_index = self._joined(layout.target.index, target.index, self.finals)
        base = layout.opens
        base_kind = np.where(base, INPUT, layout.target.kind)
        base_index = np.where(base, rows.chunk, layout.target.index)
        filler = np.zeros(more, dtype=np.int64)
        combines = self._joined(layout.adds, filler).astype(np.bool_)
        opens = self._joined(layout.opens, filler).astype(np.bool_)
        none = np.full(len(self.finals), -1)
        read = self._joined(layout.read_use, np.full(len(fills), -1), self.final_uses)
        write = self._joined(layout.write_use, layout.write_use[fills], none)
        read_cell, write_cell, waits = self._waits(read, write, combines & ~opens)
        after_offsets, after = self._after()
        return Program(
            share.npu,
            what.astype(np.int32),
            np.where(what == What.LOCAL, -1, peer).astype(np.int32),
            self._queues(what, peer),
            chunk,
            self._joined(share.number, np.full(more, -1)),
            self._joined(self._routes(), np.full(more, -1)),
            from_kind,
            from_index,
            self._joined(base_kind, filler),
            self._joined(base_index, filler),
            to_kind,
            to_index,
            combines,
            read_cell,
            write_cell,
            *waits,
            after_offsets,
            after,
            *layout.slots,
            self._times(rows.start),
            self._times(rows.end),
        )

    def _routes(self) -> Int64:
        rows = self.share.rows
        none = np.full(self.count, -1)
        return none if rows.route is None else np.where(rows.src == rows.dst, none, rows.route)

    def _joined(self, *parts: NDArray[Any]) -> Int64:
        """Columns of rows, then of copies, in the order of the program."""
        return np.concatenate(parts).astype(np.int64)[self.by]

    def _times(self, times: Int64 | None) -> Int64 | None:
        if times is None:
            return None
        last = int(times.max(initial=0))
        return self._joined(times, times[self.layout.fills], np.full(len(self.finals), last))

    def _after(self) -> tuple[Int64, Int64]:
        """The dependencies, by places in the program."""
        place = np.empty(self.total, dtype=np.int64)
        place[self.by] = np.arange(self.total)
        counts = np.zeros(self.total, dtype=np.int64)
        counts[: self.count] = np.diff(self.share.after_offsets)
        offsets = np.concatenate([[0], np.cumsum(counts[self.by])])
        by_row = np.argsort(place[np.repeat(np.arange(self.total), counts)], kind="stable")
        return offsets, place[self.share.after[by_row]]

    def _queues(self, what: Int64, peer: Int64) -> Int32:
        """Sends that share a link, or a peer, share a queue, and so do receives."""
        port = self._joined(self.share.port, np.full(self.total - self.count, -1))
        queue = np.full(self.total, -1, dtype=np.int32)
        for kind in (What.SEND, What.RECEIVE):
            rows = np.flatnonzero(what == kind)
            queue[rows] = _together(peer[rows], port[rows])
        return queue

    def _waits(
        self, read: Int64, write: Int64, adds: Bools
    ) -> tuple[Int32, Int32, tuple[Int32, Int32, Int32]]:
        """Cells by number, and for each row how often they must have been written and read."""
        turn = np.concatenate([2 * np.arange(self.total), 2 * np.arange(self.total) + 1])
        cell = np.concatenate([read, write])
        used = np.flatnonzero(cell >= 0)
        by = used[np.lexsort((turn[used], cell[used]))]
        writes, row = by >= self.total, turn[by] // 2
        among = writes & adds[row] & (not self.one_by_one)
        written, was_read = Uses(cell[by], writes, among).counts()
        read_after, written_after, free_after = np.zeros((3, self.total), dtype=np.int32)
        read_after[row[~writes]] = written[~writes]
        written_after[row[writes]] = written[writes]
        free_after[row[writes]] = was_read[writes]
        numbers = np.full(2 * self.total, -1, dtype=np.int32)
        numbers[used] = np.unique(cell[used], return_inverse=True)[1].reshape(-1)
        counts = (read_after, written_after, free_after)
        return numbers[: self.total], numbers[self.total :], counts


def _together(peer: Int64, uplink: Int64) -> Int64:
    """Numbers so that rows with the same peer or the same link have the same."""
    group: dict[tuple[str, int], tuple[str, int]] = {}

    def root(key: tuple[str, int]) -> tuple[str, int]:
        while group.setdefault(key, key) != key:
            key = group[key]
        return key

    for to, link in sorted(set(zip(peer.tolist(), uplink.tolist(), strict=True))):
        ends = root(("peer", to)), root(("link", link)) if link >= 0 else root(("peer", to))
        group[max(ends)] = min(ends)
    numbers: dict[tuple[str, int], int] = {}
    of_peer = {
        to: numbers.setdefault(root(("peer", to)), len(numbers))
        for to in sorted(set(peer.tolist()))
    }
    return np.array([of_peer[to] for to in peer.tolist()], dtype=np.int64)
