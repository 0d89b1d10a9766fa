"""Which formats there are, and how a file is recognised by what is in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.algorithm import Algorithm
from weft.documents import open_file, read_whole
from weft.errors import FormatError, unknown_name
from weft.formats import chakra, msccl, mscclpp, store, table
from weft.formats.imported import NO_HINTS, Hints, Imported

HEAD_BYTES = 4096


@dataclass(frozen=True)
class Format:
    """A format of algorithms on disk.

    Attributes
    ----------
    title
        What people call it.
    recognise
        Whether a path is of this format, from the path and the first bytes of its content
        (empty if it is a folder). Formats are asked in order; the first that says yes wins.
    read
        Reads an algorithm; raises FormatError, which names file and place.
    write
        Writes one, whole or not at all; takes the format's own options by name.
    suffix
        Ending by which an output file asks for this format; empty if it is a folder.
    options
        Names of the options `write` takes.
    """

    title: str
    recognise: Callable[[Path, bytes], bool]
    read: Callable[[Path, Hints], Imported]
    write: Callable[..., None]
    suffix: str
    options: tuple[str, ...] = ()


FORMATS: dict[str, Format] = {
    "chakra": Format(
        "Chakra execution traces, a folder with one file a rank",
        chakra.recognise,
        chakra.read,
        chakra.save,
        "",
        ("ranks",),
    ),
    "weft": Format(
        "a compact store, one file in a few bytes a transfer",
        store.recognise,
        store.read,
        store.write,
        store.SUFFIX,
    ),
    "msccl": Format(
        "MSCCL-XML, a program of thread blocks",
        msccl.recognise,
        msccl.read,
        msccl.write,
        ".xml",
        ("dialect", "protocol", "name"),
    ),
    "mscclpp": Format(
        "MSCCL++ execution plan, a JSON file",
        mscclpp.recognise,
        mscclpp.read,
        mscclpp.save,
        ".json",
        mscclpp.OPTIONS,
    ),
    "csv": Format(
        "a table of transfers as CSV",
        table.recognise_csv,
        table.read_csv,
        table.write_csv,
        ".csv",
    ),
    # Last: other formats are JSON too, and know what theirs looks like.
    "table": Format(
        "a table of transfers as JSON",
        table.recognise_json,
        table.read_json,
        table.write_json,
        ".json",
    ),
}


def recognise(path: Path) -> str:
    """Name of the format of a file or folder, by what is in it."""
    head = b""
    try:
        there = path.exists()
        if there and not path.is_dir():
            with open_file(path) as file:
                head = file.read(HEAD_BYTES)
        for name, kind in FORMATS.items():
            if kind.recognise(path, head):
                return name
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot read {path}: {getattr(error, 'strerror', error)}") from None
    if not there:
        raise FormatError(f"cannot read {path}: No such file or directory")
    known = ", ".join(kind.title for kind in FORMATS.values())
    raise FormatError(f"{path} is in no format Weft knows (known: {known})")


def read(path: str | Path, hints: Hints = NO_HINTS, *, kind: str | None = None) -> Imported:
    """Read an algorithm in any known format; `kind` names the format instead of recognising it.

    The algorithm is not judged yet: see `Imported.verified`.
    """
    path = Path(path)
    return read_whole(path, lambda: known_format(kind or recognise(path)).read(path, hints))


def write(
    algorithm: Algorithm,
    path: str | Path,
    *,
    kind: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> str:
    """Write an algorithm; the format follows from the path's ending unless `kind` names it.

    Gives the format's name.
    """
    path = Path(path)
    name = kind or by_suffix(path)
    known_format(name).write(algorithm, path, **(options or {}))
    return name


def by_suffix(path: Path) -> str:
    """The format that a path's ending asks for: a folder of traces if it has none."""
    for name, kind in reversed(FORMATS.items()):  # from the most general on
        if kind.suffix == path.suffix.lower():
            return name
    endings = ", ".join(dict.fromkeys(kind.suffix for kind in FORMATS.values() if kind.suffix))
    raise FormatError(
        f"{path}: no format is written to files that end in {path.suffix} "
        f"(known: {endings}, none for a folder of traces); name one with --to"
    )


def known_format(name: str) -> Format:
    """The format of that name."""
    if name not in FORMATS:
        raise unknown_name("format", name, FORMATS)
    return FORMATS[name]
