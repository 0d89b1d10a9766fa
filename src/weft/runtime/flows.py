"""How fast bytes flow between ranks, some pairs at a time, and how long a small message takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Algorithm, Transfers
from weft.collective import Move, custom
from weft.runtime.buffers import fit, is_at_home
from weft.runtime.communicator import Communicator
from weft.runtime.cutting import Cut
from weft.runtime.program import Program, What

Pair = tuple[int, int]  # from a rank to another
Floats = NDArray[np.float64]
_Came = tuple[Floats, NDArray[np.int64]]  # when each piece of each flow had come; their sizes

_CLOCK = Path("/proc/sys/kernel/random/boot_id")
_PIECES = 32  # of a flow; when each has come is noted
_SKIPPED = 1 / 8
_LEAST, _MOST = 32 << 8, 256 << 20  # bytes of a flow, and of all of a rank
_GROWTH = 8  # from one try to the next, while nobody knows how fast it goes
# A reader that wakes up late finds bytes that seem to have come at once: short flows seem fast.
_LEAST_SLICE_S, _MOST_SLICE_S = 0.15, 0.5
_LEAST_REPEATS = 3
_STEPS, _LONGEST = 8, 16  # times at which a flow must have come, or it is made longer
_TRIES = 2  # as long as so many repeats
_TURNS = 12  # of a small message there and back, the first of which do not count
_WARM = 3


class Meter(Protocol):
    """What measures: ranks, or what a test puts in their place."""

    ranks: int

    def expect(self, experiments: int) -> bool:
        """Share the time that is left among so many measurements; False if it is too little."""

    def rates(self, flows: Sequence[Pair], weights: Floats | None = None) -> Floats:
        """Bytes per second of flows that run at once: a row for each time it was repeated.

        Of each flow; or for each row of weights of what passes when flows count so much.
        """

    def delays(self, pairs: tuple[Pair, ...]) -> Floats:
        """Seconds that a few bytes take from rank to rank, one way."""


class RankMeter:
    """Measures among the ranks of a communicator: all make the same calls, and hear the same.

    Parameters
    ----------
    time_s
        How long all measurements may take, roughly; but there are at least so many.
    repeats
        How often each is made at most, after it has been made until it was known how long it takes.
    """

    def __init__(self, communicator: Communicator, time_s: float, repeats: int) -> None:
        self.ranks = communicator.size
        self._communicator, self._most_repeats, self._repeats = communicator, repeats, repeats
        self._end = time.monotonic() + time_s
        self._slice_s = _LEAST_SLICE_S
        self._known: dict[Pair, float] = {}
        self._found: dict[tuple[Pair, ...], list[_Came]] = {}

    def expect(self, experiments: int) -> bool:
        left = self._communicator.exchange(msgspec.json.encode(self._end - time.monotonic()))[0]
        each = max(msgspec.json.decode(left, type=float), 0.0) / max(experiments, 1)
        repeats = max(int(each / _LEAST_SLICE_S) - _TRIES, _LEAST_REPEATS)
        self._repeats = min(repeats, self._most_repeats)
        self._slice_s = min(max(each / (self._repeats + _TRIES), _LEAST_SLICE_S), _MOST_SLICE_S)
        return each >= _LEAST_SLICE_S * (_LEAST_REPEATS + _TRIES)

    def rates(self, flows: Sequence[Pair], weights: Floats | None = None) -> Floats:
        key = tuple(flows)
        if key not in self._found:
            self._found[key] = self._measured(key)
        sets = np.eye(len(key)) if weights is None else weights
        found = np.array(
            [[rate_of(ends, pieces, one) for one in sets] for ends, pieces in self._found[key]]
        )
        if weights is None:
            for pair, rate in zip(key, np.median(found, axis=0).tolist(), strict=True):
                self._known.setdefault(pair, rate)
        return found

    def _measured(self, flows: tuple[Pair, ...]) -> list[_Came]:
        busiest = max(sum(rank in pair for pair in flows) for rank in range(self.ranks))
        most = _MOST // max(busiest, 1)

        longer = 1

        def wanted(rates: Floats) -> Floats:
            # All should end together; but a flow that had a bad start gets its chance.
            sizes = np.maximum(rates, rates.max() / _GROWTH) * self._slice_s * longer
            return np.asarray(np.clip(sizes, _LEAST, most))

        sizes = wanted(np.array([self._known.get(pair, 0.0) for pair in flows]) / _GROWTH)
        while True:
            came = self._run(flows, sizes)
            rates = _speeds(*came)
            if (wanted(rates) > _GROWTH * sizes).any():
                sizes = np.minimum(wanted(rates), _GROWTH * sizes)
            elif longer < _LONGEST and self._in_lumps(came[0]):
                longer *= 2
                sizes = wanted(rates)
            else:
                break
        found: list[_Came] = []
        for _ in range(self._repeats):
            found.append(self._run(flows, wanted(rates)))
            rates = _speeds(*found[-1])
        return found

    def _in_lumps(self, ends: Floats) -> bool:
        """Whether a flow came in a few large messages, whose times say little."""
        steps = (np.diff(ends, axis=1) > self._slice_s / 200).sum(axis=1)
        return bool(steps.min() < _STEPS)

    def _run(self, flows: tuple[Pair, ...], sizes: Floats) -> _Came:
        """Let so many bytes flow in pieces."""
        pieces = np.maximum(sizes // _PIECES, 1).astype(np.int64)
        turns = np.tile(np.arange(len(flows)), _PIECES)
        ends = self._ends([flows[flow] for flow in turns], pieces[turns])
        return ends.reshape(_PIECES, -1).T, pieces

    def delays(self, pairs: tuple[Pair, ...]) -> Floats:
        back_too = [*pairs, *((b, a) for a, b in pairs)]
        ways = back_too * _TURNS
        ends = self._ends(ways, np.full(len(ways), 4), len(pairs))
        back = ends.reshape(_TURNS, 2, -1)[:, 1]  # on the first rank of each pair, by its clock
        return np.asarray(np.median(np.diff(back[_WARM - 1 :], axis=0), axis=0) / 2)

    def _ends(self, ways: Sequence[Pair], sizes: NDArray[np.int64], after: int = 0) -> Floats:
        """Send a message each way at once; when each has come, in seconds of one clock.

        With `after`, each is sent once the one so many places before it has come. Ranks on
        several machines have several clocks: what a rank receives then begins at 0.
        """
        algorithm = _algorithm(ways, sizes, after, self.ranks)
        communicator, rank = self._communicator, self._communicator.rank
        count = algorithm.demands[0].size
        room = fit(Cut(algorithm, [count]).sides(rank), 0, shares=is_at_home(algorithm))
        given, taken = np.zeros(room.input, np.uint8), np.zeros(room.output, np.uint8)
        communicator.barrier()
        times = communicator.run(algorithm, given, taken, count=count, trace=True)
        assert times is not None
        mine = _received(times.program, times.end)
        said = communicator.exchange(msgspec.json.encode([_CLOCK.read_text(), mine]))
        heard = [msgspec.json.decode(text, type=tuple[str, dict[int, int]]) for text in said]
        several = len({clock for clock, _ in heard}) > 1
        ends = np.zeros(len(ways))
        for _, came in heard:
            first = min(came.values(), default=0) if several else 0
            for way, at in came.items():
                ends[way] = (at - first) / 1e9
        return np.asarray(ends - ends.min())


def rate_of(ends: Floats, pieces: NDArray[np.int64], weights: Floats) -> float:
    """What passes per second when flows count so much, from when the pieces of each had come.

    What comes first does not count: links may let a burst pass.
    """
    used = weights > 0
    times = ends[used].reshape(-1)
    order = np.argsort(times, kind="stable")
    passed = np.cumsum(np.repeat(weights[used] * pieces[used], ends.shape[1])[order])
    first = int(len(order) * _SKIPPED)
    return 1 / max(_slope(passed[first:], times[order][first:]), 1e-15)


def _speeds(ends: Floats, pieces: NDArray[np.int64]) -> Floats:
    """How fast each flow was from the first piece of all to its last."""
    spans = np.maximum(ends[:, -1] - ends.min(), 1e-9)
    return np.asarray((_PIECES - 1) * pieces / spans)


def _slope(passed: Floats, times: Floats) -> float:
    """Seconds a byte: of the line below all points that comes nearest to them.

    Bytes are seen late where a rank did not run when they came, never early.
    """
    hull: list[tuple[float, float]] = []
    for x, y in zip(passed.tolist(), times.tolist(), strict=True):
        while len(hull) > 1 and (hull[-1][0] - hull[-2][0]) * (y - hull[-2][1]) <= (
            hull[-1][1] - hull[-2][1]
        ) * (x - hull[-2][0]):
            hull.pop()
        hull.append((x, y))
    middle = passed.mean()
    (a, first), (b, last) = next(
        (one, other) for one, other in pairwise(hull) if other[0] >= middle
    )
    return float((last - first) / (b - a))


def _algorithm(ways: Sequence[Pair], sizes: NDArray[np.int64], after: int, ranks: int) -> Algorithm:
    moves = [Move(int(size), (src,), (dst,)) for (src, dst), size in zip(ways, sizes, strict=True)]
    count = len(ways)
    src, dst = (np.array(column, dtype=np.int32) for column in zip(*ways, strict=True))
    waits = np.arange(count - after if after else 0, dtype=np.int64)
    offsets = np.clip(np.arange(count + 1) - after, 0, len(waits)).astype(np.int64)
    rows = Transfers(
        np.arange(count, dtype=np.int32),
        src,
        dst,
        np.zeros(count, dtype=np.bool_),
        dep_offsets=offsets,
        deps=waits,
    )
    return Algorithm((custom(range(ranks), moves),), rows)


def _received(program: Program, ends: NDArray[np.int64]) -> dict[int, int]:
    """When what this rank receives had come, by the number of its row."""
    rows = np.flatnonzero(program.what == What.RECEIVE)
    return dict(zip(program.number[rows].tolist(), ends[rows].tolist(), strict=True))
