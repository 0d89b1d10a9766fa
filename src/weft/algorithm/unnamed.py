"""Files without a name: for rows that are too many for memory, and gone with the process."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from weft.algorithm.log_file import LogFile
from weft.errors import InputError


class UnnamedFile:
    """An open file that no folder lists: nothing is left behind, whatever ends the process.

    Attributes
    ----------
    fd
        Its file descriptor, open for reading and writing as long as this object lives.
    folder
        The folder on whose file system it lies; None if it lies in memory.
    linkable
        Whether it can still be given a name (``/proc/self/fd``).
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.linkable = False
        if folder is None:
            self.fd = os.memfd_create("weft")
            return
        try:
            self.fd = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)
            self.linkable = True
        except OSError:
            self.fd = _nameless(folder)

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):  # it was never opened
            os.close(self.fd)

    def log(self, offset: int) -> LogFile:
        """The bytes from `offset` on."""
        return LogFile(self.fd, offset, max(os.fstat(self.fd).st_size - offset, 0))


def _nameless(folder: Path) -> int:
    """The same where the file system knows no files without a name: it loses its name at once."""
    import tempfile  # seldom needed

    try:
        fd, name = tempfile.mkstemp(prefix=".weft-", dir=folder)
        os.unlink(name)
    except OSError as error:
        raise InputError(f"{folder}: no file can be made there: {error.strerror}") from None
    return fd
