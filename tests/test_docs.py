"""The examples in the documentation run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import weft

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_console(text: str, folder: Path) -> None:
    """``$ cat FILE`` shows what the file holds: it is written; ``$ weft`` and ``$ python`` run."""
    for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, shown = step.partition("\n")
        command, *args = shlex.split(line)
        if command == "cat":
            (folder / args[0]).write_text(shown)
        elif command == "python":
            assert run_python(args, folder) == shown
        else:
            assert command == "weft"
            done = weft(*args, cwd=folder)
            assert (done.returncode, done.stderr) == (0, ""), (line, done.stdout, done.stderr)


def run_python(args: list[str], folder: Path) -> str:
    """What a program prints, and the last line of its traceback if it fails."""
    done = subprocess.run(
        [sys.executable, *args], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout + "".join(done.stderr.splitlines(keepends=True)[-1:])


@pytest.mark.parametrize(
    "page",
    [
        "baselines.md",
        "changing-networks.md",
        "compare.md",
        "extending.md",
        "groups.md",
        "language.md",
        "msccl.md",
        "mscclpp.md",
        "notebooks.md",
        "simulation.md",
        "workloads.md",
    ],
)
def test_pages(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((DOCS / page).read_text())
    assert {kind for kind, _ in blocks} == {"console", "python"}
    for kind, block in blocks:
        if kind == "console":
            run_console(block, tmp_path)
        else:
            exec(block, {})


def test_the_figure_of_the_readme_shows_its_demo() -> None:
    """The All-Reduce that is drawn is the one that ``make demo`` prints."""
    printed = re.search(r"│ time +│ ([\d.]+)ms", (DOCS.parent / "README.md").read_text())
    drawn = re.findall(r">([\d.]+) ms, x", (DOCS / "figures" / "link_use.svg").read_text())
    assert printed is not None
    assert drawn[1] == f"{float(printed[1]):.2f}"
