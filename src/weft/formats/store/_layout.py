"""Where things lie in a compact store: a head, arrays, and a directory at the end."""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from weft._core import LogChanged
from weft.algorithm.log_file import LogFile
from weft.algorithm.rounds import LOG_BEGINS
from weft.documents import naming, open_file
from weft.errors import FormatError, InputError
from weft.formats.header import Header, Network
from weft.memory import check_fits
from weft.quoting import brief

MAGIC = b"WEFT\r\n\x1a\n"  # a transfer as text would change it
VERSION = 1
HEAD_BYTES = LOG_BEGINS  # also what every array is aligned to
TYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in ("bool", "uint8", "uint16", "uint32", "int32", "int64")
}
Column = NDArray[Any] | LogFile
Types = Mapping[str, type[np.generic]]
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


class Directory(Header, kw_only=True):
    """The JSON text at the end of the file."""

    rows: str  # what kind they are of
    # What the rows say besides their arrays.
    numbers: dict[str, int] = msgspec.field(default_factory=dict)
    arrays: list[Entry]
    translates: bool = False  # `Topology.translates`
    whole: Network | None = None  # `Topology.whole`


def entries_of(columns: Mapping[str, Column]) -> list[Entry]:
    """Arrays one after the other behind the head, in the order given."""
    entries, place = [], HEAD_BYTES
    for name, column in columns.items():
        checksum = None if isinstance(column, LogFile) or name == LOG else zlib.crc32(_raw(column))
        entries.append(Entry(name, column.dtype.name, len(column), place, checksum))
        place = _aligned(place + column.nbytes)
    return entries


def write_all(
    descriptor: int, entries: list[Entry], columns: Mapping[str, Column], directory: bytes
) -> None:
    """Write head, directory and those of the arrays that are given; the others are there."""
    for entry in entries:
        if entry.name not in columns:
            continue
        column, place = columns[entry.name], entry.place
        for piece in column.pieces() if isinstance(column, LogFile) else [_raw(column)]:
            _write_at(descriptor, place, memoryview(piece))
            place += len(piece)
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
    """The arrays of a store, by name, its log if it has one, and numbers that rows say besides."""

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self.numbers = numbers
        self.log: LogFile | None = None

    def __missing__(self, name: str) -> NDArray[Any]:
        raise InputError(f"the array {name} is missing")

    def typed(self, name: str, kind: type[np.generic]) -> NDArray[Any]:
        """An array that must be of one type."""
        column = self[name]
        if column.dtype != np.dtype(kind):
            raise InputError(f"the array {name} is of {column.dtype}; expected {np.dtype(kind)}")
        return column

    def columns(self, types: Types, prefix: str = "") -> dict[str, Any]:
        """Arrays that must be of these types, under their names without the prefix."""
        return {name: self.typed(f"{prefix}{name}", kind) for name, kind in types.items()}

    def number(self, name: str, least: int, most: int) -> int:
        """One of the numbers, which must lie between these."""
        value = self.numbers.get(name)
        if value is None or not least <= value <= most:
            raise InputError(f"{name} is {value}; expected {least} to {most}")
        return value


def opened(path: Path) -> tuple[Directory, Arrays, int]:
    """The directory of a store, its arrays, and the file's bytes.

    Arrays are copies: what has been checked must stay as it was, whatever becomes of the file. Only
    a log, which may be larger than memory, is left there.

    Raises
    ------
    FormatError
        It is no store, damaged where that shows without reading the log, or changed
        while it was read.
    """
    try:
        with open_file(path) as file, naming(path):
            size = os.fstat(file.fileno()).st_size
            if size < HEAD_BYTES:
                raise FormatError(f"{path}: is no compact store: it has {size} bytes")
            whole = LogFile(file.fileno(), 0, size, path)
            with whole.in_use():
                place, directory = _directory(file.fileno(), size)
                return directory, _arrays(file.fileno(), path, directory, place), size
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot read {path}: {getattr(error, 'strerror', error)}") from None


def _read_at(descriptor: int, place: int, length: int) -> bytearray:
    """So many bytes of the file."""
    data = bytearray(length)
    left = memoryview(data)
    while left:
        count = os.preadv(descriptor, [left[:_PIECE]], place)
        if not count:
            raise LogChanged
        left, place = left[count:], place + count
    return data


def _directory(descriptor: int, size: int) -> tuple[int, Directory]:
    head = _HEAD.unpack(_read_at(descriptor, 0, _HEAD.size))
    magic, version, checksum, place, length = head
    if magic != MAGIC:
        raise InputError("is no compact store: its first bytes are not those of one")
    if version != VERSION:
        raise InputError(f"version {version} of the compact store; this Weft reads {VERSION}")
    if place + length != size or place < HEAD_BYTES:
        raise InputError(
            f"is cut short or damaged: its directory ends at byte {place + length}, "
            f"the file at byte {size}"
        )
    text = _read_at(descriptor, place, length)
    if zlib.crc32(text) != checksum:
        raise InputError(f"the directory at byte {place} is damaged: it has another checksum")
    try:
        return place, msgspec.convert(json.loads(text), Directory)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the directory at byte {place} makes no sense ({error})") from None


def _arrays(descriptor: int, path: Path, directory: Directory, end: int) -> Arrays:
    """All arrays; `end` is where they end at the latest."""
    names: set[str] = set()
    for entry in directory.arrays:
        if entry.name in names:
            raise InputError(f"the array {brief(entry.name)} is there twice")
        names.add(entry.name)
        _check_entry(entry, end)
    if sum(entry.bytes for entry in directory.arrays) > end:
        raise InputError("its arrays lie over each other")
    check_fits(
        f"{path}: reading it",
        sum(entry.bytes for entry in directory.arrays if entry.name != LOG),
    )
    arrays = Arrays(directory.numbers)
    for entry in directory.arrays:
        if entry.name == LOG:
            arrays.log = LogFile(descriptor, entry.place, entry.length, path)
        else:
            arrays[entry.name] = _array(descriptor, entry)
    return arrays


def _check_entry(entry: Entry, end: int) -> None:
    name = brief(entry.name)
    if entry.type not in TYPES or entry.length < 0:
        raise InputError(f"the array {name} is of an unknown type or length")
    if entry.place < HEAD_BYTES or entry.place % HEAD_BYTES or entry.place + entry.bytes > end:
        raise InputError(f"the array {name} of {entry.bytes} bytes does not fit in the file")
    if entry.name == LOG and entry.type != "uint8":
        raise InputError(f"the array {name} is of {entry.type}; expected uint8")
    if entry.checksum is None and entry.name != LOG:
        raise InputError(f"the array {name} has no checksum")


def _array(descriptor: int, entry: Entry) -> NDArray[Any]:
    name = entry.name[:40]
    data = _read_at(descriptor, entry.place, entry.bytes)
    if zlib.crc32(data) != entry.checksum:
        raise InputError(
            f"the array {name} at byte {entry.place} is damaged: it has another checksum"
        )
    column = np.frombuffer(data, TYPES[entry.type])
    column.flags.writeable = False
    if entry.type == "bool" and (column.view(np.uint8) > 1).any():
        raise InputError(f"the array {name} has values other than 0 and 1")
    return column
