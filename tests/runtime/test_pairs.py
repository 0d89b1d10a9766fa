"""Every collective, type, operation, count, number of ranks and way between them, on processes."""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Iterator

import pytest

from tests.runtime.cases import FACTORS, Case, all_pairs, job_of, product, run_all
from weft.runtime import Ranks, local

WHOLE = os.environ.get("WEFT_WHOLE_PRODUCT")  # make test-runtime


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    with local(16, "tcp", timeout_s=60) as started:
        yield started


def run(ranks: Ranks, cases: list[Case]) -> None:
    jobs = [job_of(case) for case in cases]
    found = ranks.run(run_all, cases, jobs, f"weft-test-{uuid.uuid4().hex}")
    wrong = [case for case, each in zip(cases, zip(*found, strict=True), strict=True) if any(each)]
    assert wrong == []


def test_all_pairs_of_values(ranks: Ranks) -> None:
    cases = all_pairs()
    together = {
        (a, case[a], b, case[b])
        for case in cases
        for a, b in itertools.combinations(range(len(FACTORS)), 2)
    }
    assert len(together) == sum(
        len(one) * len(other) for one, other in itertools.combinations(FACTORS, 2)
    )
    run(ranks, cases)


@pytest.mark.skipif(not WHOLE, reason="takes hours: make test-runtime")
def test_the_whole_product(ranks: Ranks) -> None:
    every = product()
    while some := list(itertools.islice(every, 500)):
        run(ranks, some)
