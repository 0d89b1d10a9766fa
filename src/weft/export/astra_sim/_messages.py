"""Transfers as messages of a simulator: rows that can be cut where they cross nodes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from weft.algorithm import Algorithm, Routes
from weft.arrays import Bool, Int32, Int64
from weft.formats.limits import standard_columns
from weft.ragged import lengths_of, offsets_of, owners, positions, ranges


@dataclass(frozen=True, eq=False)
class Rows:
    """Messages in an order in which they could run one after the other.

    Attributes
    ----------
    chunk, src, dst, reduce
        As in `Transfers`; nodes may be switches.
    bytes
        Of each message.
    reads, writes
        Places on `src` and `dst`, numbered from 0 over all nodes.
    places
        How many places there are.
    route
        Number in `routes`; -1 where a row stays on its NPU.
    dep_offsets, deps
        Rows that must have ended, as in `Transfers`; None if there are no such.
    start
        When it is planned to enter its first link, in picoseconds; None if untimed.
    ready
        When what it sends is planned to be there; never after `start`. Zeros if untimed.
    fresh
        Whether it sends what was there at the start.
    """

    chunk: Int32
    src: Int32
    dst: Int32
    reduce: Bool
    bytes: Int64
    reads: Int32
    writes: Int32
    places: int
    route: Int32
    routes: Routes
    dep_offsets: Int64 | None
    deps: Int64 | None
    start: Int64 | None
    ready: Int64
    fresh: Bool

    def __len__(self) -> int:
        return len(self.chunk)

    @property
    def local(self) -> Bool:
        return self.route < 0

    def taken(
        self, rows: Int64, became: Int64, waiting: Bool | None = None, **changed: Any
    ) -> Rows:
        """Some of the rows, each as often as it is named, but for the columns that `changed` has.

        ``became[i]`` are the new numbers of row i, all of which are waited for where it was; only
        those of the new rows wait that are `waiting`, if this is given.
        """
        for field in fields(self):
            column = getattr(self, field.name)
            if isinstance(column, np.ndarray) and not field.name.startswith("dep"):
                changed.setdefault(field.name, column[rows])
        if self.dep_offsets is not None and self.deps is not None:
            waits = lengths_of(self.dep_offsets, rows) * (1 if waiting is None else waiting)
            changed["deps"] = became[self.deps[ranges(self.dep_offsets[rows], waits)]].reshape(-1)
            changed["dep_offsets"] = offsets_of(waits * became.shape[1])
        return replace(self, **changed)


@dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces of each route: those of route r are offsets[r] .. offsets[r + 1] - 1."""

    offsets: Int64
    src: Int32
    dst: Int32
    routes: Routes  # of each piece


@dataclass(frozen=True, eq=False)
class Cut:
    """Which piece of which row each message is."""

    owner: Int64
    piece: Int64  # -1: a row that stays on its NPU
    first: Bool
    last: Bool


def rows_of(algorithm: Algorithm, route: Int32, routes: Routes) -> Rows:
    """The rows of an algorithm over the given routes."""
    table = standard_columns(algorithm.transfers)
    reads, writes, places = _places(table.src_place, table.dst_place, algorithm)
    source, ready = _sources(table.src, table.dst, reads, writes, table.end)
    return Rows(
        table.chunk,
        table.src,
        table.dst,
        table.reduce,
        algorithm.chunks.bytes[table.chunk],
        reads,
        writes,
        places,
        np.where(table.src == table.dst, np.int32(-1), route).astype(np.int32),
        routes,
        table.dep_offsets,
        table.deps,
        table.start,
        ready,
        ~source,
    )


def _places(
    src_place: Int32 | None, dst_place: Int32 | None, algorithm: Algorithm
) -> tuple[Int32, Int32, int]:
    """Places as small numbers: a chunk's HOME has the chunk's, others come after all chunks."""
    chunk = algorithm.transfers.chunk.astype(np.int32)
    chunks = len(algorithm.chunks)
    reads = chunk if src_place is None else src_place
    writes = chunk if dst_place is None else dst_place
    far, number = np.unique(np.concatenate([reads, writes]), return_inverse=True)
    home = int(np.searchsorted(far, chunks))
    small = np.where(
        number < home, np.concatenate([reads, writes]), number.reshape(-1) - home + chunks
    ).astype(np.int32)
    return small[: len(chunk)], small[len(chunk) :], chunks + len(far) - home


