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


def _one(_n: int) -> float:
    return 1.0


def _share(n: int) -> float:
    return (n - 1) / n


def _twice_share(n: int) -> float:
    return 2 * (n - 1) / n


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
    bus_factor
        Bus bandwidth over algorithm bandwidth for n NPUs, as nccl-tests defines it.
    """

    build: Build | None
    shares: Callable[[int], int]
    rooted: bool = False
    own_buffers: bool = False
    any_cut: bool = False
    bus_factor: Callable[[int], float] = _one

    def parts(self, ranks: int) -> int:
        """How many parts there are before they are cut in chunks."""
        return self.shares(ranks) * (ranks if self.own_buffers else 1)


def _each(group: Group, pieces: int) -> NDArray[np.int32]:
    """Number of the one-NPU set of each piece's owner: shares in order of rank."""
    return np.repeat(np.arange(len(group), dtype=np.int32), pieces // len(group))


def _constant(value: int, pieces: int) -> NDArray[np.int32]:
    return np.full(pieces, value, dtype=np.int32)


def _of_one_buffer(
    marks: Marks,
    pre: NDArray[np.int32],
    post: NDArray[np.int32],
    sets: Sets,
    *,
    reduce: bool,
) -> Chunks:
    return Chunks.build(np.diff(marks), marks[:-1], pre, post, sets, reduce=reduce)


def _all_gather(group: Group, _root: int, marks: Marks) -> Chunks:
    pieces = len(marks) - 1
    mine, everyone = _each(group, pieces), _constant(len(group), pieces)
    return _of_one_buffer(marks, mine, everyone, singles(group).and_all(), reduce=False)


def _reduce_scatter(group: Group, _root: int, marks: Marks) -> Chunks:
    pieces = len(marks) - 1
    mine, everyone = _each(group, pieces), _constant(len(group), pieces)
    return _of_one_buffer(marks, everyone, mine, singles(group).and_all(), reduce=True)


def _all_reduce(group: Group, _root: int, marks: Marks) -> Chunks:
    everyone = _constant(0, len(marks) - 1)
    return _of_one_buffer(marks, everyone, everyone, Sets.of([np.sort(group)]), reduce=True)


def _broadcast(group: Group, root: int, marks: Marks) -> Chunks:
    pieces = len(marks) - 1
    sets = Sets.of([group[root : root + 1], np.sort(group)])
    return _of_one_buffer(marks, _constant(0, pieces), _constant(1, pieces), sets, reduce=False)


def _reduce(group: Group, root: int, marks: Marks) -> Chunks:
    pieces = len(marks) - 1
    sets = Sets.of([group[root : root + 1], np.sort(group)])
    return _of_one_buffer(marks, _constant(1, pieces), _constant(0, pieces), sets, reduce=True)


def _scatter(group: Group, root: int, marks: Marks) -> Chunks:
    pieces = len(marks) - 1
    sets = singles(group)
    return _of_one_buffer(marks, _constant(root, pieces), _each(group, pieces), sets, reduce=False)


def _gather(group: Group, root: int, marks: Marks) -> Chunks:
    pieces = len(marks) - 1
    sets = singles(group)
    return _of_one_buffer(marks, _each(group, pieces), _constant(root, pieces), sets, reduce=False)


def _between(group: Group, marks: Marks, to: NDArray[np.intp], senders: int) -> Chunks:
    """The first `senders` ranks cut their buffers alike; share s of rank r goes to ``to[r, s]``."""
    pieces = len(marks) - 1
    each = pieces // to.shape[1]
    pre = np.repeat(np.arange(senders, dtype=np.int32), pieces)
    post = np.repeat(to[:senders].reshape(-1), each).astype(np.int32)
    sizes, offsets = np.tile(np.diff(marks), senders), np.tile(marks[:-1], senders)
    return Chunks.build(sizes, offsets, pre, post, singles(group), reduce=False)


def _all_to_all(group: Group, _root: int, marks: Marks) -> Chunks:
    n = len(group)
    return _between(group, marks, np.tile(np.arange(n), (n, 1)), n)


def _send_recv(group: Group, _root: int, marks: Marks) -> Chunks:
    n = len(group)
    return _between(group, marks, (np.arange(n)[:, None] + 1) % n, n)


def _pipeline(group: Group, _root: int, marks: Marks) -> Chunks:
    n = len(group)
    return _between(group, marks, np.arange(n)[:, None] + 1, n - 1)


def _neighbor_exchange(group: Group, _root: int, marks: Marks) -> Chunks:
    n = len(group)
    steps = np.array([-1, 1]) if n > 2 else np.array([1])
    return _between(group, marks, (np.arange(n)[:, None] + steps) % n, n)


def _once(_n: int) -> int:
    return 1


def _a_rank(n: int) -> int:
    return n


def _a_neighbor(n: int) -> int:
    return 2 if n > 2 else 1


PATTERNS = {
    "all-gather": Pattern(_all_gather, _a_rank, bus_factor=_share),
    "reduce-scatter": Pattern(_reduce_scatter, _a_rank, bus_factor=_share),
    "all-reduce": Pattern(_all_reduce, _a_rank, any_cut=True, bus_factor=_twice_share),
    "broadcast": Pattern(_broadcast, _once, rooted=True),
    "reduce": Pattern(_reduce, _once, rooted=True),
    "gather": Pattern(_gather, _a_rank, rooted=True, bus_factor=_share),
    "scatter": Pattern(_scatter, _a_rank, rooted=True, bus_factor=_share),
    "all-to-all": Pattern(_all_to_all, _a_rank, own_buffers=True, bus_factor=_share),
    "send-recv": Pattern(_send_recv, _once, own_buffers=True),
    "pipeline": Pattern(_pipeline, _once, own_buffers=True),
    "neighbor-exchange": Pattern(_neighbor_exchange, _a_neighbor, own_buffers=True),
    "all-to-allv": Pattern(None, _a_rank, own_buffers=True, bus_factor=_share),
    "permutation": Pattern(None, _once, own_buffers=True),
    "custom": Pattern(None, _once, own_buffers=True),
}
