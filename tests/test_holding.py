"""What users hold: shown in a line and as HTML, as columns, read-only, pickled and copied."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.algorithm import Algorithm, Routes, rounds
from weft.display import html_table, of_bound
from weft.language import Program, program
from weft.replay import TraceRun, simulate_traces, trace_timeline_of
from weft.workload import Transformer, save_transformer


def written() -> Program:
    with program("broadcast", "1MiB", ranks=3, in_place=True) as made:
        made.chunk(0).copy(1).copy(2)
    return made


def replayed(folder: Path) -> TraceRun:
    save_transformer(Transformer(tp=2, dp=2), folder / "step")
    return simulate_traces(folder / "step", "mesh:2x2")


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    result = weft.synthesize("line:3", "all-reduce", "1MiB", chunks=2)
    broken = weft.load_topology("torus:4x4", without_links=["0-1"])
    return {
        "result": result,
        "algorithm": result.algorithm,
        "transfers": result.transfers,
        "verdict": result.verdict,
        "bound": result.bound,
        "group": result.groups[0],
        "report": weft.simulate(result),
        "comparison": weft.compare("ring:4", "all-gather", "1MiB", against=["ring", "tto"]),
        "plan": weft.Plan([result.collective], [None]),
        "program": written(),
        "written": written().algorithm(),
        "trace_run": replayed(tmp_path_factory.mktemp("traces")),
        "symmetric": weft.synthesize("torus:4x4", "all-gather", "1MiB", method="symmetric"),
        "rounds": weft.synthesize("torus:4x4", "all-gather", "1MiB", chunks=1, method="rounds"),
        "periodic": weft.synthesize("mesh:4x4", "all-reduce", "1MiB", chunks=8, method="periodic"),
        "repaired": weft.synthesize(broken, "all-gather", "1MiB", chunks=1, method="repaired"),
        "exchange": weft.synthesize(broken, "all-to-all", "1MiB", chunks=1, method="repaired"),
    }


COMPACT = ("symmetric", "rounds", "periodic", "repaired", "exchange")
HELD = (
    *("result", "algorithm", "transfers", "verdict", "bound", "group", "report", "comparison"),
    *("plan", "program", "written", "trace_run", *COMPACT),
)
SHOWN = (
    "result",
    "algorithm",
    "transfers",
    "verdict",
    "bound",
    "report",
    "comparison",
    "trace_run",
)


def facts(value: Any) -> Any:
    """What must survive a copy."""
    if isinstance(value, Program):
        return repr(value), facts(value.algorithm())
    columns = value.to_columns() if hasattr(value, "to_columns") else {}
    plain = value.to_dict() if hasattr(value, "to_dict") else None
    return repr(value), {name: column.tolist() for name, column in columns.items()}, plain


@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))])
def test_copies_are_the_same(held: dict[str, Any], name: str, way: Any) -> None:
    copied = way(held[name])
    np.testing.assert_equal(facts(copied), facts(held[name]))
    if isinstance(copied, weft.Result):
        assert weft.verify(copied)


def efficiency(result: weft.Result) -> tuple[float, weft.Result]:
    return weft.simulate(result).efficiency, result


def test_results_go_through_a_pool_of_processes(held: dict[str, Any]) -> None:
    results = [held["result"], held["rounds"]]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for result, (share, back) in zip(results, pool.map(efficiency, results), strict=True):
            assert share == weft.simulate(result).efficiency
            assert back.to_dict() == result.to_dict()


def test_a_run_of_traces_can_be_drawn_when_copied_twice(held: dict[str, Any]) -> None:
    run = pickle.loads(pickle.dumps(copy.deepcopy(held["trace_run"])))
    assert trace_timeline_of(run).name == trace_timeline_of(held["trace_run"]).name
    assert run.critical_path == held["trace_run"].critical_path


def test_a_log_beyond_memory_is_not_pickled(
    held: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held["rounds"].save(tmp_path / "a.weft")
    loaded = weft.load(tmp_path / "a.weft")
    assert facts(pickle.loads(pickle.dumps(loaded))) == facts(loaded)
    monkeypatch.setattr(rounds, "MOST_PICKLED", 10)
    with pytest.raises(weft.InputError, match="too large to pickle or copy; save the algorithm"):
        pickle.dumps(loaded)


def test_a_lowering_says_how_it_is_handed_on(tmp_path: Path) -> None:
    save_transformer(Transformer(tp=2, dp=2), tmp_path / "step")
    lowering = weft.lower(tmp_path / "step", "mesh:2x2")
    assert "lowered, 4 ranks" in repr(lowering)
    with pytest.raises(weft.InputError, match="hand on the traces"):
        copy.deepcopy(lowering)


@pytest.mark.parametrize("name", HELD)
def test_repr_is_one_short_line(held: dict[str, Any], name: str) -> None:
    text = repr(held[name])
    assert "\n" not in text
    assert "array(" not in text
    assert len(text) <= 300


def test_repr(held: dict[str, Any]) -> None:
    result = held["result"]
    title = "all-reduce of 1MiB on line:3"
    share = of_bound(result.efficiency)
    time = repr(result.groups[0]).split(": ")[1].split(",")[0]
    assert repr(result) == f"<Result {title}: {time}, {share}, verified>"
    assert (
        repr(result.algorithm) == f"<Algorithm {title}: {len(result.algorithm)} transfers, {time}>"
    )
    assert repr(held["report"]) == f"<Report {title}: {time}, {share}, order plan>"
    assert repr(held["comparison"]) == (
        "<Comparison all-gather on ring:4: 1 sizes, 3 algorithms, all verified>"
    )
    assert repr(held["written"]) == "<Algorithm broadcast of 1MiB: 2 transfers, untimed>"
    assert repr(result.verdict) == "<Verdict verified>"


@pytest.mark.parametrize("name", SHOWN)
def test_notebooks_get_a_table(held: dict[str, Any], name: str) -> None:
    html = held[name]._repr_html_()
    assert html.startswith("<table><caption>")
    assert html.count("<tr>") == html.count("</tr>") > 0


def test_what_files_say_is_escaped_in_tables() -> None:
    network = weft.Topology.from_links("<b>&\x1b[31m", 2, [0, 1], [1, 0], [10**9] * 2, [10] * 2)
    html = weft.synthesize(network, "all-gather", "1KiB")._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;&amp;" in html
    assert "\x1b" not in html
    assert html_table("t", [("<", 1)], ["a", "b"], "&") == (
        "<table><caption>t</caption><tr><th>a</th><th>b</th></tr>"
        "<tr><td>&lt;</td><td>1</td></tr></table><p>&amp;</p>"
    )


def test_no_share_of_the_bound_is_rounded_up() -> None:
    assert of_bound(1.0) == "100 % of the bound"
    assert of_bound(0.99999) == "99.9 % of the bound"


def test_columns_of_transfers(held: dict[str, Any]) -> None:
    result = held["result"]
    columns = result.to_columns()
    assert list(columns) == [
        *("chunk", "src", "dst", "reduce", "route", "start_us", "end_us", "bytes"),
    ]
    assert {len(column) for column in columns.values()} == {len(result.algorithm)}
    assert columns["end_us"].max() == result.time_us
    assert "start_us" not in held["written"].to_columns()


def test_columns_of_links_are_those_of_json(held: dict[str, Any]) -> None:
    report = held["report"]
    columns = report.to_columns()
    per_link = report.to_dict()["link_use"]["per_link"]
    assert [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ] == (per_link)


def test_columns_of_comparisons(held: dict[str, Any]) -> None:
    columns = held["comparison"].to_columns()
    assert columns["algorithm"].tolist() == ["weft", "ring", "tto"]
    assert columns["winner"].tolist() == [True, False, False]
    assert columns["verified"].tolist() == [True, True, None]
    assert np.isnan(columns["time_us"]).tolist() == [False, False, True]
    assert columns["refused"][2]


@pytest.mark.parametrize("name", ["result", "report", "comparison", "trace_run", "written"])
def test_data_frames(held: dict[str, Any], name: str) -> None:
    pandas = pytest.importorskip("pandas")
    columns = held[name].to_columns()
    frame = pandas.DataFrame(columns)
    assert list(frame.columns) == list(columns)


def arrays_of(value: Any) -> list[np.ndarray]:
    return [array for array in vars(value).values() if isinstance(array, np.ndarray)]


@pytest.mark.parametrize("name", ["result", *COMPACT])
def test_arrays_are_read_only(held: dict[str, Any], name: str) -> None:
    for result in (held[name], copy.deepcopy(held[name]), pickle.loads(pickle.dumps(held[name]))):
        algorithm: Algorithm = result.algorithm
        assert isinstance(algorithm.routes, Routes)
        run = weft.simulate(result).run
        for value in (algorithm.rows, algorithm.transfers, algorithm.routes, run, run.occupied):
            for array in arrays_of(value):
                with pytest.raises(ValueError, match="read-only"):
                    array[...] = 0
        with pytest.raises(TypeError):
            algorithm.provenance["method"] = "mine"  # type: ignore[index]
