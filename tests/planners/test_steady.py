"""Steady trees: links are loaded alike, whatever is asked for; groups that may not relay, too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.examples import examples
from tests.strategies import networks
from weft.topology import Topology, load_topology

KINDS = ("all-gather", "reduce-scatter", "all-reduce")


@examples(25)
@given(networks(), st.sampled_from(KINDS), st.integers(1, 3), st.integers(0, 2))
def test_random_networks(network: Topology, kind: str, chunks: int, seed: int) -> None:
    result = weft.synthesize(network, kind, "1MB", method="steady", chunks=chunks, seed=seed)
    assert result.verified
    assert result.bound.time <= result.time


@pytest.mark.parametrize("spec", ["mi250:2", "mi250:3"])
def test_cables_and_switches_are_filled(spec: str) -> None:
    """Each pair of dies takes in what its cables and NICs carry; halves mirror each other."""
    network = load_topology(spec)
    runs = {kind: weft.synthesize(network, kind, "1GB", chunks=48) for kind in KINDS}
    assert all(run.to_dict()["method"] == "steady" for run in runs.values())
    assert runs["all-gather"].time <= runs["all-gather"].bound.ideal * 1.03
    assert runs["reduce-scatter"].time == runs["all-gather"].time
    assert runs["all-reduce"].time <= 2 * runs["all-gather"].time
    if spec == "mi250:2":
        assert runs["all-gather"].time <= 2_850_000_000


def test_partners_outside_the_group() -> None:
    """Where partners may not relay, hops to others are used."""
    network = load_topology("mi250:2")
    group = (0, 1, 18, 19)
    result = weft.synthesize(
        network, "all-gather", "1MB", group=group, relay=False, method="steady"
    )
    assert result.verified


def test_same_plan_on_any_number_of_threads() -> None:
    one, two = (weft.synthesize("mi250:2", "all-gather", "16MB", threads=n, seed=3) for n in (1, 2))
    columns, others = one.to_columns(), two.to_columns()
    assert all((columns[name] == others[name]).all() for name in columns)
