"""Compositions by level on small networks in compact form: of every kind, good and poor ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from tests.strategies import COSTS
from weft.algorithm import Algorithm, LevelRows
from weft.collective import Collective
from weft.planners import Problem
from weft.planners.cutting import Cutting
from weft.planners.level_moves import MoveSearch
from weft.planners.mixes import beside
from weft.planners.terraces import terraced
from weft.topology import Topology, load_topology

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
_SPECS = st.sampled_from(
    [
        *("switch:4", "switch:5", "leaf-spine:4x3x2", "leaf-spine:4x4x4", "leaf-spine:3x3x1"),
        *("leaf-spine:6x2x3", "rails:3x4", "rails:2x3x2", "rails:4x4x2", "h100:2", "h100:3"),
        *("a100:1", "switch:2*switch:3", "switch:3*switch:2*switch:2"),
    ]
)


@st.composite
def tiers(draw: st.DrawFn) -> Topology:
    """Leaves, spines in pods, cores: with as many or fewer links up, of any speeds."""
    hosts, leaves, pods = draw(st.sampled_from([(2, 2, 2), (4, 2, 2), (2, 3, 2), (4, 2, 3)]))
    spines = draw(st.sampled_from([n for n in (1, 2, 4) if hosts % n == 0]))
    cores = draw(st.sampled_from([1, 2]))
    npus = hosts * leaves * pods
    leaf = npus + np.arange(leaves * pods)
    spine = leaf[-1] + 1 + np.arange(spines * pods)
    core = spine[-1] + 1 + np.arange(spines * cores)
    ends = [(npu, leaf[npu // hosts]) for npu in range(npus)]
    for pod in range(pods):
        mine = spine[pod * spines : (pod + 1) * spines]
        ends += [(one, up) for one in leaf[pod * leaves : (pod + 1) * leaves] for up in mine]
        ends += [(up, core[i * cores + j]) for i, up in enumerate(mine) for j in range(cores)]
    counts = [npus, leaves * pods * spines, pods * spines * cores]
    speed = st.tuples(st.sampled_from([10**9, 3 * 10**9, 7_777_777]), st.sampled_from([0, 1, 700]))
    speeds = np.repeat([draw(speed) for _ in counts], counts, axis=0)
    both = np.array(ends + [pair[::-1] for pair in ends])
    return Topology.from_links(
        "tiers",
        npus,
        both[:, 0],
        both[:, 1],
        np.tile(speeds[:, 0], 2),
        np.tile(speeds[:, 1], 2),
        switches=len(leaf) + len(spine) + len(core),
        dimensions=(hosts, leaves, pods),
    )


@st.composite
def groups(draw: st.DrawFn, network: Topology) -> list[list[int]]:
    """All NPUs; or lines along some dimensions of the grid, in any order and order of ranks."""
    sizes = network.dimensions
    along = draw(st.sets(st.sampled_from(range(len(sizes))), min_size=1))
    cube = np.arange(network.npus).reshape(sizes[::-1])
    axes = [len(sizes) - 1 - d for d in sorted(along, reverse=True)]
    lines = np.moveaxis(cube, axes, range(-len(axes), 0))
    lines = lines.reshape(-1, int(np.prod([sizes[d] for d in along])))
    return [draw(st.permutations(line)) for line in draw(st.permutations(lines.tolist()))]


@st.composite
def level_plans(draw: st.DrawFn, kinds: Sequence[str] = KINDS) -> Algorithm:
    """A composition by level: what the planner makes of a mix of ways, not only of good ones."""
    network = draw(st.one_of(_SPECS.map(load_topology), tiers()))
    kind, size = draw(st.sampled_from(kinds)), draw(st.integers(1, 10**5))
    chunks, alignment = draw(st.integers(1, 3)), draw(st.sampled_from([1, 16]))
    demands = [
        Collective.of(kind, group, size, chunks, alignment=alignment)
        for group in draw(groups(network))
    ]
    assume(demands[0].ranks > 1)
    problem = Problem.of(network, demands, draw(COSTS))
    if draw(st.booleans()):
        problem = replace(problem, free=(True,) * len(demands))
    scene = terraced(problem)
    assume(scene is not None)
    search = MoveSearch(problem, scene)
    frame = draw(st.sampled_from(scene.frames))
    lanes = list(islice(search._lanes(frame), 64))
    assume(lanes)
    mix = (draw(st.sampled_from(lanes)),)
    if search.most_parts > 1 and draw(st.booleans()):
        mix = beside(mix, draw(st.sampled_from(lanes)), draw(st.sampled_from([0.1, 0.5])))
    free = draw(st.integers(1, 4)) * sum(lane.part.rows(lane.frame.sizes) for lane in mix)
    cutting = Cutting.of(demands[0], mix, free if search.free else None)
    assume(min(smallest for smallest, _ in cutting.sizes(demands[0])) > 0)
    return search._made(cutting, draw(st.sampled_from([0, 1])))


def rows_of(algorithm: Algorithm) -> LevelRows:
    assert isinstance(algorithm.rows, LevelRows)
    return algorithm.rows
