"""What notebooks and scripts call: every callable takes a result, an algorithm or a path."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import weft
from tests.judge.mutate import drop
from weft.workload import Transformer, save_transformer

CALLABLES = (
    *("synthesize", "verify", "simulate", "compare", "load", "save", "convert", "lower", "bound"),
)


@pytest.fixture(scope="module")
def result() -> weft.Result:
    return weft.synthesize("ring:4", "all-gather", "1MiB")


@pytest.fixture(params=["result", "algorithm", "str", "path"])
def source(request: pytest.FixtureRequest, result: weft.Result, tmp_path: Path) -> object:
    if request.param == "result":
        return result
    if request.param == "algorithm":
        return result.algorithm
    result.save(tmp_path / "in.weft")
    return tmp_path / "in.weft" if request.param == "path" else str(tmp_path / "in.weft")


def test_callables_are_callable_once_every_module_is_imported(tmp_path: Path) -> None:
    for module in pkgutil.walk_packages(weft.__path__, "weft."):
        if module.name != "weft.__main__":
            import_module(module.name)
    assert all(callable(getattr(weft, name)) for name in CALLABLES)
    result = weft.synthesize("ring:4", "all-gather", "1MiB")
    assert weft.save(result, tmp_path / "a.weft") == "weft"
    assert weft.verify(weft.load(tmp_path / "a.weft"))
    converted = weft.convert(tmp_path / "a.weft", tmp_path / "a.csv")
    assert (converted.source_format, converted.target_format) == ("weft", "csv")
    assert weft.simulate(result).time_us == result.time_us
    assert weft.bound("ring:4", "all-gather", "1MiB").ideal <= result.algorithm.time
    assert weft.compare("ring:4", "all-gather", "1MiB", against=["ring"]).verified
    save_transformer(Transformer(), tmp_path / "step")
    assert weft.lower(tmp_path / "step", "ring:4").ranks == 1


def test_verify(source: weft.api.Source) -> None:
    assert weft.verify(source)
    assert weft.verify(source, "mesh:2x2")


def test_simulate(source: weft.api.Source, result: weft.Result) -> None:
    assert weft.simulate(source).time_us == result.time_us
    elsewhere = weft.simulate(source, "line:4", order="fifo", latency_model="blocking")
    assert elsewhere.time_us > result.time_us
    assert elsewhere.run.cost == weft.CostModel("blocking")
    assert weft.simulate(source, reducer="1GB/s").run.reducer == 10**9


def test_bound(source: weft.api.Source, result: weft.Result) -> None:
    assert weft.bound(source).time == result.bound.time


def test_save(source: weft.api.Source, result: weft.Result, tmp_path: Path) -> None:
    assert weft.save(source, tmp_path / "traces") == "chakra"
    assert weft.load(str(tmp_path / "traces")).time == result.algorithm.time
    assert weft.save(source, tmp_path / "plan.json", "mscclpp") == "mscclpp"


def test_bounds_of_collectives() -> None:
    asked = weft.Collective.of("all-gather", range(4), 1 << 20, 4)
    one = weft.bound(weft.load_topology("ring:4"), asked)
    assert one == weft.bound("ring:4", "all-gather", "1MiB", chunks=4)
    assert weft.bound("ring:4", [asked, asked]).time > one.time
    assert weft.bound("ring:4", "broadcast", 100, group=[1, 2], root=2).time > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda _: weft.verify(3), "a int is no algorithm; give a Result, an Algorithm or"),
        (lambda result: weft.verify(result, kind="weft"), "hints and kind go with a path"),
        (lambda result: weft.formats.write(result, "a"), "not a Result; weft.save takes a Result"),
        (lambda _: weft.simulate("no/such"), "cannot read no/such"),
        (lambda result: weft.bound(result.topology), "name a collective and a size"),
        (lambda result: weft.bound(result, "all-gather", 1), "goes with a network"),
        (lambda _: weft.bound("ring:4", "all-gather"), "needs a size"),
        (lambda _: weft.bound("ring:4", "all-gather", 64, group=[0, 9]), "NPU 9"),
    ],
)
def test_refused(call: Callable[[weft.Result], object], message: str, result: weft.Result) -> None:
    with pytest.raises(weft.InputError, match=message):
        call(result)


def test_what_is_wrong_is_not_simulated(tmp_path: Path) -> None:
    result = weft.synthesize("line:3", "all-gather", "1MiB")
    wrong = drop(result.algorithm, 0)
    verdict = weft.verify(wrong)
    assert not verdict
    weft.save(wrong, tmp_path / "wrong.weft")
    for source in (wrong, weft.Result(wrong, verdict, result.bound, 0.0), tmp_path / "wrong.weft"):
        with pytest.raises(weft.WrongAlgorithmError, match=str(verdict.violation)[:20]) as caught:
            weft.simulate(source)
        assert caught.value.verdict is not None
        assert caught.value.verdict.kind == verdict.kind


def test_names_for_type_checkers_are_those_at_run_time() -> None:
    assert weft.__file__ is not None
    tree = ast.parse(Path(weft.__file__).read_text())
    typed = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    assert typed == weft._HOME
    assert sorted(typed) == weft.__all__


def test_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        weft.nothing  # noqa: B018


def loaded_after(code: str) -> set[str]:
    """Modules that a fresh interpreter has loaded after some statements."""
    script = f"import sys, weft\n{code}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_synthesis_loads_no_format() -> None:
    loaded = loaded_after("weft.synthesize('ring:4', 'all-gather', '1MiB')")
    assert not {name for name in loaded if name.startswith("weft.formats")}
    assert not loaded & {"yaml", "msgspec", "click", "rich", "importlib.metadata"}


def test_a_comparison_loads_no_format() -> None:
    loaded = loaded_after("weft.compare('ring:4', 'all-gather', '1MiB', against=['ring'])")
    assert not {name for name in loaded if name.startswith("weft.formats")}


def test_importing_the_package_loads_next_to_nothing() -> None:
    assert not {name for name in loaded_after("") if name.startswith(("weft.", "numpy"))}
