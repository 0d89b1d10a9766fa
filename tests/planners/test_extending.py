"""Planners of users: they compete and win where they are faster; nothing is taken on trust."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.classical.planner import Classical
from weft.comparison import compare
from weft.errors import InputError, PlannerError
from weft.planners import PLANNERS, Planner, Problem, method_names
from weft.registry import Registry

MESH = {"topology": "mesh:5x5", "collective": "all-reduce", "size": "64MiB", "chunks": 4}


class Mine(Planner):
    """Does what it is made with."""

    name = "mine"
    summary = "for tests"

    def __init__(self, plan: Callable[[Problem], weft.Algorithm] | None = None) -> None:
        self.make = plan or patient

    def fits(self, problem: Problem) -> str | None:
        return PLANNERS["trees"].fits(problem)

    def plan(self, problem: Problem) -> weft.Algorithm:
        return self.make(problem)


def patient(problem: Problem) -> weft.Algorithm:
    """Better than Weft's answer to `MESH`: another seed is luckier."""
    plans = [PLANNERS["trees"].plan(replace(problem, seed=seed)) for seed in range(4)]
    return replace(min(plans, key=lambda plan: plan.time), provenance={})


def nothing(problem: Problem) -> weft.Algorithm:
    """The fastest of all, if it were right."""
    empty = np.empty(0, dtype=np.int32)
    return weft.Algorithm(problem.demands, weft.Transfers(empty, empty, empty, empty.astype(bool)))


def fail(_problem: Problem) -> weft.Algorithm:
    raise ZeroDivisionError("division by zero")


def cannot(_problem: Problem) -> weft.Algorithm:
    raise InputError("mine cannot after all")


@pytest.fixture(autouse=True)
def _none_is_left() -> Iterator[None]:
    yield
    if "mine" in PLANNERS:
        PLANNERS.remove("mine")


def method_of(result: weft.Result) -> object:
    return result.algorithm.provenance["method"]


def test_it_wins_where_it_is_faster() -> None:
    before = weft.synthesize(**MESH)
    assert weft.register(Mine) is Mine
    assert "mine" in method_names()
    result = weft.synthesize(**MESH)
    assert result.verified
    assert method_of(result) == "mine"
    assert result.algorithm.time < before.algorithm.time


def test_it_loses_where_it_is_slower() -> None:
    before = weft.synthesize(**MESH)
    weft.register(Mine(lambda problem: PLANNERS["ring"].plan(problem)))
    result = weft.synthesize(**MESH)
    assert method_of(result) == method_of(before)
    assert result.algorithm.time == before.algorithm.time


def test_the_only_one_to_be_used() -> None:
    weft.register(Mine(lambda problem: PLANNERS["ring"].plan(problem)))
    result = weft.synthesize("ring:4", "all-reduce", "1MiB", method="mine")  # chunks are chosen
    assert result.verified
    with pytest.raises(InputError, match=r"method mine plans all-reduce.*; use auto"):
        weft.synthesize("ring:4", "all-gather", "1MiB", method="mine")


def test_a_wrong_plan_never_wins() -> None:
    weft.register(Mine(nothing))
    assert weft.synthesize(**MESH).verified
    only = weft.synthesize(**MESH, method="mine")
    assert (only.verified, only.algorithm.time) == (False, 0)
    rows = compare("ring:4", "all-reduce", "1KiB", against=["mine"]).rows
    assert (rows[0].winner, rows[0].runs["mine"].verified) == ("weft", False)


def test_comparisons_show_it() -> None:
    weft.register(Mine)
    found = compare("ring:4", "all-reduce", "1MiB")
    assert "mine" in found.names
    assert found.rows[0].runs["mine"].verified
    assert "mine" not in compare("ring:4", "all-gather", "1MiB").names


