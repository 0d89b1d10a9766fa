"""The examples in the documentation run."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import weft
from tests.topology.machines.hosts import dgx, railed

DOCS = Path(__file__).parent.parent / "docs"
DATA = Path(__file__).parent / "data"
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXACT = ("cluster-files.md", "clusters.md", "fabric-files.md", "infragraph.md")
"""Pages that show no figures of planners: what commands print is compared."""


def run_console(text: str, folder: Path, *, exact: bool) -> None:
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
            if exact and shown.strip():
                assert done.stdout.split() == shown.split()


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
        "cluster-files.md",
        "clusters.md",
        "compare.md",
        "extending.md",
        "fabric-files.md",
        "groups.md",
        "index.md",
        "infragraph.md",
        "json.md",
        "language.md",
        "msccl.md",
        "mscclpp.md",
        "notebooks.md",
        "probe.md",
        "running.md",
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
            run_console(block, tmp_path, exact=page in EXACT)
        else:
            exec(block, {})


def test_the_figure_of_the_readme_shows_its_demo() -> None:
    """The All-Reduce that is drawn is the one that ``make demo`` prints."""
    printed = re.search(r"│ time +│ ([\d.]+)ms", (DOCS.parent / "README.md").read_text())
    drawn = re.findall(r">([\d.]+) ms, x", (DOCS / "figures" / "link_use.svg").read_text())
    assert printed is not None
    assert drawn[1] == f"{float(printed[1]):.2f}"


README = (DOCS.parent / "README.md").read_text()
SECONDS = re.compile(r"[\d.]+ s ")
GROUPS = """\
- {collective: all-reduce, size: 1MiB, group: 0-7}
- {collective: all-gather, size: 1MiB, group: 8-15}
"""


def test_the_readme_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE):
        exec(block, {})


SHOWN = [
    block.removeprefix("$ ").split("\n", 1)
    for block in re.findall(r"^```console\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
]
DEMO = re.search(r"^\t\$\(BIN\)/(weft .*)", (DOCS.parent / "Makefile").read_text(), re.MULTILINE)
PRINTED = re.search(r"ends with:\n\n```\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize(("line", "shown"), [*SHOWN, (DEMO[1], PRINTED[1])])
def test_what_the_readme_shows_is_what_is_printed(
    line: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    printed = weft(*shlex.split(line)[1:]).stdout
    lines = [
        [SECONDS.sub("", row).rstrip() for row in text.split("\n")] for text in (printed, shown)
    ]
    assert [row for row in lines[0] if row] == [row for row in lines[1] if row]


@pytest.mark.parametrize(
    "block", re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
)
def test_commands_of_the_readme(block: str, tmp_path: Path) -> None:
    (tmp_path / "groups.yaml").write_text(GROUPS)
    (tmp_path / "nccl-topo.xml").write_text(dgx())
    (tmp_path / "ibnetdiscover.txt").write_text(railed(["gpu1", "gpu2", "gpu3"], ups=2).text)
    shutil.copy(DATA / "msccl" / "ar_ring_8.xml", tmp_path / "allreduce.xml")
    shutil.copytree(DATA / "astra" / "ag_ring_8", tmp_path / "ring")
    for line in block.splitlines():
        command, *args = shlex.split(line, comments=True)
        if command == "weft":
            done = weft(*args, cwd=tmp_path)
            assert (done.returncode, done.stderr) == (0, ""), (line, done.stdout, done.stderr)
