"""What is written: through links, with the permissions there were, and nothing of others lost."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

import weft
from tests.cli.command import refused
from tests.cli.command import weft as run
from weft.documents import check_new_file, check_replaceable, new_file, new_folder
from weft.errors import FormatError

NAMES = re.compile(r"weft\.[0-9]\.et")
SYNTH = ["synth", "ring:3", "all-gather", "--size", "3kB", "-o"]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_written_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "a").write_bytes(b"old")
    (tmp_path / "near").symlink_to("far/a")
    (tmp_path / "nearest").symlink_to("near")
    check_new_file(tmp_path / "nearest")
    new_file(tmp_path / "nearest", b"new")
    assert (tmp_path / "near").is_symlink()
    assert (tmp_path / "nearest").is_symlink()
    assert (tmp_path / "far" / "a").read_bytes() == b"new"
    assert os.listdir(tmp_path / "far") == ["a"]


def test_a_link_to_nothing_yet(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("far/a")
    check_new_file(tmp_path / "link")
    new_file(tmp_path / "link", b"new")
    assert (tmp_path / "far" / "a").read_bytes() == b"new"
    (tmp_path / "lost").symlink_to("gone/a")
    for write in (check_new_file, lambda path: new_file(path, b"")):
        with pytest.raises(FormatError, match="lost: cannot be written"):
            write(tmp_path / "lost")


def write_folder(path: Path) -> None:
    with new_folder(path, NAMES):
        pass


@pytest.mark.parametrize("write", [check_new_file, lambda path: new_file(path, b""), write_folder])
def test_a_link_to_itself(write: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(FormatError, match="loop: cannot be written"):
        write(tmp_path / "loop")
    assert (tmp_path / "loop").is_symlink()


def test_a_folder_is_written_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "weft.0.et").write_bytes(b"old")
    (tmp_path / "near").symlink_to("far")
    with new_folder(tmp_path / "near", NAMES) as place:
        (place / "weft.1.et").write_bytes(b"new")
    assert (tmp_path / "near").is_symlink()
    assert os.listdir(tmp_path / "far") == ["weft.1.et"]


@pytest.mark.parametrize("wanted", [0o600, 0o640, 0o755, 0o444])
def test_a_replaced_file_keeps_its_mode(wanted: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(wanted)
    (tmp_path / "link").symlink_to("a")
    for name in ("a", "link"):
        new_file(tmp_path / name, name.encode())
        assert (tmp_path / "a").read_bytes() == name.encode()
        assert mode(tmp_path / "a") == wanted


def test_a_new_file_has_the_mode_that_was_asked_for(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        new_file(tmp_path / "a", b"")
        new_file(tmp_path / "b", b"", mode=0o777)
    finally:
        os.umask(mask)
    assert mode(tmp_path / "a") == 0o640
    assert mode(tmp_path / "b") == 0o750


@pytest.mark.parametrize("make", ["mkdir", "link", "pipe"])
def test_a_folder_by_the_name_of_a_trace_is_not_deleted(make: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "weft.0.et").write_bytes(b"old")
    if make == "mkdir":
        (folder / "weft.1.et").mkdir()
        (folder / "weft.1.et" / "mine").write_text("mine")
    elif make == "link":
        (tmp_path / "mine").mkdir()
        (folder / "weft.1.et").symlink_to(tmp_path / "mine")
    else:
        os.mkfifo(folder / "weft.1.et")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FormatError, match=r"it holds weft\.1\.et, which Weft did not write"):
        check_replaceable(folder, NAMES)
    with (
        pytest.raises(FormatError, match=r"it holds weft\.1\.et, which"),
        new_folder(folder, NAMES),
    ):
        pass
    assert "it holds weft.1.et" in refused(*SYNTH, "out", cwd=tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["a.weft", "traces"])
def test_commands_write_through_links(name: str, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / name).symlink_to(f"far/{name}")
    for _ in range(2):  # what is not there yet, and what is
        assert run(*SYNTH, name, cwd=tmp_path).returncode == 0
        assert (tmp_path / name).is_symlink()
        assert os.listdir(tmp_path / "far") == [name]
    assert weft.load(tmp_path / name).demands


def test_every_command_asks_for_the_folder_before_its_work(tmp_path: Path) -> None:
    """What is read makes no sense either, and would be noticed first if it were read first."""
    assert run(*SYNTH, "traces", cwd=tmp_path).returncode == 0
    (tmp_path / "bad.json").write_text("{")
    before = sorted(tmp_path.rglob("*"))
    for args in (
        ["synth", "gone.yaml", "all-gather", "--size", "3kB", "-o", "no/traces"],
        ["synth", "gone.yaml", "all-gather", "--size", "3kB", "-o", "no/a.weft"],
        ["convert", "bad.json", "no/traces"],
        *(["convert", "bad.json", f"no/a{end}"] for end in (".weft", ".xml", ".csv", ".json")),
        ["convert", "bad.json", "no/a.json", "--to", "mscclpp"],
        ["export", "astra-sim", "gone", "-o", "no/bundle"],
        ["topo", "show", "gone.yaml", "-o", "no/a.yaml"],
        ["simulate", "bad.json", "--trace", "no/a.json"],
        ["compare", "gone.yaml", "all-gather", "--csv", "no/a.csv"],
        ["lower", "traces/weft", "--topology", "gone.yaml", "-o", "no/lowered"],
        ["workload", "transformer", "--npus", "4", "-o", "no/step"],
    ):
        assert "there is no folder" in refused(*args, cwd=tmp_path), args
    assert sorted(tmp_path.rglob("*")) == before
