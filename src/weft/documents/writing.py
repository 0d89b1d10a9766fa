"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from weft.documents.scratch import is_named, matching, remove_dead, sync, sync_open, try_locking
from weft.errors import FormatError

_DESCRIPTORS = Path("/proc/self/fd")
_SCRATCH = re.compile(r"\.weft-[0-9a-f]{16}")


def new_file(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Write `data` to a file; `mode` as far as the user's mask allows."""
    with new_descriptor(path, mode=mode) as descriptor, open(descriptor, "wb", closefd=False) as to:
        to.write(data)


@contextmanager
def new_descriptor(path: Path, *, mode: int = 0o666) -> Iterator[int]:
    """A file to write into, which takes the place of `path` at the end, or of what it links to.

    Until then it has no name, where the file system allows that. Whatever goes wrong, an interrupt
    included, `path` stays as it was and nothing else is left behind; what writers left that were
    killed is removed.
    """
    target = link_target(path)
    scratch = _sibling(target)
    try:
        check_replaces_file(path)
        descriptor = _opened(target.parent, scratch)
        try:
            yield descriptor
            _give_name(descriptor, scratch, target, mode)
        finally:
            os.close(descriptor)
            scratch.unlink(missing_ok=True)
    except OSError as error:
        raise FormatError(f"{path}: cannot be written: {error.strerror}") from None


def give_name(descriptor: int, path: Path, *, mode: int = 0o666) -> None:
    """Put a file without a name in the place of `path`; raises OSError where that cannot be."""
    target = link_target(path)
    scratch = _sibling(target)
    try:
        _give_name(descriptor, scratch, target, mode)
    finally:
        scratch.unlink(missing_ok=True)


def link_target(path: Path) -> Path:
    """What a path leads to: links stay, and what they name is written."""
    try:
        target = path.resolve()
        if target.is_symlink():  # newer Pythons stop there, older ones raise
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    except OSError as error:
        raise FormatError(f"{path}: cannot be written: {error.strerror}") from None
    except (RuntimeError, ValueError) as error:  # a loop of links, a null character
        raise FormatError(f"{path}: cannot be written: {error}") from None
    return target


def check_replaces_file(path: Path) -> None:
    """Raise if what is at `path` is no file: to rename over a device removes it for everybody."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise FormatError(f"{path}: cannot be written: it is a device or a pipe, not a file")


def _sibling(path: Path) -> Path:
    return path.parent / f".weft-{secrets.token_hex(8)}"


def _opened(folder: Path, scratch: Path) -> int:
    """A new file without a name, or under the name of `scratch` if it must have one."""
    if _DESCRIPTORS.is_dir():
        with suppress(OSError, AttributeError):  # not on every file system, nor outside Linux
            return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    while True:
        descriptor = os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        if try_locking(descriptor) and is_named(descriptor, scratch):
            return descriptor
        os.close(descriptor)  # another took it for that of a dead writer


def _give_name(descriptor: int, scratch: Path, path: Path, mode: int) -> None:
    """First a name of its own, for an instant: only a rename can replace what is there."""
    remove_dead(matching(path.parent, _SCRATCH), Path.unlink)
    os.fchmod(descriptor, _mode_of(path, mode))
    sync_open(descriptor)
    try_locking(descriptor)
    if os.fstat(descriptor).st_nlink == 0:
        folder = os.open(_DESCRIPTORS, os.O_RDONLY)
        try:  # with a folder given, the link is followed to the file
            os.link(str(descriptor), scratch, src_dir_fd=folder, follow_symlinks=True)
        finally:
            os.close(folder)
    scratch.replace(path)
    sync(path.parent)


def _mode_of(path: Path, mode: int) -> int:
    """The permissions of the file that is there, or those of a new one."""
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        return mode & ~_umask()


def check_new_file(path: Path) -> None:
    """Raise, before any work, if `new_file` could not write there."""
    try:
        if path.is_dir():
            raise FormatError(f"{path}: cannot be written: it is a folder, not a file")
        check_replaces_file(path)
        target = link_target(path)
        if not target.parent.is_dir():
            folder = target.parent if path.is_symlink() else path.parent
            raise FormatError(f"{path}: cannot be written: there is no folder {folder}")
        if len(os.fsencode(target.name)) > os.pathconf(target.parent, "PC_NAME_MAX"):
            raise FormatError(f"{path}: cannot be written: its name is too long")
        try_writing(target.parent)
    except OSError as error:
        raise FormatError(f"{path}: cannot be written: {error.strerror}") from None


def try_writing(folder: Path) -> None:
    """Raise OSError unless a file can be made in `folder`, or in what is there of the way to it.

    Permissions alone do not say it: not for root, and not on every file system.
    """
    above = next(up for up in (folder, *folder.absolute().parents) if up.exists())
    with tempfile.TemporaryFile(dir=above):
        pass


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
