"""``weft simulate``: what it prints, and what it refuses."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.command import refused, weft
from weft import Algorithm, synthesize
from weft.formats import write
from weft.workload import Transformer, save_transformer

RING = Path(__file__).parents[1] / "data" / "astra" / "ar_ring_8"


@pytest.fixture(scope="module")
def algorithm() -> Algorithm:
    return synthesize("ring:4", "all-reduce", "64KiB", chunks=1).algorithm


@pytest.fixture(scope="module")
def traces(algorithm: Algorithm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small algorithm as Weft saves it."""
    folder = tmp_path_factory.mktemp("traces") / "out"
    write(algorithm, folder)
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
    assert len(facts["link_use"]["per_link"]) == 8
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
    assert "made for no network; name one to run them" in refused("simulate", str(RING))


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small training step."""
    folder = tmp_path_factory.mktemp("workload") / "step"
    model = Transformer(tp=2, dp=2, layers=1, hidden=64, seq=16)
    save_transformer(model, folder)
    return folder


def test_a_workload(step: Path, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    facts = figures(str(step), "--topology", "ring:4", "--trace", str(file), "--method", "direct")
    assert facts["finished"]
    assert facts["lowering"]["lowered_count"] > 0
    titles = [e["args"]["name"] for e in events(file) if e["name"] == "thread_name"]
    assert {"rank 0 compute", "rank 3 sends"} <= set(titles)
    tracks: dict[int, list[tuple[float, float]]] = {}
    for event in events(file):
        if event["ph"] == "X":
            times = event["ts"], event["ts"] + event["dur"]
            tracks.setdefault(event["tid"], []).append(times)
    assert max(end for track in tracks.values() for _, end in track) == facts["time_us"]
    for track in tracks.values():
        for before, after in pairwise(sorted(track)):
            assert before[1] <= after[0] + 1e-6
    done = weft("simulate", str(step), "--topology", "ring:4", "--latency-model", "blocking")
    assert (done.returncode, done.stderr) == (0, "")
    shown = ("(blocking α)", "ranks", "collectives", "computing", "busiest links", "critical path")
    for words in shown:
        assert words in done.stdout


def events(file: Path) -> list[dict]:
    return json.loads(file.read_text())["traceEvents"]


def test_as_in_astra_sim(tmp_path: Path) -> None:
    network = tmp_path / "network.yml"
    network.write_text(
        "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n"
    )
    facts = figures(str(RING), "--astra-sim", str(network))
    assert facts["model"] == "astra-sim aware"
    assert facts["finish_ns"] == [facts["time_ns"]] * 8
    unaware = figures(str(RING), "--astra-sim", str(network), "--unaware")
    assert unaware["time_ns"] <= facts["time_ns"]
    both = refused("simulate", str(RING), "--astra-sim", str(network), "--topology", "ring:8")
    assert "--topology does not go with --astra-sim" in both


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "with --topology or --astra-sim"),
        (["--topology", "ring:4", "--order", "fifo"], "--order is for algorithms"),
        (["--topology", "ring:4", "--plain"], "go with --astra-sim"),
        (["--topology", "ring:3"], "3 NPUs"),
        (["--topology", "ring:4", "--method", "rnig"], "method"),
        (["--astra-sim", "none.yml"], "none.yml"),
    ],
)
def test_bad_input_for_traces(step: Path, tmp_path: Path, args: list[str], message: str) -> None:
    told = refused("simulate", str(step), *args, "--trace", "t.json", cwd=tmp_path)
    assert message in told
    assert not list(tmp_path.iterdir())


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
        (["--method", "direct"], "--method is for traces"),
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
