"""Broadcasts and Reduces along levels of small networks in compact form, good and poor ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st

from tests.level_plans import groups, tiers
from tests.strategies import COSTS
from weft.algorithm import Algorithm, SpreadRows
from weft.collective import Collective
from weft.planners import Problem
from weft.planners.spreads import SpreadSearch, spread_grid
from weft.topology import load_topology

KINDS = ("broadcast", "reduce")
_SPECS = st.sampled_from(
    [
        *("switch:4", "switch:5", "switch:6", "leaf-spine:4x3x2", "leaf-spine:4x4x4"),
        *("leaf-spine:3x3x1", "leaf-spine:6x2x3", "rails:3x4", "rails:2x3x2", "rails:4x4x2"),
        *("h100:2,plain", "h100:3,plain", "a100:1,plain", "switch:2*switch:3"),
        "switch:3*switch:2*switch:2",
    ]
)


@st.composite
def spread_plans(draw: st.DrawFn, kinds: Sequence[str] = KINDS) -> Algorithm:
    """Any way along the levels, from any root, in few pieces."""
    network = draw(st.one_of(_SPECS.map(load_topology), tiers()))
    group = draw(st.sampled_from([network.members.tolist(), *draw(groups(network))]))
    assume(len(group) > 1)
    demand = Collective.of(
        draw(st.sampled_from(kinds)),
        draw(st.permutations(group)),
        draw(st.integers(1, 10**5)),
        root=draw(st.sampled_from(group)),
        alignment=draw(st.sampled_from([1, 16])),
    )
    problem = replace(Problem.of(network, [demand], draw(COSTS)), free=(True,))
    grid = spread_grid(problem)
    assume(grid is not None)
    search = SpreadSearch(problem, grid)
    way = draw(st.sampled_from([way for way in search.ways() if search.shares(way) < 200]))
    counts = [count for count in search.pieces(search.shares(way)) if count <= 8]
    assume(counts)
    return search.made(way, draw(st.sampled_from(counts)))


def rows_of(algorithm: Algorithm) -> SpreadRows:
    assert isinstance(algorithm.rows, SpreadRows)
    return algorithm.rows