@pytest.mark.parametrize("method", ["auto", "mine"])
@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (fail, "method mine fails with ZeroDivisionError: division by zero"),
        (lambda _: None, "method mine fails with TypeError: plan gives NoneType, not an Algorithm"),
        (
            lambda problem: PLANNERS["trees"].plan(
                problem.cut([replace(problem.demand, size=problem.demand.size // 2)])
            ),
            "method mine plans other collectives than it is asked for",
        ),
        (
            lambda problem: PLANNERS["trees"].plan(
                problem.on(problem.topology.with_links(bandwidth=10**15))
            ),
            "method mine plans for another network or cost model",
        ),
    ],
)
def test_errors_name_the_planner(
    plan: Callable[[Problem], weft.Algorithm], message: str, method: str
) -> None:
    weft.register(Mine(plan))
    with pytest.raises(PlannerError, match=re.escape(message)):
        weft.synthesize(**MESH, method=method)


def test_it_may_say_that_it_cannot() -> None:
    weft.register(Mine(cannot))
    assert weft.synthesize(**MESH).verified
    with pytest.raises(InputError, match="mine cannot after all"):
        weft.synthesize(**MESH, method="mine")


def test_comparisons_name_what_fails() -> None:
    class Odd(Mine):
        def fits(self, problem: Problem) -> str | None:
            raise KeyError(problem.demand.kind)

    weft.register(Odd)
    with pytest.raises(PlannerError, match="method mine fails with KeyError"):
        compare("ring:4", "all-reduce", "1KiB")


def test_names_that_are_taken() -> None:
    weft.register(Mine)
    with pytest.raises(InputError, match="there is a method 'mine' already"):
        weft.register(Mine())
    weft.register(Mine, replace=True)
    for name in ("ring", "matching", "auto", "weft", "a.b", "a/b", "", "a + b"):
        one = Mine()
        one.name = name
        with pytest.raises(InputError, match=r"already|cannot be called"):
            weft.register(one)


def test_what_has_no_table_is_refused() -> None:
    with pytest.raises(InputError, match="int has no table, so it cannot be registered"):
        weft.register(3)

    class Nameless(Planner):
        def fits(self, problem: Problem) -> str | None:  # noqa: ARG002
            return None

        def plan(self, problem: Problem) -> weft.Algorithm:
            return nothing(problem)

    with pytest.raises(InputError, match="Nameless has no name"):
        weft.register(Nameless)


def test_sends_alone_make_a_planner() -> None:
    """A classical algorithm says who sends what to whom, and no more."""
    direct = PLANNERS["direct"]
    assert isinstance(direct, Classical)
    weft.register(Classical("mine", direct.sends, ("all-gather",), "as direct"))
    result = weft.synthesize("ring:4", "all-gather", "1MiB", method="mine")
    assert result.verified
    assert method_of(result) == "mine"


def installed(folder: Path, points: str, module: str) -> Path:
    """A package as pip would install it."""
    (folder / "theirs.py").write_text(module)
    info = folder / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[weft.planners]\n{points}\n")
    return folder


def run_with(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), *sys.path])
    return subprocess.run(
        [sys.executable, *args],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


THEIRS = """
from weft.classical.planner import Classical
from weft.planners import PLANNERS, Planner

class Theirs(Planner):
    name = "theirs"
    def fits(self, problem):
        return None if problem.kinds == {"all-gather"} else "plans all-gather"
    def plan(self, problem):
        return PLANNERS["ring"].plan(problem)
"""
SYNTH = ("-m", "weft", "synth", "ring:4", "all-gather", "--size", "1MiB", "--method")


def test_entry_points_are_loaded(tmp_path: Path) -> None:
    folder = installed(tmp_path, "theirs = theirs:Theirs", THEIRS)
    done = run_with(folder, *SYNTH, "theirs")
    assert (done.returncode, done.stderr) == (0, "")
    done = run_with(folder, "-m", "weft", "compare", "ring:4", "all-gather", "--sizes", "1KiB")
    assert (done.returncode, done.stderr) == (0, "")
    assert "theirs" in done.stdout


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ("theirs = theirs:Nobody", "AttributeError"),
        ("ring = theirs:Ring", "there is a method 'ring' already"),
        ("theirs = theirs:THREE", "int has no table"),
    ],
)
def test_entry_points_that_cannot_be_loaded(points: str, message: str, tmp_path: Path) -> None:
    more = "class Ring(Theirs):\n    name = 'ring'\n\nTHREE = 3\n"
    done = run_with(installed(tmp_path, points, THEIRS + more), *SYNTH, "ring")
    name = points.split()[0]
    assert done.returncode == 2
    assert f"theirs adds the method '{name}', which cannot be loaded" in done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_table_that_failed_to_load_fails_again() -> None:
    table: Registry[object] = Registry("thing", "weft.no_such_package")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError):
            len(table)
