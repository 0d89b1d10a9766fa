"""Compact stores, ``weft show`` and chosen ranks, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import refused, weft
from tests.far_turns import far
from weft.formats import write

MESH = ("synth", "mesh:3x3", "all-gather", "--size", "9MB", "--chunks", "1")


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("store") / "a.weft"
    done = weft(*MESH, "-o", str(path), "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["stored_bytes"] == path.stat().st_size
    assert [file.name for file in path.parent.iterdir()] == ["a.weft"]
    return path


def test_a_store_is_verified_and_converted(stored, tmp_path):
    assert weft("verify", str(stored)).stdout == f"{stored}: verified\n"
    for source, target in ((str(stored), "traces"), ("traces", "b.weft"), ("b.weft", "c.json")):
        done = weft("convert", source, target, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "72 transfers, verified" in done.stdout
    assert (tmp_path / "b.weft").read_bytes() == stored.read_bytes()


def test_show(stored):
    said = weft("show", str(stored), "--npu", "4", "--limit", "2").stdout
    for words in ("all-gather of", "mesh:3x3: 9 NPUs, 24 links", "72", "NPU 4: ", "and ", "more"):
        assert words in said
    facts = json.loads(weft("show", str(stored), "--npu", "0", "--npu", "8", "--json").stdout)
    assert facts["transfers"] == 72
    assert facts["rows"]["form"] == "table"
    assert [one["npu"] for one in facts["activities"]] == [0, 8]
    assert facts["activities"][0]["receives"] == 8


def test_show_reads_what_says_too_little_with_options(tmp_path):
    (tmp_path / "a.csv").write_text("chunk,src,dst,reduce\n0,0,1,0\n0,1,2,0\n")
    args = ("show", "a.csv", "--collective", "broadcast", "--size", "1KiB", "--npu", "1")
    done = weft(*args, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "made for no network" in done.stdout
    assert "NPU 1: 1 sends of 1KiB, 1 receives of 1KiB" in done.stdout


def test_chosen_ranks(stored, tmp_path):
    done = weft("convert", str(stored), "out", "--ranks", "0-2,7", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4 of 9 ranks" in done.stdout
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names == [f"weft.{rank}.et" for rank in (0, 1, 2, 7)]
    for command in ("verify", "simulate"):
        assert "the traces of NPUs 0-2,7 of 9 only" in refused(command, "out", cwd=tmp_path)


def test_wrong_input(stored, tmp_path):
    for args, words in (
        ((*MESH, "-o", str(tmp_path / "none" / "a.weft")), "there is no folder"),
        ((*MESH, "-o", "/proc/a.weft"), "cannot be written"),
        (("show", str(stored), "--npu", "9"), "mesh:3x3 has no NPU 9"),
        (("show", str(stored), "--limit", "-1"), "--limit is -1"),
        (("show", str(tmp_path / "none.weft")), "No such file"),
        (("convert", str(stored), "x", "--ranks", "0-9"), "there is no NPU 9 to write"),
        (("convert", str(stored), "x", "--ranks", "a"), "a"),
        (("convert", str(stored), "x.json", "--ranks", "0"), "table takes no --ranks"),
        (
            ("synth", "mesh:200x200", "all-gather", "--size", "40GB", "-o", str(tmp_path / "x")),
            "1,599,960,000 transfers or more, too many for traces",
        ),
    ):
        assert words in refused(*args, cwd=tmp_path)
    (tmp_path / "cut.weft").write_bytes(stored.read_bytes()[:-9])
    for command in (("show",), ("verify",), ("simulate",)):
        assert "is cut short" in refused(*command, "cut.weft", cwd=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["cut.weft"]


def test_moves_of_many_are_listed_where_they_fit(tmp_path):
    """What one NPU does, a run, and traces; or one sentence that says why not."""
    plan = ("all-to-all", "--size", "1MiB", "--chunks", "1", "--method", "by-level")
    facts = json.loads(
        weft("synth", "h100:64,plain", *plan, "-o", "a.weft", "--json", cwd=tmp_path).stdout
    )
    assert facts["verified"]
    shown = json.loads(weft("show", "a.weft", "--npu", "3", "--json", cwd=tmp_path).stdout)
    assert shown["rows"]["form"] == "moves of all NPUs at once"
    (activity,) = shown["activities"]
    assert activity["sends"] == activity["receives"] == shown["transfers"] // 512
    run = json.loads(weft("simulate", "a.weft", "--json", cwd=tmp_path).stdout)
    assert run["time_us"] == pytest.approx(facts["time_us"])
    done = weft("convert", "a.weft", "traces", "--ranks", "0-3", cwd=tmp_path)
    assert "4 of 512 ranks" in done.stdout, done.stderr
    many = ("fat-tree:64", "all-gather", "--size", "1GiB", "-o", "b.weft")
    assert weft("synth", *many, cwd=tmp_path).returncode == 0
    for args, words in (
        (("simulate", "b.weft"), "a table of 4,294,901,760 transfers needs about"),
        (("convert", "b.weft", "b.xml"), "a table of 4,294,901,760 transfers needs about"),
        (("show", "b.weft", "--npu", "3"), "routes, too many to list"),
    ):
        assert words in refused(*args, cwd=tmp_path)


def test_times_that_leave_the_clock(tmp_path):
    """The judge says so; where a time is to be shown, that is an error."""
    path, text = (
        tmp_path / "a.weft",
        "a move that starts at 4.61069e+06s leaves the clock (53 days)",
    )
    write(far(), path)
    for command in ("verify", "simulate"):
        done = weft(command, str(path))
        assert (done.returncode, done.stdout, done.stderr) == (1, f"{path}: {text}\n", "")
    done = weft("show", str(path))
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"weft: {path}: {text}\n")