def _sources(
    src: Int32, dst: Int32, reads: Int32, writes: Int32, end: Int64 | None
) -> tuple[Bool, Int64]:
    """Whether an earlier row wrote what each row reads, and when the last of those ended."""
    rows = len(src)
    width = int(max(reads.max(initial=0), writes.max(initial=0))) + 1
    spots = np.concatenate([dst.astype(np.int64) * width + writes, src * np.int64(width) + reads])
    spot = np.unique(spots, return_inverse=True)[1].reshape(-1)
    written = spot[:rows] * np.int64(rows + 1) + np.arange(rows)
    order = np.argsort(written, kind="stable")
    wanted = spot[rows:] * np.int64(rows + 1) + np.arange(rows)
    before = np.searchsorted(written[order], wanted) - 1
    at = order[np.maximum(before, 0)] if rows else before
    found = (before >= 0) & (spot[:rows][at] == spot[rows:])
    if end is None:
        return found, np.zeros(rows, dtype=np.int64)
    latest = running_max(end[order], spot[:rows][order])
    return found, np.where(found, latest[np.maximum(before, 0)] if rows else end, 0)


def running_max(values: Int64, segment: Int64) -> Int64:
    """The largest value so far in each segment; segments are ascending, one after the other."""
    known, rank = np.unique(values, return_inverse=True)
    base = segment.astype(np.int64) * len(known)
    largest: Int64 = known[np.maximum.accumulate(base + rank.reshape(-1)) - base]
    return largest


def cut(rows: Rows, pieces: Pieces) -> tuple[Rows, Cut]:
    """Each row as a chain of messages, one a piece of its route, kept at a place of its own."""
    begins = np.where(rows.local, 0, pieces.offsets[rows.route])
    counts = np.where(rows.local, 1, pieces.offsets[rows.route + 1] - begins)
    owner, position = owners(counts), positions(counts)
    local = rows.local[owner]
    piece = np.where(local, -1, begins[owner] + position)
    first, last = position == 0, position == counts[owner] - 1
    writes = rows.writes[owner].copy()
    writes[~last] = rows.places + np.arange(np.count_nonzero(~last), dtype=np.int32)
    reads = rows.reads[owner].copy()
    reads[1:][~first[1:]] = writes[:-1][~first[1:]]
    messages = rows.taken(
        owner,
        np.cumsum(counts)[:, None] - 1,
        first | last,  # a chain waits at both of its ends, for the ends of other chains
        src=np.where(local, rows.src[owner], pieces.src[piece] if len(pieces.src) else 0),
        dst=np.where(local, rows.dst[owner], pieces.dst[piece] if len(pieces.dst) else 0),
        reduce=rows.reduce[owner] & last,
        reads=reads,
        writes=writes,
        places=rows.places + int(np.count_nonzero(~last)),
        route=piece.astype(np.int32),
        routes=pieces.routes,
        fresh=rows.fresh[owner] & first,
    )
    return messages, Cut(owner, piece, first, last)


def split(rows: Rows, count: int) -> Rows:
    """Each row as `count` messages that follow each other, with places of their own.

    A row of fewer bytes than that makes as many messages of at least one byte.
    """
    if count == 1:
        return rows
    owner = np.repeat(np.arange(len(rows), dtype=np.int64), count)
    part = np.tile(np.arange(count, dtype=np.int64), len(rows))
    size = rows.bytes[owner]
    return rows.taken(
        owner,
        np.arange(len(owner)).reshape(-1, count),
        chunk=(rows.chunk[owner] * count + part).astype(np.int32),
        bytes=np.maximum(size * (part + 1) // count - size * part // count, 1),
        reads=(rows.reads[owner] * count + part).astype(np.int32),
        writes=(rows.writes[owner] * count + part).astype(np.int32),
        places=rows.places * count,
        start=None if rows.start is None else rows.start[owner] + part,  # only the order matters
    )


def merged(messages: Rows, same: Int64) -> Rows:
    """Messages without those that another carries: message m is carried by same[m] <= m."""
    kept = same == np.arange(len(messages))
    number = np.cumsum(kept) - 1
    place = np.arange(messages.places, dtype=np.int32)
    place[messages.writes[~kept]] = messages.writes[same[~kept]]
    reads = place[messages.reads[kept]]
    return messages.taken(np.flatnonzero(kept), number[same][:, None], reads=reads)
