"""``weft run``: on real processes, with good and bad input."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, refused, weft


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "plan.weft"
    args = ("--size", "64KiB", "--group", "0,1", "--group", "2,3", "-o", str(path))
    assert weft("synth", "ring:4", "all-reduce", *args).returncode == 0
    return path


def test_a_file_with_groups_and_a_timeline(plan: Path, tmp_path: Path) -> None:
    """Two All-Reduces at once; the timeline has every step of every rank, and the plan's."""
    timeline = tmp_path / "run.json"
    more = ("--iterations", "2", "--dtype", "bf16", "--op", "average", "--trace", str(timeline))
    done = weft("run", str(plan), "--transport", "tcp", "--json", *more)
    assert (done.returncode, done.stderr) == (0, "")
    (one,) = json.loads(done.stdout)["sizes"]
    assert (one["wrong"], one["counts"], len(one["each"])) == (0, [1 << 15] * 2, 2)
    assert one["planned_us"] > 0
    events = json.loads(timeline.read_text())["traceEvents"]
    shown = weft("show", str(plan), "--npu", "2", "--program", "--limit", "1000", "--json")
    (program,) = json.loads(shown.stdout)["programs"]
    names = [event["name"] for event in events if event["ph"] == "X"]
    for step in program["steps"]:
        assert step["does"] in names
    tracks = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {"sends", "sends as planned", "receives", "receives as planned"} <= tracks


def test_synthesized_at_several_sizes(tmp_path: Path) -> None:
    done = weft("run", "mesh:2x2", "all-to-all", "--sizes", "64B,1KiB", "--in-place", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "shared memory" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines() if "f32" in line]
    assert [(line[0], line[1], line[-1]) for line in lines] == [
        ("64B", "16", "0"),
        ("1KiB", "256", "0"),
    ]


def test_ranks_of_several_hosts(plan: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    where = ("--ranks", "4", "--rendezvous", f"127.0.0.1:{port}", "--iterations", "1", "--json")
    command = [*COMMAND, "run", str(plan), *where]
    ranks = [
        subprocess.Popen([*command, "--rank", str(rank)], stdout=subprocess.PIPE, text=True)
        for rank in range(4)
    ]
    printed = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * 4
    assert json.loads(printed[0])["sizes"][0]["wrong"] == 0
    assert printed[1:] == [""] * 3  # rank 0 says it all


def test_under_mpiexec(plan: Path) -> None:
    pytest.importorskip("mpi4py")
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which(
        "mpiexec"
    )
    if mpiexec is None:
        pytest.skip("there is no mpiexec")
    command = [mpiexec, "-n", "4", *COMMAND, "run", str(plan), "--iterations", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["transport"], found["sizes"][0]["wrong"]) == ("mpi", 0)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["mesh:2x2"], "mesh:2x2 is no file; to synthesize"),
        (["PLAN", "--dtype", "f8"], "unknown dtype 'f8'"),
        (["PLAN", "--op", "mean"], "unknown op 'mean'"),
        (["PLAN", "--transport", "smoke"], "unknown transport 'smoke'"),
        (["PLAN", "--iterations", "0"], "iterations is 0; expected 1 or more"),
        (["PLAN", "--warmups", "-1"], "warmups is -1; expected 0 or more"),
        (["PLAN", "--timeout", "0"], "--timeout is 0; expected more than 0"),
        (["PLAN", "--rank", "1"], "--ranks is missing"),
        (
            ["PLAN", "--rank", "4", "--ranks", "4", "--rendezvous", "a:1"],
            "rank is 4; expected 0 to 3",
        ),
        (["PLAN", "--rank", "0", "--ranks", "4", "--rendezvous", "a"], "'a' is no rendezvous"),
        (["PLAN", "--bandwidth", "1GB/s"], "--bandwidth is for a network"),
        (["PLAN", "--trace", "a.txt"], "a timeline is a .json or .json.gz file"),
        (["PLAN", "--sizes", "4MiB:1KiB"], "are reversed"),
        (["ring:2", "all-reduce"], "all-reduce needs --size"),
        (["ring:2", "all-reduce", "--size", "1KiB", "--sizes", "1KiB"], "--size and --sizes"),
        (["ring:2", "all-reduce", "--size", "1KiB", "--from", "weft"], "are for files"),
    ],
)
def test_bad_input(args: list[str], message: str, plan: Path, tmp_path: Path) -> None:
    words = refused("run", *(str(plan) if arg == "PLAN" else arg for arg in args), cwd=tmp_path)
    assert message in words


def test_a_wrong_algorithm_is_not_run(plan: Path, tmp_path: Path) -> None:
    table = tmp_path / "plan.json"
    assert weft("convert", str(plan), str(table)).returncode == 0
    columns = json.loads(table.read_text())
    columns["transfers"] = {name: column[1:] for name, column in columns["transfers"].items()}
    table.write_text(json.dumps(columns))
    done = weft("run", str(table))
    assert (done.returncode, done.stderr) == (1, "")
    assert "verified" not in done.stdout
