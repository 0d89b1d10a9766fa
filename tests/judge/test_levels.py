"""Compositions by level: right ones pass, broken ones are refused, whatever passes is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.far_turns import CHUNK, HOSTS, LAST, PUSH, slow_spine
from tests.level_plans import level_plans, rows_of
from weft.algorithm import Algorithm, LevelPart, LevelRows, LevelStep, Timing
from weft.collective import Collective
from weft.cost import CostModel
from weft.errors import InputError
from weft.judge import Verdict, verify
from weft.judge.kinds import levels
from weft.judge.ladders import Rungs, Sharers
from weft.judge.table import judge_table
from weft.topology import load_topology
from weft.topology.grid import grid_of
from weft.topology.ladders import Ladder, ladders_of


def symbolic(algorithm: Algorithm) -> Verdict:
    """What the judge says without listing anything."""
    with patch.object(levels, "LISTED", 0):
        return verify(algorithm)


def refused(algorithm: Algorithm, kind: str, *words: str) -> None:
    for verdict in (symbolic(algorithm), verify(algorithm)):
        assert not verdict
        assert verdict.kind == kind, verdict
        for word in words:
            assert word in str(verdict.violation), verdict


@examples(200)
@given(level_plans())
def test_plans_are_right_and_so_is_what_they_expand_to(algorithm: Algorithm) -> None:
    assert symbolic(algorithm) == Verdict(True)
    assert judge_table(algorithm) == Verdict(True)
    rows = algorithm.transfers
    assert len(rows) == len(algorithm.rows)
    assert algorithm.time == rows.require_times().end.max()


def _moved_start(rows: LevelRows, draw: Callable[..., int]) -> LevelRows:
    start = rows.start.copy()
    at = draw(st.integers(0, len(start) - 1))
    start[at] = draw(
        st.one_of(
            st.sampled_from([start[at] - 1, start[at] + 1, 0]),
            st.sampled_from(start.tolist()),
            st.integers(0, int(start.max()) + 2),
        )
    )
    return replace(rows, start=np.maximum(start, 0))


def _all_early(rows: LevelRows, draw: Callable[..., int]) -> LevelRows:
    late = rows.start >= draw(st.sampled_from(rows.start.tolist()))
    start = rows.start - late * draw(st.integers(1, 1000))
    return replace(rows, start=np.maximum(start, 0))


def _changed_ladder(rows: LevelRows, draw: Callable[..., int]) -> LevelRows:
    """Another link, another turn, the turns of other places."""
    number = draw(st.integers(0, len(rows.ladders) - 1))
    ladder = rows.ladders[number]
    name = draw(st.sampled_from(["up", "down", "turn", "turn", "turn"]))
    column = getattr(ladder, name).copy()
    tier = draw(st.integers(0, ladder.tiers - 1))
    one, two = (draw(st.integers(0, len(rows.npus) - 1)) for _ in range(2))
    how = draw(st.integers(0, 3))
    if how == 0:
        column[tier, one] = column[tier, two]
    elif how == 1:
        column[tier, [one, two]] = column[tier, [two, one]]
    elif how == 2:
        column[tier] = np.roll(column[tier], one)
    else:
        column[tier] = column[0]
    changed = replace(ladder, **{name: column})
    return replace(rows, ladders=(*rows.ladders[:number], changed, *rows.ladders[number + 1 :]))


def _changed_parts(rows: LevelRows, draw: Callable[..., int]) -> LevelRows:
    """Steps in another order, over another ladder, in another way; parts in another order."""
    parts = list(rows.parts)
    number = draw(st.integers(0, len(parts) - 1))
    part, how = parts[number], draw(st.integers(0, 4))
    steps = list(part.steps)
    at = draw(st.integers(0, len(steps) - 1))
    if how == 0:
        steps.reverse()
    elif how == 1:
        steps[at] = steps[at]._replace(ladder=draw(st.integers(0, len(rows.ladders) - 1)))
    elif how == 2:
        steps[at] = steps[at]._replace(scatter=not steps[at].scatter)
    elif how == 3:
        parts.reverse()
    parts[number] = LevelPart(tuple(steps), part.pieces + (how == 4))
    return replace(rows, parts=tuple(parts))


def _changed_grid(rows: LevelRows, draw: Callable[..., int]) -> LevelRows:
    npus, sizes = rows.npus.copy(), rows.sizes
    one, two = (draw(st.integers(0, len(npus) - 1)) for _ in range(2))
    how = draw(st.integers(0, 2))
    if how == 0:
        npus[[one, two]] = npus[[two, one]]
    elif how == 1:
        npus[one] = npus[two]
    else:
        sizes = sizes[::-1]
    return replace(rows, npus=npus, sizes=sizes)


MUTATIONS = [_moved_start, _moved_start, _all_early, _changed_ladder, _changed_parts, _changed_grid]


@examples(400)
@given(level_plans(), st.data())
def test_whatever_passes_is_right(algorithm: Algorithm, data: st.DataObject) -> None:
    """A change may do no harm; but what the judge accepts unseen it accepts when it is listed."""
    rows = rows_of(algorithm)
    for mutation in data.draw(st.lists(st.sampled_from(MUTATIONS), min_size=1, max_size=2)):
        rows = mutation(rows, data.draw)
    changed = replace(algorithm, rows=rows)
    if symbolic(changed):
        assert judge_table(changed) == Verdict(True)
        assert changed.time == changed.transfers.require_times().end.max()


# Four NPUs on two leaves with one spine: a byte takes 1 ns on all links, each has 10 ns of latency.
SPEEDS = {"bandwidth": "1GB/s", "latency": "10ns"}


def by_hand(kind: str = "all-gather", start: list[int] | None = None) -> Algorithm:
    """NPUs at a leaf tell those on the other leaf, in turns over the one spine, then each other.

    Chunks of 112 B, the last one is shorter: a hop in a leaf takes 132 ns, between leaves 152 ns,
    and 112 ns more in the second turn.
    """
    network = load_topology("leaf-spine:2x2x1", **SPEEDS)
    grid = grid_of(network, range(4))
    rows = LevelRows(
        grid.sizes,
        grid.npus,
        tuple(ladders_of(network, grid)),
        (LevelPart((LevelStep((0,), True, 0), LevelStep((1,), True, 0)), 1),),
        # Across leaves; then in the leaf one's own, and the one from across.
        np.array(start or RIGHT, dtype=np.int64) * 1000,
        sums=False,
    )
    demand = Collective.of(kind, range(4), 400)
    return Algorithm((demand,), rows, Timing(network, CostModel()))


RIGHT = [0, 244, 356]


def test_right_by_hand() -> None:
    """The second turn holds the NPU's link down until 264 ns; a hop in a leaf takes it at 20 ns."""
    algorithm = by_hand()
    assert symbolic(algorithm) == verify(algorithm) == Verdict(True)
    assert algorithm.time == 488_000
    assert verify(by_hand(start=[0, 376, 264]))


