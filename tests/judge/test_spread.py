"""Broadcasts and Reduces along levels: right ones pass, broken ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.far_turns import CHUNK, HOSTS, LAST, far
from tests.spread_plans import rows_of, spread_plans
from weft.algorithm import Algorithm, SpreadRows, SpreadStep, Timing
from weft.algorithm.spread import MOST_AT_ONCE, MOST_STEPS
from weft.collective import Collective
from weft.cost import CostModel
from weft.engine import simulate
from weft.errors import InputError
from weft.judge import Verdict, verify
from weft.judge.kinds import spread
from weft.judge.spread_parts import waves
from weft.judge.table import judge_table
from weft.topology import load_topology
from weft.topology.grid import grid_of
from weft.topology.ladders import ladders_of


def symbolic(algorithm: Algorithm) -> Verdict:
    """What the judge says without listing anything."""
    with patch.object(spread, "LISTED", 0):
        return verify(algorithm)


def refused(algorithm: Algorithm, kind: str, *words: str) -> None:
    for verdict in (symbolic(algorithm), verify(algorithm)):
        assert not verdict
        assert verdict.kind == kind, verdict
        for word in words:
            assert word in str(verdict.violation), verdict


@examples(60)
@given(spread_plans())
def test_plans_are_right_and_so_is_what_they_expand_to(algorithm: Algorithm) -> None:
    assert symbolic(algorithm) == Verdict(True)
    assert judge_table(algorithm) == Verdict(True)
    rows = algorithm.transfers
    assert len(rows) == len(algorithm.rows)
    assert algorithm.time == rows.require_times().end.max()


def _moved_start(rows: SpreadRows, draw: Callable[..., int]) -> SpreadRows:
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


def _all_early(rows: SpreadRows, draw: Callable[..., int]) -> SpreadRows:
    late = rows.start >= draw(st.sampled_from(rows.start.tolist()))
    start = rows.start - late * draw(st.integers(1, 1000))
    return replace(rows, start=np.maximum(start, 0))


def _changed_period(rows: SpreadRows, draw: Callable[..., int]) -> SpreadRows:
    period = draw(st.sampled_from([0, 1, rows.period - 1, rows.period // 2, rows.period + 1]))
    return replace(rows, period=max(period, 0))


def _changed_ladder(rows: SpreadRows, draw: Callable[..., int]) -> SpreadRows:
    """Another link, another turn, the turns of other places."""
    number = draw(st.integers(0, len(rows.ladders) - 1))
    ladder = rows.ladders[number]
    name = draw(st.sampled_from(["up", "down", "turn", "turn", "turn"]))
    column = getattr(ladder, name).copy()
    tier = draw(st.integers(0, ladder.tiers - 1))
    one, two = (draw(st.integers(0, len(rows.npus) - 1)) for _ in range(2))
    how = draw(st.integers(0, 2))
    if how == 0:
        column[tier, one] = column[tier, two]
    elif how == 1:
        column[tier] = np.roll(column[tier], one)
    else:
        column[tier] = column[0]
    changed = replace(ladder, **{name: column})
    return replace(rows, ladders=(*rows.ladders[:number], changed, *rows.ladders[number + 1 :]))


def _changed_parts(rows: SpreadRows, draw: Callable[..., int]) -> SpreadRows:
    """Steps in another order, over another ladder, in another way; another part twice."""
    parts = list(rows.parts)
    number = draw(st.integers(0, len(parts) - 1))
    steps = list(parts[number])
    if not steps:
        return rows
    one, two = (draw(st.integers(0, len(steps) - 1)) for _ in range(2))
    how = draw(st.integers(0, 4))
    if how == 0:
        steps[one], steps[two] = steps[two], steps[one]
    elif how == 1:
        steps[one] = steps[one]._replace(ladder=draw(st.integers(0, len(rows.ladders) - 1)))
    elif how == 2:
        steps[one] = steps[one]._replace(act=draw(st.sampled_from(["scatter", "copy", "gather"])))
    elif how == 3:
        steps[one] = steps[one]._replace(dimensions=steps[two].dimensions)
    else:
        del steps[one]
    parts[number] = tuple(steps)
    return replace(rows, parts=tuple(parts))


def _changed_grid(rows: SpreadRows, draw: Callable[..., int]) -> SpreadRows:
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


MUTATIONS = [_moved_start, _moved_start, _all_early, _changed_period, _changed_ladder]
MUTATIONS += [_changed_parts, _changed_grid]


@examples(100)
@given(spread_plans(), st.data())
def test_whatever_passes_is_right(algorithm: Algorithm, data: st.DataObject) -> None:
    """A change may do no harm; but what the judge accepts unseen it accepts when it is listed."""
    rows = rows_of(algorithm)
    for mutation in data.draw(st.lists(st.sampled_from(MUTATIONS), min_size=1, max_size=2)):
        rows = mutation(rows, data.draw)
    changed = replace(algorithm, rows=rows)
    if symbolic(changed):
        assert judge_table(changed) == Verdict(True)
        assert changed.time == changed.transfers.require_times().end.max()


@examples(10)
@given(spread_plans())
def test_a_replay_takes_no_longer(algorithm: Algorithm) -> None:
    """The engine, which knows rows, routes and their order but no times, is done by then."""
    assert simulate(algorithm).time <= algorithm.time


def by_hand(kind: str = "broadcast", **change: object) -> Algorithm:
    """Four NPUs on two leaves with two spines: a byte takes 1 ns, each link has 10 ns of latency.

    The root scatters on its leaf, both copy across leaves, then all gather: two pieces of 112 B.
    """
    network = load_topology("leaf-spine:2x2x2", bandwidth="1GB/s", latency="10ns")
    grid = grid_of(network, range(4))
    rows = SpreadRows(
        grid.sizes,
        grid.npus,
        tuple(ladders_of(network, grid)),
        (PART,),
        2,
        284_000,
        np.array(RIGHT if kind == "broadcast" else RIGHT[::-1], dtype=np.int64) * 1000,
        sums=kind == "reduce",
    )
    demand = Collective.of(kind, range(4), 224, 2, root=0)
    return Algorithm((demand,), replace(rows, **change), Timing(network, CostModel()))


def times(*nanoseconds: int) -> dict[str, object]:
    return {"start": np.array(nanoseconds, dtype=np.int64) * 1000}


LEAF, ACROSS = SpreadStep("scatter", (0,), 0), SpreadStep("copy", (1,), 0)
GATHER = LEAF._replace(act="gather")
PART = (LEAF, ACROSS, GATHER)
RIGHT = [0, 132, 284]


@pytest.mark.parametrize("kind", ["broadcast", "reduce"])
def test_right_by_hand(kind: str) -> None:
    """The second piece is scattered when the first is gathered: nobody does both."""
    algorithm = by_hand(kind)
    assert symbolic(algorithm) == verify(algorithm) == Verdict(True)
    assert algorithm.time == (284 + 416) * 1000
    assert len(algorithm.rows) == len(algorithm.transfers) == 6


def test_too_early() -> None:
    refused(by_hand(**times(0, 131, 284)), "order", "move 1 starts at 131ns", "only at 132ns")
    refused(by_hand(**times(0, 132, 283)), "order", "move 2 starts at 283ns", "only at 284ns")
    backwards = by_hand("reduce", **times(283, 132, 0))
    refused(backwards, "order", "move 0 starts at 283ns", "only at 284ns")


def test_pieces_that_meet() -> None:
    refused(by_hand(period=283_000), "link", "takes links from")
    refused(by_hand(period=395_000), "link", "takes links from 395ns", "until 396ns")
    refused(by_hand(period=0), "link")
    assert verify(by_hand(period=396_000))


def test_steps_that_some_take_both_of() -> None:
    """Two parts that start together are not apart: the root would send both."""
    together = by_hand(parts=(PART, PART), pieces=1, **times(*RIGHT, *RIGHT))
    refused(together, "link", "takes links from")
    later = [time + 284 for time in RIGHT]
    assert verify(by_hand(parts=(PART, PART), pieces=1, **times(*RIGHT, *later)))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((), "no parts"),
        (((),), "some part does not go along every dimension"),
        (((LEAF, ACROSS),), "does not gather what it scatters"),
        (((LEAF, GATHER),), "does not go along every dimension"),
        (((LEAF, GATHER, ACROSS, GATHER),), "gathers what was not the last"),
        (((LEAF, ACROSS._replace(act="scatter"), GATHER),), "gathers what was not the last"),
        (((LEAF, ACROSS, ACROSS, GATHER),), "goes along a dimension twice"),
        (((LEAF, ACROSS._replace(dimensions=(2,)), GATHER),), "one that is not there"),
        (((LEAF, ACROSS._replace(dimensions=()), GATHER),), "goes along no line"),
        (((LEAF, ACROSS._replace(ladder=1), GATHER),), "has no ladder"),
        (((LEAF, ACROSS._replace(act="sing"), GATHER),), "is not to sing"),
        ((PART, PART), "the parts have 4 chunks, not 2"),
    ],
)
def test_parts_that_do_not_reach_all(parts: tuple[object, ...], words: str) -> None:
    refused(by_hand(parts=parts), "structure", words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sizes": (2, 3)}, "as many places as NPUs"),
        ({"npus": np.array([0, 1, 2, 2], dtype=np.int32)}, "are not the group"),
        ({"npus": np.array([1, 0, 2, 3], dtype=np.int32)}, "not of the root"),
        ({"npus": np.arange(4)}, "int64"),
        ({"pieces": 0}, "no pieces"),
        ({"pieces": 3}, "the parts have 3 chunks, not 2"),
        ({"sums": True}, "not those of a broadcast"),
        ({"start": np.zeros(2, dtype=np.int64)}, "'start'"),
        ({"start": np.array([0, 200, -300])}, "before the beginning"),
        ({"period": 2**62}, "after the end of the clock"),
    ],
)
def test_columns(change: dict[str, object], words: str) -> None:
    refused(by_hand(**change), "structure", words)


def test_collectives_that_rows_do_not_serve() -> None:
    algorithm = by_hand()
    gather = Collective.of("all-gather", range(4), 224)
    refused(replace(algorithm, demands=(gather,)), "structure", "serve one broadcast or reduce")
    tiny = Collective.of("broadcast", range(4), 1, 2, root=0, alignment=1)
    refused(replace(algorithm, demands=(tiny,)), "structure", "chunks that are not empty")
    small = algorithm.topology.with_switches(buffers={4: 1000})
    changed = replace(algorithm, timing=Timing(small, CostModel()))
    refused(changed, "structure", "switches that can hold any chunk")


@pytest.mark.parametrize(
    "algorithm",
    [
        far(),  # start + turns + hop = 2^63 and more
        far(first=0, size=8_000_000),  # the hop alone, and each turn
        far(first=0, size=1_900_000),  # the turns
        far(first=0, period=LAST // 5, pieces=4),  # the fourth piece
    ],
)
def test_what_leaves_the_clock(algorithm: Algorithm) -> None:
    """No sum that the judge makes may be more than 64 bits hold."""
    rows = rows_of(algorithm)
    if rows.pieces > 1:
        demand = Collective.of("broadcast", range(2 * HOSTS), 4 * CHUNK, rows.pieces, root=0)
        algorithm = replace(algorithm, demands=(demand,))
    refused(algorithm, "structure", "leaves the clock")
    for use in (lambda: algorithm.time, lambda: algorithm.transfers):
        with pytest.raises(InputError, match="leaves the clock"):
            use()


def test_turns_that_end_with_the_clock() -> None:
    """All seven turns and the hop, a picosecond before the end; a step that waits for it cannot."""
    hop = 8 * CHUNK * 10**12 // 2
    refused(
        far(first=(1 << 62) - 1 - hop, rate=2), "order", "starts at 0ps", "only at 4.61169e+06s"
    )
    refused(far(first=(1 << 62) - hop, rate=2), "structure", "leaves the clock")


def on_a_switch(parts: int, pieces: int, **change: object) -> Algorithm:
    """The root of eight NPUs copies to all: as many parts and pieces, with chunks of 16 B."""
    network = load_topology("switch:8", bandwidth="1GB/s", latency="10ns")
    grid = grid_of(network, range(8))
    rows = SpreadRows(
        grid.sizes,
        grid.npus,
        tuple(ladders_of(network, grid)),
        ((SpreadStep("copy", (0,), 0),),) * parts,
        pieces,
        1,
        np.arange(7 * parts),
    )
    demand = Collective.of("broadcast", range(8), parts * pieces * 16, parts * pieces, root=0)
    return Algorithm((demand,), replace(rows, **change), Timing(network, CostModel()))


def test_more_than_is_compared_is_refused() -> None:
    """What a few rows can claim is bounded: steps, and moves that are on their way at once."""
    refused(on_a_switch(MOST_STEPS + 1, 1), "structure", "1,025 steps; expected 1,024 at most")
    at_once = MOST_AT_ONCE // 7 + 1
    zero = on_a_switch(1, at_once, period=0)
    refused(zero, "structure", f"{at_once:,} pieces of 7 moves are on their way at once")
    assert zero.time > 0
    parts = on_a_switch(MOST_STEPS, 4096, period=0)
    refused(parts, "structure", "4,096 pieces of 7,168 moves are on their way at once")


@pytest.mark.parametrize("start", [np.arange(7 * 64) // 7, np.zeros(7 * 64, dtype=np.int64)])
def test_many_steps_at_the_same_time(start: np.ndarray) -> None:
    """All are the root's, so they meet, however many start together."""
    refused(on_a_switch(64, 512, start=start), "link", "takes links from")
    refused(on_a_switch(64, 512, start=start, period=0), "link", "takes links from")


@examples(30)
@given(spread_plans())
def test_steps_are_apart_if_nobody_makes_both(algorithm: Algorithm) -> None:
    """As found from all who make them, place by place."""
    rows = rows_of(algorithm)
    found = [wave for part in waves(rows) for wave in part]
    places = np.arange(len(rows.npus))
    strides = np.cumprod([1, *rows.sizes[:-1]])
    off = (places[:, None] // strides % np.array(rows.sizes) > 0) @ (
        1 << np.arange(len(rows.sizes))
    )
    senders = [
        {
            place
            for place in places.tolist()
            if not off[place] & wave.at_root and all(off[place] & line for line in wave.off_root)
        }
        for wave in found
    ]
    one, two = (axis.reshape(-1) for axis in np.indices((len(found), len(found))))
    apart = spread._Apart.of(found).are(one, two)
    for a, b, said in zip(one.tolist(), two.tolist(), apart.tolist(), strict=True):
        assert said == senders[a].isdisjoint(senders[b])
