"""Groups, layouts, plans and patterns, through the real command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.cli.command import refused, weft
from tests.examples import examples

GROUP_KEYS = {
    *("members", "collective", "size_bytes", "time_us", "lower_bound_us", "efficiency"),
    *("algbw_GBps", "busbw_GBps"),
}


def facts(*args: str, cwd: Path | None = None) -> dict[str, Any]:
    done = weft(*args, "--json", cwd=cwd)
    assert (done.returncode, done.stderr) == (0, ""), (done.stdout, done.stderr)
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["verified"] is True
    assert all(group.keys() >= GROUP_KEYS for group in result["groups"])
    assert result["time_us"] == max(group["time_us"] for group in result["groups"])
    return result


def members(result: dict[str, Any]) -> list[list[int]]:
    return [group["members"] for group in result["groups"]]


def test_several_groups() -> None:
    args = ["--size", "64kB", "--group", "0-3", "--group", "12,8,9", "--group", "5-15:5"]
    result = facts("synth", "mesh:4x4", "all-gather", *args)
    assert members(result) == [[0, 1, 2, 3], [12, 8, 9], [5, 10, 15]]
    assert {group["collective"] for group in result["groups"]} == {"all-gather"}
    assert {group["size_bytes"] for group in result["groups"]} == {64_000}


def test_a_layout() -> None:
    args = ["all-reduce", "--size", "8kB", "--parallel", "tp=2,dp=4", "--without-npu", "0"]
    assert members(facts("synth", "mesh:3x3", *args, "--along", "dp")) == [
        [1, 3, 5, 7],
        [2, 4, 6, 8],
    ]
    both = facts("synth", "mesh:3x3", *args, "--along", "tp,dp")
    assert members(both) == [[1, 2, 3, 4, 5, 6, 7, 8]]


@pytest.mark.parametrize("collective", ["all-reduce", "all-to-all", "pipeline", "broadcast"])
@pytest.mark.parametrize("group", ["4", "0,8"])
def test_groups_of_one_and_two(group: str, collective: str) -> None:
    args = ["--size", "1kB", "--group", group]
    result = facts("synth", "mesh:3x3", collective, *args)
    assert (result["time_us"] == 0) == (group == "4")


def test_the_size_of_an_all_to_all_is_what_one_npu_sends() -> None:
    """Half of it stays; of the other half, each of two chunks takes 4 kB at 1 GB/s."""
    speed = ["--bandwidth", "1GB/s", "--latency", "0"]
    args = ["synth", "line:2", "all-to-all", "--size", "16kB", "--chunks", "2", *speed]
    result = facts(*args)
    assert (result["time_us"], result["transfers"]) == (8, 4)


def test_a_matrix(tmp_path: Path) -> None:
    (tmp_path / "sizes.csv").write_text("0,1kB,2kB\n0,0,0\n3000,0,0\n")
    speed = ["--bandwidth", "1GB/s", "--latency", "0", "--chunks", "1"]
    args = ["all-to-allv", "--group", "0-2", "--matrix", "sizes.csv"]
    result = facts("synth", "fc:4", *args, *speed, "--no-relay", cwd=tmp_path)
    assert (result["time_us"], result["transfers"], result["size_bytes"]) == (3, 3, 3000)
    assert result["groups"][0]["relay"] is False


def test_a_permutation() -> None:
    args = ["--to", "1,0", "--size", "1kB", "--group", "0,1", "--group", "3,2"]
    result = facts("synth", "line:4", "permutation", *args)
    assert members(result) == [[0, 1], [3, 2]]


def test_a_custom_pattern(tmp_path: Path) -> None:
    (tmp_path / "moves.yaml").write_text(
        "- {size: 1kB, from: 0, to: 1-2}\n- {size: 2kB, from: 0-2, to: 0, reduce: true}\n"
    )
    args = ["--pattern", "moves.yaml", "--group", "0-2", "--group", "4-8:2"]
    result = facts("synth", "mesh:3x3", "custom", *args, cwd=tmp_path)
    assert members(result) == [[0, 1, 2], [4, 6, 8]]


PLAN = [
    {"collective": "all-reduce", "size": "32kB", "group": "0-3", "chunks": 2},
    {"collective": "all-to-all", "size": 4096, "group": [4, 5, 6, 7], "relay": False},
    {"collective": "broadcast", "size": "1kB", "group": "8-11", "root": 9},
]


def test_a_plan(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    result = facts("synth", "mesh:4x4", "--plan", "plan.json", "-o", "out", cwd=tmp_path)
    asked = [(g["collective"], g["size_bytes"], g["root"], g["relay"]) for g in result["groups"]]
    assert asked == [
        ("all-reduce", 32_000, None, True),
        ("all-to-all", 4096, None, False),
        ("broadcast", 1000, 9, True),
    ]
    assert result["groups"][0]["chunks"] == 2
    assert result["collective"] is None
    assert weft("verify", "out", cwd=tmp_path).returncode == 0


def test_the_table_has_a_row_a_group(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    done = weft("synth", "mesh:4x4", "--plan", "plan.json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 collectives on mesh:4x4" in done.stdout
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    assert rows["0-3"][:3] == ["all-reduce", "31.25KiB", "2"]
    assert rows["4-7,"][:4] == ["no", "relays", "all-to-all", "4KiB"]
    assert rows["8-11"][0] == "broadcast"


def test_titles() -> None:
    args = ["synth", "ring:40", "broadcast", "--size", "1kB", "--chunks", "1"]
    one = weft(*args, "--group", "0,3,2,7,1,11,5,20,30,25,39")
    assert "broadcast on ring:40" in one.stdout
    assert "0,3,2,7,1,11,5,20,30,25,... (11)" in one.stdout
    two = weft(*args, "--group", "0-38:2", "--group", "1-37:2")
    assert "broadcast in 2 groups on ring:40" in two.stdout
    assert "1-37:2" in two.stdout


def test_help_names_all_collectives() -> None:
    from weft.collective import PATTERNS

    text = " ".join(weft("synth", "--help").stdout.split())
    assert ", ".join(PATTERNS) in text


MESH = ["synth", "mesh:4x4"]
SYNTH = [*MESH, "all-gather", "--size", "1kB"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([*SYNTH, "--group", "0-16"], "'0-16' names NPU 16; NPUs are 0 to 15"),
        ([*SYNTH, "--group", "0-999999999999"], "NPUs are 0 to 15"),
        ([*SYNTH, "--group", "0,1,0"], "names NPU 0 twice"),
        ([*SYNTH, "--group", ""], "no NPU is named"),
        ([*SYNTH, "--group", "3-1"], "the range 3-1 is reversed; write it like 1-3"),
        ([*SYNTH, "--group", "all"], "'all' names no NPUs; write them like 0-7"),
        ([*SYNTH, "--group", "2-4", "--without-npu", "3"], "no NPU 3"),
        ([*SYNTH, "--parallel", "tp=4,dp=4"], "--parallel and --along go together"),
        ([*SYNTH, "--along", "tp"], "--parallel and --along go together"),
        ([*SYNTH, "--parallel", "tp=4,dp=3", "--along", "tp"], "12 ranks, but there are 16 NPUs"),
        ([*SYNTH, "--parallel", "tp=4,dp=4", "--along", "pp"], "unknown dimension 'pp'"),
        ([*SYNTH, "--parallel", "tp=4,dp=4", "--along", "tp", "--group", "0"], "give one of them"),
        (MESH, "no COLLECTIVE is given, and no --plan"),
        ([*MESH, "custom"], "custom needs --pattern"),
        ([*MESH, "custom", "--size", "1kB", "--pattern", "x"], "custom takes no --size, only"),
        ([*MESH, "all-to-allv", "--size", "1kB"], "all-to-allv takes no --size, only --matrix"),
        ([*MESH, "all-to-allv", "--matrix", "gone.csv"], "gone.csv: no such file"),
        ([*MESH, "permutation", "--to", "1,0"], "permutation needs --size and --to"),
        ([*MESH, "permutation", "--to", "1,0", "--size", "1"], "does not name each rank"),
        ([*MESH, "permutation", "--to", "16", "--size", "1"], "names rank 16; ranks are 0 to 15"),
        ([*SYNTH, "--to", "1,0"], "all-gather takes no --to, only --size"),
        ([*SYNTH, "--plan", "plan.yaml"], "leave out COLLECTIVE"),
        ([*MESH, "--plan", "p.yaml", "--root", "0"], "leave out --root"),
        ([*MESH, "--plan", "p.yaml", "--no-relay"], "leave out --no-relay"),
        ([*MESH, "--plan", "p.yaml"], "p.yaml: no such file"),
        ([*SYNTH, "--group", "0,15", "--no-relay"], "NPU"),
    ],
)
def test_refused(args: list[str], message: str, tmp_path: Path) -> None:
    assert message in refused(*args, cwd=tmp_path)


@examples(8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_plans(tmp_path: Path, data: st.DataObject) -> None:
    text = json.dumps(PLAN)
    cut = data.draw(st.integers(0, len(text) - 1))
    name = data.draw(st.sampled_from(["plan.json", "plan.yaml"]))
    (tmp_path / name).write_text(text[:cut] + data.draw(st.sampled_from(["", "}", "[", "\0"])))
    assert name in refused(*MESH, "--plan", name, cwd=tmp_path)
