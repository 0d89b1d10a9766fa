"""Rows of symmetric algorithms on networks that lost some links, and what makes up for them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.rows import CompactRows
from weft.algorithm.symmetric import SymmetricRows, check_numbers
from weft.algorithm.transfers import Routes, Transfers
from weft.collective import Collective
from weft.ragged import lengths_of, offsets_of, places
from weft.topology.durations import of_rows, over_links
from weft.topology.links import links_between
from weft.topology.model import Topology
from weft.topology.translations import Translations

if TYPE_CHECKING:
    from weft.algorithm.model import Algorithm

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Patched(CompactRows):
    """What is left of a symmetric algorithm of the whole network, and a patch; how to list them."""

    base: SymmetricRows
    count: int
    chunk: NDArray[Any]
    link: NDArray[np.int32]
    start: Numbers

    def of_npu(self, algorithm: Algorithm, npu: int) -> Transfers:
        moves, here = _moves_of(algorithm), np.array([npu])
        by = np.stack([moves.between(self.base.src, here), moves.between(self.base.dst, here)])
        rows = np.tile(np.arange(len(self.base.chunk)), 2)
        topology = _topology_of(algorithm)
        mine = np.flatnonzero((topology.src[self.link] == npu) | (topology.dst[self.link] == npu))
        return self._listed(algorithm, rows, by.reshape(-1), mine)

    def table(self, algorithm: Algorithm) -> tuple[Transfers, Routes]:
        topology, count = _topology_of(algorithm), len(self.base.chunk)
        rows = np.repeat(np.arange(count), topology.npus)
        by = np.tile(np.arange(topology.npus), count)
        listed = self._listed(algorithm, rows, by, np.arange(len(self.chunk)))
        return listed, Routes.of_links(topology.links)

    def described(self) -> dict[str, Any]:
        own, patch = len(self.base.chunk), len(self.chunk)
        return {"form": "rows of one NPU's chunks, repaired", "own_rows": own, "patch_rows": patch}

    @abstractmethod
    def _listed(
        self, algorithm: Algorithm, rows: Numbers, by: Numbers, patch: NDArray[np.intp]
    ) -> Transfers:
        """Some rows of the base, each moved by an NPU, and some of the patch."""


@dataclass(frozen=True, eq=False, repr=False)
class RepairedRows(Patched):
    """A symmetric All-Gather of `Topology.whole`, less what failures take of it, and a patch.

    The network has no switches, and the group is all NPUs that are left, in ascending order. A row
    of `base`, moved by NPU t, is there if t is, and if every link is that t's chunk crosses on its
    way there. What it does not bring, the patch does, after all of `base`.

    A Reduce-Scatter is the same run backwards: what starts at s over a link ends over the link's
    reverse (same speed, the other way) as long before the end, counted with the largest chunk, as s
    is after the beginning. An All-Reduce is the one, then the other. The collective's kind says
    which.

    Attributes
    ----------
    base
        An All-Gather of as many pieces a share, on the whole network.
    count
        How many transfers the All-Gather has.
    chunk, link, start
        Of the patch: chunks of the collective (int32), links of the network (int32), picoseconds
        (int64).
    """

    kind = "repaired"

    both: bool

    def __len__(self) -> int:
        return self.count * (1 + self.both)

    def time(self, algorithm: Algorithm) -> int:
        kind = algorithm.demands[0].kind
        gathered = int((self.start + _durations_of(algorithm, self.chunk, self.link)).max())
        if kind == "all-gather":
            return gathered
        turned = self.turned_at(algorithm)
        return turned if kind == "reduce-scatter" else turned + gathered

    def turned_at(self, algorithm: Algorithm) -> int:
        """When the All-Gather would end if every chunk were as long as the largest."""
        topology, largest = _topology_of(algorithm), algorithm.demands[0].largest_chunk
        return int((self.start + over_links(topology, largest)[self.link]).max())

    def _listed(
        self, algorithm: Algorithm, rows: Numbers, by: Numbers, patch: NDArray[np.intp]
    ) -> Transfers:
        """Some rows of the base, each moved by an NPU, and some of the patch."""
        topology, moves = _topology_of(algorithm), _moves_of(algorithm)
        npus, pieces = topology.npus, algorithm.demands[0].chunks_per_share
        src, dst = moves.moved(self.base.src[rows], by), moves.moved(self.base.dst[rows], by)
        piece = self.base.chunk[rows].astype(np.int64)
        keys = (by * pieces + piece) * npus + dst
        lost = missing_deliveries(self.base, topology, pieces)
        left = topology.ranks >= 0
        there = np.flatnonzero(left[by] & left[dst] & ~np.isin(keys, lost))
        owner = topology.ranks[by[there]]
        chunk = np.concatenate([owner * pieces + piece[there], self.chunk[patch]])
        link = np.concatenate([links_between(topology, src[there], dst[there]), self.link[patch]])
        start = np.concatenate([self.base.start[rows[there]], self.start[patch]])
        return self._turned(algorithm, chunk, link, start)

    def _turned(
        self, algorithm: Algorithm, chunk: Numbers, link: Numbers, start: Numbers
    ) -> Transfers:
        """Rows of the All-Gather as those of the collective, in order of start."""
        topology, kind = _topology_of(algorithm), algorithm.demands[0].kind
        taken = _durations_of(algorithm, chunk, link)
        halves: list[tuple[Numbers, Numbers, bool]] = []  # link, start, reduce
        turned = 0
        if kind != "all-gather":
            turned = self.turned_at(algorithm)
            reverse = links_between(topology, topology.dst[link], topology.src[link])
            halves.append((reverse, turned - start - taken, True))
        if kind != "reduce-scatter":
            halves.append((link, turned + start, False))
        lane, begin = (np.concatenate(column) for column in list(zip(*halves, strict=True))[:2])
        adds = np.repeat([adds for _, _, adds in halves], len(chunk))
        end = begin + np.tile(taken, len(halves))
        return Transfers.over_links(topology, np.tile(chunk, len(halves)), lane, adds, begin, end)


@dataclass(frozen=True, eq=False, repr=False)
class RepairedExchange(Patched):
    """A symmetric All-to-All of `Topology.whole`, less what failures take of it, and a patch.

    The network has no switches, and the group is all NPUs that are left, in ascending order. A
    chunk of `base` of which any row would cross a link that is not there is lost: it has no rows
    in `base` at all. Lost chunks between NPUs that are left go another way, in the patch, after
    all of `base`.

    Attributes
    ----------
    base
        An All-to-All of as many pieces a share, on the whole network.
    count
        How many transfers there are.
    chunk, link, start
        Of the patch, in ascending order of start: chunks of the collective (int64: there may be
        more than int32 can count), links of the network (int32), picoseconds (int64).
    """

    kind = "repaired-exchange"

    def __len__(self) -> int:
        return self.count

    def time(self, algorithm: Algorithm) -> int:
        return int((self.start + _durations_of(algorithm, self.chunk, self.link)).max(initial=0))

    def _listed(
        self, algorithm: Algorithm, rows: Numbers, by: Numbers, patch: NDArray[np.intp]
    ) -> Transfers:
        """Some rows of the base, each moved by an NPU, and some of the patch, in order of start."""
        topology, moves, demand = (
            _topology_of(algorithm),
            _moves_of(algorithm),
            algorithm.demands[0],
        )
        check_numbers(demand)
        keys = moved_chunks(self.base, moves, demand.chunks_per_share, rows, by)
        there = np.flatnonzero(~np.isin(keys, lost_chunks(self.base, topology, demand)))
        rows, by = rows[there], by[there]
        src, dst = moves.moved(self.base.src[rows], by), moves.moved(self.base.dst[rows], by)
        chunk = np.concatenate([demand_chunks(keys[there], topology, demand), self.chunk[patch]])
        link = np.concatenate([links_between(topology, src, dst), self.link[patch]])
        start = np.concatenate([self.base.start[rows], self.start[patch]])
        end = start + _durations_of(algorithm, chunk, link)
        copies = np.zeros(len(chunk), dtype=np.bool_)
        return Transfers.over_links(topology, chunk, link, copies, start, end)


def missing_deliveries(base: SymmetricRows, topology: Topology, pieces: int) -> Numbers:
    """What NPUs that are left do not get of each other's pieces, ascending.

    Piece j of NPU t that NPU v does not get is ``(t * pieces + j) * npus + v``. A row that is lost
    for t takes with it all rows that pass on what it brings.
    """
    moves, npus = Translations.of(topology.require_whole()), topology.npus
    row, by = crossing_failed(base, moves, topology)
    children = _children(base, pieces, npus)
    found = [np.unique(row * npus + by)]
    while len(found[-1]):
        row, by = np.divmod(found[-1], npus)
        below = children[1][places(children[0], row)]
        found.append(np.unique(below * npus + np.repeat(by, lengths_of(children[0], row))))
    row, by = np.divmod(np.unique(np.concatenate(found)), npus)
    dst = moves.moved(base.dst[row], by)
    real = (topology.ranks[by] >= 0) & (topology.ranks[dst] >= 0)
    return np.sort(((by * pieces + base.chunk[row]) * npus + dst)[real])


def crossing_failed(
    base: SymmetricRows, moves: Translations, topology: Topology
) -> tuple[Numbers, Numbers]:
    """Rows of the base, and what each is moved by, that would cross a link that is not there."""
    whole = moves.topology
    gone = np.flatnonzero(links_between(topology, whole.src, whole.dst) < 0)
    towards = moves.direction(whole.src[gone], whole.dst[gone])
    of_row = moves.direction(base.src, base.dst)
    rows, by = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for way in np.unique(towards).tolist():
        mine, failed = np.flatnonzero(of_row == way), gone[towards == way]
        rows.append(np.repeat(mine, len(failed)))
        by.append(
            moves.between(
                np.repeat(base.src[mine], len(failed)), np.tile(whole.src[failed], len(mine))
            )
        )
    return np.concatenate(rows), np.concatenate(by)


def _children(base: SymmetricRows, pieces: int, npus: int) -> tuple[Numbers, Numbers]:
    """The rows that pass on what each row brings: offsets, and rows."""
    bringer = np.full(pieces * npus, len(base.chunk))
    bringer[base.chunk.astype(np.int64) * npus + base.dst] = np.arange(len(base.chunk))
    after = bringer[base.chunk.astype(np.int64) * npus + base.src]
    # In order of start nothing is passed on before it is brought, whatever a file says.
    after = np.where(after < np.arange(len(after)), after, len(after))
    counts = np.bincount(after, minlength=len(base.chunk) + 1)
    return offsets_of(counts), np.argsort(after, kind="stable")


def moved_chunks(
    base: SymmetricRows, moves: Translations, pieces: int, rows: Numbers, by: Numbers
) -> Numbers:
    """Numbers, in the whole network's All-to-All, of the chunks of rows, each moved by an NPU."""
    share, piece = np.divmod(base.chunk[rows].astype(np.int64), pieces)
    return (by * base.npus + moves.moved(share, by)) * pieces + piece


