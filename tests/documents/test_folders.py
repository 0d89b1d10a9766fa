"""Folders that are replaced: by writers that are killed, by several at once, and under readers."""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from weft.documents import folders, new_folder, read_whole
from weft.errors import FormatError

OURS = re.compile(r"part[0-9]")
PARTS = 4

# Writes folders, as many as it is told; without an end if that is less than none.
WRITER = f"""
import errno, re, sys
from pathlib import Path
from weft.documents import folders, new_folder
target, stamp, times, exchange = Path(sys.argv[1]), *map(int, sys.argv[2:])
def refuse(one, other):
    raise OSError(errno.EINVAL, "no")
if not exchange:
    folders._exchange = refuse
n = 0
while n != times:
    n += 1
    with new_folder(target, re.compile({OURS.pattern!r})) as place:
        for part in range({PARTS}):
            (place / f"part{{part}}").write_text(str(stamp * 1000 + n))
"""


def writer(target: Path, stamp: int, times: int, exchange: bool) -> subprocess.Popen[bytes]:
    args = [str(target), *map(str, (stamp, times, int(exchange)))]
    return subprocess.Popen([sys.executable, "-c", WRITER, *args], stderr=subprocess.PIPE)


def refuse(_one: Path, _other: Path) -> None:
    raise OSError(errno.ENOSYS, "no")


def write_until_killed(target: Path, text: str, deadly: int) -> int:
    """Write in a process that kills itself before the n-th call that Python reports; its code."""
    child = os.fork()
    if child == 0:
        seen = 0

        def hook(event: str, _args: object) -> None:
            nonlocal seen
            seen += event.startswith(("os.", "open", "shutil.", "ctypes.dlsym", "fcntl."))
            if seen == deadly:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(hook)
            write(target, text)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def write(target: Path, text: str) -> None:
    with new_folder(target, OURS) as place:
        for part in range(PARTS):
            (place / f"part{part}").write_text(text)


def content(target: Path) -> str:
    """What all parts of the folder say: it must be the same."""
    try:
        names = sorted(os.listdir(target))
        texts = {(target / name).read_text() for name in names}
    except OSError as error:
        raise FormatError(f"{target}: {error.strerror}") from None
    assert names == [f"part{part}" for part in range(PARTS)]
    assert len(texts) == 1
    return texts.pop()


def mixed(target: Path) -> str:
    """The same, but a mixture is something to read again rather than wrong."""
    try:
        return content(target)
    except AssertionError:
        raise FormatError("a mixture") from None


