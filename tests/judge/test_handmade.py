"""What is right must be called right, by both judges."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from weft.algorithm import Algorithm, Timing
from weft.judge import Verdict, verify

from . import handmade
from .reference import is_right


@pytest.mark.parametrize("name", handmade.HANDMADE)
def test_right_algorithms_pass(name: str) -> None:
    algorithm = handmade.HANDMADE[name]()
    assert verify(algorithm) == Verdict(True)
    assert bool(verify(algorithm))
    assert is_right(algorithm)


@pytest.mark.parametrize(
    ("blocking", "store_and_forward", "slow_up"), list(itertools.product([False, True], repeat=3))
)
def test_switch_in_all_cost_models(blocking: bool, store_and_forward: bool, slow_up: bool) -> None:
    algorithm = handmade.star_all_gather(blocking, store_and_forward, slow_up)
    assert verify(algorithm)
    assert is_right(algorithm)


def test_several_demands_share_one_algorithm() -> None:
    one, two = handmade.ring_all_gather(), handmade.ring_reduce_scatter()
    pairs = zip(one.transfers.columns().items(), two.transfers.columns().values(), strict=True)
    columns = {name: np.concatenate([a, b]) for (name, a), b in pairs}
    rows, chunks = len(one.transfers), len(one.chunks)
    columns["chunk"][rows:] += chunks
    for name in ("start", "end"):
        columns[name][rows:] += one.time
    transfers = type(one.transfers)(**columns)
    both = Algorithm(
        (*one.demands, *two.demands), transfers, Timing(one.topology, one.cost, one.routes)
    )
    assert verify(both)
    assert is_right(both)


@pytest.mark.parametrize(
    ("build", "npus"), [(handmade.ring_all_gather, 1024), (handmade.ring_all_reduce, 512)]
)
def test_large_ring(build: Callable[[int], Algorithm], npus: int) -> None:
    algorithm = build(npus)
    assert len(algorithm.transfers) >= npus * (npus - 1)
    assert verify(algorithm)
