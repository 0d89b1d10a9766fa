"""The patterns Weft knows by name: each says which chunks a collective has.

A pattern turns (group, boundaries of its shares, root) into a table of chunks. To add one, write
a function here and put it in `PATTERNS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.collective.chunks import Chunks, Sets, singles

Group = NDArray[np.int32]
Marks = NDArray[np.int64]
Build = Callable[[Group, int, Marks], Chunks]


@dataclass(frozen=True)
class Pattern:
    """A named collective.

    Attributes
    ----------
    build
        ``build(group, root_rank, boundaries of a buffer's shares)`` gives the chunks; None if
        the name alone does not say them, and the user must.
    shares
        In how many shares the buffer of so many NPUs is cut.
    rooted
        Whether one NPU is special.
    own_buffers
        Whether every NPU has other data in its buffer, as in All-to-All; else all buffers are
        parts or copies of the same.
    any_cut
        Whether the buffer may be cut in any number of parts, not only in shares.
    bus_shares
        How often each NPU's link carries what all others have of the buffer, (n - 1) / n of it, in
        the bus bandwidth of nccl-tests; 0 if that is the buffer itself.
    """

    build: Build | None
    shares: Callable[[int], int]
    rooted: bool = False
    own_buffers: bool = False
    any_cut: bool = False
    bus_shares: int = 0

    def parts(self, ranks: int) -> int:
        """How many parts there are before they are cut in chunks."""
        return self.shares(ranks) * (ranks if self.own_buffers else 1)

    def bus_factor(self, ranks: int) -> float:
        """Bus bandwidth over algorithm bandwidth, as nccl-tests defines it."""
        return self.bus_shares * (ranks - 1) / ranks if self.bus_shares else 1.0


def _of_one_buffer(start: str, end: str, *, reduce: bool = False) -> Build:
    """Chunks of one buffer: each NPU's share at the start or the end, or with all, or the root."""

    def build(group: Group, root: int, marks: Marks) -> Chunks:
        pieces, used = len(marks) - 1, {start, end}
        numbers: dict[str, int | NDArray[np.intp]]
        if "each" in used:
            owner = np.repeat(np.arange(len(group)), pieces // len(group))
            numbers = {"each": owner, "root": root, "all": len(group)}
            sets = singles(group).and_all() if "all" in used else singles(group)
        else:
            listed = [("root", group[root : root + 1]), ("all", np.sort(group))]
            listed = [(name, members) for name, members in listed if name in used]
            numbers = {name: number for number, (name, _) in enumerate(listed)}
            sets = Sets.of([members for _, members in listed])
        pre, post = (
            np.broadcast_to(np.asarray(numbers[name], dtype=np.int32), pieces)
            for name in (start, end)
        )
        return Chunks.build(np.diff(marks), marks[:-1], pre, post, sets, reduce=reduce)

    return build


def _between(targets: Callable[[int], NDArray[np.intp]]) -> Build:
    """Ranks cut their buffers alike; of n ranks, share s of rank r goes to ``targets(n)[r, s]``."""

    def build(group: Group, _root: int, marks: Marks) -> Chunks:
        to, pieces = targets(len(group)), len(marks) - 1
        senders, shares = to.shape
        pre = np.repeat(np.arange(senders, dtype=np.int32), pieces)
        post = np.repeat(to.reshape(-1), pieces // shares).astype(np.int32)
        sizes, offsets = np.tile(np.diff(marks), senders), np.tile(marks[:-1], senders)
        return Chunks.build(sizes, offsets, pre, post, singles(group))

    return build


def _neighbors(n: int) -> NDArray[np.intp]:
    steps = np.array([-1, 1] if n > 2 else [1])
    around: NDArray[np.intp] = (np.arange(n)[:, None] + steps) % n
    return around


def _once(_n: int) -> int:
    return 1


def _a_rank(n: int) -> int:
    return n


_ALL_GATHER = _of_one_buffer("each", "all")
_REDUCE_SCATTER = _of_one_buffer("all", "each", reduce=True)
_ALL_REDUCE = _of_one_buffer("all", "all", reduce=True)
_ALL_TO_ALL = _between(lambda n: np.tile(np.arange(n), (n, 1)))
_SEND_RECV = _between(lambda n: (np.arange(n)[:, None] + 1) % n)
_PIPELINE = _between(lambda n: np.arange(1, n)[:, None])

PATTERNS = {
    "all-gather": Pattern(_ALL_GATHER, _a_rank, bus_shares=1),
    "reduce-scatter": Pattern(_REDUCE_SCATTER, _a_rank, bus_shares=1),
    "all-reduce": Pattern(_ALL_REDUCE, _a_rank, any_cut=True, bus_shares=2),
    "broadcast": Pattern(_of_one_buffer("root", "all"), _once, rooted=True),
    "reduce": Pattern(_of_one_buffer("all", "root", reduce=True), _once, rooted=True),
    "gather": Pattern(_of_one_buffer("each", "root"), _a_rank, rooted=True, bus_shares=1),
    "scatter": Pattern(_of_one_buffer("root", "each"), _a_rank, rooted=True, bus_shares=1),
    "all-to-all": Pattern(_ALL_TO_ALL, _a_rank, own_buffers=True, bus_shares=1),
    "send-recv": Pattern(_SEND_RECV, _once, own_buffers=True),
    "pipeline": Pattern(_PIPELINE, _once, own_buffers=True),
    "neighbor-exchange": Pattern(
        _between(_neighbors), lambda n: 2 if n > 2 else 1, own_buffers=True
    ),
    "all-to-allv": Pattern(None, _a_rank, own_buffers=True, bus_shares=1),
    "permutation": Pattern(None, _once, own_buffers=True),
    "custom": Pattern(None, _once, own_buffers=True),
}