def lost_chunks(base: SymmetricRows, topology: Topology, demand: Collective) -> Numbers:
    """The whole network's chunks of which some row would cross what is not there, ascending."""
    moves = Translations.of(topology.require_whole())
    rows, by = crossing_failed(base, moves, topology)
    return np.unique(moved_chunks(base, moves, demand.chunks_per_share, rows, by))


def demand_chunks(keys: Numbers, topology: Topology, demand: Collective) -> Numbers:
    """What the whole network's chunks are among those of the collective of who is left.

    Those of which an end is not left are -1.
    """
    pair, piece = np.divmod(keys, demand.chunks_per_share)
    src, dst = np.divmod(pair, topology.npus)
    rank = topology.ranks
    number = (rank[src] * demand.ranks + rank[dst]) * demand.chunks_per_share + piece
    return np.where((rank[src] >= 0) & (rank[dst] >= 0), number, -1)


def _topology_of(algorithm: Algorithm) -> Topology:
    return algorithm.require_timing().topology


def _moves_of(algorithm: Algorithm) -> Translations:
    return Translations.of(_topology_of(algorithm).require_whole())


def _durations_of(algorithm: Algorithm, chunk: NDArray[Any], link: NDArray[Any]) -> Numbers:
    """How long these chunks take over these links."""
    sizes = algorithm.demands[0].piece_bytes  # of one buffer; in an All-to-All each NPU has its own
    return of_rows(_topology_of(algorithm), sizes, chunk % len(sizes), link)
