"""What writers keep beside their target until it is whole, and what dead ones left of it.

A writer holds a lock on its scratch file or folder, and loses it with its life, whatever ends it.
Where the file system has no locks nothing counts as dead, and leftovers stay.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def try_locking(descriptor: int) -> bool:
    """Lock what a descriptor has open for as long as it is open; False if another has it locked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # no locks there: nobody can take it for dead
    return True


def is_named(descriptor: int, path: Path) -> bool:
    """Whether `path` still leads to what a descriptor has open: others may clear it away."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


@contextmanager
def _if_dead(path: Path) -> Iterator[bool]:
    """Whether the writer of scratch at `path` is dead; nobody else finds so meanwhile."""
    descriptor = -1
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        dead = is_named(descriptor, path)
    except OSError:
        dead = False  # alive, gone, not to be opened, or on a file system without locks
    try:
        yield dead
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def sync(path: Path) -> None:
    """Have a file or folder on disk, as far as the file system can be asked for that."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:
        return  # a folder into which we may write, but not look
    try:
        sync_open(descriptor)
    finally:
        os.close(descriptor)


def sync_open(descriptor: int) -> None:
    """The same for what is open."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise


def remove_dead(paths: Iterable[Path], remove: Callable[[Path], None]) -> None:
    """Remove scratch whose writers are dead."""
    for path in paths:
        with _if_dead(path) as dead:
            if dead:
                remove(path)


def matching(folder: Path, name: re.Pattern[str]) -> list[Path]:
    """What has such a name in `folder`; nothing if we may not look."""
    try:
        with os.scandir(folder) as entries:
            return [folder / entry.name for entry in entries if name.fullmatch(entry.name)]
    except PermissionError:
        return []
