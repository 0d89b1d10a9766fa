"""Rows of a symmetric All-to-All on a network that lost some links, and what makes up for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weft.algorithm.repaired import Patched, crossing_failed, durations_of, moves_of, topology_of
from weft.algorithm.symmetric import SymmetricRows, check_numbers
from weft.algorithm.transfers import Transfers
from weft.collective import Collective
from weft.topology.links import links_between
from weft.topology.model import Topology
from weft.topology.translations import Translations

if TYPE_CHECKING:
    from weft.algorithm.model import Algorithm

Numbers = NDArray[np.int64]


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
        return int((self.start + durations_of(algorithm, self.chunk, self.link)).max(initial=0))

    def _listed(
        self, algorithm: Algorithm, rows: Numbers, by: Numbers, patch: NDArray[np.intp]
    ) -> Transfers:
        """Some rows of the base, each moved by an NPU, and some of the patch, in order of start."""
        topology, moves, demand = topology_of(algorithm), moves_of(algorithm), algorithm.demands[0]
        check_numbers(demand)
        keys = moved_chunks(self.base, moves, demand.chunks_per_share, rows, by)
        there = np.flatnonzero(~np.isin(keys, lost_chunks(self.base, topology, demand)))
        rows, by = rows[there], by[there]
        src, dst = moves.moved(self.base.src[rows], by), moves.moved(self.base.dst[rows], by)
        chunk = np.concatenate([demand_chunks(keys[there], topology, demand), self.chunk[patch]])
        link = np.concatenate([links_between(topology, src, dst), self.link[patch]])
        start = np.concatenate([self.base.start[rows], self.start[patch]])
        end = start + durations_of(algorithm, chunk, link)
        copies = np.zeros(len(chunk), dtype=np.bool_)
        return Transfers.over_links(topology, chunk, link, copies, start, end)


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
