"""Plans that are damaged: whatever is accepted runs, and anything gets an answer."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mscclpp_handmade import Plan, all_reduce, packets, passed_on, send_recv
from mscclpp_jobs import check, export
from mscclpp_shape import WrongPlanError
from tests.examples import examples

import weft
from weft.algorithm import Algorithm
from weft.errors import FormatError
from weft.formats import Imported, read


def load(plan: Plan, folder: Path) -> Imported:
    path = folder / "plan.json"
    path.write_text(json.dumps(plan))
    return read(path, kind="mscclpp")


BASES = [
    weft.synthesize(*job, chunks=1).algorithm
    for job in (
        ("ring:3", "all-reduce", "1MiB"),
        ("ring:4", "all-gather", "1MiB"),
        ("line:3", "all-to-all", "1MiB"),
    )
]


@examples(150)
@given(
    base=st.sampled_from(BASES),
    node=st.sampled_from([None, 1]),
    seed=st.integers(0, 10**6),
)
def test_what_is_accepted_runs(
    base: Algorithm, node: int | None, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    plan = export(base, gpus_per_node=node)
    mutate(plan, random.Random(seed))
    try:
        load(plan, tmp_path_factory.mktemp("plan")).verified()
    except FormatError:
        return
    check(base, plan, runs=2, launches=1)  # nothing is said of one run after another


def mutate(plan: Plan, rng: random.Random) -> None:
    """Break something, or not."""
    blocks = [block for gpu in plan["gpus"] for block in gpu["threadblocks"] if block["ops"]]
    ops = rng.choice(blocks)["ops"]
    at = rng.randrange(len(ops))
    way = rng.randrange(5)
    if way == 0:
        del ops[at]
    elif way == 1 and len(ops) > 1:
        other = rng.randrange(len(ops))
        ops[at], ops[other] = ops[other], ops[at]
    elif way == 2:
        ops.insert(at, copy.deepcopy(rng.choice(ops)))
    else:
        fields = [
            (record, key)
            for op in ops
            for record in (op, *op.get("src_buff", ()), *op.get("dst_buff", ()))
            for key in ("index", "type", "buffer_id", "name", "semaphore_ids")
            if key in record
        ]
        record, key = rng.choice(fields)
        others = [r[k] for r, k in fields if k == key]
        record[key] = copy.deepcopy(rng.choice([*others, *([0, 1] if key == "index" else [])]))


def test_most_mutants_are_refused(tmp_path: Path) -> None:
    refused = wrong = 0
    for seed in range(60):
        plan = export(BASES[seed % len(BASES)])
        mutate(plan, random.Random(seed))
        try:
            check(BASES[seed % len(BASES)], plan)
        except (WrongPlanError, KeyError, IndexError, ValueError, TypeError):
            wrong += 1
        try:
            load(plan, tmp_path).verified()
        except FormatError:
            refused += 1
    assert wrong > 30
    assert refused >= wrong * 9 // 10


@examples(150)
@given(
    source=st.sampled_from([all_reduce(), packets(), send_recv(), passed_on()]),
    seed=st.integers(0, 10**9),
)
def test_anything_gets_an_answer(
    source: Plan, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng = random.Random(seed)
    plan = copy.deepcopy(source)
    for _ in range(rng.randint(1, 3)):
        scramble(plan, rng)
    text = json.dumps(plan)
    if rng.random() < 0.3:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(["", "{", "9" * 5000, '"', "\x00", "é"]) + text[at + 1 :]
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    path.write_text(text)
    try:
        read(path, kind="mscclpp").violation()
    except FormatError as error:
        assert str(error).startswith(str(path))  # noqa: PT017


def scramble(plan: Any, rng: random.Random) -> None:
    """Put a strange value somewhere."""
    strange = [None, -1, 0, 1, 2**31 - 1, 2**31, 10**30, 1.5, "", "i", [], {}, [[]], True, "memory"]
    at: Any = plan
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return
        key = rng.choice(keys)
        if not isinstance(at[key], dict | list) or not at[key] or rng.random() < 0.1:
            at[key] = rng.choice(strange)
            return
        at = at[key]
