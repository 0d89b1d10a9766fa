"""From a path to what a file says; what is wrong becomes one sentence with file and line."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from weft.documents.places import PlacedError, line_of, load_yaml
from weft.errors import FormatError, InputError

MAX_BYTES = 256 << 20

T = TypeVar("T")


@dataclass(frozen=True)
class Document:
    """A file's content, as bytes and as text."""

    path: Path
    data: bytes
    text: str

    @property
    def suffix(self) -> str:
        return self.path.suffix.lower()

    def plain(self) -> Any:
        """Its plain values: JSON if the suffix says so, otherwise YAML."""
        return load_json(self.data) if self.suffix == ".json" else load_yaml(self.text)


def read_document(
    path: str | os.PathLike[str], kind: str, build: Callable[[Document], T], most: int = MAX_BYTES
) -> T:
    """What `build` makes of a file of some `kind` and at most so many bytes.

    It may raise `PlacedError`.
    """
    where = Path(path)
    data = read_bytes(where, kind, most).removeprefix(codecs.BOM_UTF8)
    document = Document(where, data, _decode(where, data))
    try:
        return build(document)
    except PlacedError as fault:
        line = line_of(document.text, fault.path) if fault.line is None else fault.line
        place = f"{where}:" if line is None else f"{where} line {line}:"
        sentence = " ".join(fault.message.split())  # what it quotes may have lines
        raise FormatError(f"{place} {sentence}") from None


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say in which file it went wrong."""
    try:
        yield
    except FormatError:
        raise
    except (InputError, ValueError) as error:
        raise FormatError(f"{path}: {error}") from None


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """A file to read.

    Raises
    ------
    FormatError
        It is a device, a pipe or a socket: those may have no end, or never begin.
    OSError, ValueError
        It cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # which waits for no writer of a pipe
    with open(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise FormatError(f"{path}: is a device or a pipe, not a file")
        yield file


def read_bytes(path: Path, kind: str, most: int) -> bytes:
    """All of a file of some `kind`, which may have at most so many bytes."""
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            data = b"" if size > most else _first(file, most + 1, max(size + 1, 1 << 16))
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise FormatError(f"{path}: is a directory, not a {kind} file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise FormatError(f"{path}: cannot be read: {reason}") from None
    if max(size, len(data)) > most:
        raise FormatError(f"{path}: is larger than {most >> 20} MiB, the most Weft reads")
    return data


def _first(file: BinaryIO, most: int, step: int) -> bytes:
    """The first bytes of a file, at most so many, by steps: some have more than they say.

    Asking for all at once would take memory for all, whatever the file has.
    """
    parts: list[bytes] = []
    while most and (part := file.read(min(step, most))):
        parts.append(part)
        most -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _decode(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"{path} line {line}: is not UTF-8 text") from None


def load_json(data: bytes) -> Any:
    """The plain values of a JSON text."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise _malformed(data, error) from None
    except RecursionError:
        raise PlacedError("nests too deep") from None


def _malformed(data: bytes, error: msgspec.DecodeError) -> PlacedError:
    """The line of a JSON error: msgspec names the byte, or says that the data ends too early."""
    reason, _, byte = str(error).removeprefix("JSON is malformed: ").partition(" (byte ")
    end = int(byte.rstrip(")")) if byte else len(data)
    return PlacedError(f"not valid JSON: {reason}", line=data.count(b"\n", 0, end) + 1)
