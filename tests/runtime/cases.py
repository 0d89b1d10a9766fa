"""Cases for runs on real ranks: all pairs of values, or the whole product of them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import weft
from weft.algorithm import Algorithm
from weft.collective import PATTERNS
from weft.runtime import Communicator
from weft.runtime.bench import Job, Part, work
from weft.runtime.buffers import OPS, TYPES

RANKS = range(2, 17)
COUNTS = ("none", "one", "few", "even", "odd")


class Case(NamedTuple):
    """One run: every field is a value that can be combined with all of the others."""

    collective: str
    ranks: int
    dtype: str
    op: str
    count: str
    transport: str
    in_place: bool
    reproducible: bool


FACTORS: tuple[tuple[Any, ...], ...] = (
    (*PATTERNS,),
    (*RANKS,),
    (*TYPES,),
    OPS,
    COUNTS,
    ("shm", "tcp"),
    (False, True),
    (False, True),
)


def product() -> Iterator[Case]:
    """All cases there are."""
    return itertools.starmap(Case, itertools.product(*FACTORS))


def all_pairs(seed: int = 0) -> list[Case]:
    """Cases in which every two values of different fields come together at least once."""
    rng = random.Random(seed)
    places = list(itertools.combinations(range(len(FACTORS)), 2))
    left = {(a, x, b, y) for a, b in places for x, y in itertools.product(FACTORS[a], FACTORS[b])}
    cases = []
    while left:
        a, x, b, y = min(left, key=str)
        best: tuple[int, tuple[Any, ...]] = (-1, ())
        for _ in range(12):
            values = [rng.choice(factor) for factor in FACTORS]
            values[a], values[b] = x, y
            new = sum((i, values[i], j, values[j]) in left for i, j in places)
            best = max(best, (new, tuple(values)), key=lambda one: one[0])
        values = list(best[1])
        left -= {(i, values[i], j, values[j]) for i, j in places}
        cases.append(Case(*values))
    return cases


def count_of(case: Case) -> int:
    """Elements of the largest buffer on a rank."""
    n = case.ranks
    return {"none": 0, "one": 1, "few": n - 1, "even": 12 * n, "odd": 1009}[case.count]


@cache
def algorithm_of(collective: str, ranks: int) -> Algorithm:
    """What Weft plans for it on some network of so many NPUs."""
    spec = {0: f"ring:{ranks}", 1: f"line:{ranks}", 2: f"fc:{ranks}", 3: f"switch:{ranks}"}[
        ranks % 4
    ]
    group = [*range(1, ranks), 0]
    size = 64 * ranks
    if collective == "custom":
        moves = [
            weft.Move(24, (0,), (ranks - 1,)),
            weft.Move(40, tuple(range(ranks)), (0, 1), True),
        ]
        demand = weft.custom(group, moves)
    elif collective == "permutation":
        demand = weft.permutation(group, size, [*range(2, ranks), 0, 1][:ranks])
    elif collective == "all-to-allv":
        matrix = [[(5 * a + 3 * b) % 7 * 4 for b in range(ranks)] for a in range(ranks)]
        demand = weft.all_to_allv(group, matrix)
    else:
        demand = weft.Collective.of(collective, group, size)
    return weft.synthesize(spec, demand, chunks=1 + ranks % 3).algorithm


def job_of(case: Case) -> Job:
    return Job(
        algorithm_of(case.collective, case.ranks),
        (count_of(case),),
        case.dtype,
        case.op,
        iterations=1,
        warmups=0,
        reproducible=case.reproducible,
        in_place=case.in_place,
    )


_open: dict[tuple[int, str], Communicator] = {}  # of this process


def run_all(whole: Communicator, cases: list[Case], jobs: list[Job], name: str) -> list[int]:
    """What a rank does of many cases: how many elements were wrong in each of them."""
    found = []
    for case, job in zip(cases, jobs, strict=True):
        if whole.rank >= case.ranks:
            found.append(0)
            continue
        key = case.ranks, case.transport
        if key not in _open:
            make = Communicator.tcp if case.transport == "tcp" else Communicator.shared_memory
            address = f"unix:@{name}-{case.ranks}-{case.transport}"
            _open[key] = make(whole.rank, case.ranks, address, timeout_s=60)
        part: Part = work(_open[key], job)
        found.append(part.wrong)
    for one in _open.values():
        one.close()
    _open.clear()
    return found
