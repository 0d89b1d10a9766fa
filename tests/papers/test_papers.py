"""``python -m papers`` as a user runs it, in its short form."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from papers.simulate import measure, save_ring

FIGURE = re.compile(r"!\[[^]]+\]\((figures/[^)]+\.svg)\)")


ROOT = Path(__file__).parents[2]


def papers(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "papers", *args],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        timeout=600,
        check=False,
    )


def refused(*args: str, cwd: Path | None = None) -> str:
    done = papers(*args, cwd=cwd)
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.strip().splitlines()
    assert "Traceback" not in done.stderr
    assert lines[0].startswith("Usage:") or len(lines) == 1
    return lines[-1]


each_paper = pytest.mark.parametrize("made", ["tacos", "pccl", "standard"], indirect=True)


def tables(page: str) -> list[list[list[str]]]:
    """The cells of all tables on a page, headings first."""
    found = re.findall(r"(?:^\|.*\|\n)+", page, re.MULTILINE)
    return [[line[2:-2].split(" | ") for line in table.splitlines()] for table in found]


@pytest.fixture(scope="module")
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """The figures of a paper, and the folder in which its page was written."""
    folder = tmp_path_factory.mktemp(request.param)
    done = papers(request.param, "--quick", "--json", "-o", "docs", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout), folder / "docs"


@each_paper
def test_every_row_is_verified(made: tuple[dict[str, Any], Path]):
    report, _ = made
    assert (report["quick"], report["verified"]) == (True, True)
    assert report["machine"]["cores"] >= 1
    listed = [table for one in report["experiments"] for table in one["tables"]]
    judged = [row["verified"] for t in listed for row in t["rows"] if "verified" in row]
    assert judged
    assert all(judged)


@each_paper
def test_a_page_with_tables_and_figures(made: tuple[dict[str, Any], Path]):
    report, docs = made
    page = (docs / f"reproduce-{report['paper']}.md").read_text()
    assert f"`python -m papers {report['paper']} --quick -o docs`" in page
    for part in ("From the paper", "Measured here", "Where we differ"):
        assert f"**{part}.**" in page
    shown = tables(page)
    listed = [table for one in report["experiments"] for table in one["tables"]]
    assert len(shown) == len(listed)
    for (heads, rule, *rows), table in zip(shown, listed, strict=True):
        assert set(rule) == {"---"}
        assert heads == list(table["rows"][0])
        assert [len(row) for row in rows] == [len(heads)] * len(table["rows"])
    figures = FIGURE.findall(page)
    assert figures
    for figure in figures:
        assert ElementTree.parse(docs / figure).getroot().tag.endswith("svg")
    written = {path.name for path in (docs / "figures").iterdir()}
    assert written == {Path(figure).name for figure in figures}


@pytest.mark.parametrize("made", ["standard"], indirect=True)
def test_times_are_the_same_by_every_door(made: tuple[dict[str, Any], Path]):
    report, _ = made
    doors, consumers, _ = report["experiments"]
    for row in doors["tables"][0]["rows"]:
        assert row["same"] == "yes"
    for row in consumers["tables"][0]["rows"]:
        assert row["same by both producers"] in ("yes", "but for ties")
        assert row["Weft, traces"] == row["Weft, algorithm"]


def test_refusals(tmp_path: Path):
    (tmp_path / "file").write_text("")
    assert "unknown paper 'taco'; did you mean 'tacos'?" in refused("taco")
    assert "Missing argument" in refused()
    assert "--output is empty" in refused("tacos", "-o", "")
    said = refused("tacos", "-o", "file", cwd=tmp_path)
    assert "cannot write to file: it is a file, not a folder" in said
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_tables_beside_published_figures():
    done = papers("bench", "all-reduce", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    (one,) = json.loads(done.stdout)["experiments"]
    (table,) = one["tables"]
    assert [row["network"] for row in table["rows"]][:2] == ["mesh:4x4", "mesh:6x6"]
    assert all(row["over bound"] < 1.5 for row in table["rows"])
    assert "unknown table 'meshs'; did you mean 'meshes'?" in refused("bench", "meshs")


def test_traces_for_astra_sim(tmp_path: Path):
    save_ring("all-reduce", 4, tmp_path / "traces")
    assert len(list((tmp_path / "traces").iterdir())) == 4
    what, ranks, nodes, makespan, published, *_ = measure(("all-gather", 4))
    assert (what, ranks, nodes, published) == ("all-gather ring", 4, 24, None)
    assert makespan > 0
