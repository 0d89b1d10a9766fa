"""Folders that are replaced in one step, and read as they were at one moment.

The new folder is made beside the old one, as ``.NAME.<random>.new``, then the two change places and
the old one is removed. Where the file system cannot exchange two names, the old folder is first set
aside as ``.NAME.<random>.old``; whoever finds it so, reader or writer, puts it back.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from weft.documents.scratch import is_named, matching, remove_dead, sync, try_locking
from weft.documents.writing import link_target, try_writing
from weft.errors import FormatError, WeftError
from weft.threads import in_threads

T = TypeVar("T")

_NO_EXCHANGE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
_CURRENT_FOLDER, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
_TRIES = 200  # against others who replace the same folder all the time
_SYNCS_AT_ONCE = 16  # a journal takes those that come together as one
_NAME_LENGTH = 100  # of the target's name in that of its scratch


@contextmanager
def new_folder(folder: Path, ours: re.Pattern[str]) -> Iterator[Path]:
    """A temporary sibling to write into; it takes the place of `folder` at the end.

    Whatever goes wrong, an interrupt included, `folder` stays as it was and nothing else is left
    behind; not even a power cut leaves less than the old folder or the new one. What writers left
    that were killed is removed. See `check_replaceable` for `ours`.
    """
    check_replaceable(folder, ours)
    target = link_target(folder)
    try:
        _clear(target)
        with _scratch(target) as place:
            yield place
            with suppress(FileNotFoundError):
                place.chmod(stat.S_IMODE(target.stat().st_mode))
            _sync_all(place)
            _put(place, target)
            sync(target.parent)
    except OSError as error:
        raise FormatError(f"cannot write {folder}: {error.strerror}") from None


def check_replaceable(folder: Path, ours: re.Pattern[str]) -> None:
    """Raise if `folder` could not be made, or is there with anything but files that are `ours`."""
    target = link_target(folder)
    try:
        if not target.parent.is_dir():
            raise FormatError(f"cannot write {folder}: there is no folder {target.parent}")
        try_writing(target.parent)
        if not stat.S_ISDIR(target.stat().st_mode):  # one look: others may take it away between two
            raise FormatError(f"cannot write {folder}: it is a file, not a folder")
        with os.scandir(target) as entries:
            others = sorted(e.name for e in entries if not (ours.fullmatch(e.name) and e.is_file()))
    except FileNotFoundError:
        return  # there is none, or another who replaces it has set it aside this moment
    except OSError as error:
        raise FormatError(f"cannot write {folder}: {error.strerror}") from None
    for name in others[:1]:
        raise FormatError(
            f"cannot replace {folder}: it holds {name}, which Weft did not write; "
            "choose another folder"
        )


def read_whole(path: Path, read: Callable[[], T]) -> T:
    """What `read` makes of the folder at `path`: of one folder, though others may replace it.

    Raises
    ------
    FormatError
        It is replaced faster than it can be read.
    """
    for _ in range(_TRIES):
        before = _identity(path)
        try:
            found = read()
        except WeftError:
            if _identity(path) == before:
                raise
        else:
            if _identity(path) == before:
                return found
    raise FormatError(f"cannot read {path}: it is replaced again and again meanwhile")


def _identity(path: Path) -> tuple[int, ...] | None:
    """What changes when the folder at `path` is replaced; None if no folder is there."""
    with suppress(OSError, ValueError, RuntimeError):  # `read` will say what is wrong with it
        if not path.exists():
            _put_back(path.resolve())
        if path.is_dir():
            status = path.stat()
            return status.st_dev, status.st_ino, status.st_ctime_ns  # numbers are used again
    return None


@contextmanager
def _scratch(target: Path) -> Iterator[Path]:
    """A new folder beside `target` that others leave alone while this process lives."""
    lock, place = -1, target
    try:
        while lock < 0 or not (try_locking(lock) and is_named(lock, place)):  # taken for dead
            if lock >= 0:
                os.close(lock)
            lock, place = -1, _sibling(target, "new")
            place.mkdir()
            with suppress(FileNotFoundError):
                lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        yield place
    finally:
        try:
            if place != target:
                _remove(place)
        except KeyboardInterrupt:  # it may come this late
            _remove(place)
            raise
        finally:
            if lock >= 0:
                os.close(lock)


def _sibling(target: Path, kind: str) -> Path:
    return target.parent / f".{target.name[:_NAME_LENGTH]}.{secrets.token_hex(8)}.{kind}"


def _siblings(target: Path, kind: str) -> list[Path]:
    """Scratch of that kind, the latest last."""
    start = re.escape(target.name[:_NAME_LENGTH])
    name = re.compile(rf"\.{start}\.[0-9a-f]{{16}}\.{kind}", re.DOTALL)
    stamped = []
    for path in matching(target.parent, name):
        with suppress(FileNotFoundError):
            stamped.append((path.stat(follow_symlinks=False).st_ctime_ns, path))
    return [path for _, path in sorted(stamped)]


def _clear(target: Path) -> None:
    """Remove what dead writers left; what one had only set aside is put back."""
    if not target.exists():
        _put_back(target)
    for old in _siblings(target, "old"):
        _remove_old(target, old)
    remove_dead(_siblings(target, "new"), _remove)


def _put_back(target: Path) -> None:
    """Undo the first of two steps of a writer; if it lives, it sees that and begins again."""
    for old in reversed(_siblings(target, "old")):
        with suppress(OSError):  # another was quicker, or may write there and we may not
            old.rename(target)
            return


def _remove_old(target: Path, old: Path) -> None:
    """Remove a folder that was set aside, once it cannot be put back half removed."""
    place = _sibling(target, "new")
    with suppress(FileNotFoundError):  # another removed it, or put it back
        old.rename(place)
        _remove(place)


def _remove(place: Path) -> None:
    with suppress(OSError):
        place.chmod(0o700)  # it may be a folder that nobody was to change
    shutil.rmtree(place, ignore_errors=True)


def _sync_all(place: Path) -> None:
    """Have all of a folder on disk, so that no name leads to what is not there."""
    paths = [Path(at) / name for at, _, names in os.walk(place) for name in names]
    in_threads(sync, paths, _SYNCS_AT_ONCE)
    for at, _, _ in os.walk(place, topdown=False):
        sync(Path(at))


def _put(place: Path, target: Path) -> None:
    """Put `place` where `target` is, which may be nothing; `place` is then what was there."""
    for _ in range(_TRIES):
        try:
            place.rename(target)  # there is nothing, or an empty folder
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        try:
            _exchange(place, target)
            return
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in _NO_EXCHANGE:
                raise
        if _put_in_two_steps(place, target):
            return
    raise OSError(errno.EBUSY, "it is replaced again and again meanwhile")


def _exchange(one: Path, other: Path) -> None:
    """Let two folders change places, in one step."""
    import ctypes  # seldom needed

    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    names = os.fsencode(one), os.fsencode(other)
    if rename(_CURRENT_FOLDER, names[0], _CURRENT_FOLDER, names[1], _EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _put_in_two_steps(place: Path, target: Path) -> bool:
    """The same where names cannot be exchanged; False if others came in between."""
    old = _sibling(target, "old")
    try:
        target.rename(old)
        place.rename(target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
            return False
        raise
    finally:
        if not target.exists():
            _put_back(target)
        if target.exists():
            _remove_old(target, old)
    return True
