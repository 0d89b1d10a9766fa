"""Whether moves of compositions by level ever hold a link at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft.judge.ladders import Rungs, Sharers
from weft.judge.level_hops import PartHops
from weft.judge.verdict import Verdict
from weft.topology.model import Topology
from weft.units import format_time

Numbers = NDArray[np.int64]
Kind = tuple[int, int, bool]
"""Links of one kind: ladder, tier, whether they lead down."""


class Going(NamedTuple):
    """The moves of one step of a part.

    Attributes
    ----------
    back
        Whether what lies at a distance comes from there.
    moves
        Their numbers, by distance; -1 for those that take no links of their own.
    """

    hops: PartHops
    step: int
    back: bool
    moves: Numbers


def meeting(
    topology: Topology,
    sizes: tuple[int, ...],
    ladders: list[Rungs],
    start: Numbers,
    goings: Iterable[Going],
) -> Verdict | None:
    """Two moves, or two turns of one, that may hold one link at the same time, if there are.

    `start`: of each move.
    """
    found = _Links(topology, sizes, ladders)
    used = found.kinds(goings)
    if (twice := found.on_two_tiers(used)) is not None:
        return twice
    for uses in used.values():
        for use in uses:
            if (same := found.same_turn(use)) is not None:
                return same
        if (met := _meeting(start, uses)) is not None:
            return met
    return None


@dataclass(frozen=True, eq=False)
class _Use:
    """Moves that use links of one kind at the same times after their starts.

    Attributes
    ----------
    kind
        The kind of links.
    top
        The tier up to which they climb.
    link
        The link that each place uses; on the way down that to which each of them comes down.
    shift
        Where places have the turns of others: how far these are before them.
    begin
        When the first who sends takes its link.
    same, other
        When a move after it may begin that has the same turns, and one that may have others.
    turns
        Who takes turns how: equal where two moves' turns are the same.
    """

    kind: Kind
    top: int
    link: NDArray[np.int32]
    shift: int
    shared: bool
    begin: int
    same: int
    other: int
    turns: tuple[int, int, int]
    moves: Numbers


@dataclass(frozen=True, eq=False)
class _Links:
    topology: Topology
    sizes: tuple[int, ...]
    ladders: list[Rungs]
    apart: set[tuple[Kind, int, int]] = field(default_factory=set)
    sharers: dict[tuple[Kind, int], Sharers] = field(default_factory=dict)

    def kinds(self, goings: Iterable[Going]) -> dict[Kind, list[_Use]]:
        """All uses, by the kind of links."""
        found: dict[Kind, list[_Use]] = {}
        for hops, step, is_back, moves in goings:
            back = hops.reversed(step) if is_back else slice(None)
            tops, by = hops.tops(step)[back], hops.away(step)[back]
            for top in np.unique(tops).tolist():
                some = np.flatnonzero(tops == top)
                for use in self._uses(hops, hops.steps[step].ladder, top, by[some], moves[some]):
                    found.setdefault(use.kind, []).append(use)
        return found

    def _uses(
        self, hops: PartHops, ladder: int, top: int, by: Numbers, moves: Numbers
    ) -> Iterator[_Use]:
        """What moves over one tier use: `moves` has a row for each distance, as `by` has."""
        rungs = self.ladders[ladder]
        _, begin, end = hops.holds(ladder, top)
        wait, spread = hops.wait(ladder, top), hops.spread(ladder, top)
        for tier, down in product(range(top + 1), (False, True)):
            place = 2 * top + 1 - tier if down else tier
            turning = rungs.changed(top, tier) & rungs.turning[top] if down and wait else 0
            shifts, shift = np.unique(_only(self.sizes, by, turning), return_inverse=True)
            shared, order = rungs.shared[tier], np.argsort(shift.reshape(-1), kind="stable")
            ends = np.cumsum(np.bincount(shift.reshape(-1)))[:-1]
            for one, some in zip(shifts.tolist(), np.split(order, ends), strict=True):
                yield _Use(
                    (ladder, tier, down),
                    top,
                    (rungs.ladder.down if down else rungs.ladder.up)[tier],
                    one,
                    shared,
                    int(begin[place]),
                    int(end[place]) + (spread if shared else 0),
                    int(end[place]) + spread,
                    (wait, top, one) if wait else (0, 0, 0),
                    moves[some][moves[some] >= 0],
                )

    def same_turn(self, use: _Use) -> Verdict | None:
        """Two places that use one link of a kind in the same turn, if there are."""
        key = use.kind, use.top, use.shift
        if not use.shared or key in self.apart:
            return None
        if key[:2] not in self.sharers:
            self.sharers[key[:2]] = Sharers.of(self.ladders[use.kind[0]], use.link, use.top)
        if not self.sharers[key[:2]].are_apart(use.shift):
            return Verdict(False, "places that share a link have the same turn", "link")
        self.apart.add(key)
        return None

    def on_two_tiers(self, used: dict[Kind, list[_Use]]) -> Verdict | None:
        """A link that is on two ladders, or on two tiers of one, if there is one."""
        seen = np.zeros(self.topology.links, dtype=np.bool_)
        for uses in used.values():
            links = np.unique(uses[0].link)
            for link in links[seen[links]][:1].tolist():
                name = self.topology.link_name(link)
                return Verdict(False, f"link {name} is on two tiers", "structure")
            seen[links] = True
        return None


def _only(sizes: tuple[int, ...], by: Numbers, dimensions: int) -> Numbers:
    """Places with the coordinates of `by` in some dimensions, as bits, and 0 in others."""
    found, stride = np.zeros_like(by), 1
    for dimension, size in enumerate(sizes):
        if dimensions >> dimension & 1:
            found += by // stride % size * stride
        stride *= size
    return found


def _meeting(start: Numbers, uses: list[_Use]) -> Verdict | None:
    """Two moves of which one may begin before the other is over.

    In the order in which they begin, moves that follow each other with the same turns are a run.
    """
    numbers = {turns: number for number, turns in enumerate({use.turns for use in uses})}
    move = np.concatenate([use.moves for use in uses])
    which = np.repeat(np.arange(len(uses)), [len(use.moves) for use in uses])
    begin = start[move] + np.array([use.begin for use in uses])[which]
    order = np.lexsort((move, begin))
    move, which, begin = move[order], which[order], begin[order]
    same, other = (
        start[move] + np.array([getattr(use, name) for use in uses])[which]
        for name in ("same", "other")
    )
    turns = np.array([numbers[use.turns] for use in uses])[which]
    until = np.maximum.accumulate(np.concatenate([[0], same[:-1]]))
    if len(numbers) > 1:
        news = np.flatnonzero(np.diff(turns, prepend=-1))
        latest = np.maximum.accumulate(np.concatenate([[0], other]))[news]
        until = np.maximum(until, np.repeat(latest, np.diff(np.append(news, len(turns)))))
    for at in np.flatnonzero(begin < until)[:1].tolist():
        return Verdict(
            False,
            f"move {move[at]} takes links from {format_time(int(begin[at]))} on, but moves before "
            f"it may hold them until {format_time(int(until[at]))}",
            "link",
        )
    return None
