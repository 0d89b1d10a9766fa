"""The patterns Weft knows by name: each says which chunks a collective has.

A pattern turns (group, size, chunks per share, root) into a table of chunks. To add one, write
a function here and put it in `PATTERNS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.collective.chunks import Chunks, cut

Group = NDArray[np.int32]


@dataclass(frozen=True)
class Pattern:
    """A named collective.

    Attributes
    ----------
    build
        ``build(group, root_rank, boundaries of the group's shares)`` gives the chunks.
    shares
        Whether the buffer is cut in one share an NPU (else it is one share).
    rooted
        Whether one NPU is special.
    bus_factor
        Bus bandwidth over algorithm bandwidth for n NPUs, as nccl-tests defines it.
    """

    build: Callable[[Group, int, NDArray[np.int64]], Chunks]
    shares: bool
    rooted: bool
    bus_factor: Callable[[int], float]


def _each(group: Group, pieces: int) -> NDArray[np.int32]:
    """Number of the one-NPU set of each piece's owner: shares in order of rank."""
    return np.repeat(np.arange(len(group), dtype=np.int32), pieces // len(group))


def _singles_and_all(group: Group) -> list[NDArray[np.int32]]:
    """Set r is the group's r-th NPU alone; the last set is the whole group."""
    return [*group[:, None], np.sort(group)]


def _constant(value: int, pieces: int) -> NDArray[np.int32]:
    return np.full(pieces, value, dtype=np.int32)


def _all_gather(group: Group, _root: int, marks: NDArray[np.int64]) -> Chunks:
    pieces, everyone = len(marks) - 1, len(group)
    sets = _singles_and_all(group)
    return Chunks.build(
        marks, _each(group, pieces), _constant(everyone, pieces), sets, reduce=False
    )


def _reduce_scatter(group: Group, _root: int, marks: NDArray[np.int64]) -> Chunks:
    pieces, everyone = len(marks) - 1, len(group)
    sets = _singles_and_all(group)
    return Chunks.build(marks, _constant(everyone, pieces), _each(group, pieces), sets, reduce=True)


def _all_reduce(group: Group, _root: int, marks: NDArray[np.int64]) -> Chunks:
    everyone = _constant(0, len(marks) - 1)
    return Chunks.build(marks, everyone, everyone, [np.sort(group)], reduce=True)


def _broadcast(group: Group, root: int, marks: NDArray[np.int64]) -> Chunks:
    pieces = len(marks) - 1
    sets = [group[root : root + 1], np.sort(group)]
    return Chunks.build(marks, _constant(0, pieces), _constant(1, pieces), sets, reduce=False)


def _reduce(group: Group, root: int, marks: NDArray[np.int64]) -> Chunks:
    pieces = len(marks) - 1
    sets = [group[root : root + 1], np.sort(group)]
    return Chunks.build(marks, _constant(1, pieces), _constant(0, pieces), sets, reduce=True)


def _scatter(group: Group, root: int, marks: NDArray[np.int64]) -> Chunks:
    pieces = len(marks) - 1
    sets = list(group[:, None])
    return Chunks.build(marks, _constant(root, pieces), _each(group, pieces), sets, reduce=False)


def _gather(group: Group, root: int, marks: NDArray[np.int64]) -> Chunks:
    pieces = len(marks) - 1
    sets = list(group[:, None])
    return Chunks.build(marks, _each(group, pieces), _constant(root, pieces), sets, reduce=False)


def _share(n: int) -> float:
    return (n - 1) / n


def _twice_share(n: int) -> float:
    return 2 * (n - 1) / n


def _one(_n: int) -> float:
    return 1.0


PATTERNS = {
    "all-gather": Pattern(_all_gather, shares=True, rooted=False, bus_factor=_share),
    "reduce-scatter": Pattern(_reduce_scatter, shares=True, rooted=False, bus_factor=_share),
    "all-reduce": Pattern(_all_reduce, shares=True, rooted=False, bus_factor=_twice_share),
    "broadcast": Pattern(_broadcast, shares=False, rooted=True, bus_factor=_one),
    "reduce": Pattern(_reduce, shares=False, rooted=True, bus_factor=_one),
    "gather": Pattern(_gather, shares=True, rooted=True, bus_factor=_share),
    "scatter": Pattern(_scatter, shares=True, rooted=True, bus_factor=_share),
}


def share_boundaries(
    pattern: Pattern, ranks: int, size: int, chunks: int, alignment: int
) -> NDArray[np.int64]:
    """Where the buffer of a collective is cut: its shares, each in `chunks`."""
    return cut(size, (ranks if pattern.shares else 1) * chunks, alignment)
