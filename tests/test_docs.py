"""The examples in the documentation run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.command import weft

PAGE = Path(__file__).parent.parent / "docs" / "groups.md"
BLOCKS = re.findall(r"^```(console|python)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def run_console(text: str, folder: Path) -> None:
    """``$ cat FILE`` shows what the file holds: it is written; ``$ weft`` is run."""
    for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, shown = step.partition("\n")
        command, *args = shlex.split(line)
        if command == "cat":
            (folder / args[0]).write_text(shown)
        else:
            assert command == "weft"
            done = weft(*args, cwd=folder)
            assert (done.returncode, done.stderr) == (0, ""), (line, done.stdout, done.stderr)


def test_the_page_on_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert {kind for kind, _ in BLOCKS} == {"console", "python"}
    for kind, text in BLOCKS:
        if kind == "console":
            run_console(text, tmp_path)
        else:
            exec(text, {})
