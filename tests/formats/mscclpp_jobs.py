"""Algorithms to write as plans, and what the checker says of the plans."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from mscclpp_checker import check_plan
from mscclpp_meaning import aliases, meaning
from tests.strategies import SPECS, irregular

import weft
from weft.algorithm import Algorithm
from weft.algorithm.memory import lay_out
from weft.collective import PATTERNS, Collective, Move, all_to_allv, custom, permutation
from weft.formats import write
from weft.topology import load_topology


@st.composite
def jobs(draw: st.DrawFn, *, named: bool = False) -> Algorithm:
    """Algorithms of a few hundred rows, of any pattern and group."""
    topology = draw(st.one_of(irregular(6, 2), SPECS.map(load_topology)))
    members = topology.members.tolist()
    group = draw(st.lists(st.sampled_from(members), min_size=1, max_size=5, unique=True))
    n, cut = len(group), draw(st.integers(1, 2))
    kinds = sorted(kind for kind in PATTERNS if PATTERNS[kind].build is not None or not named)
    kind = draw(st.sampled_from(kinds))
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


def export(algorithm: Algorithm, **options: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        write(algorithm, path, kind="mscclpp", options=options)
        plan: dict[str, Any] = json.loads(path.read_text())
        return plan


def check(algorithm: Algorithm, plan: dict[str, Any], **how: int) -> None:
    """Raise unless the plan does what the algorithm's collective says."""
    collective = algorithm.demands[0]
    ranks = lay_out(algorithm).ranks.tolist()
    expected, names = meaning(collective, ranks)
    alias = aliases(collective, in_place=plan["inplace"])
    check_plan(plan, expected, alias, names, **how)
