"""``weft compare``, through the real command."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import refused, weft
from weft.comparison.files import COLUMNS

RING = ["compare", "ring:4", "all-gather", "--against", "direct"]
ROW_KEYS = {
    *("size_bytes", "lower_bound_us", "bound_busbw_GBps", "winner", "classical", "best_baseline"),
    *("speedup", "runs", "alone", "gain"),
}
RUN_KEYS = {
    *("method", "chunks", "time_us", "efficiency", "algbw_GBps", "busbw_GBps", "transfers"),
    *("synthesis_s", "verified", "violation"),
}


def facts(*args: str, cwd: Path | None = None) -> dict[str, Any]:
    done = weft(*args, "--json", cwd=cwd)
    assert (done.returncode, done.stderr) == (0, ""), (done.stdout, done.stderr)
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["verified"] is True
    for row in result["sizes"]:
        assert row.keys() == ROW_KEYS
        for run in row["runs"].values():
            assert run.keys() in (RUN_KEYS, {"refused"})
    return result


def test_json_by_size() -> None:
    result = facts(*RING, "--sizes", "1KiB:16KiB")
    assert [row["size_bytes"] for row in result["sizes"]] == [1024, 4096, 16384]
    assert (result["collective"], result["baselines"]) == ("all-gather", ["direct"])
    for row in result["sizes"]:
        times = {name: run["time_us"] for name, run in row["runs"].items()}
        assert times.keys() == {"weft", "direct"}
        assert row["winner"] == min(times, key=times.__getitem__)
        assert row["speedup"] == pytest.approx(times["direct"] / times["weft"])
        assert row["lower_bound_us"] <= times["weft"]


def test_groups_a_plan_and_patterns_with_their_own_sizes(tmp_path: Path) -> None:
    layout = ["--parallel", "tp=4,dp=4", "--along", "dp", "--sizes", "4KiB"]
    result = facts("compare", "mesh:4x4", "all-to-all", *layout, "--chunks", "2")
    assert result["groups"][0]["members"] == [0, 4, 8, 12]
    row = result["sizes"][0]
    assert row["runs"]["weft"]["chunks"] == row["alone"]["chunks"] == 2
    assert row["gain"] == pytest.approx(row["alone"]["time_us"] / row["runs"]["weft"]["time_us"])
    (tmp_path / "plan.json").write_text(
        '[{"collective": "all-gather", "size": "4kB", "group": "0-1"},'
        ' {"collective": "broadcast", "size": "8kB", "group": "2-3"}]'
    )
    result = facts("compare", "ring:4", "--plan", "plan.json", cwd=tmp_path)
    assert (result["collective"], result["sizes"][0]["size_bytes"]) == (None, 8000)
    (tmp_path / "sizes.csv").write_text("0,1kB\n2kB,0\n")
    args = ["all-to-allv", "--group", "0,1", "--matrix", "sizes.csv"]
    result = facts("compare", "ring:4", *args, "--against", "direct", cwd=tmp_path)
    assert [row["size_bytes"] for row in result["sizes"]] == [2000]


def test_the_table() -> None:
    done = weft(*RING, "--sizes", "1KiB,4KiB", "--busbw", "--group", "0,1", "--group", "2,3")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines() if line.strip()]
    title = "all-gather in 2 groups on ring:4: bus bandwidth in GB/s, * the best"
    assert " ".join(lines[0]) == title
    assert lines[1] == ["size", "1KiB", "4KiB"]
    rows = [*("lower", "weft", "direct", "speed-up", "of", "method", "each", "together"), "all"]
    assert [line[0] for line in lines[3:]] == rows
    assert lines[4][1::2] == ["*", "*"]
    assert lines[-1] == ["all", "verified"]


def test_files(tmp_path: Path) -> None:
    files = ["--csv", "out.csv", "--plot", "out.svg"]
    done = weft(*RING, "--sizes", "1KiB,4KiB", *files, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-2:] == ["saved in out.csv", "saved in out.svg"]
    assert {path.name for path in tmp_path.iterdir()} == {"out.csv", "out.svg"}
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert tuple(rows[0]) == COLUMNS
    assert [(row["size_bytes"], row["algorithm"]) for row in rows] == [
        *(("1024", "weft"), ("1024", "direct"), ("4096", "weft"), ("4096", "direct"))
    ]
    assert all(float(row["time_us"]) >= float(row["lower_bound_us"]) for row in rows)
    svg = (tmp_path / "out.svg").read_bytes()
    assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert b"all-gather on ring:4" in svg


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([*RING, "--sizes", ""], "size ''"),
        ([*RING, "--size", "1KiB"], "--size"),
        ([*RING, "--against", "rign"], "unknown baseline 'rign'"),
        ([*RING, "--chunks", "0"], "0 chunks per share; expected 1 to"),
        ([*RING, "--csv", ""], "--csv is empty"),
        ([*RING, "--plot", "out.gif"], "figures are .svg, .png or .pdf files"),
        ([*RING, "--plot", "a.svg", "--csv", "a.svg"], "both name a.svg"),
        (["compare", "ring:4", "permutation"], "permutation needs --sizes and --to"),
        (["compare", "ring:4", "custom", "--sizes", "1KiB"], "custom takes no --sizes, only"),
        (["compare", "ring:4", "--plan", "p.yaml", "--sizes", "1KiB"], "leave out --sizes"),
        (["compare", "line:3", "all-reduce", "--without-npu", "1"], "cannot get"),
    ],
)
def test_refused(args: list[str], message: str, tmp_path: Path) -> None:
    assert message in refused(*args, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_file_is_said_before_the_work() -> None:
    """Such a comparison would take hours."""
    args = ["compare", "mesh:100x100", "all-gather"]
    assert "there is no folder gone" in refused(*args, "--csv", "gone/a.csv")
    assert "there is no folder gone" in refused(*args, "--plot", "gone/a.svg")


def test_without_matplotlib(tmp_path: Path) -> None:
    code = "import sys; sys.modules['matplotlib'] = None; from weft.cli import main; main()"
    args = ["compare", "mesh:100x100", "all-gather", "--plot", "a.svg"]
    done = subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "weft: figures need matplotlib, which is not installed: pip install weft[plot]\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_help_lists_all_classical_algorithms() -> None:
    from weft.classical import BASELINES

    text = " ".join(weft("compare", "--help").stdout.split())
    for name, known in BASELINES.items():
        assert f"{name} {known.summary}" in text
