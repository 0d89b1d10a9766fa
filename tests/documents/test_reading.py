"""Files of any kind and length: read within bounds, or refused in a sentence."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.cli.command import refused
from weft.documents import open_file, read_bytes, read_document
from weft.errors import FormatError


@pytest.mark.parametrize("length", [0, 9, 10, 11, 1 << 17])
@pytest.mark.parametrize("most", [9, 10, 11, 1 << 17])
def test_a_file_may_have_as_many_bytes_as_are_allowed(length: int, most: int, tmp_path) -> None:
    data = os.urandom(length)
    (tmp_path / "a").write_bytes(data)
    if length <= most:
        assert read_bytes(tmp_path / "a", "test", most) == data
    else:
        with pytest.raises(FormatError, match="is larger than"):
            read_bytes(tmp_path / "a", "test", most)


def test_what_is_too_large_is_not_read(tmp_path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(1 << 40)  # more than memory has, and nothing on disk
    with pytest.raises(FormatError, match="is larger than 1024 MiB"):
        read_bytes(tmp_path / "a", "test", 1 << 30)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_a_file_may_have_more_than_it_says() -> None:
    path = Path("/proc/self/status")
    assert path.stat().st_size == 0
    assert b"VmSize" in read_bytes(path, "test", 1 << 20)
    with pytest.raises(FormatError, match="is larger than"):
        read_bytes(path, "test", 99)


def test_what_has_no_end_or_no_beginning_is_refused(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "socket"))
    (tmp_path / "link").symlink_to("/dev/zero")
    for path in (tmp_path / "pipe", tmp_path / "link", Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(FormatError, match=f"{path}: is a device or a pipe, not a file"):
            read_document(path, "test", lambda document: document)
    with pytest.raises(FormatError, match="cannot be read"):
        read_document(tmp_path / "socket", "test", lambda document: document)
    with pytest.raises(FormatError, match="is a directory"):
        read_document(tmp_path, "test", lambda document: document)
    with pytest.raises(IsADirectoryError), open_file(tmp_path):
        pass


CSV = ["--collective", "all-gather", "--size", "4"]


@pytest.mark.parametrize(
    "args",
    [
        ["verify", "/dev/zero"],
        ["verify", "/dev/zero", "--from", "csv", *CSV],
        ["verify", "pipe.csv", *CSV],
        *(["show", "/dev/zero", "--from", kind] for kind in ("table", "msccl", "mscclpp", "weft")),
        ["topo", "show", "/dev/zero"],
        ["synth", "ring:4", "--plan", "/dev/zero"],
        ["synth", "ring:4", "custom", "--pattern", "pipe.csv"],
        ["synth", "ring:4", "all-to-allv", "--matrix", "/dev/zero"],
        ["simulate", ".", "--astra-sim", "/dev/zero"],
    ],
)
def test_commands_refuse_endless_files(args: list[str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert "is a device or a pipe, not a file" in refused(*args, cwd=tmp_path)
