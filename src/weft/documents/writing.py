"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from weft.errors import FormatError

_DESCRIPTORS = Path("/proc/self/fd")


def new_file(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Write `data` to a file; `mode` as far as the user's mask allows."""
    with new_descriptor(path, mode=mode) as descriptor, open(descriptor, "wb", closefd=False) as to:
        to.write(data)


@contextmanager
def new_descriptor(path: Path, *, mode: int = 0o666) -> Iterator[int]:
    """A file to write into, which takes the place of `path` at the end.

    Until then it has no name, where the file system allows that. Whatever goes wrong, an interrupt
    included, `path` stays as it was and nothing else is left behind.
    """
    scratch = _sibling(path)
    try:
        check_replaces_file(path)
        descriptor = _opened(path.parent, scratch)
        try:
            yield descriptor
            _give_name(descriptor, scratch, path, mode)
        finally:
            os.close(descriptor)
            scratch.unlink(missing_ok=True)
    except OSError as error:
        raise FormatError(f"{path}: cannot be written: {error.strerror}") from None


def give_name(descriptor: int, path: Path, *, mode: int = 0o666) -> None:
    """Put a file without a name in the place of `path`; raises OSError where that cannot be."""
    scratch = _sibling(path)
    try:
        _give_name(descriptor, scratch, path, mode)
    finally:
        scratch.unlink(missing_ok=True)


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
    return os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)


def _give_name(descriptor: int, scratch: Path, path: Path, mode: int) -> None:
    """First a name of its own, for an instant: only a rename can replace what is there."""
    os.fchmod(descriptor, mode & ~_umask())
    if os.fstat(descriptor).st_nlink == 0:
        folder = os.open(_DESCRIPTORS, os.O_RDONLY)
        try:  # with a folder given, the link is followed to the file
            os.link(str(descriptor), scratch, src_dir_fd=folder, follow_symlinks=True)
        finally:
            os.close(folder)
    scratch.replace(path)


def check_new_file(path: Path) -> None:
    """Raise, before any work, if `new_file` could not write there."""
    try:
        if path.is_dir():
            raise FormatError(f"{path}: cannot be written: it is a folder, not a file")
        check_replaces_file(path)
        if not path.parent.is_dir():
            raise FormatError(f"{path}: cannot be written: there is no folder {path.parent}")
        if len(os.fsencode(path.name)) > os.pathconf(path.parent, "PC_NAME_MAX"):
            raise FormatError(f"{path}: cannot be written: its name is too long")
        try_writing(path.parent)
    except OSError as error:
        raise FormatError(f"{path}: cannot be written: {error.strerror}") from None


def try_writing(folder: Path) -> None:
    """Raise OSError unless a file can be made in `folder`, or in what is there of the way to it.

    Permissions alone do not say it: not for root, and not on every file system.
    """
    above = next(up for up in (folder, *folder.absolute().parents) if up.exists())
    with tempfile.TemporaryFile(dir=above):
        pass


@contextmanager
def new_folder(folder: Path, ours: re.Pattern[str]) -> Iterator[Path]:
    """A temporary sibling to write into; it takes the place of `folder` at the end.

    Whatever goes wrong, an interrupt included, `folder` stays as it was and nothing else is
    left behind. See `check_replaceable` for `ours`.
    """
    check_replaceable(folder, ours)
    target = folder.resolve()
    try:
        place = Path(tempfile.mkdtemp(prefix=f".{target.name[:100]}.", dir=target.parent))
    except OSError as error:
        raise FormatError(f"cannot write {folder}: {error.strerror}") from None
    try:
        place.chmod(0o777 & ~_umask())
        yield place
        _replace(place, target)
    except OSError as error:
        raise FormatError(f"cannot write {folder}: {error.strerror}") from None
    finally:
        shutil.rmtree(place, ignore_errors=True)


def check_replaceable(folder: Path, ours: re.Pattern[str]) -> None:
    """Raise if `folder` could not be made, or is there with files whose names are not `ours`."""
    try:
        target = folder.resolve()
        if not target.parent.is_dir():
            raise FormatError(f"cannot write {folder}: there is no folder {target.parent}")
        try_writing(target.parent)
        if not target.exists():
            return
        if not target.is_dir():
            raise FormatError(f"cannot write {folder}: it is a file, not a folder")
        names = sorted(os.listdir(target))
    except OSError as error:
        raise FormatError(f"cannot write {folder}: {error.strerror}") from None
    except (RuntimeError, ValueError) as error:  # a loop of symbolic links, a null character
        raise FormatError(f"cannot write {folder}: {error}") from None
    for name in names:
        if not ours.fullmatch(name):
            raise FormatError(
                f"cannot replace {folder}: it holds {name}, which Weft did not write; "
                "choose another folder"
            )


def _replace(place: Path, target: Path) -> None:
    """Put `place` where `target` is; a folder in use cannot be overwritten in one step."""
    if not target.exists() or not any(target.iterdir()):
        place.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name[:100]}.", dir=target.parent))
    try:
        target.rename(old)
        try:
            place.rename(target)
        except BaseException:
            old.rename(target)
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
