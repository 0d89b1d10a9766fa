"""``weft simulate``: what it prints, and what it refuses."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.cli.command import refused, weft
from weft import Algorithm, synthesize
from weft.formats import write

RING = Path(__file__).parents[1] / "data" / "astra" / "ar_ring_8"


@pytest.fixture(scope="module")
def algorithm() -> Algorithm:
    return synthesize("ring:4", "all-reduce", "64KiB", chunks=1).algorithm


@pytest.fixture(scope="module")
def traces(algorithm: Algorithm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small algorithm as Weft saves it."""
    folder = tmp_path_factory.mktemp("traces") / "out"
    algorithm.save(folder)
    return folder


def figures(*args: str) -> dict:
    done = weft("simulate", *args, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_tables(traces: Path, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    done = weft("simulate", str(traces), "--trace", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    for words in (
        *("planned", "bus bandwidth", "lower bound", "efficiency", "links held", "timeline in"),
        *("critical path", "busiest links", "utilisation", "moving data", "waited for"),
    ):
        assert words in done.stdout
    assert json.loads(file.read_text())["traceEvents"]


def test_figures(traces: Path) -> None:
    facts = figures(str(traces))
    assert (facts["order"], facts["topology"], facts["links"]) == ("plan", "ring:4", 8)
    assert facts["time_us"] <= facts["plan"]["time_us"]
    assert facts["plan"]["later"] == 0
    assert len(facts["link_use"]["links"]) == 8
    path = facts["critical_path"]
    split = ("moving_us", "latency_us", "waiting_for_links_us", "adding_us")
    assert sum(path[name] for name in split) == pytest.approx(facts["time_us"])
    assert path["steps"][-1]["end_us"] == facts["time_us"]
    slow = figures(str(traces), "--reducer", "1GB/s")
    assert slow["critical_path"]["adding_us"] > 0
    assert slow["time_us"] > facts["time_us"]
    assert slow["reducer_Bps"] == 10**9


def test_another_network_and_another_model(traces: Path, tmp_path: Path) -> None:
    file = tmp_path / "t.json.gz"
    facts = figures(str(traces), "--topology", "mesh:2x2", "--trace", str(file))
    assert (facts["order"], facts["plan"]) == ("fifo", None)
    assert json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    blocking = figures(str(traces), "--latency-model", "blocking")
    assert (blocking["latency_model"], blocking["order"]) == ("blocking", "fifo")
    broken = figures(str(traces), "--topology", "ring:4", "--without-link", "0-1")
    assert broken["time_us"] > facts["time_us"]


def test_traces_of_others() -> None:
    args = (str(RING), "--collective", "all-reduce")
    assert "made for no network; name one to run it on" in refused("simulate", *args)
    assert figures(*args, "--topology", "ring:8")["transfers"] > 0


def test_a_wrong_algorithm_is_not_run(algorithm: Algorithm, tmp_path: Path) -> None:
    write(algorithm, tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text())
    rows = document["transfers"]
    document["transfers"] = {name: column[:-1] for name, column in rows.items()}
    (tmp_path / "a.json").write_text(json.dumps(document))
    done = weft("simulate", "a.json", "--trace", "t.json", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == weft("verify", "a.json", cwd=tmp_path).stdout
    assert len(done.stdout.splitlines()) == 1
    assert not (tmp_path / "t.json").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--order", "plna"], "did you mean 'plan'"),
        (["--order", "plan", "--topology", "ring:4"], "no plan whose order could be kept"),
        (["--reducer", "fast"], "bandwidth"),
        (["--latency-model", "both"], "latency model"),
        (["--switching", "none"], "switching"),
        (["--topology", "ring:3"], "names NPU 3, which ring:3 does not have"),
        (["--bandwidth", "1GB/s"], "go with --topology"),
        (["--topology", "ring:4", "--without-npu", "1"], "names NPU 1"),
        (["--topology", "line:4", "--without-link", "1-2"], "no path"),
        (["--collective", "all-gather"], "says otherwise by itself"),
        (["--trace", "t.txt"], ".json.gz"),
        (["--trace", ""], ".json.gz"),
        (["--trace", "none/t.json"], "there is no folder"),
        (["--trace", "folder.json"], "it is a folder"),
        (["--trace", "x" * 300 + ".json"], "too long"),
    ],
)
def test_bad_input(traces: Path, tmp_path: Path, args: list[str], message: str) -> None:
    (tmp_path / "folder.json").mkdir()
    more = [] if "--trace" in args else ["--trace", "t.json"]
    assert message in refused("simulate", str(traces), *args, *more, cwd=tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["folder.json"]


def test_the_source_is_never_overwritten(
    algorithm: Algorithm, traces: Path, tmp_path: Path
) -> None:
    write(algorithm, tmp_path / "a.json")
    before = (tmp_path / "a.json").read_bytes()
    message = refused("simulate", "a.json", "--trace", str(tmp_path / "a.json"), cwd=tmp_path)
    assert "choose another place" in message
    assert (tmp_path / "a.json").read_bytes() == before
    inside = str(traces / "t.json")
    assert "choose another place" in refused("simulate", str(traces), "--trace", inside)