def test_too_early() -> None:
    refused(by_hand(start=[0, 376, 263]), "order", "move 2 starts at 263ns", "only at 264ns")
    refused(by_hand(start=[0, 244, 355]), "link", "move 2 takes links from 355ns", "until 356ns")
    refused(by_hand(start=[0, 243, 356]), "link", "move 1 takes links from 263ns", "until 264ns")


@pytest.mark.parametrize(
    ("column", "place", "value", "words"),
    [
        ("up", 1, 0, "do not lead up from place 1"),
        ("down", 1, 0, "do not lead up from place 1"),
        ("up", 0, -1, "out of range"),
        ("up", 0, 99, "out of range"),
        ("turn", 1, -1, "out of range"),
    ],
)
def test_wrong_ladders(column: str, place: int, value: int, words: str) -> None:
    algorithm = by_hand()
    rows = rows_of(algorithm)
    changed = getattr(rows.ladders[0], column).copy()
    changed[0, place] = value
    ladder = replace(rows.ladders[0], **{column: changed})
    refused(replace(algorithm, rows=replace(rows, ladders=(ladder,))), "structure", words)


def test_turns_that_are_the_same() -> None:
    algorithm = by_hand()
    rows = rows_of(algorithm)
    ladder = replace(rows.ladders[0], turn=np.zeros_like(rows.ladders[0].turn))
    changed = replace(algorithm, rows=replace(rows, ladders=(ladder,)))
    refused(changed, "link", "places that share a link have the same turn")


def test_a_ladder_that_is_there_twice() -> None:
    """Its links would be counted as others."""
    algorithm = by_hand()
    rows = rows_of(algorithm)
    steps = (LevelStep((0,), True, 1), LevelStep((1,), True, 0))
    rows = replace(rows, ladders=rows.ladders * 2, parts=(LevelPart(steps, 1),))
    refused(replace(algorithm, rows=rows), "structure", "is on two tiers")


def test_links_of_different_speed() -> None:
    algorithm = by_hand()
    slower = algorithm.require_timing().topology.scaled(["3-5"], "50%")
    changed = replace(algorithm, timing=Timing(slower, CostModel()))
    refused(changed, "structure", "differ in speed")


def test_ladders_that_do_not_lead_far_enough() -> None:
    algorithm = by_hand()
    rows = rows_of(algorithm)
    short = Ladder(*(getattr(rows.ladders[0], name)[:1] for name in ("up", "down", "turn")))
    changed = replace(algorithm, rows=replace(rows, ladders=(short,)))
    refused(changed, "route", "no switch of ladder 0 is above places 0 and 2")


def test_parts_that_are_not_the_collective() -> None:
    algorithm = by_hand()
    rows = rows_of(algorithm)

    def with_parts(*parts: LevelPart) -> Algorithm:
        return replace(algorithm, rows=replace(rows, parts=parts))

    one, two = rows.parts[0].steps
    every = "some part does not go along every dimension of the groups once"
    refused(with_parts(), "structure", "there are no parts")
    refused(with_parts(LevelPart((one, two, one), 1)), "structure", every)
    refused(with_parts(LevelPart((one, LevelStep((2,), True, 0)), 1)), "structure", every)
    refused(with_parts(LevelPart((one,), 1)), "structure", "the grid has 2 groups, not 1")
    refused(with_parts(LevelPart((one, two), 2)), "structure", "the parts have 2 pieces, not 1")
    refused(with_parts(LevelPart((one, two), 0)), "structure", "has no pieces")
    last = LevelPart((one, two._replace(ladder=1)), 1)
    refused(with_parts(last), "structure", "a step that has no ladder")
    shot = LevelPart((one, two._replace(scatter=False)), 1)
    refused(with_parts(shot), "structure", "scattered along every level")


