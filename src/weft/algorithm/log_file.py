"""Logs of rounds in files: those of others, and files without a name for logs beyond memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.errors import FormatError, InputError

_PIECE = 4 << 20


class LogFile:
    """The bytes of a log, read from a file piece by piece and never mapped into memory.

    A page of a mapped file that is cut short ends the process, and one that is written over says
    something else than what was checked.

    Parameters
    ----------
    fd
        The open file; this object keeps a descriptor of its own.
    at, length
        Where in the file the log begins, and how many bytes it has.
    path
        The file's name. Then the file is as others left it, and must not change any more; one
        without a name nobody else can reach.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, fd: int, at: int, length: int, path: Path | None = None) -> None:
        self._fd = os.dup(fd)
        self.at, self.nbytes, self.path = at, length, path
        self._stamp = self._now()

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):  # it was never opened
            os.close(self._fd)

    def __len__(self) -> int:
        return self.nbytes

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.frombuffer(self.tobytes(), dtype=np.uint8).astype(dtype or np.uint8, copy=False)

    def tobytes(self) -> bytes:
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        """All bytes, some at a time."""
        with self.in_use():
            place, end = self.at, self.at + self.nbytes
            while place < end:
                piece = os.pread(self._fd, min(_PIECE, end - place), place)
                if not piece:
                    raise _core.LogChanged
                yield piece
                place += len(piece)

    @property
    def core(self) -> _core.LogBytes:
        return _core.LogBytes.in_file(self._fd, self.at, self.nbytes)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """While the log is read.

        Raises
        ------
        FormatError
            It has changed since it was opened: then what was made of it means nothing.
        """
        try:
            yield
        except _core.LogChanged:
            raise self._changed() from None
        if self.path is not None and self._now() != self._stamp:
            raise self._changed()

    def _changed(self) -> FormatError:
        return FormatError(f"{self.path or 'the log of rounds'}: changed while in use")

    def _now(self) -> tuple[int, int, int]:
        status = os.fstat(self._fd)
        return status.st_size, status.st_mtime_ns, status.st_ctime_ns


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
        with suppress(AttributeError, OSError):  # it was never opened
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
