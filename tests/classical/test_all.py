"""Every baseline, for every collective it knows: right by the judge, no faster than the bound."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.judge.reference import is_right
from tests.strategies import COSTS, NAMED, group_collectives, networks, roomy, same
from weft.classical import BASELINES, baseline
from weft.collective import PATTERNS, Collective
from weft.cost import CostModel
from weft.errors import InputError
from weft.formats import write
from weft.judge import verify
from weft.topology import Topology, load_topology

ANYWHERE = [name for name in BASELINES if name != "tto"]  # that needs a 2D mesh: see test_tto.py
CASES = [(name, kind) for name in ANYWHERE for kind in BASELINES[name].kinds if kind in NAMED]
SPECS = ["ring:{}", "line:{}", "switch:{}", "fc:{}", "mesh:{}x2", "torus:3x{}", "ring:{}*switch:2"]


def check(algorithm: weft.Algorithm) -> None:
    verdict = verify(algorithm)
    assert verdict.ok, verdict.violation
    if len(algorithm.transfers) < 300:
        assert is_right(algorithm)
    bound = weft.lower_bound(algorithm.topology, algorithm.chunks, algorithm.cost)
    assert algorithm.time >= bound.time


@pytest.mark.parametrize("name", ANYWHERE)
@examples(12)
@given(networks(), COSTS, st.data())
def test_random_demands(name: str, network: Topology, cost: CostModel, data: st.DataObject) -> None:
    """Groups in any order of ranks, alone or two at once, with others to relay."""
    known = group_collectives(network, kinds=BASELINES[name].kinds)
    demands = data.draw(st.lists(known, min_size=1, max_size=2))
    try:
        algorithm = baseline(name, roomy(network, demands, cost), demands, cost)
    except InputError as error:
        assert "clock" in str(error)  # noqa: PT017
        reject()
    check(algorithm)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_any_number_of_ranks(name: str, kind: str) -> None:
    """2 to 20 ranks, powers of two or not, on networks of many kinds, in one to four chunks."""
    for ranks in range(2, 21):
        spec = SPECS[ranks % len(SPECS)]
        network = load_topology(spec.format(ranks))
        group = np.random.default_rng(ranks).permutation(network.npus)[:ranks]
        root = int(group[ranks // 2]) if PATTERNS[kind].rooted else None
        demand = Collective.of(kind, group, 1000 * ranks + 7, ranks % 4 + 1, root, 4)
        verdict = verify(baseline(name, network, [demand]))
        assert verdict.ok, (spec, verdict.violation)


@pytest.mark.parametrize("spec", ["dgx1", "dgx2:2", "ndv2:2", "h100:2", "torus:4x4", "mesh:4x4"])
@pytest.mark.parametrize("name", ANYWHERE)
def test_whole_networks(name: str, spec: str) -> None:
    network = load_topology(spec)
    kind = next(kind for kind in reversed(BASELINES[name].kinds) if kind in NAMED)
    check(baseline(name, network, [Collective.of(kind, network.members, 1 << 20, 2)]))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_small_groups(name: str, kind: str) -> None:
    """One rank has nothing to send; of a few bytes there are fewer chunks than ranks."""
    network = load_topology("mesh:3x2")
    alone = baseline(name, network, [Collective.of(kind, [4], 100, 2)])
    assert verify(alone).ok
    assert len(alone.transfers) == 0
    check(baseline(name, network, [Collective.of(kind, [5, 0, 3, 2, 1], 2, 2, None, 1)]))


@pytest.mark.parametrize("name", BASELINES)
def test_same_again_and_from_disk(name: str, tmp_path: Path) -> None:
    network = load_topology("torus:3x3")
    kind = next(kind for kind in BASELINES[name].kinds if kind in NAMED)
    once, again = (
        baseline(name, network, [Collective.of(kind, range(9), 1 << 16, 2)]) for _ in range(2)
    )
    assert once.provenance["method"] == name
    assert same(once, again)
    write(once, tmp_path / "traces")
    back = weft.load(tmp_path / "traces")
    assert verify(back).ok
    assert same(once, back)


@pytest.mark.parametrize("name", BASELINES)
def test_other_collectives_are_refused(name: str) -> None:
    network = load_topology("ring:4")
    for kind in set(NAMED) - set(BASELINES[name].kinds):
        with pytest.raises(InputError, match=f"{name} does not know {kind}; it does "):
            baseline(name, network, [Collective.of(kind, range(4), 1000)])