@pytest.fixture(params=[True, False], ids=["exchange", "two steps"])
def exchange(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """With and without a file system that can exchange names."""

    def refuse(_one: Path, _other: Path) -> None:
        raise OSError(errno.EINVAL, "no")

    if not request.param:
        monkeypatch.setattr(folders, "_exchange", refuse)
    return bool(request.param)


def test_a_writer_killed_anywhere_leaves_a_whole_folder(tmp_path: Path, exchange: bool) -> None:
    target = tmp_path / "out"
    write(target, "0")
    expected, deadly, code = "0", 1, -signal.SIGKILL
    while code == -signal.SIGKILL:
        code = write_until_killed(target, str(deadly), deadly)
        if exchange:
            assert target.is_dir()
        found = read_whole(target, lambda: content(target))
        assert found in (expected, str(deadly))
        expected = found
        deadly += 1
    assert code == 0
    assert deadly > 20  # there were many places to be killed at
    assert list(tmp_path.iterdir()) == [target]  # and the last one cleared up after all others


def test_writers_killed_at_any_time(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target, "0")
    chance = random.Random(7)
    for stamp in range(1, 7):
        with writer(target, stamp, -1, exchange=True) as running:
            while running.poll() is None and content_is_older(target, stamp):
                time.sleep(0.001)
            time.sleep(chance.uniform(0, 0.02))
            running.kill()
        content(target)
    write(target, "last")
    assert list(tmp_path.iterdir()) == [target]


def content_is_older(target: Path, stamp: int) -> bool:
    return int(read_whole(target, lambda: mixed(target))) < stamp * 1000


def test_writers_side_by_side_and_a_reader(tmp_path: Path, exchange: bool) -> None:
    target = tmp_path / "out"
    write(target, "0")
    running = [writer(target, stamp, 40, exchange) for stamp in (1, 2, 3)]
    while any(one.poll() is None for one in running):
        if exchange:
            assert target.is_dir()
        read_whole(target, lambda: mixed(target))
    for one in running:
        with one:
            assert (one.wait(), one.stderr.read() if one.stderr else b"") == (0, b"")
    assert content(target) in ("1040", "2040", "3040")
    write(target, "last")
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.usefixtures("exchange")
def test_a_folder_that_is_set_aside_meanwhile_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may set it aside between any two looks at it."""
    target, exists = tmp_path / "out", Path.exists

    def and_then_gone(self: Path, **how: bool) -> bool:
        there = exists(self, **how)
        if there and self == target:
            self.rename(tmp_path / "aside")
        return there

    write(target, "old")
    monkeypatch.setattr(Path, "exists", and_then_gone)
    folders.check_replaceable(target, OURS)


def test_a_living_writer_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with new_folder(target, OURS) as place:
        (place / "part0").write_text("slow")
        write(target, "quick")
        assert content(target) == "quick"
    assert [path.read_text() for path in target.iterdir()] == ["slow"]
    assert list(tmp_path.iterdir()) == [target]


def test_what_goes_wrong_between_two_steps_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_exchange", refuse)
    target, rename = tmp_path / "out", Path.rename

    def fail(self: Path, to: Path) -> Path:
        if self.suffix == ".new" and to == target and not target.exists():
            raise OSError(errno.EIO, "broken")
        return rename(self, to)

    write(target, "old")
    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(FormatError, match="broken"):
        write(target, "new")
    assert content(target) == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_that_is_replaced_under_its_reader_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, tries = tmp_path / "out", 0
    write(target, "0")

    def read() -> str:
        nonlocal tries
        tries += 1
        if tries < 3:
            write(target, str(tries))
        return content(target)

    assert read_whole(target, read) == "2"
    assert tries == 3

    def restless() -> None:
        write(target, "again")

    monkeypatch.setattr(folders, "_TRIES", 5)
    with pytest.raises(FormatError, match="again and again"):
        read_whole(target, restless)


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o2770, 0o555])
@pytest.mark.parametrize("exchange", [False, True])
def test_a_replaced_folder_keeps_its_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool, mode: int
) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "part0").write_text("old")
    target.chmod(mode)
    if not exchange:
        monkeypatch.setattr(folders, "_exchange", refuse)
    with new_folder(target, OURS) as place:
        (place / "part0").write_text("new")
    assert (target / "part0").read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == mode
    assert list(tmp_path.iterdir()) == [target]


def test_an_interrupt_while_clearing_up_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, calls = shutil.rmtree, []

    def interrupted(place: Path, **options: bool) -> None:
        calls.append(place)
        if len(calls) == 1:
            raise KeyboardInterrupt
        remove(place, **options)

    target = tmp_path / "out"
    write(target, "old")
    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(target, "new")
    assert len(calls) == 2
    assert content(target) == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_errors_of_a_folder_that_stays_are_told_at_once(tmp_path: Path) -> None:
    tries = 0

    def read() -> None:
        nonlocal tries
        tries += 1
        raise FormatError("wrong")

    with pytest.raises(FormatError, match="wrong"):
        read_whole(tmp_path, read)
    assert tries == 1


def test_all_is_on_disk_before_it_is_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files, then the folder, then it is put in place, then the folder above."""
    target, done, exchange, fsync = tmp_path / "out", [], folders._exchange, os.fsync
    write(target, "old")

    def told_exchange(one: Path, other: Path) -> None:
        done.append("exchange")
        exchange(one, other)

    def told_fsync(descriptor: int) -> None:
        done.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(folders, "_exchange", told_exchange)
    monkeypatch.setattr(os, "fsync", told_fsync)
    write(target, "new")
    assert sorted(path.rpartition("/")[2] for path in done[:PARTS]) == [
        f"part{part}" for part in range(PARTS)
    ]
    assert done[PARTS].endswith(".new")
    assert done[PARTS + 1 :] == ["exchange", str(tmp_path)]
