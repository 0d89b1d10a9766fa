"""Where things lie in a compact store: a head, arrays, and a directory at the end."""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from weft.algorithm.rounds import LOG_BEGINS
from weft.documents import open_file
from weft.errors import FormatError, InputError
from weft.formats.chakra import naming
from weft.formats.frame import Frame, Network
from weft.quoting import brief

MAGIC = b"WEFT\r\n\x1a\n"  # a transfer as text would change it
VERSION = 1
HEAD_BYTES = LOG_BEGINS  # also what every array is aligned to
TYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in ("bool", "uint8", "uint16", "uint32", "int32", "int64")
}
LOG = "log"  # first of all arrays, and the only one without a checksum
_HEAD = struct.Struct("<8sIIQQ")
_PIECE = 64 << 20  # an interrupt waits for one piece to be written


class Entry(msgspec.Struct):
    """An array: where it lies, and CRC-32 of its bytes."""

    name: str
    type: str
    length: int
    place: int
    checksum: int | None = None

    @property
    def bytes(self) -> int:
        return self.length * TYPES[self.type].itemsize


class Directory(Frame, kw_only=True):
    """The JSON text at the end of the file."""

    rows: str  # what kind they are of
    # What the rows say besides their arrays.
    numbers: dict[str, int] = msgspec.field(default_factory=dict)
    arrays: list[Entry]
    translates: bool = False  # `Topology.translates`
    whole: Network | None = None  # `Topology.whole`


def entries_of(columns: Mapping[str, NDArray[Any]]) -> list[Entry]:
    """Arrays one after the other behind the head, in the order given."""
    entries, place = [], HEAD_BYTES
    for name, column in columns.items():
        checksum = None if name == LOG else zlib.crc32(_raw(column))
        entries.append(Entry(name, column.dtype.name, len(column), place, checksum))
        place = _aligned(place + column.nbytes)
    return entries


def write_all(
    descriptor: int, entries: list[Entry], columns: Mapping[str, NDArray[Any]], directory: bytes
) -> None:
    """Write head, directory and those of the arrays that are given; the others are there."""
    for entry in entries:
        if entry.name in columns:
            _write_at(descriptor, entry.place, _raw(columns[entry.name]))
    place = _end_of(entries)
    _write_at(descriptor, place, memoryview(directory))
    head = _HEAD.pack(MAGIC, VERSION, zlib.crc32(directory), place, len(directory))
    _write_at(descriptor, 0, memoryview(head.ljust(HEAD_BYTES, b"\0")))


def _end_of(entries: list[Entry]) -> int:
    """Where the directory begins, behind these arrays."""
    return _aligned(max((entry.place + entry.bytes for entry in entries), default=HEAD_BYTES))


def _aligned(place: int) -> int:
    return -(-place // HEAD_BYTES) * HEAD_BYTES


def _raw(column: NDArray[Any]) -> memoryview:
    """The bytes of an array, little-endian."""
    plain = np.ascontiguousarray(column, dtype=TYPES[column.dtype.name])
    return plain.view(np.uint8).data


def _write_at(descriptor: int, place: int, data: memoryview) -> None:
    while len(data):
        count = os.pwrite(descriptor, data[:_PIECE], place)
        data, place = data[count:], place + count


class Arrays(dict[str, NDArray[Any]]):
    """The arrays of a store, by name."""

    def __missing__(self, name: str) -> NDArray[Any]:
        raise InputError(f"the array {name} is missing")

    def typed(self, name: str, kind: type[np.generic]) -> NDArray[Any]:
        """An array that must be of one type."""
        column = self[name]
        if column.dtype != np.dtype(kind):
            raise InputError(f"the array {name} is of {column.dtype}; expected {np.dtype(kind)}")
        return column


def mapped(path: Path) -> tuple[Directory, Arrays, int]:
    """The directory of a store, its arrays as they lie in the file, and the file's bytes.

    Raises
    ------
    FormatError
        It is no store, or damaged where that can be told without reading the log.
    """
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size < HEAD_BYTES:
                raise FormatError(f"{path}: is no compact store: it has {size} bytes")
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot read {path}: {getattr(error, 'strerror', error)}") from None
    with naming(path):
        place, directory = _directory(content, size)
        arrays = Arrays()
        for entry in directory.arrays:
            if entry.name in arrays:
                raise InputError(f"the array {brief(entry.name)} is there twice")
            arrays[entry.name] = _array(content, entry, place)
    return directory, arrays, size


def _directory(content: mmap.mmap, size: int) -> tuple[int, Directory]:
    magic, version, checksum, place, length = _HEAD.unpack(content[: _HEAD.size])
    if magic != MAGIC:
        raise InputError("is no compact store: its first bytes are not those of one")
    if version != VERSION:
        raise InputError(f"version {version} of the compact store; this Weft reads {VERSION}")
    if place + length != size or place < HEAD_BYTES:
        raise InputError(
            f"is cut short or damaged: its directory ends at byte {place + length}, "
            f"the file at byte {size}"
        )
    text = content[place:]
    if zlib.crc32(text) != checksum:
        raise InputError(f"the directory at byte {place} is damaged: it has another checksum")
    try:
        return place, msgspec.convert(json.loads(text), Directory)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the directory at byte {place} makes no sense ({error})") from None


def _array(content: mmap.mmap, entry: Entry, end: int) -> NDArray[Any]:
    """A view of the file; `end` is where the arrays end at the latest."""
    name = brief(entry.name)
    if entry.type not in TYPES or entry.length < 0:
        raise InputError(f"the array {name} is of an unknown type or length")
    if entry.place < HEAD_BYTES or entry.place % HEAD_BYTES or entry.place + entry.bytes > end:
        raise InputError(f"the array {name} of {entry.bytes} bytes does not fit in the file")
    column = np.frombuffer(content, TYPES[entry.type], entry.length, entry.place)
    if entry.checksum is None and entry.name != LOG:
        raise InputError(f"the array {name} has no checksum")
    if entry.checksum is not None and zlib.crc32(_raw(column)) != entry.checksum:
        raise InputError(
            f"the array {name} at byte {entry.place} is damaged: it has another checksum"
        )
    if entry.type == "bool" and (column.view(np.uint8) > 1).any():
        raise InputError(f"the array {name} has values other than 0 and 1")
    return column