def test_collectives_that_rows_do_not_serve() -> None:
    algorithm = by_hand()
    network = algorithm.require_timing().topology
    refused(by_hand("reduce-scatter"), "structure", "the rows are not those of an reduce-scatter")
    refused(by_hand("gather"), "structure", "not gather")
    tiny = Collective.of("all-gather", range(4), 3, alignment=1)
    refused(replace(algorithm, demands=(tiny,)), "structure", "chunks that are not empty")
    small = network.with_switches(buffers={4: 1000})
    changed = replace(algorithm, timing=Timing(small, CostModel()))
    refused(changed, "structure", "switches that can hold any chunk")
    pairs = [Collective.of("all-gather", pair, 200) for pair in ([0, 1], [2, 3])]
    rows = rows_of(algorithm)
    one = replace(rows, parts=(LevelPart(rows.parts[0].steps[:1], 1),), start=rows.start[:1])
    assert verify(replace(algorithm, demands=tuple(pairs), rows=one))
    other = Collective.of("all-gather", [2, 3], 400)
    refused(replace(algorithm, demands=(pairs[0], other), rows=one), "structure", "all do the same")
    crossed = [Collective.of("all-gather", pair, 200) for pair in ([0, 2], [1, 3])]
    changed = replace(algorithm, demands=tuple(crossed), rows=one)
    refused(changed, "structure", "the lines of the grid are not the groups")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sizes": (2, 3)}, "as many places as NPUs"),
        ({"sizes": ()}, "as many places as NPUs"),
        ({"npus": np.array([0, 1, 2, 9], dtype=np.int32)}, "some place of the grid has no NPU"),
        ({"npus": np.array([0, 1, 2, 2], dtype=np.int32)}, "no NPU of its own"),
        ({"npus": np.arange(4)}, "int64"),
        ({"start": np.zeros(2, dtype=np.int64)}, "'start'"),
        ({"start": np.array([0, 200, -300])}, "before the beginning"),
    ],
)
def test_columns(change: dict[str, object], words: str) -> None:
    algorithm = by_hand()
    refused(replace(algorithm, rows=replace(algorithm.rows, **change)), "structure", words)


def far(size: int, first: int) -> Algorithm:
    """Across two leaves with one slow link to the spine; then all in their leaf, at once."""
    network = slow_spine()
    grid = grid_of(network, range(2 * HOSTS))
    rows = LevelRows(
        grid.sizes,
        grid.npus,
        tuple(ladders_of(network, grid)),
        (LevelPart((LevelStep((0,), True, 0), LevelStep((1,), True, 0)), 1),),
        np.append(first, np.arange(2 * (HOSTS - 1)) * PUSH),
        sums=False,
    )
    demand = Collective.of("all-gather", range(2 * HOSTS), size * 2 * HOSTS)
    return Algorithm((demand,), rows, Timing(network, CostModel()))


@pytest.mark.parametrize(
    ("size", "first"), [(CHUNK, LAST), (8_000_000, 0), (1_900_000, 0), (CHUNK, 2**63 - 1)]
)
def test_what_leaves_the_clock(size: int, first: int) -> None:
    """No sum that the judge makes may be more than 64 bits hold."""
    algorithm = far(size, first)
    refused(algorithm, "structure", "leaves the clock")
    for use in (lambda: algorithm.time, lambda: algorithm.transfers):
        with pytest.raises(InputError, match="leaves the clock"):
            use()


@examples(100)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.integers(0, 7),
    st.integers(1, 4),
    st.data(),
)
def test_who_shares_links_is_found_once(
    grid: list[int], turning: int, most: int, data: st.DataObject
) -> None:
    """The same as if the users of every link were compared, each with its turn."""
    turning &= (1 << len(grid)) - 1
    places = np.arange(int(np.prod(grid)))
    strides = np.cumprod([1, *grid[:-1]])
    along = places[:, None] // strides % np.array(grid)
    kept = along * [turning >> dimension & 1 for dimension in range(len(grid))]
    values = np.array(data.draw(st.permutations(range(len(places)))), dtype=np.int32)
    turn = (values % data.draw(st.integers(1, 4)))[kept @ strides]
    link = np.array(data.draw(st.permutations(places.tolist()))) // most
    by = data.draw(st.integers(0, len(places) - 1))
    before = ((along - along[by]) % np.array(grid)) @ strides
    users = set(zip(link.tolist(), turn[before].tolist(), strict=True))
    row = turn[None, :]
    rungs = Rungs(load_topology("switch:2"), tuple(grid), Ladder(row, row, row), [0], [turning], [])
    assert Sharers.of(rungs, link, 0).are_apart(by) == (len(users) == len(places))
