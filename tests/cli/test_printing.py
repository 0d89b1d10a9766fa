"""What commands print: nothing that files say steers a terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import weft
from tests.cli.command import refused
from tests.cli.command import weft as run

NAME = "net\x1b]0;owned\a\x1b[31m\u202e\x7f[bold]"
SHOWN = "net\\x1b]0;owned\\x07\\x1b[31m\\u202e\\x7f[bold]"
CLI = Path(weft.__file__).parent / "cli"


@pytest.fixture
def network(tmp_path: Path) -> Path:
    path = tmp_path / "net.json"
    weft.write_topology(weft.load_topology("ring:3"), path)
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"name": NAME}))
    return path


def printed(*args: str, cwd: Path) -> str:
    done = run(*args, cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert all(c.isprintable() or c == "\n" for c in done.stdout)
    assert done.stderr == ""
    return done.stdout


def test_names_from_files_are_shown_with_escapes(network: Path, tmp_path: Path) -> None:
    demand = ["all-gather", "--size", "3kB"]
    shown = printed("topo", "show", str(network), cwd=tmp_path)
    assert SHOWN.replace(" ", "") in re.sub(r"\s", "", shown)
    for args in (
        ["synth", str(network), *demand, "-o", "traces"],
        ["show", "traces"],
        ["show", "traces", "--npu", "0"],
        ["simulate", "traces"],
        ["verify", "traces"],
        ["convert", "traces", "a.json"],
        ["export", "astra-sim", "traces", "-o", "bundle"],
        ["compare", str(network), "all-gather", "--sizes", "3kB"],
    ):
        printed(*args, cwd=tmp_path)
    told = refused("synth", str(network), *demand, "--without-link", "0-9", cwd=tmp_path)
    assert told.isprintable()
    assert SHOWN in told


def test_json_says_the_name_as_it_is(network: Path, tmp_path: Path) -> None:
    text = printed("topo", "show", str(network), "--json", cwd=tmp_path)
    assert json.loads(text)["topology"] == NAME


def test_provenance_and_paths_are_shown_with_escapes(network: Path, tmp_path: Path) -> None:
    run("synth", str(network), "all-gather", "--size", "3kB", "-o", "a.weft", cwd=tmp_path)
    run("convert", "a.weft", "a.json", cwd=tmp_path)
    table = json.loads((tmp_path / "a.json").read_text())
    table["provenance"]["method"] = NAME
    (tmp_path / f"{NAME}.json").write_text(json.dumps(table))
    assert SHOWN in printed("verify", f"{NAME}.json", cwd=tmp_path)
    printed("show", f"{NAME}.json", cwd=tmp_path)
    assert refused("verify", f"{NAME}\n.gone", cwd=tmp_path).isprintable()


@pytest.mark.parametrize("args", [["synth", "ring:3", "all-gather", f"x{NAME}"], [f"x{NAME}"]])
def test_arguments_are_shown_with_escapes(args: list[str], tmp_path: Path) -> None:
    assert refused(*args, cwd=tmp_path).isprintable()


@pytest.mark.parametrize("path", sorted(CLI.glob("*.py")), ids=lambda path: path.name)
def test_commands_print_through_one_module(path: Path) -> None:
    if path.name != "printing.py":
        around = r"click\.(echo|secho)|(?<![.\w])(print|Text)\(|json\.dumps"
        assert re.search(around, path.read_text()) is None
