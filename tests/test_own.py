"""Algorithms of one's own, from files, in the place of a method and beside baselines."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from tests.cli.command import refused
from tests.cli.command import weft as run
from weft import Collective, load_topology
from weft.classical import baseline
from weft.comparison import Run, compare
from weft.errors import FormatError, InputError
from weft.formats import write
from weft.own import own_algorithm
from weft.planners import is_file

SIZE = 64 << 10


def ring(folder: Path, name: str, size: int = SIZE, chunks: int = 2) -> Path:
    """A ring All-Reduce among eight NPUs, as a file."""
    demand = Collective.of("all-reduce", range(8), size, chunks)
    made = baseline("ring", load_topology("ring:8"), [demand])
    weft.formats.write(made, folder / name)
    return folder / name


@pytest.mark.parametrize("name", ["ring.xml", "ring.csv", "ring.json", "ring.weft", "traces"])
def test_every_format_takes_part(tmp_path: Path, name: str) -> None:
    path = ring(tmp_path, name)
    network = load_topology("h100:1")
    plain = baseline("ring", network, [Collective.of("all-reduce", range(8), 4 * SIZE, 2)])
    result = weft.synthesize(network, "all-reduce", 4 * SIZE, method=str(path))
    assert result.verified
    assert result.algorithm.time == plain.time
    assert result.to_dict()["method"] == str(path)


def test_on_its_own_network_a_plan_keeps_its_order(tmp_path: Path) -> None:
    network = load_topology("mesh:3x3")
    plan = weft.synthesize(network, "all-gather", "9KiB", chunks=2).algorithm
    write(plan, tmp_path / "plan.weft")
    again = weft.synthesize(network, "all-gather", "9KiB", method=str(tmp_path / "plan.weft"))
    assert again.algorithm.time == plan.time
    larger = weft.synthesize(network, "all-gather", "9MiB", method=str(tmp_path / "plan.weft"))
    assert larger.verified
    assert len(larger.algorithm) == len(plan)
    assert larger.time_us > again.time_us


def test_comparisons_take_files_and_names(tmp_path: Path) -> None:
    path = str(ring(tmp_path, "ring.xml"))
    found = compare("ring:8", "all-reduce", [SIZE, 4 * SIZE], against=["ring", path])
    assert found.names == ("ring", path)
    for row in found.rows:
        own = row.baselines[path]
        assert isinstance(own, Run)
        assert own.verified


@pytest.mark.parametrize(
    ("kind", "group", "chunks", "message"),
    [
        ("all-gather", range(8), None, "is of all-reduce among NPUs 0-7, but all-gather among"),
        ("all-reduce", range(4), None, "but all-reduce among NPUs 0-3 is asked for"),
        ("all-reduce", range(8), 3, "cuts a share in 2 chunks, not 3"),
    ],
)
def test_what_is_asked_for_must_be_there(
    tmp_path: Path, kind: str, group: range, chunks: int | None, message: str
) -> None:
    path = ring(tmp_path, "ring.json")
    with pytest.raises(InputError, match=message):
        weft.synthesize("ring:8", kind, SIZE, group=group, chunks=chunks, method=str(path))


def test_wrong_algorithms_and_files_are_refused(tmp_path: Path) -> None:
    path = ring(tmp_path, "ring.csv")
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n")
    demand = Collective.of("all-reduce", range(8), SIZE, 2)
    with pytest.raises(FormatError, match=r"ring\.csv: "):
        own_algorithm(path, load_topology("ring:8"), [demand])
    said = refused("compare", "ring:8", "all-reduce", "--against", "ring,none.xml")
    assert "cannot read none.xml" in said


def test_names_of_methods_stay_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ring").mkdir()
    assert not is_file("ring")
    assert not is_file("rign")
    assert is_file("mine.xml")


def test_verify_on_a_network(tmp_path: Path) -> None:
    ring(tmp_path, "ring.csv")
    given = ["--collective", "all-reduce", "--size", str(SIZE), "--chunks", "2"]
    done = run("verify", "ring.csv", *given, "--topology", "mesh:2x4", cwd=tmp_path)
    assert done.stdout == "ring.csv: verified on mesh:2x4\n"
    said = refused("verify", "ring.csv", *given, "--topology", "ring:4", cwd=tmp_path)
    assert "names NPU 4, which ring:4 does not have" in said
