"""Plans that Weft writes run on made-up GPUs, in any order, without races or deadlock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mscclpp_checker import check_plan
from mscclpp_meaning import aliases, meaning
from tests.strategies import SPECS, irregular

import weft
from weft.algorithm import Algorithm
from weft.algorithm.memory import lay_out
from weft.collective import PATTERNS, Collective, Move, all_to_allv, custom, permutation
from weft.errors import InputError
from weft.formats import write
from weft.topology import load_topology


def export(algorithm: Algorithm, folder: Path, **options: Any) -> dict[str, Any]:
    path = folder / "plan.json"
    write(algorithm, path, kind="mscclpp", options=options)
    plan: dict[str, Any] = json.loads(path.read_text())
    return plan


def check(algorithm: Algorithm, plan: dict[str, Any], *, runs: int = 3, seed: int = 0) -> None:
    collective = algorithm.demands[0]
    ranks = lay_out(algorithm).ranks.tolist()
    alias = aliases(collective, in_place=plan["inplace"])
    expected, names = meaning(collective, ranks)
    check_plan(plan, expected, alias, names, runs=runs, seed=seed)


@st.composite
def jobs(draw: st.DrawFn) -> Algorithm:
    """Algorithms of a few hundred rows, of any pattern and group."""
    topology = draw(st.one_of(irregular(6, 2), SPECS.map(load_topology)))
    members = topology.members.tolist()
    group = draw(st.lists(st.sampled_from(members), min_size=1, max_size=5, unique=True))
    n, cut = len(group), draw(st.integers(1, 2))
    kind = draw(st.sampled_from(sorted(PATTERNS)))
    sizes = st.sampled_from([0, 16, 16, 32])
    if kind == "custom":
        ends = st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True).map(tuple)
        move = st.builds(Move, st.sampled_from([16, 32]), ends, ends, st.booleans())
        collective = custom(group, draw(st.lists(move, min_size=1, max_size=4)))
    elif kind == "all-to-allv":
        matrix = draw(st.lists(st.lists(sizes, min_size=n, max_size=n), min_size=n, max_size=n))
        matrix[0][0] = 16
        collective = all_to_allv(group, matrix)
    elif kind == "permutation":
        collective = permutation(group, 32, draw(st.permutations(range(n))), chunks_per_share=cut)
    else:
        collective = Collective.of(kind, group, 16 * cut * n * 2, cut)
    return weft.synthesize(topology, collective, chunks=collective.chunks_per_share).algorithm


@settings(max_examples=60, deadline=None)
@given(
    algorithm=jobs(),
    node=st.sampled_from([None, 1, 2, 3]),
    blocks=st.sampled_from([108, 12, 6]),
    seed=st.integers(0, 1000),
)
def test_any_algorithm_runs(
    algorithm: Algorithm,
    node: int | None,
    blocks: int,
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("plan")
    try:
        plan = export(algorithm, folder, gpus_per_node=node, thread_blocks=blocks)
    except InputError:
        event("does not fit")
        assert blocks < 108
        return
    check(algorithm, plan, runs=2, seed=seed)
