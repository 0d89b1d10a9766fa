"""Files that take the place of others: what killed writers leave, and what is on disk when."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from weft.documents import new_descriptor, new_file, writing


def test_leftovers_of_the_dead_are_removed_and_those_of_the_living_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on file systems that have no files without a name."""
    monkeypatch.setattr(writing, "_DESCRIPTORS", tmp_path / "nothing")
    target = tmp_path / "out"
    target.write_text("old")
    child = os.fork()
    if child == 0:
        with new_descriptor(target):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert len(list(tmp_path.iterdir())) == 2
    with new_descriptor(target) as descriptor:
        os.write(descriptor, b"slow")
        new_file(target, b"quick")
        assert target.read_bytes() == b"quick"
        assert len(list(tmp_path.iterdir())) == 2  # that of the one that lives
    assert target.read_bytes() == b"slow"
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_is_on_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, done, fsync = tmp_path / "out", [], os.fsync

    def told(descriptor: int) -> None:
        place = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        done.append("folder" if place == tmp_path else "file")
        assert target.exists() == (place == tmp_path)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", told)
    new_file(target, b"new")
    assert done == ["file", "folder"]
